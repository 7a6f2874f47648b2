/*
 * listen.c - the listening socket: accepts connections within max-connections and max-connections-per-address, and
 * runs the timer that ends slow ones.
 */
#include "http/server/listen.h"

#include "http/server/conn.h"
#include "core/gateway.h"
#include "support/log.h"
#include "core/metrics.h"
#include "support/network.h"
#include "http/server/peers.h"
#include "http/server/tls.h"

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

static uv_poll_t listen_poll;
static uv_timer_t listen_timer;
static int listen_fd = -1;
static bool listen_paused; /* out of descriptors: the next tick tries again */

static void
listen_refuse(int fd, const char *status_line, const char *reason, const char *address)
{
	char answer[256];
	int len = snprintf(answer, sizeof(answer),
					   "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nRetry-After: 10\r\n"
					   "Connection: close\r\n\r\n%s",
					   status_line, strlen(reason), reason);

	metrics.connections_refused++;
	log_event(LOG_DEBUG, "connection refused", LOG_STR("peer", address), LOG_STR("reason", reason));
	if (!tls_is_on())
		(void) send(fd, answer, (size_t) len, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void) shutdown(fd, SHUT_WR);
	close(fd);
}

static void
listen_accepted(int fd, const struct sockaddr *from)
{
	char address[48];
	Peer *peer = peers_enter(from, address);
	int allowed = gateway.config.max_connections_per_address;

	if (peer == NULL)
		listen_refuse(fd, "503 Service Unavailable", "out of memory\n", address);
	else if (gateway.connections >= gateway.config.max_connections)
		listen_refuse(fd, "503 Service Unavailable", "the gateway has too many connections\n", address);
	else if (allowed > 0 && peer->connections > allowed &&
			 !network_list_contains(gateway.config.trusted_proxies, address))
		listen_refuse(fd, "429 Too Many Requests", "too many connections from your address\n", address);
	else
	{
		conn_open(fd, peer, address);
		return;
	}
	if (peer != NULL)
		peers_leave(peer);
}

static void
listen_on_poll(uv_poll_t *poll, int status, int events)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	int fd;

	for (int i = 0; i < LISTEN_MANY; i++)
	{
		len = sizeof(from);
		fd = accept4(listen_fd, (struct sockaddr *) &from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			listen_accepted(fd, (struct sockaddr *) &from);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		{
			log_event(LOG_WARN, "could not accept a connection", LOG_STR("reason", strerror(errno)));
			uv_poll_stop(&listen_poll); /* the event would be raised without end */
			listen_paused = true;
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
	if (!listen_paused)
		return;
	listen_paused = false;
	uv_poll_start(&listen_poll, UV_READABLE, listen_on_poll);
}

/* Says why the gateway cannot listen. Another program may leave the port; anything else is in the settings. */
static void
listen_explain(const char *reason, int error)
{
	fprintf(stderr, "pg_sheet_gateway: cannot listen on %s port %d: %s\n", gateway.config.listen_address,
			gateway.config.listen_port, reason);
	if (error == EADDRINUSE)
		fprintf(stderr, "Choose another port with --listen-port, or end the program that uses it.\n");
	else if (error == EACCES)
		fprintf(stderr, "Choose a port from 1024 on with --listen-port, or give the process CAP_NET_BIND_SERVICE.\n");
	else
		fprintf(stderr, "Set listen-address to an IP address of this machine, or to 0.0.0.0 for all of them.\n");
	gateway.invalid = error == 0 || error == EADDRNOTAVAIL || error == EACCES || error == EAFNOSUPPORT;
}

bool
listen_start(const ConnHandler *handler)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	const char *reason = NULL;
	char port[8];
	int on = 1, result, error = 0;

	conn_handler = handler;
	snprintf(port, sizeof(port), "%d", gateway.config.listen_port);
	result = getaddrinfo(gateway.config.listen_address, port, &hints, &found);
	if (result != 0)
		reason = gai_strerror(result);
	else
		listen_fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listen_fd >= 0)
		(void) setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (reason == NULL && (listen_fd < 0 || bind(listen_fd, found->ai_addr, found->ai_addrlen) != 0 ||
						   listen(listen_fd, LISTEN_BACKLOG) != 0))
	{
		error = errno;
		reason = strerror(error);
	}
	if (found != NULL)
		freeaddrinfo(found);
	if (reason != NULL)
	{
		if (listen_fd >= 0)
			close(listen_fd);
		listen_fd = -1;
		listen_explain(reason, error);
		return false;
	}
	uv_poll_init(&gateway.loop, &listen_poll, listen_fd);
	uv_poll_start(&listen_poll, UV_READABLE, listen_on_poll);
	uv_timer_init(&gateway.loop, &listen_timer);
	uv_timer_start(&listen_timer, listen_on_tick, LISTEN_TICK_MS, LISTEN_TICK_MS);
	return true;
}

void
listen_stop(void)
{
	if (listen_fd < 0)
		return;
	uv_close((uv_handle_t *) &listen_poll, NULL);
	uv_close((uv_handle_t *) &listen_timer, NULL);
	close(listen_fd);
	listen_fd = -1;
	conn_close_all();
}
