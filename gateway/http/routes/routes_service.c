/*
 * routes_service.c - state and load of the gateway, for operators and monitoring.
 *
 *   /livez    the loop runs: restart the process if this does not answer
 *   /readyz   new editors may be sent here; 503 with the reasons otherwise
 *   /healthz  the same as /readyz, with more details
 *   /metrics  counters, for Prometheus; operators only
 *   /debug    what is open, and what waits; operators only
 *
 * A proxy on this machine makes every request come from loopback, and need not say that it is one. So what operators
 * may ask is served at admin-address only, which proxies do not forward to. Should one do so, the client of the request
 * counts only if the proxy is trusted and tells it (forwarded.c).
 */
#include "core/database.h"
#include "core/gateway.h"
#include "core/health.h"
#include "core/metrics.h"
#include "auth/password.h"
#include "ws/room/room.h"
#include "http/routes/routes.h"
#include "mail/mail.h"
#include "webhooks/webhooks.h"
#include "http/server/forwarded.h"
#include "http/server/origin.h"
#include "support/network.h"
#include "ws/room/held.h"
#include "ws/room/members.h"
#include "ws/cache/snapshot.h"
#include "ws/cache/cached_range.h"
#include "ws/v2/v2_session.h"

#include <openssl/crypto.h>
#include <string.h>

#define DEBUG_ROOMS_MAX 100 /* sheets that /debug lists */

/* ---- operators ---- */

static bool
service_has_token(const Request *request)
{
	char header[ADMIN_TOKEN_MAX + 16];
	size_t len = strlen(gateway.admin_token);

	return len > 0 && request_header(request, "authorization", header, sizeof(header)) &&
		   strncasecmp(header, "Bearer ", 7) == 0 && strlen(header + 7) == len &&
		   CRYPTO_memcmp(header + 7, gateway.admin_token, len) == 0;
}

/* Without the token, the address counts, and that nobody has forwarded the request who does not tell for whom. */
static bool
service_is_operator(const Request *request, bool changes)
{
	const char *sender = conn_address(request->conn), *host = head_field(&request->head, "host");
	const char *forwarders = changes ? "" : gateway.config.trusted_proxies;

	return (!forwarded_has_signs(&request->head) || network_list_contains(forwarders, sender)) &&
		   (host == NULL || origin_host_is_known(host)) &&
		   (!changes || network_list_contains(NETWORK_LOOPBACK, sender)) &&
		   network_list_contains(gateway.config.admin_networks, request->peer);
}

bool
service_check_operator(Request *request)
{
	bool changes = strncmp(request->head.path, "/admin/", 7) == 0;

	if (service_has_token(request) || service_is_operator(request, changes))
		return true;
	request_error(request, 403,
				  changes
					  ? "this is for operators: ask on this machine, not through a proxy, by a name of this "
						"gateway, or with the token of admin-token-file"
					  : "this is for operators: ask from a network of admin-networks, by a name of this gateway, or "
						"with the token of admin-token-file");
	return false;
}

/* ---- state ---- */

static const char *
service_bool(bool value)
{
	return value ? "true" : "false";
}

void
route_live(Request *request)
{
	Buf body = {NULL, 0, 0};

	buf_printf(&body, "{\"uptime_seconds\":%lld}", (long long) (gateway_now() - gateway.started));
	request_json(request, 200, &body);
}

void
route_ready(Request *request)
{
	Buf reasons = {NULL, 0, 0};
	Buf body = {NULL, 0, 0};
	bool ready = health_is_ready(&reasons);

	buf_printf(&body, "{\"ready\":%s,\"reasons\":[", service_bool(ready));
	buf_put_buf(&body, &reasons);
	buf_puts(&body, "]}");
	buf_free(&reasons);
	request_json(request, ready ? 200 : 503, &body);
}

void
route_health(Request *request)
{
	bool ready = health_is_ready(NULL);
	Buf body = {NULL, 0, 0};

	buf_printf(&body, "{\"status\":\"%s\",\"database\":%s,\"coordination\":%s,\"draining\":%s,\"durable\":%s}",
			   ready ? "ok" : "unavailable", service_bool(health_database_answers()),
			   service_bool(gateway.ready && !gateway.suspended), service_bool(gateway.leaving || gateway.draining),
			   service_bool(gateway.config.durable));
	request_json(request, ready ? 200 : 503, &body);
}

/* ---- what is open ---- */

/* Sums over the rooms, and the first of them by name. */
typedef struct RoomSums
{
	uint64_t pending_edits;
	uint64_t locks;
	int shown;
	Buf *rooms; /* NULL: sums only */
} RoomSums;

static const char *
room_state_name(RoomState state)
{
	static const char *const names[] = {
		[ROOM_LOCKING] = "locking", [ROOM_CLAIMING] = "claiming", [ROOM_UNCLAIMED] = "serving",
		[ROOM_SERVING] = "serving", [ROOM_RELEASED] = "serving",  [ROOM_MOVING] = "moving",
		[ROOM_LOST] = "lost"};

	return names[state];
}

