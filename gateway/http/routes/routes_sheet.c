/*
 * routes_sheet.c - sheets: creating, reading, trash, files, and where they are served.
 */
#include "core/gateway.h"
#include "core/redirect.h"
#include "common/edit_codec.h"
#include "http/routes/routes.h"
#include "ws/wire/v1_encode.h"
#include "ws/cache/changes.h"
#include "ws/room/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHEET_MIN_ROWS 10
#define SHEET_MIN_COLS 10

static const char sheet_create_sql[] = "SELECT sheet.create($1, $2, $3, $4, $5)";
static const char sheet_info_sql[] =
	"SELECT i.name, i.owner, i.trashed, i.role, i.created_at, i.updated_at FROM sheet.info($1, $2) i";
static const char sheet_versions_sql[] = "SELECT n, v.version_id, v.at FROM sheet.newest_version($1) n LEFT JOIN "
										 "sheet.saved_versions($1, 1000) v ON true ORDER BY v.version_id";
static const char sheet_rename_sql[] = "SELECT sheet.rename($1, $2, $3)";
static const char sheet_trash_sql[] = "SELECT sheet.trash($1, $2)";
static const char sheet_purge_sql[] = "SELECT sheet.purge($1, $2)";
static const char sheet_recover_sql[] = "SELECT sheet.recover($1, $2)";
static const char sheet_files_sql[] = "SELECT name FROM sheet.file_list($1)";

/* ---- JSON ---- */

void
routes_put_uid(Buf *to, const char *uid)
{
	buf_printf(to, ",\"uid\":%llu", (unsigned long long) edit_uid_to_number((uint64_t) atoll(uid)));
}

void
routes_put_member(Buf *to, const char *name, const char *value)
{
	buf_printf(to, ",\"%s\":", name);
	buf_puts_json(to, value);
}

void
routes_put_number(Buf *to, const char *name, const char *value)
{
	buf_printf(to, ",\"%s\":%s", name, value);
}

void
routes_put_optional(Buf *to, const PGresult *res, int row, int column, const char *name, RoutesPut put)
{
	if (PQgetisnull(res, row, column))
		buf_printf(to, ",\"%s\":null", name);
	else
		put(to, name, PQgetvalue(res, row, column));
}

void
routes_put_time_member(Buf *to, const char *name, const char *value)
{
	char iso[64];
	char *space, *zone;

	/* 2026-11-21 05:06:07.123456+00: pgsession.c sets the time zone. */
	snprintf(iso, sizeof(iso), "%s", value);
	space = strchr(iso, ' ');
	zone = strchr(iso, '+');
	if (space != NULL && zone != NULL)
	{
		*space = 'T';
		strcpy(zone, "Z");
	}
	routes_put_member(to, name, iso);
}

void
routes_put_time(Buf *to, const char *name, int64_t seconds)
{
	char iso[64] = "";
	time_t at = (time_t) seconds;
	struct tm tm;

	if (gmtime_r(&at, &tm) != NULL)
		(void) strftime(iso, sizeof(iso), "%Y-%m-%dT%H:%M:%SZ", &tm);
	routes_put_member(to, name, iso);
}

void
routes_put_sheets(Buf *to, const PGresult *res, int limit, bool paged)
{
	int rows = PQntuples(res), shown = 0;

	buf_puts(to, "[");
	for (int i = 0; i < rows; i++)
	{
		if (PQgetisnull(res, i, 2))
			continue; /* the account can no longer see it */
		buf_printf(to, "%s{\"fid\":%s,\"isDeleted\":%s", shown++ > 0 ? "," : "", PQgetvalue(res, i, 0),
				   PQgetvalue(res, i, 1)[0] == 't' ? "true" : "false");
		routes_put_member(to, "name", PQgetvalue(res, i, 2));
		buf_printf(to, ",\"checkpoint_num\":%s,\"checkPointBrief\":[],\"columns\":%s", PQgetvalue(res, i, 3),
				   PQgetvalue(res, i, 4));
		routes_put_member(to, "owner", PQgetvalue(res, i, 5));
		routes_put_time_member(to, "CreatedAt", PQgetvalue(res, i, 6));
		routes_put_time_member(to, "UpdatedAt", PQgetvalue(res, i, 7));
		buf_puts(to, "}");
	}
	buf_puts(to, "]");
	if (rows == limit)
		routes_put_member(to, "next", PQgetvalue(res, rows - 1, 8));
	else if (paged)
		buf_puts(to, ",\"next\":null");
}

/* ---- steps of several routes ---- */

bool
check_fid(Request *request)
{
	if (request_number(request, "fid", 0, JSON_MAX_NUMBER, &request->sheet_id))
		return true;
	request_error(request, 400, "fid is needed, as a number");
	return false;
}

void
sheet_query_info(Request *request, RequestStep step)
{
	request_query(request, DATABASE_READS, sheet_info_sql, PARAMS(request_sheet(request), request_uid(request)),
				  REQUEST_TEXT, step);
}

