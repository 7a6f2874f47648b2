/*
 * api_sheets.c - /v2/sheets: the list of sheets, and what is done with a whole one: creating, renaming
 * (routes_sheet.c), trash, members and files; and errors of the routes for programs.
 */
#include "common/edit_codec.h"
#include "core/gateway.h"
#include "http/api/api.h"
#include "ws/cache/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_PAGE	  200
#define LIST_PAGE_MAX 1000
#define NEW_ROWS	  100
#define NEW_COLS	  26

static const char api_list_sql[] = "SELECT sheet_id, name, owner, role, trashed, created_at, updated_at, place, "
								   "book_id FROM sheet.account_sheets($1, $2, $3)";
static const char api_create_sql[] = "SELECT sheet.create($1, $2, $3, $4, $5)";
/* The extent is not read of a sheet that the account may not see. */
static const char api_describe_sql[] =
	"SELECT i.name, i.owner, i.trashed, i.role, i.created_at, i.updated_at, c.seq, c.rows, c.cols, i.book_id "
	"FROM sheet.info($1, $2) i LEFT JOIN LATERAL (SELECT r.seq, r.rows, r.cols FROM sheet.read_cells($1, 0, 0, 0, 0) r "
	"WHERE i.role IS NOT NULL AND NOT i.trashed OFFSET 0) c ON true";
static const char api_trash_sql[] = "SELECT sheet.trash($1, $2)";
static const char api_purge_sql[] = "SELECT sheet.purge($1, $2)";
static const char api_recover_sql[] = "SELECT sheet.recover($1, $2)";
static const char api_share_sql[] = "SELECT sheet.share($1, $2, $3, $4)";
static const char api_unshare_sql[] = "SELECT sheet.unshare($1, $2, $3)";
static const char api_files_sql[] = "SELECT name, link_key FROM sheet.file_list($1)";

enum
{
	DESCRIBE_SEQ = INFO_UPDATED_AT + 1,
	DESCRIBE_ROWS,
	DESCRIBE_COLS,
	DESCRIBE_BOOK
};

/* ---- what all routes for programs share ---- */

void
api_sql_error(Request *request, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);
	const char *reason = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	const char *detail = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL) : NULL;

	if (strcmp(state, "SM001") == 0)
		request_error_code(request, 412, "changed", reason);
	else if (strcmp(state, "42501") == 0 && detail != NULL && strstr(detail, "yours is \"none\"") == NULL)
		request_error_code(request, 403, "role", detail);
	else
		request_sql_error(request, res);
}

void
api_done(Request *request, const PGresult *res)
{
	if (request_succeeded(res))
		request_answer(request, 204, NULL, NULL);
	else
		api_sql_error(request, res);
}

bool
api_arg_number(Request *request, const char *name, int64_t otherwise, int64_t max, int64_t *value)
{
	char reason[80];

	*value = otherwise;
	if (!request_has_arg(request, name) || (request_arg_id(request, name, value) && *value <= max))
		return true;
	snprintf(reason, sizeof(reason), "%s is a number from 1 to %lld", name, (long long) max);
	request_error(request, 400, reason);
	return false;
}

static void
api_put_bool(Buf *to, const char *name, bool value)
{
	buf_printf(to, ",\"%s\":%s", name, value ? "true" : "false");
}

/* ---- GET /v2/sheets?limit=&after= ---- */

static void
list_answered(Request *request, PGresult *res)
{
	int rows = PQntuples(res), shown = 0;
	Buf body = {NULL, 0, 0};

	buf_puts(&body, "{\"sheets\":[");
	for (int i = 0; i < rows; i++)
	{
		if (PQgetisnull(res, i, 3))
			continue; /* the account can no longer see it */
		buf_printf(&body, "%s{\"id\":%s", shown++ > 0 ? "," : "", PQgetvalue(res, i, 0));
		routes_put_member(&body, "name", PQgetvalue(res, i, 1));
		routes_put_optional(&body, res, i, 2, "owner", routes_put_member);
		routes_put_member(&body, "role", PQgetvalue(res, i, 3));
		api_put_bool(&body, "trashed", PQgetvalue(res, i, 4)[0] == 't');
		routes_put_time_member(&body, "createdAt", PQgetvalue(res, i, 5));
		routes_put_time_member(&body, "updatedAt", PQgetvalue(res, i, 6));
		routes_put_optional(&body, res, i, 8, "book", routes_put_number);
		buf_puts(&body, "}");
	}
	buf_puts(&body, "]");
	if (rows == request->number)
		routes_put_member(&body, "next", PQgetvalue(res, rows - 1, 7));
	else
		buf_puts(&body, ",\"next\":null");
	buf_puts(&body, "}");
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, &body);
}

