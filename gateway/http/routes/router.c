/*
 * router.c - the table of routes, and the way of a request to its route.
 *
 * The connection gives the head, then the body. A request is refused as early as possible: address, method, framing,
 * body, arguments, token, in this order. Then its route runs, at the gateway that serves the sheet if it says so.
 */
#include "core/gateway.h"
#include "core/metrics.h"
#include "core/redirect.h"
#include "http/api/api.h"
#include "http/dav/dav.h"
#include "http/routes/routes.h"
#include "http/share/share.h"
#include "http/server/origin.h"
#include "http/share/pastes.h"
#include "support/json.h"

#include <stdio.h>
#include <string.h>

#define ROUTER_VALUES_MAX 1000	 /* in the body of a request; our routes need 5 */
#define ROUTER_LARGE_MAX  131072 /* the same with LARGE_BODY: 16384 cells have 81920, of a guest */
#define ROUTER_REPORT	  4		 /* times max-body-bytes */
#define ROUTER_FORM_BYTES 65536	 /* of a form besides its file */
#define ROUTER_ALLOW_MAX  128

typedef enum Caller
{
	ANYBODY,
	GUEST,	 /* with a valid token */
	ACCOUNT, /* with a valid token of an account */
	OPERATOR /* at admin-address only, where other routes are not served */
} Caller;

enum RouteFlags
{
	AT_OWNER = 1,		/* redirected to the gateway that serves the sheet: see core/redirect.c */
	BY_STATUS = 2,		/* refusals have a status of HTTP's, not a msg */
	STREAM = 4,			/* the body is a file, or a form with one, and is read as it arrives, not a JSON object */
	SHEET_PATH = 8,		/* the first * of the path is the id of a sheet */
	EVERYWHERE = 16,	/* also at admin-address */
	PASTE = 32,			/* the body is no larger than that of a paste */
	FORM = 64,			/* the body may be a form, which the route reads */
	NO_BODY = 128,		/* a request without a body has no members */
	LARGE_BODY = 256,	/* of many values: read only if the token, which it has not, is valid */
	GUESTS = 512,		/* also for guests of a link, whom others refuse */
	PUBLISHED = 1024,	/* the answer depends on nobody's token: pages of any site may read the forms for programs */
	SECRET_PATH = 2048, /* the rest of the path is a key: logs have the path up to its * */
	PEOPLE = 4096,		/* people open it in browsers, where an error is a page */
	DAV = 8192 /* of calendar programs: the token may be the password of Basic, and the body is XML or a calendar */
};

typedef struct Route
{
	const char *path; /* a * stands for any characters, see router_match() */
	Method method;	  /* GET includes HEAD */
	Caller caller;
	int flags;
	bool (*check)(Request *request); /* of the arguments; false: answered. NULL: the route has none, or checks itself */
	void (*begin)(Request *request);
	Scope scope; /* with which an access token permits it; none: only the token of a sign-in does */
} Route;

