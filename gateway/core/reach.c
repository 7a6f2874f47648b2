/*
 * reach.c - which of the other gateways accept no connections.
 *
 * ZooKeeper's session time decides when the sheets of a killed gateway move. Until then redirects to it would lead
 * nowhere, so clients get 503 instead (core/redirect.c). For this a gateway keeps one idle connection to the address of
 * each other member (peer-address, or else public-address). When the connection ends it connects again at once: a
 * killed process refuses that, and nobody answers for a container or machine that has ended, which counts after
 * REACH_SILENT_MS. The member ends idle connections from time to time, therefore the end alone proves nothing. TCP's
 * keepalives end the connection to a machine that has vanished; a paused process answers them.
 *
 * A member is believed to refuse only if it was reached from here before, and for REACH_BELIEVED sessions at most: then
 * ZooKeeper has either ended its session, or it lives and cannot be reached from here only. Failures of this machine,
 * such as a name that cannot be looked up, prove nothing.
 *
 * Bounds: REACH_MAX members, one attempt a second for each, and one more after the end of a connection that lasted a
 * second. Names are looked up by uv_getaddrinfo() in another thread.
 */
#include "core/reach.h"

#include "core/gateway.h"
#include "support/log.h"
#include "support/network.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define REACH_MAX		64
#define REACH_BELIEVED	2
#define REACH_STEADY_MS 1000
#define REACH_SILENT_MS 1500

typedef enum ReachState
{
	REACH_IDLE,
	REACH_RESOLVING,
	REACH_CONNECTING,
	REACH_CONNECTED,
	REACH_CLOSING
} ReachState;

typedef struct Reach
{
	struct Reach *next;
	ReachState state;
	bool ends;			   /* not a member any more, or the gateway ends: freed when nothing is under way */
	bool reached;		   /* once, since it is followed */
	uint64_t refused_at;   /* ms: when it first refused; 0: it does not */
	uint64_t connected_at; /* ms */
	uint64_t lost_at;	   /* ms: since when it does not answer the attempt to connect again; 0: it was not connected */
	uv_tcp_t socket;
	uv_connect_t connect;
	uv_getaddrinfo_t resolve;
	char name[256];
	char address[256];
} Reach;

static Reach *reaches;
static int reach_count;

static void reach_connect(Reach *reach);

static void
reach_free(Reach *reach)
{
	Reach **link = &reaches;

	while (*link != reach)
		link = &(*link)->next;
	*link = reach->next;
	reach_count--;
	free(reach);
}

static void
reach_on_closed(uv_handle_t *handle)
{
	Reach *reach = handle->data;
	uint64_t connected_at = reach->connected_at;

	reach->state = REACH_IDLE;
	reach->connected_at = 0;
	if (connected_at != 0)
		reach->lost_at = uv_now(&gateway.loop);
	if (reach->ends)
		reach_free(reach);
	else if (connected_at != 0 && uv_now(&gateway.loop) - connected_at >= REACH_STEADY_MS)
		reach_connect(reach);
}

static void
reach_disconnect(Reach *reach)
{
	reach->state = REACH_CLOSING;
	uv_close((uv_handle_t *) &reach->socket, reach_on_closed);
}

static void
reach_give_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
	static char ignored[512];

	*buffer = uv_buf_init(ignored, sizeof(ignored));
}

static void
reach_on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	Reach *reach = stream->data;

	if (len < 0 && reach->state == REACH_CONNECTED)
		reach_disconnect(reach);
}

