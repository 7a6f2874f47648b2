/*
 * routes_history.c - GET /v2/sheets/ID/log and /v2/sheets/ID/versions: pages of the edits and of the saved versions,
 * newest first. The database reads the log backward from the given seq, so a page costs the same in a log of any size.
 * One with the edits of a person or a range, which may be few, searches 10,000 edits at most.
 */
#include "common/a1.h"
#include "common/edit_codec.h"
#include "http/routes/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY_PAGE	 200
#define HISTORY_PAGE_MAX 500
#define HISTORY_NEWEST	 INT64_C(9007199254740992)

/* Contents are cut, as they may have 32,767 characters each. */
static const char history_log_sql[] = "SELECT e.seq, e.at, e.kind, e.\"row\", e.col, left(e.old, 1024), left(e.new, "
									  "1024), e.uid, e.username, e.segment_id, e.target, e.key "
									  "FROM sheet.check_role($1, 'viewer', as_uid => $2) c, LATERAL "
									  "(SELECT * FROM sheet.log_edits($1) WHERE seq < $3 ORDER BY seq DESC LIMIT $4) e";
/* One row at least, in which seq is null if no edit was found. low: the oldest seq that was searched. */
static const char history_find_sql[] =
	"SELECT e.seq, e.at, e.kind, e.\"row\", e.col, left(e.old, 1024), left(e.new, 1024), e.uid, e.username, "
	"e.segment_id, e.target, e.key, t.low, EXISTS (SELECT FROM sheet.log_edits($1) o WHERE o.seq < t.low) "
	"FROM sheet.check_role($1, 'viewer', as_uid => $2) c, LATERAL (SELECT least($3, 1 + coalesce((SELECT n.seq FROM "
	"sheet.log_edits($1) n ORDER BY n.seq DESC LIMIT 1), 0)) AS top OFFSET 0) s, LATERAL (SELECT "
	"greatest(s.top - 10000, 1) AS low OFFSET 0) t LEFT JOIN LATERAL (SELECT * FROM sheet.log_edits($1) l "
	"WHERE l.seq < s.top AND l.seq >= t.low AND l.uid >= $5 AND l.uid <= $6 AND l.\"row\" >= $7 AND l.\"row\" <= $8 "
	"AND l.col >= $9 AND l.col <= $10 ORDER BY l.seq DESC LIMIT $4) e ON true ORDER BY e.seq DESC";
static const char history_versions_sql[] =
	"SELECT v.version_id, v.at, v.label, v.cause, v.uid, v.username "
	"FROM sheet.check_role($1, 'viewer', as_uid => $2) c, LATERAL sheet.saved_versions($1, $4, $3) v";

/* Columns of a search beyond those of an edit. */
enum
{
	HISTORY_LOW = 12,
	HISTORY_OLDER
};

/* An optional number of the query, from 1 to max. False: answered. */
static bool
history_number(Request *request, const char *name, int64_t otherwise, int64_t max, int64_t *value)
{
	char text[20];

	*value = otherwise;
	if (!request_has_arg(request, name))
		return true;
	if (request_arg(request, name, text, sizeof(text)) && strlen(text) <= 16 && text[0] != '\0' &&
		strspn(text, "0123456789") == strlen(text))
	{
		*value = atoll(text);
		if (*value >= 1 && *value <= max)
			return true;
	}
	request_error(request, 400, "before and limit are numbers from 1; limit is at most 500");
	return false;
}

static void
history_query(Request *request, const char *sql, RequestStep step)
{
	int64_t before;

	if (history_number(request, "before", HISTORY_NEWEST, HISTORY_NEWEST, &before) &&
		history_number(request, "limit", HISTORY_PAGE, HISTORY_PAGE_MAX, &request->number))
		request_query(request, DATABASE_READS, sql,
					  PARAMS(request_sheet(request), request_uid(request), request_int64(request, before),
							 request_int64(request, request->number)),
					  REQUEST_TEXT, step);
}

/* Ends the answer. next: the value of `before` for the next page. A page of a search may have few edits, or none. */
static void
history_answer(Request *request, Buf *data, const PGresult *res)
{
	int rows = PQntuples(res);
	bool search = PQnfields(res) > HISTORY_OLDER;

	if (rows == request->number && !PQgetisnull(res, rows - 1, 0))
		buf_printf(data, "],\"next\":%s}", PQgetvalue(res, rows - 1, 0));
	else if (search && rows > 0 && PQgetvalue(res, 0, HISTORY_OLDER)[0] == 't')
		buf_printf(data, "],\"next\":%s}", PQgetvalue(res, 0, HISTORY_LOW));
	else
		buf_puts(data, "],\"next\":null}");
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, data);
}

