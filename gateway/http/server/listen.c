/*
 * listen.c - the listening sockets: one for clients, and one for operators (admin-address). Accepts connections for
 * which there is a place (peers.c), and runs the timer that ends slow ones.
 */
#include "http/server/listen.h"

#include "http/server/conn.h"
#include "core/gateway.h"
#include "support/log.h"
#include "core/metrics.h"
#include "http/server/peers.h"
#include "http/server/tls.h"
#include "support/network.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#define LISTEN_BACKLOG 1024
#define LISTEN_MANY	   64 /* connections accepted in one iteration of the loop */
#define LISTEN_TICK_MS 250

typedef struct Listener
{
	uv_poll_t poll; /* must be first: listen_on_poll() */
	int fd;
	ConnDoor door;
	bool paused; /* out of descriptors: the next tick tries again */
} Listener;

static Listener listeners[2];
static int listener_count;
static uv_timer_t listen_timer;

static void
listen_refuse(int fd, ConnDoor door, const char *status_line, const char *reason, const char *address)
{
	char answer[256];
	int len = snprintf(answer, sizeof(answer),
					   "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nRetry-After: 10\r\n"
					   "Connection: close\r\n\r\n%s",
					   status_line, strlen(reason), reason);

	metrics.connections_refused++;
	log_event(LOG_DEBUG, "connection refused", LOG_STR("peer", address), LOG_STR("reason", reason));
	if (!door.tls)
		(void) send(fd, answer, (size_t) len, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void) shutdown(fd, SHUT_WR);
	close(fd);
}

static void
listen_accepted(int fd, const struct sockaddr *from, ConnDoor door)
{
	char address[PEERS_ADDRESS_MAX];
	PlaceRefusal refusal;
	Place *place = place_take(from, door.admin, address, &refusal);

	switch (refusal)
	{
		case PLACE_TAKEN:
			conn_open(fd, place, door);
			break;
		case PLACE_NO_MEMORY:
			listen_refuse(fd, door, "503 Service Unavailable", "out of memory\n", address);
			break;
		case PLACE_GATEWAY_FULL:
			listen_refuse(fd, door, "503 Service Unavailable", "the gateway has too many connections\n", address);
			break;
		case PLACE_ADDRESS_FULL:
			listen_refuse(fd, door, "429 Too Many Requests", "too many connections from your address\n", address);
			break;
	}
}

static void
listen_on_poll(uv_poll_t *poll, int status, int events)
{
	Listener *listener = (Listener *) poll;
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	int fd;

	for (int i = 0; i < LISTEN_MANY; i++)
	{
		len = sizeof(from);
		fd = accept4(listener->fd, (struct sockaddr *) &from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			listen_accepted(fd, (struct sockaddr *) &from, listener->door);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		{
			log_event(LOG_WARN, "could not accept a connection", LOG_STR("reason", strerror(errno)));
			uv_poll_stop(poll); /* the event would be raised without end */
			listener->paused = true;
			return;
		}
		else if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

static void
listen_on_tick(uv_timer_t *timer)
{
	conn_tick_all();
	for (int i = 0; i < listener_count; i++)
	{
		if (!listeners[i].paused)
			continue;
		listeners[i].paused = false;
		uv_poll_start(&listeners[i].poll, UV_READABLE, listen_on_poll);
	}
}

/* Says why the gateway cannot listen. Another program may leave the port; anything else is in the settings. */
static void
listen_explain(const char *address, const char *port, ConnDoor door, const char *reason, int error)
{
	const char *setting = door.admin ? "admin-address" : "listen-address";

	fprintf(stderr, "pg_sheet_gateway: cannot listen on %s port %s: %s\n", address, port, reason);
	if (error == EADDRINUSE)
		fprintf(stderr, "Choose another port with --%s, or end the program that uses it.\n",
				door.admin ? setting : "listen-port");
	else if (error == EACCES)
		fprintf(stderr, "Choose a port from 1024 on with --%s, or give the process CAP_NET_BIND_SERVICE.\n",
				door.admin ? setting : "listen-port");
	else
		fprintf(stderr, "Set %s to an IP address of this machine, or to 0.0.0.0 for all of them.\n", setting);
	gateway.invalid = error == 0 || error == EADDRNOTAVAIL || error == EACCES || error == EAFNOSUPPORT;
}

/* Opens one more listening socket. False: a message was printed. */
static bool
listen_open(const char *address, const char *port, ConnDoor door)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	const char *reason = NULL;
	Listener *listener = &listeners[listener_count];
	int fd = -1, on = 1, result, error = 0;

	result = getaddrinfo(address, port, &hints, &found);
	if (result != 0)
		reason = gai_strerror(result);
	else
		fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (reason == NULL &&
		(fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, LISTEN_BACKLOG) != 0))
	{
		error = errno;
		reason = strerror(error);
	}
	if (found != NULL)
		freeaddrinfo(found);
	if (reason != NULL)
	{
		if (fd >= 0)
			close(fd);
		listen_explain(address, port, door, reason, error);
		return false;
	}
	listener->fd = fd;
	listener->door = door;
	listener_count++;
	uv_poll_init(&gateway.loop, &listener->poll, fd);
	uv_poll_start(&listener->poll, UV_READABLE, listen_on_poll);
	return true;
}

bool
listen_start(const ConnHandler *handler)
{
	char port[8], admin[NETWORK_HOST_MAX];
	const char *admin_port = network_split(gateway.config.admin_address, admin);
	ConnDoor admin_door = {.admin = true, .tls = !config_admin_is_plain(&gateway.config)};

	conn_handler = handler;
	snprintf(port, sizeof(port), "%d", gateway.config.listen_port);
	if (!listen_open(gateway.config.listen_address, port, (ConnDoor){.tls = tls_is_on()}) ||
		!listen_open(admin, admin_port, admin_door))
	{
		listen_stop();
		return false;
	}
	uv_timer_init(&gateway.loop, &listen_timer);
	uv_timer_start(&listen_timer, listen_on_tick, LISTEN_TICK_MS, LISTEN_TICK_MS);
	return true;
}

void
listen_stop(void)
{
	for (; listener_count > 0; listener_count--)
	{
		uv_close((uv_handle_t *) &listeners[listener_count - 1].poll, NULL);
		close(listeners[listener_count - 1].fd);
	}
	if (listen_timer.loop != NULL && !uv_is_closing((uv_handle_t *) &listen_timer))
		uv_close((uv_handle_t *) &listen_timer, NULL);
	conn_close_all();
}
