/*
 * redirect.c - which gateway serves a sheet, and how clients reach it.
 *
 * The ring names one member as the owner of each sheet. When members come or leave, the former owner may still hold the
 * sheet's lock: it serves the sheet until it has moved it (ws/room/handover.c), and the new owner sends its clients
 * there. Only the holder has live editors of the sheet, so it alone opens WebSockets, and changes the open sheet under
 * its epoch. Most callers use redirect_find():
 *
 *   routes that are AT_OWNER in the table of http/routes/router.c, by router_begin_route(): 307 with Location, whose
 *     path and query are those of the request. Two kinds of requests are served here instead, because what the owner
 *     would get by a redirect it would refuse: those of a page of another origin (a browser then sends `Origin: null`),
 *     and those with the token in a header (curl, browsers, Node and Python's requests drop Authorization; others
 *     follow no redirect at all).
 *     Any gateway can serve these routes, by queries; the owner is faster, because it has the cells in memory.
 *     Other routes of a sheet are served by any gateway, because the database alone answers them.
 *   WebSockets of protocol v1, and GET /sheetws?query=1: msg 19 with the address (http/routes/upgrade.c)
 *   WebSockets of protocol v2: close code 4307 with the address, by v2_check_owner() (ws/v2/v2_session.c)
 *   GET /v2/sheets/ID/route: the address as data
 *
 * When the ring names this gateway and another one holds the lock, upgrade_on_holder() (http/routes/upgrade.c) and
 * members_may_add() (ws/room/members.c) send the client to the holder.
 *
 * Without a ring, and while the owner accepts no connections (core/reach.c), the answer is 503 with Retry-After, or
 * 1012. A gateway that has lost contact with the coordinator answers so to WebSockets of sheets that it does not hold;
 * it serves HTTP, by queries. A gateway that drains opens no WebSockets, also of its own sheets.
 */
#include "core/redirect.h"

#include "core/gateway.h"
#include "core/reach.h"

#include <stdio.h>
#include <string.h>

/* By default as this gateway itself is reached: all gateways of a database have the same settings. */
static bool
redirect_uses_tls(void)
{
	if (strcmp(gateway.config.public_scheme, "auto") == 0)
		return gateway.config.tls_certificate[0] != '\0';
	return strcmp(gateway.config.public_scheme, "https") == 0;
}

const char *
gateway_http_scheme(void)
{
	return redirect_uses_tls() ? "https" : "http";
}

const char *
gateway_ws_scheme(void)
{
	return redirect_uses_tls() ? "wss" : "ws";
}

void
redirect_put_address(const char *member, RedirectForm form, char address[REDIRECT_MAX])
{
	if (form == REDIRECT_HTTP)
		snprintf(address, REDIRECT_MAX, "%s://%s", gateway_http_scheme(), member);
	else
		snprintf(address, REDIRECT_MAX, "%s://%s/sheetws", gateway_ws_scheme(), member);
}

bool
redirect_is_here(int64_t sheet_id)
{
	return coord_holds(gateway.coord, sheet_id) || coord_is_mine(gateway.coord, sheet_id);
}

/*
 * Without contact to the coordinator, another gateway may have got the sheet, or be about to. A client that waited here
 * would wait until contact is back.
 */
static bool
redirect_is_cut_off(int64_t sheet_id)
{
	return gateway.suspended && !coord_holds(gateway.coord, sheet_id);
}

Served
redirect_find(int64_t sheet_id, RedirectForm form, char address[REDIRECT_MAX])
{
	const char *owner = coord_owner_of(gateway.coord, sheet_id);
	bool here = redirect_is_here(sheet_id);

	address[0] = '\0';
	if (owner == NULL || reach_is_refusing(owner) ||
		(here && form == REDIRECT_WEBSOCKET && redirect_is_cut_off(sheet_id)))
		return SERVED_NOWHERE;
	if (here)
		owner = gateway.config.public_address;
	redirect_put_address(owner, form, address);
	return here ? SERVED_HERE : SERVED_ELSEWHERE;
}

const char *
redirect_nowhere_reason(int64_t sheet_id)
{
	if (coord_owner_of(gateway.coord, sheet_id) == NULL)
		return "the gateways have not found each other yet";
	if (redirect_is_cut_off(sheet_id))
		return "this gateway has lost contact with the coordinator: another one may serve the sheet";
	return "the gateway that serves the sheet accepts no connections: if it is dead, another takes over within seconds";
}
