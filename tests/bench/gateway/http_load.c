/*
 * http_load.c - asks one address again and again, on connections that stay open.
 *
 *     http_load PORT CONNECTIONS SECONDS REQUEST
 *
 * REQUEST is a file with a whole request, head and body. Every answer must be a 200 with a Content-Length and the bytes
 * of the first one's body; anything else ends the program. Prints one line of JSON.
 */
#include "basics.h"
#include "latencies.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNECTIONS 256
#define READ_BUFFER		(1 << 20)
#define REQUEST_MAX		65536

typedef struct Connection
{
	int fd;
	char *in;
	size_t in_len;
	int64_t asked;
} Connection;

static Connection connections[MAX_CONNECTIONS];
static char request[REQUEST_MAX];
static size_t request_len;
static char *body; /* of the first answer */
static size_t body_len;
static uint64_t answers;
static Latencies times;

static void
ask(Connection *connection)
{
	connection->asked = now_ns();
	if (send(connection->fd, request, request_len, MSG_NOSIGNAL) != (ssize_t) request_len)
		fail("cannot send the request");
}

/* Behind the head; NULL when more bytes are needed. */
static const char *
answer_head(const Connection *connection, size_t *length)
{
	static const char key[] = "\r\ncontent-length:";
	const char *end = strstr(connection->in, "\r\n\r\n");

	if (!end)
		return NULL;
	if (strncmp(connection->in, "HTTP/1.1 200", 12) != 0)
		fail("not 200: %.*s", (int) (end - connection->in), connection->in);
	for (const char *at = connection->in; at < end; at++)
	{
		if (strncasecmp(at, key, sizeof(key) - 1) == 0)
		{
			*length = strtoul(at + sizeof(key) - 1, NULL, 10);
			return end + 4;
		}
	}
	fail("an answer without Content-Length");
}

static void
receive(Connection *connection)
{
	ssize_t got =
		recv(connection->fd, connection->in + connection->in_len, READ_BUFFER - connection->in_len, MSG_DONTWAIT);
	const char *from;
	size_t length;

	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0)
		fail("the connection was closed");
	connection->in_len += (size_t) got;
	connection->in[connection->in_len] = '\0';
	from = answer_head(connection, &length);
	if (!from || (size_t) (connection->in + connection->in_len - from) < length)
		return;
	if (!body)
	{
		body = allocate(length + 1);
		memcpy(body, from, length);
		body_len = length;
	}
	if (length != body_len || memcmp(body, from, length) != 0)
		fail("an answer differs from the first one");
	latencies_add(&times, connection->asked, now_ns());
	answers++;
	connection->in_len = 0;
	ask(connection);
}

static void
request_read(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file)
		fail("%s: %s", path, strerror(errno));
	request_len = fread(request, 1, sizeof(request), file);
	fclose(file);
	if (request_len == 0 || request_len == sizeof(request))
		fail("%s is empty or too long", path);
}

static void
connection_open(Connection *connection, int poller, int port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t) port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
	int on = 1;

	connection->in = allocate(READ_BUFFER + 1);
	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *) &address, sizeof(address)) != 0)
		fail("cannot connect to port %d: %s", port, strerror(errno));
	setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->fd, &event) != 0)
		fail("epoll: %s", strerror(errno));
	ask(connection);
}

int
main(int argc, char **argv)
{
	struct epoll_event events[64];
	int poller = epoll_create1(EPOLL_CLOEXEC);
	int64_t start, until;
	double seconds;
	int count;

	if (argc != 5)
		fail("usage: http_load PORT CONNECTIONS SECONDS REQUEST");
	count = atoi(argv[2]);
	if (count < 1 || count > MAX_CONNECTIONS)
		fail("1 to %d connections", MAX_CONNECTIONS);
	request_read(argv[4]);
	start = now_ns();
	until = start + (int64_t) (atof(argv[3]) * 1e9);
	for (int i = 0; i < count; i++)
		connection_open(&connections[i], poller, atoi(argv[1]));
	while (now_ns() < until)
	{
		int ready = epoll_wait(poller, events, 64, 100);

		for (int i = 0; i < ready; i++)
			receive(events[i].data.ptr);
	}
	seconds = (double) (now_ns() - start) / 1e9;
	latencies_sort(&times);
	printf("{\"per_second\":%.0f,\"body_bytes\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n", (double) answers / seconds,
		   body_len, latencies_percentile(&times, 0.5), latencies_percentile(&times, 0.99));
	return 0;
}
