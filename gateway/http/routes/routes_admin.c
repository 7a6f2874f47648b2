/*
 * routes_admin.c - what operators have this gateway do (main/command.c is the client of these routes).
 *
 *   POST /admin/drain   moves all sheets to other gateways; again and again, it tells how many are left
 *   POST /admin/resume  takes sheets again
 *
 * They are served at admin-address. Web pages may not ask: the browser of an operator may run on this machine.
 */
#include "core/gateway.h"
#include "http/routes/routes.h"
#include "ws/room/handover.h"
#include "ws/room/members.h"
#include "ws/room/room.h"

static bool
admin_is_allowed(Request *request)
{
	if (head_field(&request->head, "origin") == NULL)
		return true;
	request_error(request, 403, "web pages may not ask for this");
	return false;
}

static void
admin_answer(Request *request)
{
	Buf body = {NULL, 0, 0};

	buf_printf(&body, "{\"draining\":%s,\"sheets\":%zu,\"sessions\":%zu}", gateway.draining ? "true" : "false",
			   room_count(), members_count());
	request_json(request, 200, &body);
}

void
route_drain(Request *request)
{
	if (!admin_is_allowed(request))
		return;
	if (!gateway.draining && !coord_another_serves(gateway.coord))
	{
		request_error(request, 409, "no other gateway serves: the sheets would have nowhere to go");
		return;
	}
	drain_begin();
	admin_answer(request);
}

void
route_resume(Request *request)
{
	if (!admin_is_allowed(request))
		return;
	if (gateway.leaving)
	{
		request_error(request, 409, "the gateway was told to stop");
		return;
	}
	drain_cancel();
	admin_answer(request);
}
