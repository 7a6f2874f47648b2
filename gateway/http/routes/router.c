/*
 * router.c - the table of routes, and the way of a request to its route.
 *
 * The connection gives the head, then the body. A request is refused as early as possible: address, method, framing,
 * body, arguments, token, in this order. Then its route runs, at the gateway that serves the sheet if it says so.
 */
#include "core/gateway.h"
#include "core/metrics.h"
#include "core/redirect.h"
#include "http/routes/routes.h"
#include "http/server/origin.h"
#include "support/json.h"

#include <stdio.h>
#include <string.h>

#define ROUTER_VALUES_MAX 1000	/* in the body of a request; our routes need 5 */
#define ROUTER_FORM_BYTES 65536 /* of a form besides its file */

typedef enum Caller
{
	ANYBODY,
	ACCOUNT, /* with a valid token */
	OPERATOR /* at admin-address only, where other routes are not served */
} Caller;

enum RouteFlags
{
	AT_OWNER = 1,	/* redirected to the gateway that serves the sheet: see core/redirect.c */
	BY_STATUS = 2,	/* refusals have a status of HTTP's, not a msg */
	STREAM = 4,		/* the body is a file, or a form with one, and is read as it arrives, not a JSON object */
	SHEET_PATH = 8, /* the * of the path is the id of a sheet */
	EVERYWHERE = 16 /* also at admin-address */
};

typedef struct Route
{
	const char *path; /* with at most one *, which stands for any characters */
	Method method;	  /* GET includes HEAD */
	Caller caller;
	int flags;
	bool (*check)(Request *request); /* of the arguments; false: answered. NULL: the route has none, or checks itself */
	void (*begin)(Request *request);
} Route;

/* The first row that matches is taken. */
static const Route routes[] = {
	{"/login", METHOD_POST, ANYBODY, 0, NULL, route_login},
	{"/register", METHOD_POST, ANYBODY, 0, NULL, route_register},
	{"/getuser", METHOD_POST, ACCOUNT, 0, check_user, route_get_user},
	{"/modifyuser", METHOD_POST, ACCOUNT, 0, check_username, route_modify_user},
	{"/modifyuserauth", METHOD_POST, ACCOUNT, 0, check_password, route_modify_password},
	{"/newsheet", METHOD_POST, ACCOUNT, 0, check_new_sheet, route_new_sheet},
	{"/getsheet", METHOD_POST, ACCOUNT, AT_OWNER, check_fid, route_get_sheet},
	{"/deletesheet", METHOD_POST, ACCOUNT, AT_OWNER, check_delete_sheet, route_delete_sheet},
	{"/recoversheet", METHOD_POST, ACCOUNT, AT_OWNER, check_fid, route_recover_sheet},
	{"/commitsheet", METHOD_POST, ACCOUNT, AT_OWNER, check_commit, route_commit},
	{"/getsheetchkp", METHOD_POST, ACCOUNT, 0, check_fid_cid, route_get_version},
	{"/getsheetlog", METHOD_POST, ACCOUNT, 0, check_fid_lid, route_get_log},
	{"/rollbacksheet", METHOD_POST, ACCOUNT, AT_OWNER, check_fid_cid, route_rollback},
	{"/sharesheet", METHOD_POST, ACCOUNT, 0, check_share, route_share_sheet},
	{"/sharelink", METHOD_POST, ACCOUNT, 0, check_share_link, route_share_link},
	{"/sheetws", METHOD_GET, ANYBODY, 0, NULL, route_sheet_ws},
	{"/getchunk", METHOD_GET, ANYBODY, 0, NULL, route_get_file},
	{"/uploadchunk", METHOD_POST, ANYBODY, STREAM, upload_begin, upload_body_end},
	{"/getallchunks", METHOD_POST, ACCOUNT, 0, check_fid, route_get_files},
	{"/v2/account/password", METHOD_POST, ACCOUNT, BY_STATUS, check_password, route_modify_password},
	{"/v2/account/revoke", METHOD_POST, ACCOUNT, BY_STATUS, NULL, route_revoke_tokens},
	{"/v2/session", METHOD_POST, ACCOUNT, BY_STATUS, check_session_cookie, route_session},
	{"/v2/session/end", METHOD_POST, ANYBODY, BY_STATUS, check_session, route_session_end},
	{"/v2/ticket", METHOD_POST, ACCOUNT, BY_STATUS, check_fid, route_ticket},
	{"/v2/sheets/import", METHOD_POST, ANYBODY, BY_STATUS | STREAM, import_begin, import_body_end},
	{"/v2/sheets/*.csv", METHOD_GET, ANYBODY, BY_STATUS | SHEET_PATH, NULL, route_sheet_csv},
	{"/v2/sheets/*/open", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_open_link, route_open_link},
	{"/v2/sheets/*/rename", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_rename, route_rename_sheet},
	{"/v2/sheets/*/label", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_label, route_label_version},
	{"/v2/sheets/*/access", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_sheet_access},
	{"/v2/sheets/*/route", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_sheet_route},
	{"/v2/sheets/*/log", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_sheet_log},
	{"/v2/sheets/*/versions", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_sheet_versions},
	{"/v2/sheets/*/cells", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH | AT_OWNER, NULL, route_sheet_cells},
	{"/livez", METHOD_GET, ANYBODY, EVERYWHERE, NULL, route_live},
	{"/readyz", METHOD_GET, ANYBODY, EVERYWHERE, NULL, route_ready},
	{"/healthz", METHOD_GET, ANYBODY, EVERYWHERE, NULL, route_health},
	{"/metrics", METHOD_GET, OPERATOR, 0, NULL, route_metrics},
	{"/debug", METHOD_GET, OPERATOR, 0, NULL, route_debug},
	{"/admin/drain", METHOD_POST, OPERATOR, 0, NULL, route_drain},
	{"/admin/resume", METHOD_POST, OPERATOR, 0, NULL, route_resume},
	{"/*", METHOD_GET, ANYBODY, 0, NULL, route_static},
};

