/*
 * upgrade.c - from a request to a WebSocket (RFC 6455 4.2): GET /sheetws, and tickets for it.
 *
 * Errors of the handshake, the origin and the token are answered by HTTP. What only the database knows is told by the
 * close code after the upgrade. For protocol v2, everything but the handshake and the origin is told by close codes
 * (v2_session.c), since the token arrives with the first message.
 */
#include "auth/base64.h"
#include "core/gateway.h"
#include "core/reach.h"
#include "core/redirect.h"
#include "http/request/tickets.h"
#include "http/routes/routes.h"
#include "http/server/origin.h"
#include "http/share/published_links.h"
#include "http/share/watch.h"
#include "ws/session/session.h"
#include "ws/v1/v1.h"
#include "ws/wire/socket.h"
#include "ws/v2/v2_session.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UPGRADE_V1		"sheet.v1"
#define UPGRADE_V2		"sheet.v2"
#define UPGRADE_KEY_LEN 24 /* 16 bytes in base64 */

/* Bytes that an editor's socket may hold unread: they are latency, and a flood must be pushed back early. */
#define UPGRADE_EDITOR_BUFFER 131072

/* ---- the handshake ---- */

static bool
upgrade_key_is_valid(const char *key)
{
	unsigned char nonce[16];
	size_t len;

	return key != NULL && strlen(key) == UPGRADE_KEY_LEN && strcmp(key + UPGRADE_KEY_LEN - 2, "==") == 0 &&
		   base64_decode(BASE64_STANDARD, key, UPGRADE_KEY_LEN - 2, nonce, sizeof(nonce), &len);
}

/* The subprotocol, sheet.v2 before sheet.v1; NULL if none is asked for. */
static const char *
upgrade_protocol(const Request *request)
{
	static const char field[] = "sec-websocket-protocol";

	if (head_has_word(&request->head, field, UPGRADE_V2))
		return UPGRADE_V2;
	return head_has_word(&request->head, field, UPGRADE_V1) ? UPGRADE_V1 : NULL;
}

static bool
upgrade_is_v2(const Request *request)
{
	const char *protocol = upgrade_protocol(request);

	return protocol != NULL && strcmp(protocol, UPGRADE_V2) == 0;
}

/* NULL: the handshake is valid. */
static const char *
upgrade_problem(const Request *request)
{
	const Head *head = &request->head;

	if (strcasecmp(head_field(head, "upgrade"), "websocket") != 0)
		return "the only upgrade is to websocket";
	if (head->minor == 0)
		return "a WebSocket begins with HTTP/1.1";
	if (!head->upgrade)
		return "Connection must name Upgrade";
	if (head->content_length > 0 || head->chunked)
		return "a WebSocket begins without a body";
	if (!upgrade_key_is_valid(head_field(head, "sec-websocket-key")))
		return "Sec-WebSocket-Key must be 16 bytes in base64";
	if (head_field(head, "sec-websocket-protocol") != NULL && upgrade_protocol(request) == NULL)
		return "none of the subprotocols in Sec-WebSocket-Protocol is spoken here";
	return NULL;
}

static bool
upgrade_check_handshake(Request *request)
{
	const char *problem = upgrade_problem(request);
	const char *version = head_field(&request->head, "sec-websocket-version");
	const char *origin = head_field(&request->head, "origin");
	const char *host = head_field(&request->head, "host");

	if (problem != NULL)
		request_error(request, 400, problem);
	else if (version == NULL || strcmp(version, "13") != 0)
	{
		request_add_header(request, "Sec-WebSocket-Version", "13");
		request_error(request, 426, "Sec-WebSocket-Version must be 13");
	}
	else if (origin != NULL && !origin_is_allowed(origin, host != NULL ? host : ""))
		request_error(request, 403, "foreign origin");
	else
		return true;
	return false;
}