static void
service_add_room(Room *room, void *arg)
{
	RoomSums *sums = arg;

	sums->pending_edits += room->pending_edits;
	if (sums->rooms == NULL || sums->shown == DEBUG_ROOMS_MAX)
		return;
	buf_printf(sums->rooms,
			   "%s{\"sheet\":%lld,\"state\":\"%s\",\"epoch\":%lld,\"sessions\":%d,\"pending_edits\":%u,\"paused\":%s,"
			   "\"committing_us\":%llu,\"seq\":%lld}",
			   sums->shown > 0 ? "," : "", (long long) room_sheet_id(room), room_state_name(room->state),
			   (long long) room->epoch, room->session_count, room->pending_edits,
			   service_bool(room->flow >= ROOM_PAUSED),
			   room->work == ROOM_APPLYING ? (unsigned long long) (uv_hrtime() - room->sent_at) / 1000 : 0ULL,
			   (long long) room->published_seq);
	sums->shown++;
}

static void
service_put_connection(Buf *body, const PgConn *conn, bool first)
{
	buf_printf(body, "%s{\"up\":%s,\"pending\":%d}", first ? "" : ",", service_bool(pgconn_is_up(conn)),
			   pgconn_pending(conn));
}

static void
service_put_connections(Buf *body)
{
	buf_puts(body, "\"database\":{\"group\":{\"pending\":");
	buf_printf(body, "%d,\"connections\":[", pgconn_pending(gateway.group));
	service_put_connection(body, gateway.group, true);
	for (int i = 0; i < DATABASE_CLASSES; i++)
	{
		const PgPool *pool = database_pool(i);

		buf_printf(body, "]},\"%s\":{\"pending\":%d,\"connections\":[", database_class_name(i), pgpool_pending(pool));
		for (int j = 0; j < pgpool_connections(pool); j++)
			service_put_connection(body, pgpool_connection(pool, j), j == 0);
	}
	buf_puts(body, "]}},");
}

static void
service_print_queues(Buf *body)
{
	RoomSums sums = {.pending_edits = 0};

	room_for_each(service_add_room, &sums);
	metrics_print_gauge(body, "rooms", "Open sheets.", (uint64_t) room_count());
	metrics_print_gauge(body, "sessions", "Open WebSockets.", (uint64_t) members_count());
	metrics_print_gauge(body, "pending_edits", "Edits that wait for the previous batch.", sums.pending_edits);
	metrics_print_gauge(body, "password_queue", "Passwords waiting to be hashed.", (uint64_t) password_queue_waiting());
	metrics_print_gauge(body, "http_under_way", "HTTP requests in progress.", (uint64_t) trace_under_way());
	metrics_print_head(body, "database_queue", "gauge", "Statements that PostgreSQL has not answered, by class.");
	buf_printf(body, "pg_sheet_database_queue{class=\"group\"} %d\n", pgconn_pending(gateway.group));
	for (int i = 0; i < DATABASE_CLASSES; i++)
		buf_printf(body, "pg_sheet_database_queue{class=\"%s\"} %d\n", database_class_name(i),
				   pgpool_pending(database_pool(i)));
	metrics_print_gauge(body, "held_sheets", "Sheets held by another transaction.", (uint64_t) held_count());
	metrics_print_gauge(body, "blocks_waiting", "Large blocks of cells waiting for a streaming connection.",
						(uint64_t) v2_blocks_waiting());
	metrics_print_gauge(body, "ready", "1: the gateway can take new editors.", health_is_ready(NULL));
}

void
route_metrics(Request *request)
{
	Buf body = {NULL, 0, 0};

	metrics_print(&body);
	webhooks_print_metrics(&body);
	mail_print_metrics(&body);
	service_print_queues(&body);
	cached_range_print(&body);
	snapshot_print(&body);
	trace_print(&body);
	metrics_print_process(&body);
	request_answer(request, 200, "text/plain; version=0.0.4", &body);
}

void
route_debug(Request *request)
{
	Buf body = {NULL, 0, 0};
	Buf rooms = {NULL, 0, 0};
	RoomSums sums = {.rooms = &rooms};
	Buf reasons = {NULL, 0, 0};

	room_for_each(service_add_room, &sums);
	buf_printf(&body, "{\"version\":\"%s\",\"address\":", CONFIG_VERSION);
	buf_puts_json(&body, gateway.config.public_address);
	buf_printf(&body, ",\"uptime_seconds\":%lld,\"ready\":%s,\"reasons\":[",
			   (long long) (gateway_now() - gateway.started), service_bool(health_is_ready(&reasons)));
	buf_put_buf(&body, &reasons);
	buf_printf(&body,
			   "],\"signing_key\":\"%s\",\"keys\":%d,\"loop_turn_us\":%llu,\"connections\":%d,\"http_under_way\":%d,"
			   "\"password_queue\":%d,",
			   gateway.keys.keys[0].kid, gateway.keys.count, (unsigned long long) gateway.loop_lag_us,
			   gateway.connections, trace_under_way(), password_queue_waiting());
	service_put_connections(&body);
	buf_printf(&body, "\"rooms\":%zu,\"sessions\":%zu,\"first_rooms\":[", room_count(), members_count());
	buf_put_buf(&body, &rooms);
	buf_puts(&body, "]}");
	buf_free(&rooms);
	buf_free(&reasons);
	request_json(request, 200, &body);
}
