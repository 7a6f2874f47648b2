/*
 * router.c - which route answers which address, and by which method.
 */
#include "download.h"
#include "gateway.h"
#include "routes.h"
#include "utf8.h"

#include <string.h>

typedef struct Route
{
	const char *path; /* ends with * : a prefix */
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
	{"/v2/sheets/*", METHOD_GET, route_sheet_route},
	{"/healthz", METHOD_GET, route_health},
	{"/metrics", METHOD_GET, route_metrics},
	{"/*", METHOD_GET, route_static},
};

static bool
route_matches(const Route *route, const char *path)
{
	size_t len = strlen(route->path);

	if (route->path[len - 1] == '*')
		return strncmp(route->path, path, len - 1) == 0;
	return strcmp(route->path, path) == 0;
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

/* The body of a POST is a JSON object; answered otherwise. */
static bool
router_parse_body(Request *request)
{
	static const char nul[] = "\\u0000"; /* would cut strings short */

	if (request->body.len > 0 && memmem(request->body.data, request->body.len, nul, sizeof(nul) - 1) == NULL)
	{
		const char *end = NULL;

		if (utf8_check(request->body.data, request->body.len, NULL))
			request->json = cJSON_ParseWithLengthOpts(request->body.data, request->body.len, &end, 0);
		while (end != NULL && end < request->body.data + request->body.len && strchr(" \t\r\n", *end) != NULL)
			end++;
		if (cJSON_IsObject(request->json) && end == request->body.data + request->body.len)
			return true;
	}
	request_error(request, 400, "the body must be a JSON object in UTF-8");
	return false;
}

void
router_dispatch(Request *request)
{
	const Route *route = router_find(request->path);

	if (request->method == METHOD_OPTIONS)
	{
		request_add_header(request, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
		request_add_header(request, "Access-Control-Allow-Headers", "authorization, content-type, range");
		request_add_header(request, "Access-Control-Max-Age", "600");
		request_answer(request, 204, NULL, NULL);
	}
	else if (route == NULL || (route->begin == route_static && request->method == METHOD_POST))
		request_error(request, 404, "no such address");
	else if (request->method != route->method && !(request->method == METHOD_HEAD && route->method == METHOD_GET))
	{
		request_add_header(request, "Allow", route->method == METHOD_POST ? "POST, OPTIONS" : "GET, HEAD, OPTIONS");
		request_error(request, 405, "the address does not take this method");
	}
	else if (route->method == METHOD_GET || router_parse_body(request))
		route->begin(request);
}