/* The first path that matches is taken; it has a row for each of its methods. */
static const Route routes[] = {
	{"/login", METHOD_POST, ANYBODY, 0, NULL, route_login, SCOPE_NONE},
	{"/register", METHOD_POST, ANYBODY, 0, NULL, route_register, SCOPE_NONE},
	{"/getuser", METHOD_POST, ACCOUNT, 0, check_user, route_get_user, SCOPE_READ},
	{"/modifyuser", METHOD_POST, ACCOUNT, 0, check_username, route_modify_user, SCOPE_NONE},
	{"/modifyuserauth", METHOD_POST, ACCOUNT, 0, check_password, route_modify_password, SCOPE_NONE},
	{"/newsheet", METHOD_POST, ACCOUNT, 0, check_new_sheet, route_new_sheet, SCOPE_ADMIN},
	{"/getsheet", METHOD_POST, ACCOUNT, AT_OWNER, check_fid, route_get_sheet, SCOPE_READ},
	{"/deletesheet", METHOD_POST, ACCOUNT, AT_OWNER, check_delete_sheet, route_delete_sheet, SCOPE_ADMIN},
	{"/recoversheet", METHOD_POST, ACCOUNT, AT_OWNER, check_fid, route_recover_sheet, SCOPE_ADMIN},
	{"/commitsheet", METHOD_POST, ACCOUNT, AT_OWNER, check_commit, route_commit, SCOPE_EDIT},
	{"/getsheetchkp", METHOD_POST, ACCOUNT, GUESTS, check_fid_cid, route_get_version, SCOPE_READ},
	{"/getsheetlog", METHOD_POST, ACCOUNT, 0, check_fid_lid, route_get_log, SCOPE_READ},
	{"/rollbacksheet", METHOD_POST, ACCOUNT, AT_OWNER, check_fid_cid, route_rollback, SCOPE_EDIT},
	{"/sharesheet", METHOD_POST, ACCOUNT, 0, check_share, route_share_sheet, SCOPE_ADMIN},
	{"/sharelink", METHOD_POST, ACCOUNT, 0, check_share_link, route_share_link, SCOPE_ADMIN},
	{"/sheetws", METHOD_GET, ANYBODY, GUESTS, NULL, route_sheet_ws, SCOPE_READ},
	{"/getchunk", METHOD_GET, ANYBODY, 0, NULL, route_get_file, SCOPE_READ},
	{"/i/*", METHOD_GET, ANYBODY, BY_STATUS | PEOPLE | SECRET_PATH, NULL, route_get_picture, SCOPE_NONE},
	{"/v2/files", METHOD_GET, ACCOUNT, BY_STATUS, NULL, route_files, SCOPE_READ},
	{"/v2/files/*", METHOD_DELETE, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_delete_file, SCOPE_ADMIN},
	{"/uploadchunk", METHOD_POST, ANYBODY, STREAM, upload_begin, upload_body_end, SCOPE_UPLOAD},
	{"/getallchunks", METHOD_POST, ACCOUNT, 0, check_fid, route_get_files, SCOPE_READ},
	{"/v2/account/password", METHOD_POST, ACCOUNT, BY_STATUS, check_password, route_modify_password, SCOPE_NONE},
	{"/v2/account/revoke", METHOD_POST, ACCOUNT, BY_STATUS, NULL, route_revoke_tokens, SCOPE_NONE},
	{"/v2/session", METHOD_POST, ACCOUNT, BY_STATUS, check_session_cookie, route_session, SCOPE_NONE},
	{"/v2/session/end", METHOD_POST, ANYBODY, BY_STATUS, check_session, route_session_end, SCOPE_NONE},
	{"/v2/ticket", METHOD_POST, ACCOUNT, BY_STATUS | GUESTS, check_fid, route_ticket, SCOPE_NONE},
	{"/v2/tokens", METHOD_GET, ACCOUNT, BY_STATUS, NULL, route_list_tokens, SCOPE_NONE},
	{"/v2/tokens", METHOD_POST, ACCOUNT, BY_STATUS, check_create_token, route_create_token, SCOPE_NONE},
	{"/v2/tokens/*", METHOD_DELETE, ACCOUNT, BY_STATUS, NULL, route_revoke_token, SCOPE_NONE},
	{"/v2/sheets", METHOD_GET, ACCOUNT, BY_STATUS, NULL, route_list_sheets, SCOPE_READ},
	{"/v2/sheets", METHOD_POST, ACCOUNT, BY_STATUS, check_create_sheet, route_create_sheet, SCOPE_ADMIN},
	{"/v2/sheets/import", METHOD_POST, ANYBODY, BY_STATUS | STREAM, import_begin, import_body_end, SCOPE_UPLOAD},
	{"/v2/sheets/import/preview", METHOD_POST, ACCOUNT, BY_STATUS | FORM, NULL, route_preview_import, SCOPE_UPLOAD},
	{"/v2/sheets/*/import", METHOD_PUT, ANYBODY, BY_STATUS | SHEET_PATH | STREAM, import_begin, import_body_end,
	 SCOPE_EDIT},
	{"/v2/sheets/*.csv", METHOD_GET, ANYBODY, BY_STATUS | SHEET_PATH | GUESTS, check_export, route_export, SCOPE_READ},
	{"/v2/sheets/*.tsv", METHOD_GET, ANYBODY, BY_STATUS | SHEET_PATH | GUESTS, check_export, route_export, SCOPE_READ},
	{"/v2/sheets/*.jsonl", METHOD_GET, ANYBODY, BY_STATUS | SHEET_PATH | GUESTS, check_export, route_export,
	 SCOPE_READ},
	{"/v2/sheets/*.xlsx", METHOD_GET, ANYBODY, BY_STATUS | SHEET_PATH | GUESTS, NULL, route_export_workbook,
	 SCOPE_READ},
	{"/v2/sheets/*/open", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_open_link, route_open_link, SCOPE_READ},
	{"/v2/sheets/*/rename", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_rename, route_rename_sheet, SCOPE_EDIT},
	{"/v2/sheets/*/label", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_label, route_label_version, SCOPE_EDIT},
	{"/v2/sheets/*/access", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_sheet_access, SCOPE_READ},
	{"/v2/sheets/*/route", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH | GUESTS, NULL, route_sheet_route, SCOPE_READ},
	{"/v2/sheets/*/log", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH | GUESTS, NULL, route_sheet_log, SCOPE_READ},
	{"/v2/sheets/*/versions", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH | GUESTS, NULL, route_sheet_versions,
	 SCOPE_READ},
	{"/v2/sheets/*/cells", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH | AT_OWNER | GUESTS, NULL, route_sheet_cells,
	 SCOPE_READ},
	{"/v2/sheets/*", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_describe_sheet, SCOPE_READ},
	{"/v2/sheets/*", METHOD_PATCH, ACCOUNT, BY_STATUS | SHEET_PATH, check_rename, route_rename_sheet, SCOPE_EDIT},
	{"/v2/sheets/*", METHOD_DELETE, ACCOUNT, BY_STATUS | SHEET_PATH, check_remove_sheet, route_remove_sheet,
	 SCOPE_ADMIN},
	{"/v2/sheets/*/recover", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH | NO_BODY, NULL, route_bring_back_sheet,
	 SCOPE_ADMIN},
	{"/v2/sheets/*/versions", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH | NO_BODY, check_save_version,
	 route_save_version, SCOPE_EDIT},
	{"/v2/sheets/*/rollback", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_restore_version,
	 route_restore_version, SCOPE_EDIT},
	{"/v2/sheets/*/diff", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_diff, SCOPE_READ},
	{"/v2/sheets/*/members", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_sheet_access, SCOPE_READ},
	{"/v2/sheets/*/members/*", METHOD_PUT, ACCOUNT, BY_STATUS | SHEET_PATH, check_set_member, route_set_member,
	 SCOPE_ADMIN},
	{"/v2/sheets/*/members/*", METHOD_DELETE, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_remove_member, SCOPE_ADMIN},
	{"/v2/sheets/*/files", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_list_files, SCOPE_READ},
	{"/v2/sheets/*/cells", METHOD_PUT, ACCOUNT, BY_STATUS | SHEET_PATH | LARGE_BODY, check_put_cells, route_write_cells,
	 SCOPE_EDIT},
	{"/v2/sheets/*/cells", METHOD_PATCH, ACCOUNT, BY_STATUS | SHEET_PATH | LARGE_BODY, check_patch_cells,
	 route_write_cells, SCOPE_EDIT},
	{"/v2/sheets/*/append", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH | LARGE_BODY, check_append_rows,
	 route_write_cells, SCOPE_EDIT},
	{"/v2/sheets/*/links", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_links, SCOPE_ADMIN},
	{"/v2/sheets/*/links", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_link_values, route_create_link,
	 SCOPE_ADMIN},
	{"/v2/sheets/*/links/*", METHOD_PATCH, ACCOUNT, BY_STATUS | SHEET_PATH, check_link_change, route_change_link,
	 SCOPE_ADMIN},
	{"/v2/sheets/*/links/*", METHOD_DELETE, ACCOUNT, BY_STATUS | SHEET_PATH, check_link_number, route_revoke_link,
	 SCOPE_ADMIN},
	{"/v2/sheets/*/webhooks", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_webhooks, SCOPE_ADMIN},
	{"/v2/sheets/*/webhooks", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_create_webhook, route_create_webhook,
	 SCOPE_ADMIN},
	{"/v2/sheets/*/webhooks/test/*", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH | NO_BODY, NULL, route_test_webhook,
	 SCOPE_ADMIN},
	{"/v2/sheets/*/webhooks/*", METHOD_PATCH, ACCOUNT, BY_STATUS | SHEET_PATH, check_change_webhook,
	 route_change_webhook, SCOPE_ADMIN},
	{"/v2/sheets/*/webhooks/*", METHOD_DELETE, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_delete_webhook,
	 SCOPE_ADMIN},
	{"/v2/books", METHOD_GET, ACCOUNT, BY_STATUS, NULL, route_list_books, SCOPE_READ},
	{"/v2/books", METHOD_POST, ACCOUNT, BY_STATUS, check_rename, route_create_book, SCOPE_ADMIN},
	{"/v2/books/import", METHOD_POST, ANYBODY, BY_STATUS | STREAM, workbook_import_begin, workbook_import_body_end,
	 SCOPE_UPLOAD},
	{"/v2/books/*.xlsx", METHOD_GET, ANYBODY, BY_STATUS | SHEET_PATH, NULL, route_export_workbook, SCOPE_READ},
	{"/v2/books/*", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_describe_book, SCOPE_READ},
	{"/v2/books/*", METHOD_PATCH, ACCOUNT, BY_STATUS | SHEET_PATH, check_rename, route_rename_book, SCOPE_EDIT},
	{"/v2/books/*", METHOD_DELETE, ACCOUNT, BY_STATUS | SHEET_PATH, check_remove_sheet, route_remove_book, SCOPE_ADMIN},
	{"/v2/books/*/recover", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH | NO_BODY, NULL, route_recover_book,
	 SCOPE_ADMIN},
	{"/v2/books/*/duplicate", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_rename, route_duplicate_book,
	 SCOPE_ADMIN},
	{"/v2/books/*/members", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_book_members, SCOPE_READ},
	{"/v2/books/*/members/*", METHOD_PUT, ACCOUNT, BY_STATUS | SHEET_PATH, check_set_member, route_set_book_member,
	 SCOPE_ADMIN},
	{"/v2/books/*/members/*", METHOD_DELETE, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_remove_book_member,
	 SCOPE_ADMIN},
	{"/v2/books/*/tabs", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_add_tab, route_add_tab, SCOPE_ADMIN},
	{"/v2/books/*/tabs/*", METHOD_PATCH, ACCOUNT, BY_STATUS | SHEET_PATH, check_change_tab, route_change_tab,
	 SCOPE_EDIT},
	{"/v2/books/*/tabs/*", METHOD_DELETE, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_remove_tab, SCOPE_ADMIN},
	{"/v2/calendars", METHOD_GET, ACCOUNT, BY_STATUS, NULL, route_list_calendars, SCOPE_READ},
	{"/v2/calendars", METHOD_POST, ACCOUNT, BY_STATUS, check_create_calendar, route_create_calendar, SCOPE_ADMIN},
	{"/v2/calendars/entries", METHOD_GET, ACCOUNT, BY_STATUS, NULL, route_calendar_entries, SCOPE_READ},
	{"/v2/calendars/dots", METHOD_GET, ACCOUNT, BY_STATUS, NULL, route_calendar_dots, SCOPE_READ},
	{"/v2/calendars/*/tasks", METHOD_POST, ACCOUNT, BY_STATUS | SHEET_PATH, check_add_task, route_add_task, SCOPE_EDIT},
	{"/v2/calendars/*/tasks/*", METHOD_GET, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_describe_task, SCOPE_READ},
	{"/v2/calendars/*/tasks/*", METHOD_PATCH, ACCOUNT, BY_STATUS | SHEET_PATH, check_change_task, route_change_task,
	 SCOPE_EDIT},
	{"/v2/calendars/*/tasks/*", METHOD_DELETE, ACCOUNT, BY_STATUS | SHEET_PATH, NULL, route_delete_task, SCOPE_EDIT},
	{"/v2/calendars/*/answers/*", METHOD_PUT, ACCOUNT, BY_STATUS | SHEET_PATH, check_answer_task, route_answer_task,
	 SCOPE_EDIT},
	{"/v2/calendars/*", METHOD_PATCH, ACCOUNT, BY_STATUS | SHEET_PATH, check_choose_calendar, route_choose_calendar,
	 SCOPE_EDIT},
	{"/v2/calendars/*", METHOD_PUT, ACCOUNT, BY_STATUS | SHEET_PATH | NO_BODY, NULL, route_set_calendar, SCOPE_ADMIN},
	{"/v2/reminders", METHOD_GET, ACCOUNT, BY_STATUS, NULL, route_reminders, SCOPE_READ},
	{"/v2/reminders", METHOD_DELETE, ACCOUNT, BY_STATUS, NULL, route_dismiss_reminders, SCOPE_EDIT},
	{"/v2/link/cells", METHOD_GET, ACCOUNT, BY_STATUS | GUESTS, NULL, route_link_cells, SCOPE_NONE},
	{"/v2/link/cells", METHOD_PATCH, ACCOUNT, BY_STATUS | GUESTS | LARGE_BODY, check_patch_part, route_write_part,
	 SCOPE_NONE},
	{"/v2/link", METHOD_POST, ANYBODY, BY_STATUS, check_enter_link, route_enter_link, SCOPE_NONE},
	{"/paste", METHOD_POST, ANYBODY, BY_STATUS | PASTE | FORM, NULL, route_paste, SCOPE_UPLOAD},
	{"/record", METHOD_POST, ANYBODY, BY_STATUS | PASTE, NULL, route_new_record, SCOPE_UPLOAD},
	{"/record/*", METHOD_GET, ANYBODY, BY_STATUS | SECRET_PATH, NULL, route_record, SCOPE_NONE},
	{"/p/*", METHOD_GET, ANYBODY, BY_STATUS | PEOPLE | SECRET_PATH, NULL, route_paste_text, SCOPE_NONE},
	{"/s/*", METHOD_GET, ANYBODY, BY_STATUS | PEOPLE | PUBLISHED | SECRET_PATH, NULL, route_published, SCOPE_NONE},
	{"/cal/*", METHOD_GET, ANYBODY, BY_STATUS | SECRET_PATH, NULL, route_calendar_feed, SCOPE_NONE},
	{"/.well-known/caldav", METHOD_GET, ANYBODY, BY_STATUS | DAV, NULL, route_dav_well_known, SCOPE_NONE},
	{"/.well-known/caldav", METHOD_PROPFIND, ANYBODY, BY_STATUS | DAV, NULL, route_dav_well_known, SCOPE_NONE},
	{"/", METHOD_GET, ANYBODY, PEOPLE, NULL, route_static, SCOPE_NONE},
	{"/", METHOD_PROPFIND, ACCOUNT, BY_STATUS | DAV, NULL, route_dav, SCOPE_READ}, /* some programs ask there alone */
	{"/dav/*", METHOD_GET, ACCOUNT, BY_STATUS | DAV, NULL, route_dav, SCOPE_READ},
	{"/dav/*", METHOD_PUT, ACCOUNT, BY_STATUS | DAV, NULL, route_dav, SCOPE_EDIT},
	{"/dav/*", METHOD_DELETE, ACCOUNT, BY_STATUS | DAV, NULL, route_dav, SCOPE_EDIT},
	{"/dav/*", METHOD_PROPFIND, ACCOUNT, BY_STATUS | DAV, NULL, route_dav, SCOPE_READ},
	{"/dav/*", METHOD_PROPPATCH, ACCOUNT, BY_STATUS | DAV, NULL, route_dav, SCOPE_EDIT},
	{"/dav/*", METHOD_REPORT, ACCOUNT, BY_STATUS | DAV, NULL, route_dav, SCOPE_READ},
	{"/dav/*", METHOD_MKCOL, ACCOUNT, BY_STATUS | DAV, NULL, route_dav, SCOPE_ADMIN},
	{"/dav/*", METHOD_MKCALENDAR, ACCOUNT, BY_STATUS | DAV, NULL, route_dav, SCOPE_ADMIN},
	{"/livez", METHOD_GET, ANYBODY, EVERYWHERE, NULL, route_live, SCOPE_NONE},
	{"/readyz", METHOD_GET, ANYBODY, EVERYWHERE, NULL, route_ready, SCOPE_NONE},
	{"/healthz", METHOD_GET, ANYBODY, EVERYWHERE, NULL, route_health, SCOPE_NONE},
	{"/metrics", METHOD_GET, OPERATOR, 0, NULL, route_metrics, SCOPE_NONE},
	{"/debug", METHOD_GET, OPERATOR, 0, NULL, route_debug, SCOPE_NONE},
	{"/admin/drain", METHOD_POST, OPERATOR, 0, NULL, route_drain, SCOPE_NONE},
	{"/admin/resume", METHOD_POST, OPERATOR, 0, NULL, route_resume, SCOPE_NONE},
	{"/*", METHOD_GET, ANYBODY, PEOPLE, NULL, route_static, SCOPE_NONE},
};

