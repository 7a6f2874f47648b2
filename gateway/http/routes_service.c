/*
 * routes_service.c - for operators: is it well, and how much does it do?
 */
#include "gateway.h"
#include "metrics.h"
#include "room.h"
#include "routes.h"

void
route_health(Request *request)
{
	bool database = pgconn_is_up(gateway.edits[0]) && pgconn_is_up(gateway.reads);
	bool well = database && gateway.ready && !gateway.suspended && !gateway.draining;
	Buf body = {NULL, 0, 0};

	buf_printf(&body, "{\"status\":\"%s\",\"database\":%s,\"coordination\":%s,\"draining\":%s,\"durable\":%s}",
			   well ? "ok" : "unavailable", database ? "true" : "false",
			   gateway.ready && !gateway.suspended ? "true" : "false", gateway.draining ? "true" : "false",
			   gateway.config.durable ? "true" : "false");
	request_answer(request, well ? 200 : 503, "application/json", &body);
}

void
route_metrics(Request *request)
{
	Buf body = {NULL, 0, 0};

	metrics_print(&body);
	metrics_print_gauge(&body, "rooms", "Sheets that are open.", (uint64_t) room_count());
	metrics_print_gauge(&body, "sessions", "WebSockets that are open.", (uint64_t) room_session_count());
	request_answer(request, 200, "text/plain; version=0.0.4", &body);
}
