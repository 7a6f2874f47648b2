/* connection.c - see connection.h. */
#include "connection.h"

#include "basics.h"
#include "ws_client.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

void
connection_init(Connection *connection, int number, size_t out_size, size_t in_size)
{
	connection->number = number;
	connection->out = allocate(out_size);
	connection->in = allocate(in_size);
	connection->in_size = in_size;
}

static void
watch(Connection *connection, int operation)
{
	struct epoll_event event = {.events = EPOLLIN | (connection->wants_write ? EPOLLOUT : 0),
								.data.ptr = connection->owner};

	if (epoll_ctl(connection->poller, operation, connection->fd, &event) != 0)
		fail("epoll: %s", strerror(errno));
}

void
connection_watch(Connection *connection, int poller, void *owner)
{
	(void) fcntl(connection->fd, F_SETFL, fcntl(connection->fd, F_GETFL) | O_NONBLOCK);
	connection->poller = poller;
	connection->owner = owner;
	watch(connection, EPOLL_CTL_ADD);
}

void
connection_poll_for(Connection *connection, bool write)
{
	if (connection->wants_write == write)
		return;
	connection->wants_write = write;
	watch(connection, EPOLL_CTL_MOD);
}

size_t
connection_receive(Connection *connection)
{
	ssize_t got =
		ws_recv(connection->fd, connection->in + connection->in_len, connection->in_size - connection->in_len);

	if (got == 0)
		fail("user %d: the server closed the connection", connection->number);
	if (got < 0 && errno != EAGAIN)
		fail("user %d: %s", connection->number, strerror(errno));
	if (got < 0)
		return 0;
	connection->in_len += (size_t) got;
	connection->last_read = now_ns();
	return (size_t) got;
}

void
connection_consume(Connection *connection, size_t len)
{
	connection->in_len -= len;
	memmove(connection->in, connection->in + len, connection->in_len);
}

void
connection_send(Connection *connection)
{
	ssize_t sent =
		ws_send(connection->fd, connection->out + connection->out_sent, connection->out_len - connection->out_sent);

	if (sent < 0 && errno != EAGAIN)
		fail("user %d: %s", connection->number, strerror(errno));
	connection->out_sent += sent > 0 ? (size_t) sent : 0;
	if (connection->out_sent == connection->out_len)
		connection->out_sent = connection->out_len = 0;
}