#define ROUTE_COUNT (sizeof(routes) / sizeof(routes[0]))

_Static_assert(ROUTE_COUNT < TRACE_ROUTES_MAX, "each route is counted");

/*
 * Compares a path with the pattern. A * stands for the id of a sheet, if there is room for sheet_id, or for the rest of
 * the path, which may be empty; *rest points to that.
 */
static bool
router_match(const char *pattern, const char *path, int64_t *sheet_id, const char **rest)
{
	for (; *pattern != '\0' && *pattern != '*'; pattern++, path++)
	{
		if (*pattern != *path)
			return false;
	}
	if (*pattern == '*' && sheet_id != NULL)
	{
		char id[24];
		size_t len = strspn(path, "0123456789");

		if (len >= sizeof(id))
			return false;
		snprintf(id, sizeof(id), "%.*s", (int) len, path);
		return request_parse_id(id, sheet_id) && router_match(pattern + 1, path + len, NULL, rest);
	}
	*rest = path;
	return *pattern == '*' || *path == '\0';
}

/* The method of the routes that answer requests of this method. */
static Method
router_method(Method method)
{
	return method == METHOD_HEAD ? METHOD_GET : method;
}

/* The row of the route's path for the method. NULL: the path does not take it. */
static const Route *
router_find_method(const Route *route, Method method)
{
	for (size_t i = 0; i < ROUTE_COUNT; i++)
	{
		if (routes[i].method == router_method(method) && strcmp(routes[i].path, route->path) == 0)
			return &routes[i];
	}
	return NULL;
}