static const char *
history_text(const PGresult *res, int row, int column, const char *otherwise)
{
	return PQgetisnull(res, row, column) ? otherwise : PQgetvalue(res, row, column);
}

static void
history_log(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	buf_puts(&data, "{\"edits\":[");
	for (int i = 0; i < PQntuples(res) && !PQgetisnull(res, i, 0); i++)
	{
		buf_printf(&data, "%s{\"seq\":%s", i > 0 ? "," : "", PQgetvalue(res, i, 0));
		routes_put_time_member(&data, "at", PQgetvalue(res, i, 1));
		routes_put_member(&data, "kind", PQgetvalue(res, i, 2));
		buf_printf(&data, ",\"row\":%s,\"col\":%s", history_text(res, i, 3, "-1"), history_text(res, i, 4, "-1"));
		routes_put_member(&data, "old", history_text(res, i, 5, ""));
		routes_put_member(&data, "new", history_text(res, i, 6, ""));
		routes_put_uid(&data, history_text(res, i, 7, "0"));
		routes_put_member(&data, "username", history_text(res, i, 8, ""));
		buf_printf(&data, ",\"segment\":%s", PQgetvalue(res, i, 9));
		if (!PQgetisnull(res, i, 11))
		{
			routes_put_member(&data, "target", history_text(res, i, 10, ""));
			routes_put_member(&data, "key", PQgetvalue(res, i, 11));
		}
		buf_puts(&data, "}");
	}
	history_answer(request, &data, res);
}

static void
history_versions(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	buf_puts(&data, "{\"versions\":[");
	for (int i = 0; i < PQntuples(res); i++)
	{
		buf_printf(&data, "%s{\"cid\":%s", i > 0 ? "," : "", PQgetvalue(res, i, 0));
		routes_put_time_member(&data, "at", PQgetvalue(res, i, 1));
		routes_put_member(&data, "label", history_text(res, i, 2, ""));
		routes_put_member(&data, "kind", PQgetvalue(res, i, 3));
		routes_put_uid(&data, history_text(res, i, 4, "0"));
		routes_put_member(&data, "username", history_text(res, i, 5, ""));
		buf_puts(&data, "}");
	}
	history_answer(request, &data, res);
}

/* The edits of an account, or of cells by the names that they had at the time. */
static void
history_find(Request *request)
{
	int64_t before, uid = 0; /* 0: any */
	A1Range range = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};
	bool by_range = request_has_arg(request, "range");
	char text[64];

	if (!history_number(request, "before", HISTORY_NEWEST, HISTORY_NEWEST, &before) ||
		!history_number(request, "limit", HISTORY_PAGE, HISTORY_PAGE_MAX, &request->number))
		return;
	if ((request_has_arg(request, "uid") && !request_arg_id(request, "uid", &uid)) ||
		(by_range &&
		 (!request_arg(request, "range", text, sizeof(text)) || !a1_parse_range(text, strlen(text), &range))))
	{
		request_error(request, 400, "uid is a number, and range a range of cells, as A1:C10");
		return;
	}
	uid = (int64_t) edit_uid_of_number((uint64_t) uid);
	request_query(
		request, DATABASE_READS, history_find_sql,
		PARAMS(request_sheet(request), request_uid(request), request_int64(request, before),
			   request_int64(request, request->number), request_int64(request, uid != 0 ? uid : INT64_MIN),
			   request_int64(request, uid != 0 ? uid : INT64_MAX),
			   request_int64(request, by_range ? (int64_t) range.row0 : -1), request_int64(request, range.row1),
			   request_int64(request, by_range ? (int64_t) range.col0 : -1), request_int64(request, range.col1)),
		REQUEST_TEXT, history_log);
}

void
route_sheet_log(Request *request)
{
	if (request_has_arg(request, "uid") || request_has_arg(request, "range"))
		history_find(request);
	else
		history_query(request, history_log_sql, history_log);
}

void
route_sheet_versions(Request *request)
{
	history_query(request, history_versions_sql, history_versions);
}