#define ROUTE_COUNT (sizeof(routes) / sizeof(routes[0]))

_Static_assert(ROUTE_COUNT < TRACE_ROUTES_MAX, "each route is counted");

/* The part of the path that the * stands for, or the path if there is no *. NULL: the route does not match. */
static const char *
route_match(const Route *route, const char *path, size_t *len)
{
	size_t before = strcspn(route->path, "*"), after;

	*len = strlen(path);
	if (route->path[before] == '\0')
		return strcmp(route->path, path) == 0 ? path : NULL;
	after = strlen(route->path + before + 1);
	if (*len < before + after || strncmp(route->path, path, before) != 0 ||
		strcmp(route->path + before + 1, path + *len - after) != 0)
		return NULL;
	*len -= before + after;
	return path + before;
}

/* Finds the route, and the sheet of its path. */
static void
router_find(Request *request)
{
	for (size_t i = 0; i < ROUTE_COUNT && request->route == NULL; i++)
	{
		size_t len;
		const char *part = route_match(&routes[i], request->head.path, &len);
		char id[24] = "";

		if (part == NULL || (request->admin != (routes[i].caller == OPERATOR) && !(routes[i].flags & EVERYWHERE)))
			continue;
		if (routes[i].flags & SHEET_PATH)
		{
			snprintf(id, sizeof(id), "%.*s", (int) len, part);
			if (len >= sizeof(id) || !request_parse_id(id, &request->sheet_id))
				continue;
		}
		request->route = &routes[i];
		trace_set_route(request, (int) i + 1, routes[i].path);
		request->by_status = (routes[i].flags & BY_STATUS) != 0;
	}
}

/* Headers that let an allowed page of another origin read the answer. */
static void
router_allow_origin(Request *request)
{
	const char *origin = head_field(&request->head, "origin");

	request->origin = origin_of(&request->head);
	if (origin == NULL || request->admin)
		return;
	request_add_header(request, "Vary", "Origin");
	if (request->origin > ORIGIN_ALLOWED)
		return;
	request_add_header(request, "Access-Control-Allow-Origin", origin);
	request_add_header(request, "Access-Control-Allow-Credentials", "true");
	request_add_header(request, "Access-Control-Expose-Headers",
					   "etag, content-range, location, retry-after, x-request-id");
}