bool
sheet_is_visible(Request *request, const PGresult *res)
{
	/* Guests do not learn which sheets there are. */
	if (PQntuples(res) == 0 || (request->claims.uid < 0 && PQgetisnull(res, 0, INFO_ROLE)))
		request_deny(request, MSG_NO_SHEET, 404, "no such sheet");
	else if (PQgetisnull(res, 0, INFO_ROLE))
		request_deny(request, MSG_NO_PERMISSION, 403, "the sheet is not shared with you");
	else
		return true;
	return false;
}

bool
sheet_is_trashed(const PGresult *res)
{
	return PQgetvalue(res, 0, INFO_TRASHED)[0] == 't';
}

bool
sheet_is_open(Request *request, const PGresult *res)
{
	if (!sheet_is_visible(request, res))
		return false;
	if (!sheet_is_trashed(res))
		return true;
	request_deny(request, MSG_IN_TRASH, 410, "the sheet is in the trash");
	return false;
}

/* ---- /newsheet {name, initRows, initColumns} ---- */

/* An optional number. */
static bool
new_sheet_size(const Request *request, const char *name, int64_t max, int64_t *value)
{
	*value = 0;
	return request_member(request, name) == NULL || request_number(request, name, 0, max, value);
}

bool
check_new_sheet(Request *request)
{
	const char *name;
	int64_t rows, cols;

	if (request_string(request, "name", &name) && new_sheet_size(request, "initRows", SHEET_MAX_ROWS, &rows) &&
		new_sheet_size(request, "initColumns", SHEET_MAX_COLS, &cols) && rows * cols <= V1_MAX_RECTANGLE)
		return true;
	request_error(request, 400, "name is needed as a string, initRows and initColumns as numbers within the limits");
	return false;
}

static void
new_sheet_created(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	if (request_sql_error_code(request, res, "sheet_name"))
		return;
	if (!request_succeeded(res))
	{
		request_sql_error(request, res);
		return;
	}
	buf_puts(&data, PQgetvalue(res, 0, 0));
	request_data(request, MSG_SHEET_NEW, &data);
}

void
route_new_sheet(Request *request)
{
	const char *role = gateway.config.default_link_role;
	int64_t rows, cols;

	(void) new_sheet_size(request, "initRows", SHEET_MAX_ROWS, &rows);
	(void) new_sheet_size(request, "initColumns", SHEET_MAX_COLS, &cols);
	request_query(request, DATABASE_WRITES, sheet_create_sql,
				  PARAMS(pgparam_text(request_text(request, "name")),
						 request_int64(request, rows < SHEET_MIN_ROWS ? SHEET_MIN_ROWS : rows),
						 request_int64(request, cols < SHEET_MIN_COLS ? SHEET_MIN_COLS : cols),
						 pgparam_text(strcmp(role, "none") == 0 ? NULL : role), request_uid(request)),
				  REQUEST_TEXT_RAW, new_sheet_created);
}

/* ---- /getsheet {fid} ---- */

/* The number of the newest version, which is one below that of the open segment, and the versions that people made. */
static void
get_sheet_versions(Request *request, PGresult *res)
{
	Buf *data = &request->data;

	buf_printf(data, ",\"checkpoint_num\":%s,\"checkPointBrief\":[", PQgetvalue(res, 0, 0));
	for (int i = 0; i < PQntuples(res) && !PQgetisnull(res, i, 1); i++)
	{
		buf_printf(data, "%s{\"cid\":%s", i > 0 ? "," : "", PQgetvalue(res, i, 1));
		routes_put_time_member(data, "timestamp", PQgetvalue(res, i, 2));
		buf_puts(data, "}");
	}
	buf_puts(data, "]");
	whole_sheet_answer(request, 0);
}

static void
get_sheet_info(Request *request, PGresult *res)
{
	Buf *data = &request->data;

	if (!sheet_is_open(request, res))
		return;
	buf_printf(data, "{\"fid\":%lld,\"isDeleted\":false", (long long) request->sheet_id);
	routes_put_member(data, "name", PQgetvalue(res, 0, INFO_NAME));
	routes_put_member(data, "owner", PQgetvalue(res, 0, INFO_OWNER));
	routes_put_time_member(data, "CreatedAt", PQgetvalue(res, 0, INFO_CREATED_AT));
	routes_put_time_member(data, "UpdatedAt", PQgetvalue(res, 0, INFO_UPDATED_AT));
	accounts_register_opening(request->sheet_id, request->claims.uid);
	request_query(request, DATABASE_READS, sheet_versions_sql, PARAMS(request_sheet(request)), REQUEST_TEXT,
				  get_sheet_versions);
}

void
route_get_sheet(Request *request)
{
	sheet_query_info(request, get_sheet_info);
}

