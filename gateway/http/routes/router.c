/*
 * router.c - which route answers which address, and by which method.
 */
#include "http/request/download.h"
#include "core/gateway.h"
#include "support/json.h"
#include "http/routes/routes.h"
#include "http/request/tickets.h"

#include <string.h>

#define ROUTER_VALUES_MAX 1000 /* in the body of a request; our routes need 5 */

typedef struct Route
{
	const char *path; /* with one * that stands for anything */
	Method method;
	void (*begin)(Request *request);
} Route;

static const Route routes[] = {
	{"/login", METHOD_POST, route_login},
	{"/register", METHOD_POST, route_register},
	{"/getuser", METHOD_POST, route_get_user},
	{"/modifyuser", METHOD_POST, route_modify_user},
	{"/modifyuserauth", METHOD_POST, route_modify_password},
	{"/newsheet", METHOD_POST, route_new_sheet},
	{"/getsheet", METHOD_POST, route_get_sheet},
	{"/deletesheet", METHOD_POST, route_delete_sheet},
	{"/recoversheet", METHOD_POST, route_recover_sheet},
	{"/commitsheet", METHOD_POST, route_commit},
	{"/getsheetchkp", METHOD_POST, route_get_version},
	{"/getsheetlog", METHOD_POST, route_get_log},
	{"/rollbacksheet", METHOD_POST, route_rollback},
	{"/sharesheet", METHOD_POST, route_share_sheet},
	{"/sharelink", METHOD_POST, route_share_link},
	{"/sheetws", METHOD_GET, route_sheet_ws},
	{"/getchunk", METHOD_GET, route_get_file},
	{"/uploadchunk", METHOD_POST, NULL}, /* read as it comes: upload.c */
	{"/getallchunks", METHOD_POST, route_get_files},
	{"/v2/account/password", METHOD_POST, route_modify_password},
	{"/v2/account/revoke", METHOD_POST, route_revoke_tokens},
	{"/v2/ticket", METHOD_POST, route_ticket},
	{"/v2/sheets/*/open", METHOD_POST, route_open_link},
	{"/v2/sheets/*", METHOD_GET, route_sheet},
	{"/livez", METHOD_GET, route_live},
	{"/readyz", METHOD_GET, route_ready},
	{"/healthz", METHOD_GET, route_health},
	{"/metrics", METHOD_GET, route_metrics},
	{"/debug", METHOD_GET, route_debug},
	{"/*", METHOD_GET, route_static},
};

static bool
route_matches(const Route *route, const char *path)
{
	const char *star = strchr(route->path, '*');
	size_t len = strlen(path), before, behind;

	if (star == NULL)
		return strcmp(route->path, path) == 0;
	before = (size_t) (star - route->path);
	behind = strlen(star + 1);
	return len >= before + behind && strncmp(route->path, path, before) == 0 &&
		   strcmp(star + 1, path + len - behind) == 0;
}

static const Route *
router_find(const char *path)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
	{
		if (route_matches(&routes[i], path))
			return &routes[i];
	}
	return NULL;
}

#define ROUTE_COUNT ((int) (sizeof(routes) / sizeof(routes[0])))
_Static_assert(sizeof(routes) / sizeof(routes[0]) < ROUTER_LABELS_MAX, "each route needs a label");

int
router_label(const Request *request)
{
	const Route *route = request->route != NULL ? request->route : router_find(request->path);

	return route != NULL ? (int) (route - routes) : ROUTE_COUNT;
}

const char *
router_label_name(int label)
{
	if (label < ROUTE_COUNT)
		return routes[label].path;
	return label == ROUTE_COUNT ? "none" : NULL;
}

bool
router_is_upload(const char *path)
{
	return strcmp(path, "/uploadchunk") == 0;
}

int64_t
router_body_limit(const char *path)
{
	if (router_is_upload(path))
		return (int64_t) gateway.config.max_upload_bytes + 65536; /* the form around the file */
	return gateway.config.max_body_bytes;
}

/* Parses the body of a POST, which is a JSON object; otherwise answers the request. */
static bool
router_parse_body(Request *request)
{
	switch (json_parse_object(request->body.data, request->body.len, ROUTER_VALUES_MAX, JSON_MAX_DEPTH, &request->json))
	{
		case JSON_OK:
			return true;
		case JSON_NO_MEMORY:
			request_out_of_memory(request);
			return false;
		case JSON_INVALID:
			break;
	}
	request_error(request, 400, "the body must be a JSON object in UTF-8, without a name that stands twice");
	return false;
}

bool
router_check_method(Request *request)
{
	const Route *route = request->route = router_find(request->path);
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

void
router_dispatch(Request *request)
{
	const Route *route = request->route;

	if (route->method == METHOD_GET || router_parse_body(request))
		route->begin(request);
}