/* The connection ends about 3 s after the other machine has vanished. */
static void
reach_keep_alive(Reach *reach)
{
	static const int second = 1, probes = 2;
	uv_os_fd_t fd;

	if (uv_tcp_keepalive(&reach->socket, 1, 1) != 0 || uv_fileno((uv_handle_t *) &reach->socket, &fd) != 0)
		return;
	(void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &second, sizeof(second));
	(void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

static void
reach_believe(Reach *reach)
{
	if (reach->refused_at != 0)
		return;
	log_event(LOG_WARN, "another gateway accepts no connections", LOG_STR("gateway", reach->name));
	reach->refused_at = uv_now(&gateway.loop);
}

static void
reach_on_connected(uv_connect_t *connect, int status)
{
	Reach *reach = connect->data;

	if (reach->state != REACH_CONNECTING)
		return;
	if (status == 0)
	{
		reach->state = REACH_CONNECTED;
		reach->reached = true;
		reach->refused_at = reach->lost_at = 0;
		reach->connected_at = uv_now(&gateway.loop);
		reach_keep_alive(reach);
		uv_read_start((uv_stream_t *) &reach->socket, reach_give_buffer, reach_on_read);
		return;
	}
	if ((status == UV_ECONNREFUSED || status == UV_EHOSTUNREACH) && reach->reached)
		reach_believe(reach);
	reach->lost_at = 0;
	reach_disconnect(reach);
}

static void
reach_connect_to(Reach *reach, const struct sockaddr *address)
{
	reach->socket.data = reach->connect.data = reach;
	reach->state = REACH_CONNECTING;
	if (reach->lost_at != 0)
		reach->lost_at = uv_now(&gateway.loop);
	uv_tcp_init(&gateway.loop, &reach->socket);
	if (uv_tcp_connect(&reach->connect, &reach->socket, address, reach_on_connected) == 0)
		return;
	reach->lost_at = 0;
	reach_disconnect(reach);
}

static void
reach_on_resolved(uv_getaddrinfo_t *resolve, int status, struct addrinfo *found)
{
	Reach *reach = resolve->data;

	reach->state = REACH_IDLE;
	if (reach->ends)
		reach_free(reach);
	else if (status == 0)
		reach_connect_to(reach, found->ai_addr);
	else
		reach->lost_at = 0;
	uv_freeaddrinfo(found);
}

/* The address is "host:port" or "[address]:port". */
static void
reach_connect(Reach *reach)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	char host[NETWORK_HOST_MAX];
	const char *port = network_split(reach->address, host);

	if (port == NULL)
		return;
	reach->resolve.data = reach;
	if (uv_getaddrinfo(&gateway.loop, &reach->resolve, reach_on_resolved, host, port, &hints) == 0)
		reach->state = REACH_RESOLVING;
}

static Reach *
reach_find(const char *name)
{
	for (Reach *reach = reaches; reach != NULL; reach = reach->next)
		if (!reach->ends && strcmp(reach->name, name) == 0)
			return reach;
	return NULL;
}

static void
reach_end(Reach *reach)
{
	reach->ends = true;
	if (reach->state == REACH_CONNECTING || reach->state == REACH_CONNECTED)
		reach_disconnect(reach);
	else if (reach->state == REACH_IDLE)
		reach_free(reach);
}

static void
reach_add(const char *name, const char *address)
{
	Reach *reach = calloc(1, sizeof(*reach));

	if (reach == NULL)
		return;
	snprintf(reach->name, sizeof(reach->name), "%s", name);
	snprintf(reach->address, sizeof(reach->address), "%s", address);
	reach->next = reaches;
	reaches = reach;
	reach_count++;
}

void
reach_tick(void)
{
	const char *name, *address;

	for (Reach *reach = reaches, *next; reach != NULL; reach = next)
	{
		next = reach->next;
		address = coord_peer_address(gateway.coord, reach->name);
		if (!reach->ends && (address == NULL || strcmp(address, reach->address) != 0))
			reach_end(reach);
	}
	for (int i = 0; (name = coord_member_name(gateway.coord, i)) != NULL && reach_count < REACH_MAX; i++)
		if (strcmp(name, gateway.config.public_address) != 0 && reach_find(name) == NULL)
			reach_add(name, coord_peer_address(gateway.coord, name));
	for (Reach *reach = reaches; reach != NULL; reach = reach->next)
	{
		if (reach->lost_at != 0 && reach->state == REACH_CONNECTING &&
			uv_now(&gateway.loop) - reach->lost_at >= REACH_SILENT_MS)
			reach_believe(reach);
		if (reach->state == REACH_IDLE && !reach->ends)
			reach_connect(reach);
	}
}

bool
reach_is_refusing(const char *member)
{
	const Reach *reach = reach_find(member);
	uint64_t believed = (uint64_t) gateway.config.zookeeper_session_ms * REACH_BELIEVED;

	return reach != NULL && reach->refused_at != 0 && uv_now(&gateway.loop) - reach->refused_at <= believed;
}

void
reach_close(void)
{
	for (Reach *reach = reaches, *next; reach != NULL; reach = next)
	{
		next = reach->next;
		if (!reach->ends)
			reach_end(reach);
	}
}