static bool
router_check_method(Request *request)
{
	const Route *route = request->route;
	const char *allow = route != NULL && route->method == METHOD_POST ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";

	if (request->method == METHOD_OPTIONS)
	{
		request_add_header(request, "Allow", allow);
		request_add_header(request, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
		request_add_header(request, "Access-Control-Allow-Headers",
						   "authorization, content-type, if-none-match, range, x-request-id");
		request_add_header(request, "Access-Control-Max-Age", "600");
		request_answer(request, 204, NULL, NULL);
	}
	else if (route == NULL || (route->begin == route_static && request->method == METHOD_POST))
		request_error(request, 404, "no such address");
	else if (request->method != route->method && !(request->method == METHOD_HEAD && route->method == METHOD_GET))
	{
		request_add_header(request, "Allow", allow);
		request_error(request, 405, "the address does not take this method");
	}
	else
		return true;
	return false;
}

static int64_t
router_body_limit(const Request *request)
{
	return request->route->flags & STREAM ? gateway.config.max_upload_bytes + ROUTER_FORM_BYTES
										  : gateway.config.max_body_bytes;
}

static void
router_refuse_size(Request *request)
{
	bool stream = (request->route->flags & STREAM) != 0;
	char reason[80];

	snprintf(reason, sizeof(reason), "the body is larger than %s permits (%d bytes)",
			 stream ? "max-upload-bytes" : "max-body-bytes",
			 stream ? gateway.config.max_upload_bytes : gateway.config.max_body_bytes);
	request_error(request, 413, reason);
}

/* The announced body is acceptable. False: answered, and the connection ends. */
static bool
router_check_length(Request *request)
{
	const Head *head = &request->head;

	if (request->method != METHOD_POST && !request->body_comes)
		return true;
	request->close = true;
	if (request->method != METHOD_POST)
		request_error(request, 400, "a request of this method has no body here");
	else if (head->content_length == -1 && !head->chunked)
		request_error(request, 411, "Content-Length is needed, or the body in chunks");
	else if (head->content_length > router_body_limit(request))
		router_refuse_size(request);
	else
	{
		request->close = head->close || gateway.leaving;
		return true;
	}
	return false;
}

/* The body of a POST is a JSON object. False: answered. */
static bool
router_parse_body(Request *request)
{
	const Buf *body = &request->body;
	JsonError error = json_parse_object(body->data, body->len, ROUTER_VALUES_MAX, JSON_MAX_DEPTH, &request->json);

	if (error == JSON_NO_MEMORY || buf_failed(body))
		request_out_of_memory(request);
	else if (error == JSON_INVALID)
		request_error(request, 400, "the body must be a JSON object in UTF-8, without a name that stands twice");
	else
		return true;
	return false;
}

bool
router_is_cross_origin(const Request *request)
{
	return request->origin > ORIGIN_SAME;
}

/*
 * Is the token in a header? Of the clients that follow a redirect, most drop the header when the address has another
 * port, and the owner would refuse the request.
 */
static bool
router_has_token_in_header(const Request *request)
{
	return head_field(&request->head, "authorization") != NULL && !request_has_arg(request, "token") &&
		   request_member(request, "token") == NULL;
}

/* Runs the route here, or sends the client to the gateway that serves the sheet. */
static void
router_begin_route(Request *request)
{
	char address[REDIRECT_MAX];
	Served served = SERVED_HERE;
	Buf location = {NULL, 0, 0};

	if (request->route->flags & AT_OWNER)
		served = redirect_find(request->sheet_id, REDIRECT_HTTP, address);
	if (served == SERVED_NOWHERE)
		request_error_later(request, 503, REDIRECT_RETRY_S, redirect_nowhere_reason(request->sheet_id));
	else if (served == SERVED_HERE || router_is_cross_origin(request) || router_has_token_in_header(request))
		request->route->begin(request);
	else
	{
		buf_puts(&location, address);
		buf_puts(&location, request->head.target);
		request->no_store = true; /* the address may have the token */
		request_add_header_buf(request, "Location", &location);
		metrics.redirects++;
		request_error(request, 307, "the sheet is served by another gateway");
	}
}

/* The request is complete. */
static void
router_dispatch(Request *request)
{
	const Route *route = request->route;

	request_enter(request, REQUEST_RUNNING);
	if (route->method == METHOD_POST && !(route->flags & STREAM) && !router_parse_body(request))
		return;
	if (route->check != NULL && !(route->flags & STREAM) && !route->check(request))
		return;
	if (route->caller == ACCOUNT)
		request_authenticate(request, router_begin_route);
	else if (route->caller == ANYBODY || service_check_operator(request))
		router_begin_route(request);
}

/* ---- for connections ---- */

static void
router_body_end(Request *request)
{
	request->body_comes = false;
	if (!request_is_answered(request))
		router_dispatch(request);
}

static ConnNext
router_begin(Request *request, const char *head, size_t len, Chunked *body)
{
	if (!request_begin(request, head, len))
		return CONN_NEXT_ANSWER;
	router_find(request);
	router_allow_origin(request);
	if (upgrade_begin(request))
		return CONN_NEXT_ANSWER;
	if (!router_check_method(request) || !router_check_length(request))
		return CONN_NEXT_ANSWER;
	if (request->route->flags & STREAM && !request->route->check(request))
		return CONN_NEXT_ANSWER;
	if (!request->body_comes)
	{
		router_body_end(request);
		return CONN_NEXT_ANSWER;
	}
	*body = request->head.chunked ? (Chunked){0} : CHUNKED_MEASURED((uint64_t) request->head.content_length);
	return request->head.expect_continue ? CONN_NEXT_CONTINUE : CONN_NEXT_BODY;
}

static void
router_body(Request *request, const char *data, size_t len)
{
	request->received += (int64_t) len;
	if (request->received == request->head.content_length)
		request->body_comes = false;
	if (request->head.chunked && request->received > router_body_limit(request))
		router_refuse_size(request);
	else if (request->route->flags & STREAM)
		request->take_body(request, data, len);
	else
		buf_put(&request->body, data, len);
}

const ConnHandler router_handler = {
	.create = request_create,
	.begin = router_begin,
	.body = router_body,
	.body_end = router_body_end,
	.refuse = request_refuse,
	.fill = request_fill,
	.upgrade = upgrade_finish,
	.gone = request_gone,
};
