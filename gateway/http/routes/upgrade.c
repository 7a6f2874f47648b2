/*
 * upgrade.c - a request to become a WebSocket (RFC 6455 4.2.1): what is wrong with it is answered by HTTP.
 */
#include "http/routes/upgrade.h"

#include "core/gateway.h"
#include "http/server/origin.h"
#include "http/request/request.h"
#include "http/request/tickets.h"

#include <stdlib.h>
#include <string.h>

static bool
upgrade_check_handshake(Request *request)
{
	int status;
	const char *problem = handshake_problem(request, &status);

	if (problem == NULL)
		return true;
	if (status == 426)
		request_add_header(request, "Sec-WebSocket-Version", "13");
	request_error(request, status, problem);
	return false;
}

static bool
upgrade_check_origin(Request *request)
{
	const char *origin = head_field(&request->head, "origin");
	const char *host = head_field(&request->head, "host");

	if (origin == NULL || origin_is_allowed(origin, host != NULL ? host : ""))
		return true;
	request_error(request, 403, "foreign origin");
	return false;
}

bool
upgrade_link(const Request *request, char to[LINK_KEY_MAX + 1])
{
	return request_arg(request, "link", to, LINK_KEY_MAX + 1) && *to != '\0' &&
		   to[strspn(to, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")] == '\0';
}

/* The token is good and the sheet is served here; answered otherwise. */
static bool
upgrade_check_sheet(Request *request, Ticket *ticket)
{
	char fid[24] = "", token[JWT_MAX] = "", once[TICKET_SIZE];
	bool by_ticket = request_has_arg(request, "ticket");
	const char *owner;
	Buf data = {NULL, 0, 0};

	if (!request_arg(request, "fid", fid, sizeof(fid)) || !request_parse_id(fid, &ticket->sheet_id))
	{
		request_error(request, 400, "fid is needed");
		return false;
	}
	if (!upgrade_link(request, ticket->link))
		ticket->link[0] = '\0';
	ticket->protocol = handshake_protocol(request);
	ticket->v2 = ticket->protocol != NULL && strcmp(ticket->protocol, HANDSHAKE_V2) == 0;
	if (ticket->v2)
		return true; /* the rest is told by close codes (v2_session.c) */
	if (!by_ticket && (!request_token(request, token, sizeof(token)) ||
					   jwt_verify(&gateway.keys, token, strlen(token), gateway_now(), &ticket->claims) != JWT_OK))
	{
		request_msg(request, MSG_INVALID_TOKEN);
		return false;
	}
	owner = coord_owner_of(gateway.coord, ticket->sheet_id);
	if (owner == NULL || gateway.draining)
		request_error(request, 503, "not serving now");
	else if (coord_is_mine(gateway.coord, ticket->sheet_id))
	{
		if (!by_ticket || (request_arg(request, "ticket", once, sizeof(once)) &&
						   ticket_redeem(once, ticket->sheet_id, &ticket->claims)))
			return true;
		request_msg(request, MSG_INVALID_TOKEN);
	}
	else if (by_ticket)
	{
		/* It is good for this gateway alone: the other one gives out another. */
		buf_printf(&data, "\"%s://%s/sheetws?fid=%lld\"", gateway_ws_scheme(), owner, (long long) ticket->sheet_id);
		request_data(request, MSG_REDIRECT, &data);
	}
	else
	{
		buf_printf(&data, "\"%s://%s/sheetws?token=%s&fid=%lld%s%s\"", gateway_ws_scheme(), owner, token,
				   (long long) ticket->sheet_id, ticket->link[0] != '\0' ? "&link=" : "", ticket->link);
		request_data(request, MSG_REDIRECT, &data);
	}
	return false;
}

Ticket *
upgrade_check(Request *request)
{
	Ticket *ticket;
	char nack[8];

	if (request->method != METHOD_GET || strcmp(request->path, "/sheetws") != 0)
		return NULL; /* a server may ignore an upgrade (RFC 9110 7.8) */
	request->close = true;
	if (!upgrade_check_handshake(request) || !upgrade_check_origin(request))
		return NULL;
	ticket = calloc(1, sizeof(Ticket));
	if (ticket == NULL)
	{
		request_out_of_memory(request);
		return NULL;
	}
	if (!upgrade_check_sheet(request, ticket))
	{
		free(ticket);
		return NULL;
	}
	handshake_accept(request, ticket->accept);
	ticket->nack = request_arg(request, "nack", nack, sizeof(nack)) && strcmp(nack, "1") == 0;
	memcpy(ticket->address, request->peer, sizeof(ticket->address));
	memcpy(ticket->request_id, request->trace.id, sizeof(ticket->request_id));
	return ticket;
}