void
route_list_sheets(Request *request)
{
	char after[128] = "";
	bool has_after = request_has_arg(request, "after");

	if (!api_arg_number(request, "limit", LIST_PAGE, LIST_PAGE_MAX, &request->number))
		return;
	if (has_after && !request_arg(request, "after", after, sizeof(after)))
		request_error(request, 400, "after is what an answer had as next");
	else
		request_query(request, DATABASE_READS, api_list_sql,
					  PARAMS(request_uid(request), request_int64(request, request->number),
							 pgparam_text(has_after ? after : NULL)),
					  REQUEST_TEXT, list_answered);
}

/* ---- POST /v2/sheets {name, rows, cols} ---- */

static bool
create_number(Request *request, const char *name, int64_t otherwise, int64_t max, int64_t *value)
{
	*value = otherwise;
	return request_member(request, name) == NULL || request_number(request, name, 1, max, value);
}

bool
check_create_sheet(Request *request)
{
	const char *name;
	int64_t number;

	if (!request_string(request, "name", &name))
		request_error(request, 400, "name is needed, as a string");
	else if (!create_number(request, "rows", 0, SHEET_MAX_ROWS, &number) ||
			 !create_number(request, "cols", 0, SHEET_MAX_COLS, &number))
		request_error(request, 400, "rows is a number from 1 to 16777216, cols from 1 to 16384");
	else
		return true;
	return false;
}

void
api_created(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0}, location = {NULL, 0, 0};

	if (request_sql_error_code(request, res, "sheet_name"))
		return;
	if (!request_succeeded(res))
	{
		api_sql_error(request, res);
		return;
	}
	buf_printf(&location, "/v2/sheets/%s", PQgetvalue(res, 0, 0));
	request_add_header_buf(request, "Location", &location);
	buf_printf(&body, "{\"id\":%s", PQgetvalue(res, 0, 0));
	routes_put_member(&body, "name", request_text(request, "name"));
	buf_puts(&body, "}");
	request_json(request, 201, &body);
}

void
route_create_sheet(Request *request)
{
	const char *role = gateway.config.default_link_role;
	int64_t rows, cols;

	(void) create_number(request, "rows", NEW_ROWS, SHEET_MAX_ROWS, &rows);
	(void) create_number(request, "cols", NEW_COLS, SHEET_MAX_COLS, &cols);
	request_query(request, DATABASE_WRITES, api_create_sql,
				  PARAMS(pgparam_text(request_text(request, "name")), request_int64(request, rows),
						 request_int64(request, cols), pgparam_text(strcmp(role, "none") == 0 ? NULL : role),
						 request_uid(request)),
				  REQUEST_TEXT_RAW, api_created);
}

/* ---- GET /v2/sheets/ID ---- */

static void
describe_answered(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	if (!sheet_is_visible(request, res))
		return;
	buf_printf(&body, "{\"id\":%lld", (long long) request->sheet_id);
	routes_put_member(&body, "name", PQgetvalue(res, 0, INFO_NAME));
	routes_put_optional(&body, res, 0, INFO_OWNER, "owner", routes_put_member);
	routes_put_member(&body, "role", PQgetvalue(res, 0, INFO_ROLE));
	api_put_bool(&body, "trashed", sheet_is_trashed(res));
	routes_put_time_member(&body, "createdAt", PQgetvalue(res, 0, INFO_CREATED_AT));
	routes_put_time_member(&body, "updatedAt", PQgetvalue(res, 0, INFO_UPDATED_AT));
	routes_put_optional(&body, res, 0, DESCRIBE_BOOK, "book", routes_put_number);
	if (!PQgetisnull(res, 0, DESCRIBE_SEQ))
		buf_printf(&body, ",\"seq\":%s,\"rows\":%s,\"cols\":%s", PQgetvalue(res, 0, DESCRIBE_SEQ),
				   PQgetvalue(res, 0, DESCRIBE_ROWS), PQgetvalue(res, 0, DESCRIBE_COLS));
	buf_puts(&body, "}");
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, &body);
}

