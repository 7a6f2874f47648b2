/*
 * routes_sheet.c - sheets: making, reading, trash, sharing, and where they are served.
 */
#include "ws/cache/accounts.h"
#include "ws/cache/changes.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "ws/room/room.h"
#include "ws/wire/v1_encode.h"
#include "http/routes/routes.h"
#include "http/routes/upgrade.h"
#include "http/routes/whole_sheet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHEET_MIN_ROWS 10
#define SHEET_MIN_COLS 10

static const char sheet_create_sql[] = "SELECT sheet.create($1, $2, $3, $4, $5)";
static const char sheet_info_sql[] =
	"SELECT i.name, i.owner, i.trashed, i.role, i.created_at, i.updated_at, i.owner_uid FROM sheet.info($1, $2) i";
static const char sheet_versions_sql[] = "SELECT n, v.version_id, v.at FROM sheet.newest_version($1) n LEFT JOIN "
										 "sheet.saved_versions($1, 1000) v ON true ORDER BY v.version_id";
static const char sheet_trash_sql[] = "SELECT sheet.trash($1, $2)";
static const char sheet_purge_sql[] = "SELECT sheet.purge($1, $2)";
static const char sheet_recover_sql[] = "SELECT sheet.recover($1, $2)";
static const char sheet_share_sql[] = "SELECT sheet.share($1, $2, $3, $4)";
static const char sheet_unshare_sql[] = "SELECT sheet.unshare($1, $2, $3)";
static const char sheet_share_link_sql[] = "SELECT sheet.share_link($1, $2, $3)";
static const char sheet_open_link_sql[] = "SELECT sheet.open_link($1, $2, $3)";
static const char sheet_files_sql[] = "SELECT f FROM sheet.file_list($1) f";

/* ---- JSON ---- */

void
routes_put_time(Buf *to, const char *text)
{
	char iso[64];
	size_t len = (size_t) snprintf(iso, sizeof(iso), "%s", text);
	char *space = strchr(iso, ' ');

	/* 2026-11-21 05:06:07.123456+00 */
	if (space != NULL)
		*space = 'T';
	if (len > 3 && len < sizeof(iso) - 4 && (iso[len - 3] == '+' || iso[len - 3] == '-'))
	{
		if (strcmp(iso + len - 3, "+00") == 0)
			strcpy(iso + len - 3, "Z");
		else
			strcat(iso, ":00");
	}
	buf_puts_json(to, iso);
}

void
routes_put_sheets(Buf *to, const PGresult *res, int limit, bool paged)
{
	int rows = PQntuples(res), shown = 0;

	buf_puts(to, "[");
	for (int i = 0; i < rows; i++)
	{
		if (PQgetisnull(res, i, 2))
			continue; /* the account can see it no more */
		buf_printf(to, "%s{\"fid\":%s,\"isDeleted\":%s,\"name\":", shown++ > 0 ? "," : "", PQgetvalue(res, i, 0),
				   PQgetvalue(res, i, 1)[0] == 't' ? "true" : "false");
		buf_puts_json(to, PQgetvalue(res, i, 2));
		buf_printf(to, ",\"checkpoint_num\":%s,\"checkPointBrief\":[],\"columns\":%s,\"owner\":", PQgetvalue(res, i, 3),
				   PQgetvalue(res, i, 4));
		buf_puts_json(to, PQgetvalue(res, i, 5));
		buf_puts(to, ",\"CreatedAt\":");
		routes_put_time(to, PQgetvalue(res, i, 6));
		buf_puts(to, ",\"UpdatedAt\":");
		routes_put_time(to, PQgetvalue(res, i, 7));
		buf_puts(to, "}");
	}
	buf_puts(to, "]");
	if (rows == limit)
	{
		buf_puts(to, ",\"next\":");
		buf_puts_json(to, PQgetvalue(res, rows - 1, 8));
	}
	else if (paged)
		buf_puts(to, ",\"next\":null");
}

