/*
 * acceptor.c - the listening sockets.
 *
 * libwebsockets can listen too, but takes no socket that is bound already. It binds to all addresses where it may not
 * ask for the list of interfaces (getifaddrs(), as in the sandbox of packaging/pg_sheet_gateway.service), waits for
 * ever for an address that this machine does not have, accepts without end while connections come in, and out of
 * descriptors it tries again without a pause.
 */
#include "transport/acceptor.h"

#include "support/log.h"
#include "support/repeat.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define ACCEPTOR_BACKLOG  1024
#define ACCEPTOR_MANY	  64 /* connections accepted in one iteration of the loop */
#define ACCEPTOR_RETRY_MS 250
#define ACCEPTORS		  2

typedef struct Acceptor
{
	uv_poll_t poll; /* must be first: acceptor_on_poll() */
	uv_timer_t retry;
	int fd;
	AcceptFn accept;
	void *arg;
	Repeat failing;
} Acceptor;

static Acceptor acceptors[ACCEPTORS];
static int acceptor_count;

static void acceptor_on_poll(uv_poll_t *poll, int status, int events);

static void
acceptor_on_retry(uv_timer_t *timer)
{
	Acceptor *acceptor = timer->data;

	uv_poll_start(&acceptor->poll, UV_READABLE, acceptor_on_poll);
}

static void
acceptor_on_poll(uv_poll_t *poll, int status, int events)
{
	Acceptor *acceptor = (Acceptor *) poll;

	for (int i = 0; i < ACCEPTOR_MANY; i++)
	{
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);
		int fd = accept4(acceptor->fd, (struct sockaddr *) &from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			acceptor->accept(fd, (struct sockaddr *) &from, acceptor->arg);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		{
			const char *reason = strerror(errno);

			if (repeat_failed(&acceptor->failing, uv_now(poll->loop), reason))
				log_event(LOG_WARN, "could not accept a connection", LOG_STR("reason", reason));
			uv_poll_stop(poll); /* the event would be raised without end */
			uv_timer_start(&acceptor->retry, acceptor_on_retry, ACCEPTOR_RETRY_MS, 0);
			return;
		}
		else if (errno != EINTR && errno != ECONNABORTED)
		{
			repeat_ended(&acceptor->failing, uv_now(poll->loop), "all connections are accepted again",
						 LOG_STR("after", acceptor->failing.reason));
			return;
		}
	}
}

static int
acceptor_listen(const struct addrinfo *address)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, error;

	if (fd < 0)
		return -1;
	(void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, ACCEPTOR_BACKLOG) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

bool
acceptor_open(uv_loop_t *loop, const char *address, const char *port, AcceptFn accept, void *arg, AcceptorError *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	Acceptor *acceptor = &acceptors[acceptor_count];
	int result = getaddrinfo(address, port, &hints, &found);

	if (result != 0)
	{
		*error = (AcceptorError){.reason = gai_strerror(result)};
		return false;
	}
	acceptor->fd = acceptor_listen(found);
	*error = (AcceptorError){.reason = strerror(errno), .number = errno};
	freeaddrinfo(found);
	if (acceptor->fd < 0)
		return false;
	acceptor->accept = accept;
	acceptor->arg = arg;
	acceptor_count++;
	uv_timer_init(loop, &acceptor->retry);
	acceptor->retry.data = acceptor;
	uv_poll_init(loop, &acceptor->poll, acceptor->fd);
	uv_poll_start(&acceptor->poll, UV_READABLE, acceptor_on_poll);
	return true;
}

void
acceptor_close_all(void)
{
	for (; acceptor_count > 0; acceptor_count--)
	{
		Acceptor *acceptor = &acceptors[acceptor_count - 1];

		uv_close((uv_handle_t *) &acceptor->poll, NULL);
		uv_close((uv_handle_t *) &acceptor->retry, NULL);
		close(acceptor->fd);
	}
}
