/*
 * listen.c - who is accepted at the two doors: that of clients, and that of operators (admin-address). A connection
 * needs a place (peers.c). Runs the timer that ends slow ones.
 */
#include "http/server/listen.h"

#include "core/gateway.h"
#include "core/metrics.h"
#include "http/server/conn.h"
#include "http/server/peers.h"
#include "support/log.h"
#include "support/network.h"
#include "transport/acceptor.h"
#include "transport/certificate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define LISTEN_TICK_MS 250

static ConnDoor listen_doors[2];
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
listen_accepted(int fd, const struct sockaddr *from, void *arg)
{
	const ConnDoor *door = arg;
	char address[PEERS_ADDRESS_MAX];
	PlaceRefusal refusal;
	Place *place = place_take(from, door->admin, address, &refusal);

	switch (refusal)
	{
		case PLACE_TAKEN:
			conn_open(fd, place, *door);
			break;
		case PLACE_NO_MEMORY:
			listen_refuse(fd, *door, "503 Service Unavailable", "out of memory\n", address);
			break;
		case PLACE_GATEWAY_FULL:
			listen_refuse(fd, *door, "503 Service Unavailable", "the gateway has too many connections\n", address);
			break;
		case PLACE_ADDRESS_FULL:
			listen_refuse(fd, *door, "429 Too Many Requests", "too many connections from your address\n", address);
			break;
	}
}

static void
listen_on_tick(uv_timer_t *timer)
{
	conn_tick_all();
}

/* Says why the gateway cannot listen. Another program may leave the port; anything else is in the settings. */
static void
listen_explain(const char *address, const char *port, bool admin, const AcceptorError *error)
{
	const char *setting = admin ? "admin-address" : "listen-address";

	fprintf(stderr, "pg_sheet_gateway: cannot listen on %s port %s: %s\n", address, port, error->reason);
	if (error->number == EADDRINUSE)
		fprintf(stderr, "Choose another port with --%s, or end the program that uses it.\n",
				admin ? setting : "listen-port");
	else if (error->number == EACCES)
		fprintf(stderr, "Choose a port from 1024 on with --%s, or give the process CAP_NET_BIND_SERVICE.\n",
				admin ? setting : "listen-port");
	else
		fprintf(stderr, "Set %s to an IP address of this machine, or to 0.0.0.0 for all of them.\n", setting);
	gateway.invalid = error->number == 0 || error->number == EADDRNOTAVAIL || error->number == EACCES ||
					  error->number == EAFNOSUPPORT;
}

static bool
listen_open(const char *address, const char *port, ConnDoor *door)
{
	AcceptorError error;
	bool opened = acceptor_open(&gateway.loop, address, port, listen_accepted, door, &error);

	if (!opened)
		listen_explain(address, port, door->admin, &error);
	return opened;
}

bool
listen_start(const ConnHandler *handler)
{
	char port[8], admin[NETWORK_HOST_MAX];
	const char *admin_port = network_split(gateway.config.admin_address, admin);

	conn_handler = handler;
	listen_doors[0] = (ConnDoor){.tls = certificate_is_loaded()};
	listen_doors[1] = (ConnDoor){.admin = true, .tls = !config_admin_is_plain(&gateway.config)};
	snprintf(port, sizeof(port), "%d", gateway.config.listen_port);
	if (!listen_open(gateway.config.listen_address, port, &listen_doors[0]) ||
		!listen_open(admin, admin_port, &listen_doors[1]))
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
	acceptor_close_all();
	if (listen_timer.loop != NULL && !uv_is_closing((uv_handle_t *) &listen_timer))
		uv_close((uv_handle_t *) &listen_timer, NULL);
}