/* fid of the body; answered when it is missing. */
static bool
sheet_id_of(Request *request)
{
	if (request_number(request, "fid", 0, SHEET_ID_MAX, &request->sheet_id))
		return true;
	request_error(request, 400, "fid is needed, as a number");
	return false;
}

/* ID of /v2/sheets/ID/..., false when it is none. */
static bool
sheet_id_of_path(Request *request)
{
	char id[24] = "";
	const char *from = request->path + strlen("/v2/sheets/");
	size_t len = strcspn(from, "/");

	snprintf(id, sizeof(id), "%.*s", (int) len, from);
	return len < sizeof(id) && request_parse_id(id, &request->sheet_id);
}

static void
sheet_ask_info(Request *request, RequestStep step)
{
	char sheet[24], uid[24];
	PgParam params[] = {pgparam_int64(sheet, request->sheet_id), pgparam_int64(uid, request->claims.uid)};

	request_query(request, DATABASE_READS, sheet_info_sql, 2, params, 0, step);
}

/* The sheet is there and the user may see it; answered otherwise. */
static bool
sheet_visible(Request *request, const PGresult *res)
{
	if (PQntuples(res) == 0)
		request_msg(request, MSG_NO_SHEET);
	else if (PQgetisnull(res, 0, 3))
		request_msg(request, MSG_NO_PERMISSION);
	else
		return true;
	return false;
}

/* ---- /newsheet ---- */

static void
sheet_created(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	buf_puts(&data, PQgetvalue(res, 0, 0));
	request_data(request, MSG_SHEET_NEW, &data);
}

static void
sheet_create(Request *request)
{
	const char *name = "";
	int64_t rows = 0, cols = 0;
	const char *role = gateway.config.default_link_role;
	char rows_text[24], cols_text[24], uid[24];
	PgParam params[5];

	(void) request_string(request, "name", &name);
	(void) request_number(request, "initRows", 0, SHEET_MAX_ROWS, &rows);
	(void) request_number(request, "initColumns", 0, SHEET_MAX_COLS, &cols);
	params[0] = pgparam_text(name);
	params[1] = pgparam_int64(rows_text, rows < SHEET_MIN_ROWS ? SHEET_MIN_ROWS : rows);
	params[2] = pgparam_int64(cols_text, cols < SHEET_MIN_COLS ? SHEET_MIN_COLS : cols);
	params[3] = strcmp(role, "none") == 0 ? pgparam_null() : pgparam_text(role);
	params[4] = pgparam_int64(uid, request->claims.uid);
	request_query(request, DATABASE_WRITES, sheet_create_sql, 5, params, 0, sheet_created);
}

void
route_new_sheet(Request *request)
{
	const char *name;
	int64_t rows = 0, cols = 0;
	bool has_rows = request_member(request, "initRows") != NULL;
	bool has_cols = request_member(request, "initColumns") != NULL;

	if (!request_string(request, "name", &name) ||
		(has_rows && !request_number(request, "initRows", 0, SHEET_MAX_ROWS, &rows)) ||
		(has_cols && !request_number(request, "initColumns", 0, SHEET_MAX_COLS, &cols)) ||
		rows * cols > V1_MAX_RECTANGLE)
		request_error(request, 400,
					  "name is needed as a string, initRows and initColumns as numbers within the limits");
	else
		request_authenticate(request, sheet_create);
}

/* ---- /getsheet ---- */

/* The newest version's number, which tells the open log's; and the newest versions that people have made. */
static void
get_sheet_versions(Request *request, PGresult *res)
{
	Buf *data = &request->data;

	buf_printf(data, ",\"checkpoint_num\":%s,\"checkPointBrief\":[", PQgetvalue(res, 0, 0));
	for (int i = 0; i < PQntuples(res) && !PQgetisnull(res, i, 1); i++)
	{
		buf_printf(data, "%s{\"cid\":%s,\"timestamp\":", i > 0 ? "," : "", PQgetvalue(res, i, 1));
		routes_put_time(data, PQgetvalue(res, i, 2));
		buf_puts(data, "}");
	}
	buf_puts(data, "]");
	whole_sheet_answer(request, 0);
}