/* Finds the route, and the sheet of its path. If the path does not take the method, a row for another one. */
static void
router_find(Request *request)
{
	for (size_t i = 0; i < ROUTE_COUNT; i++)
	{
		const Route *route = &routes[i], *of_method;
		int64_t sheet_id = 0;

		if ((request->admin != (route->caller == OPERATOR) && !(route->flags & EVERYWHERE)) ||
			!router_match(route->path, request->head.path, route->flags & SHEET_PATH ? &sheet_id : NULL,
						  &request->part))
			continue;
		of_method = router_find_method(route, request->method);
		if (of_method != NULL)
			route = of_method;
		request->sheet_id = sheet_id;
		request->route = route;
		request->by_status = (route->flags & BY_STATUS) != 0;
		request->scope = route->scope;
		request->for_people = (route->flags & PEOPLE) != 0 && router_method(request->method) == METHOD_GET;
		request->guests = (route->flags & GUESTS) != 0;
		request->basic = (route->flags & DAV) != 0;
		request->secret_path = (route->flags & SECRET_PATH) != 0;
		trace_set_route(request, (int) i + 1, route->path);
		return;
	}
}

/* Headers that let an allowed page of another origin read the answer. */
static void
router_allow_origin(Request *request)
{
	const char *origin = head_field(&request->head, "origin");

	request->origin = origin_of(&request->head);
	if (request->route != NULL && request->route->flags & PUBLISHED)
	{
		if (published_is_for_programs(request->head.path))
		{
			request_add_header(request, "Access-Control-Allow-Origin", "*");
			request_add_header(request, "Access-Control-Expose-Headers", "etag, retry-after, x-pg-sheet-computed");
		}
		return;
	}
	if (origin == NULL || request->admin)
		return;
	request_add_header(request, "Vary", "Origin");
	if (request->origin > ORIGIN_ALLOWED)
		return;
	request_add_header(request, "Access-Control-Allow-Origin", origin);
	request_add_header(request, "Access-Control-Allow-Credentials", "true");
	request_add_header(request, "Access-Control-Expose-Headers",
					   "etag, content-range, location, retry-after, x-pg-sheet-computed, x-request-id");
}