/* The value that proves to the client that its key was read (RFC 6455 4.2.2). */
static void
upgrade_put_accept(const Request *request, Buf *to)
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	char text[UPGRADE_KEY_LEN + sizeof(guid)], accept[32];
	unsigned char digest[SHA_DIGEST_LENGTH];

	snprintf(text, sizeof(text), "%s%s", head_field(&request->head, "sec-websocket-key"), guid);
	(void) SHA1((const unsigned char *) text, strlen(text), digest);
	(void) EVP_EncodeBlock((unsigned char *) accept, digest, sizeof(digest));
	buf_puts(to, accept);
}

/* ---- who, and where ---- */

/* The key of a link in the query: letters, digits, - and _. False if there is none. */
static bool
upgrade_link(const Request *request, char to[LINK_KEY_MAX + 1])
{
	if (request_arg(request, "link", to, LINK_KEY_MAX + 1) && *to != '\0' &&
		to[strspn(to, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")] == '\0')
		return true;
	to[0] = '\0';
	return false;
}

/* The key of a published view in the query. False if there is none. */
static bool
upgrade_watch(const Request *request, char to[PUBLISHED_KEY_CHARS + 1])
{
	return request_arg(request, "watch", to, PUBLISHED_KEY_CHARS + 1) && published_key_chars(to) == PUBLISHED_KEY_CHARS;
}

/* Answers with the address of the WebSocket at another gateway. token, link: "" if there is none. */
static void
upgrade_redirect(Request *request, const char *address, const char *token, const char *link)
{
	Buf data = {NULL, 0, 0};

	request->no_store = true;
	buf_printf(&data, "\"%s?%s%s%sfid=%lld%s%s\"", address, token[0] != '\0' ? "token=" : "", token,
			   token[0] != '\0' ? "&" : "", (long long) request->sheet_id, link[0] != '\0' ? "&link=" : "", link);
	request_data(request, MSG_REDIRECT, &data);
}

/* The token and the link that the request came with; "" if there is none. */
static void
upgrade_send_on(Request *request, const char *address)
{
	char token[JWT_MAX] = "", link[LINK_KEY_MAX + 1];

	(void) upgrade_link(request, link);
	if (request_has_arg(request, "ticket"))
		link[0] = '\0'; /* a ticket is valid here only: the other gateway issues another */
	else
		(void) request_token(request, token, sizeof(token));
	upgrade_redirect(request, address, token, link);
}

static void
upgrade_on_holder(void *arg, const char *holder)
{
	Request *request = arg;
	char address[REDIRECT_MAX];

	if (!request_is_gone(request))
	{
		if (gateway.stopping)
			request_error(request, 503, "not serving now");
		else if (holder == NULL || reach_is_refusing(holder))
			request->next(request);
		else
		{
			redirect_put_address(holder, REDIRECT_WEBSOCKET, address);
			upgrade_send_on(request, address);
		}
	}
	request_end_step(request);
}

/*
 * The sheet is ours by the ring. If its former owner has not moved it yet, sends the client there; otherwise calls
 * next. Clients of protocol v2 need no such question, because they follow the code with which they are closed.
 */
static void
upgrade_ask_holder(Request *request, RequestNext next)
{
	request->next = next;
	request_begin_step(request);
	if (coord_ask_holder(gateway.coord, request->sheet_id, upgrade_on_holder, request))
		return;
	request_end_step(request);
	next(request);
}

/* The ticket is valid. Nothing is asked about a sheet without one: anyone could have ZooKeeper asked without end. */
static bool
upgrade_has_ticket(const Request *request)
{
	char ticket[TICKET_SIZE];

	return request_arg(request, "ticket", ticket, sizeof(ticket)) && ticket_is_valid(ticket, request->sheet_id);
}

/* The token or the ticket is valid and the ring names this gateway. False: answered. */
static bool
upgrade_check_sheet(Request *request)
{
	char token[JWT_MAX] = "", address[REDIRECT_MAX];
	bool by_ticket = request_has_arg(request, "ticket");
	Served served;

	if (!request_arg_id(request, "fid", &request->sheet_id))
	{
		request_error(request, 400, "fid is needed");
		return false;
	}
	if (upgrade_is_v2(request))
		return true;
	served = redirect_find(request->sheet_id, REDIRECT_WEBSOCKET, address);
	if (!by_ticket && (!request_token(request, token, sizeof(token)) ||
					   jwt_verify(&gateway.keys, token, strlen(token), gateway_now(), &request->claims) != JWT_OK))
		request_msg(request, MSG_INVALID_TOKEN);
	else if (served == SERVED_NOWHERE)
		request_error_later(request, 503, REDIRECT_RETRY_S, redirect_nowhere_reason(request->sheet_id));
	else if (served == SERVED_ELSEWHERE)
		upgrade_send_on(request, address);
	else if (gateway.stopping)
		request_error(request, 503, "not serving now");
	else if (by_ticket && !upgrade_has_ticket(request))
		request_msg(request, MSG_INVALID_TOKEN);
	else
		return true;
	return false;
}

static void
upgrade_accept(Request *request)
{
	char ticket[TICKET_SIZE];

	if (!upgrade_is_v2(request) && request_has_arg(request, "ticket") &&
		(!request_arg(request, "ticket", ticket, sizeof(ticket)) ||
		 !ticket_redeem(ticket, request->sheet_id, &request->claims)))
		request_msg(request, MSG_INVALID_TOKEN);
	else
	{
		request->status = 101;
		conn_upgrade(request->conn);
	}
}

/* Every gateway can serve watchers of every sheet. If the key opens nothing, the WebSocket is closed with 4404. */
static void
upgrade_accept_watch(Request *request)
{
	char key[PUBLISHED_KEY_CHARS + 1];

	if (gateway.stopping)
		request_error(request, 503, "not serving now");
	else if (!upgrade_is_v2(request) || !upgrade_watch(request, key))
		request_error(request, 400, "a published view is watched by protocol v2, and its key");
	else
	{
		request->status = 101;
		conn_upgrade(request->conn);
	}
}

bool
upgrade_begin(Request *request)
{
	if (request->admin || request->method != METHOD_GET || strcmp(request->head.path, "/sheetws") != 0 ||
		head_field(&request->head, "upgrade") == NULL)
		return false; /* other routes ignore an upgrade (RFC 9110 7.8) */
	request->close = true;
	if (!upgrade_check_handshake(request))
		return true;
	if (request_has_arg(request, "watch"))
	{
		upgrade_accept_watch(request);
		return true;
	}
	if (!upgrade_check_sheet(request))
		return true;
	if (upgrade_is_v2(request) || coord_holds(gateway.coord, request->sheet_id))
		upgrade_accept(request);
	else
		upgrade_ask_holder(request, upgrade_accept);
	return true;
}

/* ---- the WebSocket ---- */

static void
upgrade_on_signed_in(void *arg, int64_t uid)
{
	place_sign_in(arg, uid);
}

static void
upgrade_on_gone(void *arg)
{
	place_give_up(arg);
}

static void
upgrade_end(void *arg)
{
	socket_abort(arg);
}

static Session *
upgrade_open_session(const Request *request, Socket *socket)
{
	char link[LINK_KEY_MAX + 1], nack[8];
	Session *session;

	(void) upgrade_link(request, link);
	if (upgrade_is_v2(request))
		session = v2_session_open(socket, request->sheet_id, link);
	else
		session = v1_session_open(socket, &request->claims, request->sheet_id, link,
								  request_arg(request, "nack", nack, sizeof(nack)) && strcmp(nack, "1") == 0);
	if (session == NULL)
		return NULL;
	snprintf(session->peer, sizeof(session->peer), "%s", request->peer);
	snprintf(session->request_id, sizeof(session->request_id), "%s", request->trace.id);
	return session;
}

void
upgrade_finish(Request *request, Transport *transport, Place *place, char *read, size_t len)
{
	static const SocketOwner socket_owner = {upgrade_on_signed_in, upgrade_on_gone};
	static const PlaceOwner place_owner = {NULL, upgrade_end};
	const char *protocol = upgrade_protocol(request);
	Buf answer = {NULL, 0, 0};
	Socket *socket;
	char key[PUBLISHED_KEY_CHARS + 1];
	bool opened = false;

	buf_puts(&answer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
					  "Sec-WebSocket-Accept: ");
	upgrade_put_accept(request, &answer);
	if (protocol != NULL)
		buf_printf(&answer, "\r\nSec-WebSocket-Protocol: %s", protocol);
	buf_puts(&answer, "\r\n\r\n");
	socket = socket_open(transport, &socket_owner, place);
	if (socket == NULL)
		place_give_up(place);
	else
	{
		place_set_owner(place, &place_owner, socket);
		transport_limit_received(transport, UPGRADE_EDITOR_BUFFER);
		socket_put(socket, answer.data, answer.len);
		if (!buf_failed(&answer))
			opened =
				upgrade_watch(request, key) ? watch_open(socket, key) : upgrade_open_session(request, socket) != NULL;
		if (opened)
			socket_take(socket, read, len);
		else
			socket_abort(socket);
	}
	buf_free(&answer);
}

/* ---- GET /sheetws?query=1: where to connect ---- */

static void
sheet_ws_here(Request *request)
{
	request_msg(request, MSG_DESTINATION);
}

static void
sheet_ws_info(Request *request, PGresult *res)
{
	char token[JWT_MAX] = "", address[REDIRECT_MAX];

	if (!sheet_is_open(request, res))
		return;
	switch (redirect_find(request->sheet_id, REDIRECT_WEBSOCKET, address))
	{
		case SERVED_NOWHERE:
			request_error_later(request, 503, REDIRECT_RETRY_S, redirect_nowhere_reason(request->sheet_id));
			break;
		case SERVED_HERE:
			upgrade_ask_holder(request, sheet_ws_here);
			break;
		case SERVED_ELSEWHERE:
			(void) request_arg(request, "token", token, sizeof(token));
			upgrade_redirect(request, address, token, "");
			break;
	}
}

/* Also if the key is wrong: the role that the account has then tells. */
static void
sheet_ws_opened(Request *request, PGresult *res)
{
	sheet_query_info(request, sheet_ws_info);
}

static void
sheet_ws_authenticated(Request *request)
{
	char link[LINK_KEY_MAX + 1];

	if (upgrade_link(request, link))
		request_query(request, DATABASE_WRITES, sheet_open_link_sql,
					  PARAMS(request_sheet(request), request_digest(request, link), request_uid(request)),
					  REQUEST_TEXT_RAW, sheet_ws_opened);
	else
		sheet_query_info(request, sheet_ws_info);
}

void
route_sheet_ws(Request *request)
{
	char query[8] = "";

	(void) request_arg(request, "query", query, sizeof(query));
	if (!request_arg_id(request, "fid", &request->sheet_id))
		request_error(request, 400, "fid is needed");
	else if (strcmp(query, "1") != 0)
		request_error(request, 426, "connect by WebSocket, or ask with query=1");
	else
		request_authenticate(request, sheet_ws_authenticated);
}

/* ---- POST /v2/ticket {fid} ---- */

void
route_ticket(Request *request)
{
	char ticket[TICKET_SIZE];
	Buf body = {NULL, 0, 0};

	if (request->sheet_id == 0)
		request_error(request, 400, "fid is needed, as a number");
	else if (ticket_count(request->claims.uid) >= TICKETS_MAX)
		request_error(request, 429, "too many unused tickets of this account: use one, or wait");
	else if (!ticket_issue(&request->claims, request->sheet_id, ticket))
		request_error(request, 503, "too many tickets are out: try again");
	else
	{
		buf_printf(&body, "{\"ticket\":\"%s\",\"seconds\":%d}", ticket, TICKET_SECONDS);
		request_json(request, 200, &body);
	}
}