static void
get_sheet_info(Request *request, PGresult *res)
{
	Buf *data = &request->data;
	char sheet[24];
	PgParam param = pgparam_int64(sheet, request->sheet_id);

	if (!sheet_visible(request, res))
		return;
	if (PQgetvalue(res, 0, 2)[0] == 't')
	{
		request_msg(request, MSG_IN_TRASH);
		return;
	}
	buf_printf(data, "{\"fid\":%lld,\"isDeleted\":false,\"name\":", (long long) request->sheet_id);
	buf_puts_json(data, PQgetvalue(res, 0, 0));
	buf_puts(data, ",\"owner\":");
	buf_puts_json(data, PQgetvalue(res, 0, 1));
	buf_puts(data, ",\"CreatedAt\":");
	routes_put_time(data, PQgetvalue(res, 0, 4));
	buf_puts(data, ",\"UpdatedAt\":");
	routes_put_time(data, PQgetvalue(res, 0, 5));
	accounts_register_opening(request->sheet_id, request->claims.uid);
	request_query(request, DATABASE_READS, sheet_versions_sql, 1, &param, 0, get_sheet_versions);
}

static void
get_sheet_authenticated(Request *request)
{
	if (!request_redirect(request, request->sheet_id))
		sheet_ask_info(request, get_sheet_info);
}

void
route_get_sheet(Request *request)
{
	if (sheet_id_of(request))
		request_authenticate(request, get_sheet_authenticated);
}

/* ---- /deletesheet, /recoversheet ---- */

static void
sheet_deleted(Request *request, PGresult *res)
{
	changes_register(request->sheet_id);
	request_msg(request, MSG_SHEET_DELETED);
}

static void
sheet_recovered(Request *request, PGresult *res)
{
	changes_register(request->sheet_id);
	request_msg(request, MSG_RECOVERED);
}

static void
sheet_change(Request *request, const char *sql, RequestStep step)
{
	char sheet[24], uid[24];
	PgParam params[] = {pgparam_int64(sheet, request->sheet_id), pgparam_int64(uid, request->claims.uid)};

	request_query(request, DATABASE_LONG, sql, 2, params, 0, step);
}

static void
delete_sheet_info(Request *request, PGresult *res)
{
	if (!sheet_visible(request, res))
		return;
	sheet_change(request, PQgetvalue(res, 0, 2)[0] == 't' ? sheet_purge_sql : sheet_trash_sql, sheet_deleted);
}

static void
delete_sheet_authenticated(Request *request)
{
	if (!request_redirect(request, request->sheet_id))
		sheet_ask_info(request, delete_sheet_info);
}

void
route_delete_sheet(Request *request)
{
	if (sheet_id_of(request))
		request_authenticate(request, delete_sheet_authenticated);
}

static void
recover_sheet_info(Request *request, PGresult *res)
{
	if (!sheet_visible(request, res))
		return;
	if (PQgetvalue(res, 0, 2)[0] != 't')
		request_msg(request, MSG_NOT_IN_TRASH);
	else
		sheet_change(request, sheet_recover_sql, sheet_recovered);
}

static void
recover_sheet_authenticated(Request *request)
{
	if (!request_redirect(request, request->sheet_id))
		sheet_ask_info(request, recover_sheet_info);
}

void
route_recover_sheet(Request *request)
{
	if (sheet_id_of(request))
		request_authenticate(request, recover_sheet_authenticated);
}

/* ---- /sharesheet {fid, username, role | null}, /sharelink {fid, role | null} ---- */

static void
sheet_shared(Request *request, PGresult *res)
{
	const char *reason = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	changes_register(request->sheet_id);
	if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK)
		request_msg(request, MSG_SHEET);
	else if (reason != NULL && strcmp(pgresult_sqlstate(res), "42704") == 0 && strncmp(reason, "account", 7) == 0)
		request_error(request, 404, reason); /* not the sheet is missing, but whom to share it with */
	else
		request_sql_error(request, res);
}

