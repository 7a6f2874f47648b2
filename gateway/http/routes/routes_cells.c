/*
 * routes_cells.c - GET /v2/sheets/ID/cells: the cells of a range, for programs that do not listen.
 *
 * What a request needs is nearly always in memory: whose token it is and that they may read the sheet
 * (accounts.c), and the cells (cached_range.c). What is not is asked of the database, in this order.
 */
#include "common/a1.h"
#include "ws/cache/accounts.h"
#include "common/edit_codec.h"
#include "ws/cache/changes.h"
#include "ws/room/room.h"
#include "core/gateway.h"
#include "http/request/range.h"
#include "http/routes/routes.h"
#include "ws/wire/v2.h"
#include "ws/cache/cached_range.h"

#include <stdio.h>
#include <string.h>

static const char cells_access_sql[] = "SELECT trashed, role FROM sheet.info($1, $2)";

/* ---- what is asked for ---- */

/* A row or column of the query: digits, below limit. */
static bool
cells_number(const Request *request, const char *name, uint32_t limit, uint32_t *value)
{
	char text[16];
	uint64_t number = 0;

	if (!request_arg(request, name, text, sizeof(text)) || text[0] == '\0' || strlen(text) > 9 ||
		strspn(text, "0123456789") != strlen(text))
		return false;
	for (const char *digit = text; *digit != '\0'; digit++)
		number = number * 10 + (uint64_t) (*digit - '0');
	*value = (uint32_t) number;
	return number < limit;
}

static bool
cells_numbers(const Request *request, RangeKey *key)
{
	if (!cells_number(request, "row", SHEET_MAX_ROWS, &key->row) ||
		!cells_number(request, "col", SHEET_MAX_COLS, &key->col))
		return false;
	key->to_row = key->row;
	key->to_col = key->col;
	return (!request_has_arg(request, "toRow") || cells_number(request, "toRow", SHEET_MAX_ROWS, &key->to_row)) &&
		   (!request_has_arg(request, "toCol") || cells_number(request, "toCol", SHEET_MAX_COLS, &key->to_col)) &&
		   key->to_row >= key->row && key->to_col >= key->col;
}

static bool
cells_range(const Request *request, RangeKey *key)
{
	char text[64];
	A1Range range;

	if (request_has_arg(request, "row") || request_has_arg(request, "col") ||
		!request_arg(request, "range", text, sizeof(text)) || !a1_parse_range(text, strlen(text), &range))
		return false;
	key->row = range.row0;
	key->col = range.col0;
	key->to_row = range.row1;
	key->to_col = range.col1;
	return true;
}

/* Answered when the query does not say what is wanted. */
static bool
cells_key(Request *request, RangeKey *key)
{
	char styles[8] = "false";

	*key = (RangeKey){.sheet_id = request->sheet_id};
	if (!(request_has_arg(request, "range") ? cells_range(request, key) : cells_numbers(request, key)))
	{
		request_error(request, 400,
					  "range is needed, as A1:C10, or row and col, with toRow and toCol for more than a cell");
		return false;
	}
	if ((uint64_t) (key->to_row - key->row + 1) * (key->to_col - key->col + 1) > V2_MAX_BLOCK_CELLS)
	{
		request_error(request, 400, "the range has more than 65536 cells");
		return false;
	}
	if (request_has_arg(request, "styles") && !request_arg(request, "styles", styles, sizeof(styles)))
		styles[0] = '\0';
	key->styles = strcmp(styles, "true") == 0;
	if (key->styles || strcmp(styles, "false") == 0)
		return true;
	request_error(request, 400, "styles is true or false");
	return false;
}

/* ---- the cells ---- */

static void
cells_give(Request *request, RangeAnswer *answer)
{
	request->range = answer;
	request_add_header(request, "ETag", answer->etag);
	request_add_header(request, "Cache-Control", "private, no-cache");
	if (range_not_modified(request, answer->etag))
	{
		request_answer(request, 304, NULL, NULL);
		return;
	}
	request->constant = answer->body;
	request->length = answer->len;
	request_answer(request, 200, "application/json", NULL);
}

static void
cells_read(void *arg, RangeStatus status, RangeAnswer *answer, const PGresult *res)
{
	Request *request = arg;

	if (request->conn == NULL)
		;
	else if (status == RANGE_READY)
	{
		cached_range_pin(answer);
		cells_give(request, answer);
	}
	else if (status == RANGE_TOO_LARGE)
		request_error(request, 413, "the cells of this range are more than 16 MB: ask for a smaller one");
	else if (status == RANGE_BUSY)
		request_error_later(request, 503, REQUEST_BUSY_S, "too many requests of this kind are under way: try again");
	else
		request_sql_error(request, res);
	request_end_step(request);
}

static void
cells_find(Request *request)
{
	RangeKey key;
	RangeAnswer *answer;

	if (!cells_key(request, &key))
		return;
	answer = room_may_be_ahead(key.sheet_id) ? NULL : cached_range_find(&key);
	if (answer != NULL)
	{
		cells_give(request, answer);
		return;
	}
	request_begin_step(request);
	cached_range_ask(&key, request->claims.uid, cells_read, request);
}

/* ---- who may see them ---- */

static void cells_ask_access(Request *request);

static void
cells_access(Request *request, PGresult *res)
{
	if (changes_since(request->sheet_id, request->asked) || changes_since(-request->claims.uid, request->asked))
		cells_ask_access(request); /* this may be what has changed meanwhile */
	else if (PQntuples(res) == 0)
		request_error(request, 404, "no such sheet");
	else if (PQgetisnull(res, 0, 1))
		request_error(request, 403, "the sheet is not shared with you");
	else if (PQgetvalue(res, 0, 0)[0] == 't')
		request_error(request, 410, "the sheet is in the trash");
	else
	{
		accounts_put_reader(request->sheet_id, request->claims.uid, request->asked);
		cells_find(request);
	}
}

static void
cells_ask_access(Request *request)
{
	char sheet[24], uid[24];
	PgParam params[] = {pgparam_int64(sheet, request->sheet_id), pgparam_int64(uid, request->claims.uid)};

	request->asked = changes_now();
	request_query(request, DATABASE_READS, cells_access_sql, 2, params, 0, cells_access);
}

static void
cells_authenticated(Request *request)
{
	if (request_redirect(request, request->sheet_id))
		return;
	if (accounts_may_read(request->sheet_id, request->claims.uid))
		cells_find(request);
	else
		cells_ask_access(request);
}

void
route_sheet_cells(Request *request)
{
	request->by_status = true;
	request_authenticate(request, cells_authenticated);
}