void
route_describe_sheet(Request *request)
{
	request_query(request, DATABASE_READS, api_describe_sql, PARAMS(request_sheet(request), request_uid(request)),
				  REQUEST_TEXT, describe_answered);
}

/* ---- DELETE /v2/sheets/ID?purge=, POST /v2/sheets/ID/recover ---- */

bool
check_remove_sheet(Request *request)
{
	char purge[8] = "false";

	if (request_has_arg(request, "purge") && !request_arg(request, "purge", purge, sizeof(purge)))
		purge[0] = '\0';
	request->number = strcmp(purge, "true") == 0;
	if (request->number || strcmp(purge, "false") == 0)
		return true;
	request_error(request, 400, "purge is true or false");
	return false;
}

/* Of the sheet's row or its members. */
static void
api_sheet_changed(Request *request, PGresult *res)
{
	changes_register(request->sheet_id);
	api_done(request, res);
}

static void
api_change_sheet(Request *request, const char *sql)
{
	request_query(request, DATABASE_LONG, sql, PARAMS(request_sheet(request), request_uid(request)), REQUEST_TEXT_RAW,
				  api_sheet_changed);
}

static void
remove_info(Request *request, PGresult *res)
{
	if (!sheet_is_visible(request, res))
		return;
	if (request->number && !sheet_is_trashed(res))
		request_error_code(request, 409, "not_in_trash", "the sheet is not in the trash: move it there first");
	else if (request->number)
		api_change_sheet(request, api_purge_sql);
	else if (sheet_is_open(request, res))
		api_change_sheet(request, api_trash_sql);
}

void
route_remove_sheet(Request *request)
{
	sheet_query_info(request, remove_info);
}

static void
bring_back_info(Request *request, PGresult *res)
{
	if (!sheet_is_visible(request, res))
		return;
	if (sheet_is_trashed(res))
		api_change_sheet(request, api_recover_sql);
	else
		request_error_code(request, 409, "not_in_trash", "the sheet is not in the trash");
}

void
route_bring_back_sheet(Request *request)
{
	sheet_query_info(request, bring_back_info);
}

/* ---- PUT, DELETE /v2/sheets/ID/members/NAME ---- */

bool
check_set_member(Request *request)
{
	const char *role;

	if (request_string(request, "role", &role))
		return true;
	request_error(request, 400, "role is needed, as a string: viewer, commenter or editor");
	return false;
}

/* 42704 may mean the sheet or the account. */
static void
member_changed(Request *request, PGresult *res)
{
	const char *reason = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	changes_register(request->sheet_id);
	if (reason != NULL && strcmp(pgresult_sqlstate(res), "42704") == 0 && strncmp(reason, "account", 7) == 0)
		request_error_code(request, 404, "no_account", reason);
	else if (reason != NULL && strstr(reason, "is the owner of the sheet") != NULL)
		request_error_code(request, 409, "owner", reason);
	else
		api_done(request, res);
}

void
route_set_member(Request *request)
{
	request_query(request, DATABASE_LONG, api_share_sql,
				  PARAMS(request_sheet(request), pgparam_text(request->part),
						 pgparam_text(request_text(request, "role")), request_uid(request)),
				  REQUEST_TEXT_RAW, member_changed);
}

void
route_remove_member(Request *request)
{
	request_query(request, DATABASE_LONG, api_unshare_sql,
				  PARAMS(request_sheet(request), pgparam_text(request->part), request_uid(request)), REQUEST_TEXT_RAW,
				  member_changed);
}

/* ---- GET /v2/sheets/ID/files ---- */

static void
sheet_files_answered(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	buf_puts(&body, "{\"files\":[");
	for (int i = 0; i < PQntuples(res); i++)
	{
		buf_puts(&body, i > 0 ? ",{\"name\":" : "{\"name\":");
		buf_puts_json(&body, PQgetvalue(res, i, 0));
		routes_put_file_url(&body, request, PQgetvalue(res, i, 1), PQgetvalue(res, i, 0));
		buf_puts(&body, "}");
	}
	buf_puts(&body, "]}");
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, &body);
}

static void
sheet_files_info(Request *request, PGresult *res)
{
	if (sheet_is_open(request, res))
		request_query(request, DATABASE_READS, api_files_sql, PARAMS(request_sheet(request)), REQUEST_TEXT,
					  sheet_files_answered);
}

void
route_list_files(Request *request)
{
	sheet_query_info(request, sheet_files_info);
}