static void
share_sheet_authenticated(Request *request)
{
	const char *name = "";
	const char *role = NULL;
	char sheet[24], uid[24];
	PgParam params[4] = {pgparam_int64(sheet, request->sheet_id)};

	(void) request_string(request, "username", &name);
	(void) request_string(request, "role", &role);
	params[1] = pgparam_text(name);
	params[2] = role != NULL ? pgparam_text(role) : pgparam_int64(uid, request->claims.uid);
	params[3] = pgparam_int64(uid, request->claims.uid);
	if (role != NULL)
		request_query(request, DATABASE_LONG, sheet_share_sql, 4, params, REQUEST_RAW_TEXT, sheet_shared);
	else
		request_query(request, DATABASE_LONG, sheet_unshare_sql, 3, params, REQUEST_RAW_TEXT, sheet_shared);
}

/* role: a string, or null or absent to take it back. */
static bool
share_role_is_valid(const Request *request)
{
	const cJSON *role = request_member(request, "role");

	return role == NULL || cJSON_IsNull(role) || cJSON_IsString(role);
}

void
route_share_sheet(Request *request)
{
	const char *name;

	if (!request_string(request, "username", &name) || !share_role_is_valid(request))
		request_error(request, 400, "username is needed as a string, role as a string or null");
	else if (sheet_id_of(request))
		request_authenticate(request, share_sheet_authenticated);
}

/* data: the key of the new link, or null. */
static void
link_shared(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK || PQgetisnull(res, 0, 0))
	{
		sheet_shared(request, res);
		return;
	}
	changes_register(request->sheet_id);
	buf_puts_json(&data, PQgetvalue(res, 0, 0));
	request_data(request, MSG_SHEET, &data);
}

static void
share_link_authenticated(Request *request)
{
	const char *role = NULL;
	char sheet[24], uid[24];
	PgParam params[3] = {pgparam_int64(sheet, request->sheet_id)};

	(void) request_string(request, "role", &role);
	params[1] = pgparam_text(role);
	params[2] = pgparam_int64(uid, request->claims.uid);
	request_query(request, DATABASE_LONG, sheet_share_link_sql, 3, params, REQUEST_RAW_TEXT, link_shared);
}

void
route_share_link(Request *request)
{
	if (!share_role_is_valid(request))
		request_error(request, 400, "role is a string or null");
	else if (sheet_id_of(request))
		request_authenticate(request, share_link_authenticated);
}

/* ---- POST /v2/sheets/ID/open {link} ---- */

static void
link_opened(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	buf_puts(&body, "{\"role\":");
	buf_puts_json(&body, PQgetvalue(res, 0, 0));
	buf_puts(&body, "}");
	request_answer(request, 200, "application/json", &body);
}

static void
open_link_authenticated(Request *request)
{
	const char *link = "";
	char sheet[24], uid[24];
	PgParam params[3] = {pgparam_int64(sheet, request->sheet_id)};

	(void) request_string(request, "link", &link);
	params[1] = pgparam_text(link);
	params[2] = pgparam_int64(uid, request->claims.uid);
	request_query(request, DATABASE_WRITES, sheet_open_link_sql, 3, params, 0, link_opened);
}

void
route_open_link(Request *request)
{
	const char *link;

	request->by_status = true;
	if (!sheet_id_of_path(request) || strcmp(strchr(request->path + strlen("/v2/sheets/"), '/'), "/open") != 0)
		request_error(request, 404, "no such address");
	else if (!request_string(request, "link", &link))
		request_error(request, 400, "link is needed, as a string");
	else
		request_authenticate(request, open_link_authenticated);
}

/* ---- where a sheet is served ---- */

static void
sheet_ws_info(Request *request, PGresult *res)
{
	const char *owner = coord_owner_of(gateway.coord, request->sheet_id);
	char token[JWT_MAX] = "";
	Buf data = {NULL, 0, 0};

	if (!sheet_visible(request, res))
		return;
	if (PQgetvalue(res, 0, 2)[0] == 't')
		request_msg(request, MSG_IN_TRASH);
	else if (owner == NULL)
		request_error(request, 503, "the gateways have not found each other yet");
	else if (coord_is_mine(gateway.coord, request->sheet_id))
		request_msg(request, MSG_DESTINATION);
	else
	{
		(void) request_arg(request, "token", token, sizeof(token));
		buf_printf(&data, "\"%s://%s/sheetws?token=%s&fid=%lld\"", gateway_ws_scheme(), owner, token,
				   (long long) request->sheet_id);
		request_data(request, MSG_REDIRECT, &data);
	}
}