/* The methods of the route's path (NULL: of any) for the header Allow. */
static void
router_list_methods(const Route *route, char allow[ROUTER_ALLOW_MAX])
{
	size_t len = 0;

	for (Method method = METHOD_GET; method < METHOD_OPTIONS; method++)
	{
		if (route == NULL || router_find_method(route, method) != NULL)
			len += (size_t) snprintf(allow + len, ROUTER_ALLOW_MAX - len, "%s, ", trace_method_name(method));
	}
	snprintf(allow + len, ROUTER_ALLOW_MAX - len, "OPTIONS");
}

/* Is it an address for files of the page, where there can be none? */
static bool
router_has_no_file(const Request *request)
{
	return request->route->begin == route_static &&
		   (request->method == METHOD_POST || strncmp(request->head.path, "/v2/", 4) == 0);
}

static bool
router_check_method(Request *request)
{
	const Route *route = request->route;
	char allow[ROUTER_ALLOW_MAX];

	if (request->method == METHOD_OPTIONS)
	{
		router_list_methods(route, allow);
		request_add_header(request, "Allow", allow);
		if (route != NULL && route->flags & DAV)
			request_add_header(request, "DAV", DAV_CLASSES);
		request_add_header(request, "Access-Control-Allow-Methods", allow);
		request_add_header(request, "Access-Control-Allow-Headers",
						   "authorization, content-type, if-match, if-none-match, range, x-request-id");
		request_add_header(request, "Access-Control-Max-Age", "600");
		request_answer(request, 204, NULL, NULL);
	}
	else if (route == NULL || router_has_no_file(request))
		request_error(request, 404, "no such address");
	else if (route->method != router_method(request->method))
	{
		router_list_methods(route, allow);
		request_add_header(request, "Allow", allow);
		request_error(request, 405, "the address does not take this method");
	}
	else
		return true;
	return false;
}