/* ---- /deletesheet {fid, purge}, which purges a trashed sheet; /recoversheet {fid} ---- */

bool
check_delete_sheet(Request *request)
{
	const cJSON *purge = request_member(request, "purge");

	if (!check_fid(request))
		return false;
	if (purge == NULL || cJSON_IsBool(purge))
		return true;
	request_error(request, 400, "purge is true or false");
	return false;
}

static void
sheet_changed(Request *request, PGresult *res)
{
	changes_register(request->sheet_id);
	request_msg(request, (Msg) request->number);
}

/* Answers msg if the statement succeeds. */
static void
sheet_change(Request *request, const char *sql, Msg msg)
{
	request->number = msg;
	request_query(request, DATABASE_LONG, sql, PARAMS(request_sheet(request), request_uid(request)), REQUEST_TEXT,
				  sheet_changed);
}

static void
delete_sheet_info(Request *request, PGresult *res)
{
	const cJSON *purge = request_member(request, "purge");

	if (!sheet_is_visible(request, res))
		return;
	if (cJSON_IsTrue(purge) && !sheet_is_trashed(res))
		request_msg(request, MSG_NOT_IN_TRASH);
	else if (cJSON_IsFalse(purge) && sheet_is_trashed(res))
		request_msg(request, MSG_IN_TRASH);
	else
		sheet_change(request, sheet_is_trashed(res) ? sheet_purge_sql : sheet_trash_sql, MSG_SHEET_DELETED);
}

void
route_delete_sheet(Request *request)
{
	sheet_query_info(request, delete_sheet_info);
}

static void
recover_sheet_info(Request *request, PGresult *res)
{
	if (!sheet_is_visible(request, res))
		return;
	if (sheet_is_trashed(res))
		sheet_change(request, sheet_recover_sql, MSG_RECOVERED);
	else
		request_msg(request, MSG_NOT_IN_TRASH);
}

void
route_recover_sheet(Request *request)
{
	sheet_query_info(request, recover_sheet_info);
}

/* ---- POST /v2/sheets/ID/rename {name} ---- */

bool
check_rename(Request *request)
{
	const char *name;

	if (request_string(request, "name", &name))
		return true;
	request_error(request, 400, "name is needed, as a string");
	return false;
}

static void
rename_answered(Request *request, PGresult *res)
{
	changes_register(request->sheet_id);
	if (!request_sql_error_code(request, res, "sheet_name"))
		request_done(request, res);
}

void
route_rename_sheet(Request *request)
{
	request_query(request, DATABASE_WRITES, sheet_rename_sql,
				  PARAMS(request_sheet(request), pgparam_text(request_text(request, "name")), request_uid(request)),
				  REQUEST_TEXT_RAW, rename_answered);
}

/* ---- /getallchunks {fid}: the names of the files ---- */

static void
files_listed(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	buf_puts(&data, "[");
	for (int i = 0; i < PQntuples(res); i++)
	{
		buf_puts(&data, i > 0 ? "," : "");
		buf_puts_json(&data, PQgetvalue(res, i, 0));
	}
	buf_puts(&data, "]");
	request_data(request, MSG_FILES, &data);
}

static void
files_info(Request *request, PGresult *res)
{
	if (sheet_is_visible(request, res))
		request_query(request, DATABASE_READS, sheet_files_sql, PARAMS(request_sheet(request)), REQUEST_TEXT,
					  files_listed);
}

void
route_get_files(Request *request)
{
	sheet_query_info(request, files_info);
}

/* ---- GET /v2/sheets/ID/route: the gateway that serves the sheet, and all members ---- */

static void
sheet_route_info(Request *request, PGresult *res)
{
	const Room *room = room_find(request->sheet_id);
	char http[REDIRECT_MAX], ws[REDIRECT_MAX];
	Buf body = {NULL, 0, 0};

	request->by_status = true; /* of these refusals; an invalid token is told by msg */
	if (!sheet_is_visible(request, res))
		return;
	if (redirect_find(request->sheet_id, REDIRECT_WEBSOCKET, ws) == SERVED_NOWHERE)
	{
		request_error_later(request, 503, REDIRECT_RETRY_S, redirect_nowhere_reason(request->sheet_id));
		return;
	}
	(void) redirect_find(request->sheet_id, REDIRECT_HTTP, http);
	buf_printf(&body, "{\"http\":\"%s\",\"ws\":\"%s\",\"epoch\":%lld,\"members\":[", http, ws,
			   room != NULL ? (long long) room->epoch : 0LL);
	for (int i = 0; coord_member_name(gateway.coord, i) != NULL; i++)
		buf_printf(&body, "%s\"%s://%s\"", i > 0 ? "," : "", gateway_http_scheme(),
				   coord_member_name(gateway.coord, i));
	buf_puts(&body, "]}");
	request_json(request, 200, &body);
}

void
route_sheet_route(Request *request)
{
	sheet_query_info(request, sheet_route_info);
}