static void
sheet_ws_opened(Request *request, PGresult *res)
{
	sheet_ask_info(request, sheet_ws_info);
}

/* Whether a link is right is told by the role that the account has then. */
static void
sheet_ws_authenticated(Request *request)
{
	char link[LINK_KEY_MAX + 1], sheet[24], uid[24];
	PgParam params[3] = {pgparam_int64(sheet, request->sheet_id)};

	if (!upgrade_link(request, link))
	{
		sheet_ask_info(request, sheet_ws_info);
		return;
	}
	params[1] = pgparam_text(link);
	params[2] = pgparam_int64(uid, request->claims.uid);
	request_query(request, DATABASE_WRITES, sheet_open_link_sql, 3, params, REQUEST_RAW_TEXT, sheet_ws_opened);
}

void
route_sheet_ws(Request *request)
{
	char fid[24], query[8] = "";

	(void) request_arg(request, "query", query, sizeof(query));
	if (!request_arg(request, "fid", fid, sizeof(fid)) || !request_parse_id(fid, &request->sheet_id))
		request_error(request, 400, "fid is needed");
	else if (strcmp(query, "1") != 0)
		request_error(request, 426, "connect by WebSocket, or ask with query=1");
	else
		request_authenticate(request, sheet_ws_authenticated);
}

static void
sheet_route_info(Request *request, PGresult *res)
{
	const char *owner = coord_owner_of(gateway.coord, request->sheet_id);
	const Room *room = room_find(request->sheet_id);
	Buf body = {NULL, 0, 0};

	if (PQntuples(res) == 0)
		request_error(request, 404, "no such sheet");
	else if (PQgetisnull(res, 0, 3))
		request_error(request, 403, "the sheet is not shared with you");
	else if (owner == NULL)
		request_error(request, 503, "the gateways have not found each other yet");
	else
	{
		buf_printf(&body, "{\"http\":\"%s://%s\",\"ws\":\"%s://%s/sheetws\",\"epoch\":%lld,\"members\":[",
				   gateway_http_scheme(), owner, gateway_ws_scheme(), owner,
				   room != NULL ? (long long) room->epoch : 0LL);
		for (int i = 0; coord_member_name(gateway.coord, i) != NULL; i++)
			buf_printf(&body, "%s\"%s://%s\"", i > 0 ? "," : "", gateway_http_scheme(),
					   coord_member_name(gateway.coord, i));
		buf_puts(&body, "]}");
		request_answer(request, 200, "application/json", &body);
	}
}

static void
sheet_route_authenticated(Request *request)
{
	sheet_ask_info(request, sheet_route_info);
}

/* GET /v2/sheets/ID/route and /v2/sheets/ID/cells */
void
route_sheet(Request *request)
{
	const char *rest = strchr(request->path + strlen("/v2/sheets/"), '/');

	if (!sheet_id_of_path(request) || rest == NULL)
		request_error(request, 404, "no such address");
	else if (strcmp(rest, "/route") == 0)
		request_authenticate(request, sheet_route_authenticated);
	else if (strcmp(rest, "/cells") == 0)
		route_sheet_cells(request);
	else
		request_error(request, 404, "no such address");
}

/* ---- /getallchunks ---- */

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
	char sheet[24];
	PgParam param = pgparam_int64(sheet, request->sheet_id);

	if (sheet_visible(request, res))
		request_query(request, DATABASE_READS, sheet_files_sql, 1, &param, 0, files_listed);
}

static void
files_authenticated(Request *request)
{
	sheet_ask_info(request, files_info);
}

void
route_get_files(Request *request)
{
	if (sheet_id_of(request))
		request_authenticate(request, files_authenticated);
}