/* No argument is given twice: one of them would be ignored. Addresses of files of the page may have any query. */
static bool
router_check_query(Request *request)
{
	if (request->route->begin == route_static || !head_query_repeats(request->head.query))
		return true;
	request->close |= request->body_comes;
	request_error(request, 400, "an argument stands twice in the query, or it has more than 32");
	return false;
}

static int64_t
router_body_limit(const Request *request)
{
	if (request->route->flags & PASTE)
		return PASTE_BODY_BYTES;
	if (request->method == METHOD_REPORT) /* it names tens of thousands of objects */
		return ROUTER_REPORT * (int64_t) gateway.config.max_body_bytes;
	return request->route->flags & STREAM ? gateway.config.max_upload_bytes + ROUTER_FORM_BYTES
										  : gateway.config.max_body_bytes;
}

static void
router_refuse_size(Request *request)
{
	bool stream = (request->route->flags & STREAM) != 0;
	char reason[80];

	if (request->route->flags & PASTE)
		snprintf(reason, sizeof(reason), "a paste has at most %d bytes", PASTE_MAX_BYTES);
	else
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

	if (!method_takes_body(request->method) && !request->body_comes)
		return true;
	request->close = true;
	if (!method_takes_body(request->method))
		request_error(request, 400, "a request of this method has no body here");
	else if (head->content_length == -1 && !head->chunked && !(request->route->flags & (NO_BODY | DAV)))
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

/* The body is a JSON object. False: answered. */
static bool
router_parse_body(Request *request)
{
	const Buf *body = &request->body;
	int flags = request->route->flags;
	int max = flags & LARGE_BODY ? ROUTER_LARGE_MAX : ROUTER_VALUES_MAX;
	char reason[96];
	JsonError error;

	if (body->len == 0 && !buf_failed(body) && (flags & NO_BODY))
		return true;
	error = json_parse_object(body->data, body->len, (size_t) max, JSON_MAX_DEPTH, &request->json);
	if (error == JSON_NO_MEMORY || buf_failed(body))
		request_out_of_memory(request);
	else if (error == JSON_TOO_MANY)
	{
		snprintf(reason, sizeof(reason), "the body has more than %d values, or more than %d levels", max,
				 JSON_MAX_DEPTH);
		request_error(request, 400, reason);
	}
	else if (error == JSON_INVALID)
		request_error(request, 400, "the body must be a JSON object in UTF-8, without a name that stands twice");
	else
		return members_check(request, request->route->path, request->route->method);
	return false;
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
	else if (served == SERVED_HERE || request->origin > ORIGIN_SAME || router_has_token_in_header(request))
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

/* The token is valid: the body may be read. */
static void
router_read_large_body(Request *request)
{
	if (router_parse_body(request) && request->route->check(request))
		router_begin_route(request);
}

/* The request is complete. */
static void
router_dispatch(Request *request)
{
	const Route *route = request->route;

	request_enter(request, REQUEST_RUNNING);
	if (route->flags & LARGE_BODY)
	{
		request_authenticate(request, router_read_large_body);
		return;
	}
	if (method_takes_body(route->method) && !(route->flags & (STREAM | FORM | DAV)) && !router_parse_body(request))
		return;
	if (route->check != NULL && !(route->flags & STREAM) && !route->check(request))
		return;
	if (route->caller == ACCOUNT || route->caller == GUEST)
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
	if (!router_check_method(request) || !router_check_length(request) || !request_check_coding(request) ||
		!router_check_query(request))
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
