/*
 * api_versions.c - versions of a sheet for programs: saving, restoring, and what differs between two of them.
 */
#include "common/a1.h"
#include "common/edit_codec.h"
#include "http/api/api.h"
#include "ws/cache/cached_range.h"

#include <string.h>

#define DIFF_PAGE	  200
#define DIFF_PAGE_MAX 500
#define DIFF_NOW	  0 /* instead of a version */

static const char api_commit_sql[] = "SELECT sheet.commit($1, $2, NULL, $3)";
static const char api_rollback_sql[] = "SELECT sheet.rollback($1, $2, NULL, $3)";
/* Contents are cut, as in history. */
static const char api_diff_sql[] =
	"SELECT a1, left(old, 1024), left(new, 1024) FROM sheet.diff($1, $2, nullif($3, 0), $4) "
	"WHERE (\"row\", col) > ($5, $6) ORDER BY \"row\", col LIMIT $7";

/* 42704 may mean the sheet or the version: the message tells. */
static void
api_version_error(Request *request, const PGresult *res)
{
	const char *text = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	const char *state = pgresult_sqlstate(res);

	if (strcmp(state, "SN001") == 0)
		request_error_code(request, 409, "nothing_changed", text);
	else if (strcmp(state, "42704") == 0 && text != NULL && strstr(text, "version") != NULL)
		request_error_code(request, 404, "no_version", text);
	else
		api_sql_error(request, res);
}

/* {"version":N} */
static void
api_answer_version(Request *request, const PGresult *res, int status)
{
	Buf body = {NULL, 0, 0};

	cached_range_invalidate(request->sheet_id);
	if (!request_succeeded(res))
	{
		api_version_error(request, res);
		return;
	}
	buf_printf(&body, "{\"version\":%s}", PQgetvalue(res, 0, 0));
	request_json(request, status, &body);
}

/* ---- POST /v2/sheets/ID/versions {label} ---- */

bool
check_save_version(Request *request)
{
	const cJSON *label = request_member(request, "label");

	if (label == NULL || cJSON_IsNull(label) || cJSON_IsString(label))
		return true;
	request_error(request, 400, "label is a string");
	return false;
}

static void
save_answered(Request *request, PGresult *res)
{
	api_answer_version(request, res, 201);
}

void
route_save_version(Request *request)
{
	const char *label = request_text(request, "label");

	request_query(request, DATABASE_LONG, api_commit_sql,
				  PARAMS(request_sheet(request), pgparam_text(label[0] != '\0' ? label : NULL), request_uid(request)),
				  REQUEST_TEXT_RAW, save_answered);
}

/* ---- POST /v2/sheets/ID/rollback {version} ---- */

bool
check_restore_version(Request *request)
{
	if (request_number(request, "version", 1, JSON_MAX_NUMBER, &request->number))
		return true;
	request_error(request, 400, "version is needed, as a number");
	return false;
}

static void
restore_answered(Request *request, PGresult *res)
{
	api_answer_version(request, res, 200);
}

void
route_restore_version(Request *request)
{
	request_query(request, DATABASE_LONG, api_rollback_sql,
				  PARAMS(request_sheet(request), request_int64(request, request->number), request_uid(request)),
				  REQUEST_TEXT_RAW, restore_answered);
}

/* ---- GET /v2/sheets/ID/diff?from=&to=&limit=&after= ---- */

static void
diff_answered(Request *request, PGresult *res)
{
	int rows = PQntuples(res);
	Buf body = {NULL, 0, 0};

	if (!request_succeeded(res))
	{
		api_version_error(request, res);
		return;
	}
	buf_puts(&body, "{\"cells\":[");
	for (int i = 0; i < rows; i++)
	{
		buf_puts(&body, i > 0 ? ",{\"a1\":" : "{\"a1\":");
		buf_puts_json(&body, PQgetvalue(res, i, 0));
		routes_put_member(&body, "old", PQgetvalue(res, i, 1));
		routes_put_member(&body, "new", PQgetvalue(res, i, 2));
		buf_puts(&body, "}");
	}
	buf_puts(&body, "]");
	if (rows == request->number)
		routes_put_member(&body, "next", PQgetvalue(res, rows - 1, 0));
	else
		buf_puts(&body, ",\"next\":null");
	buf_puts(&body, "}");
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, &body);
}

/* The cell behind which the page begins. False: answered. */
static bool
diff_after(Request *request, int64_t *row, int64_t *col)
{
	char text[A1_MAX];
	uint32_t cell_row, cell_col;

	*row = *col = -1;
	if (!request_has_arg(request, "after"))
		return true;
	if (!request_arg(request, "after", text, sizeof(text)) || !a1_parse_cell(text, strlen(text), &cell_row, &cell_col))
	{
		request_error(request, 400, "after is a cell, as B7: what an answer had as next");
		return false;
	}
	*row = cell_row;
	*col = cell_col;
	return true;
}

void
route_diff(Request *request)
{
	int64_t from, to, row, col;

	if (!request_has_arg(request, "from"))
		request_error(request, 400, "from is needed: the number of a version");
	else if (api_arg_number(request, "from", DIFF_NOW, JSON_MAX_NUMBER, &from) &&
			 api_arg_number(request, "to", DIFF_NOW, JSON_MAX_NUMBER, &to) &&
			 api_arg_number(request, "limit", DIFF_PAGE, DIFF_PAGE_MAX, &request->number) &&
			 diff_after(request, &row, &col))
		request_query(request, DATABASE_LONG, api_diff_sql,
					  PARAMS(request_sheet(request), request_int64(request, from), request_int64(request, to),
							 request_uid(request), request_int64(request, row), request_int64(request, col),
							 request_int64(request, request->number)),
					  REQUEST_TEXT_RAW, diff_answered);
}
