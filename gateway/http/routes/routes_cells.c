/*
 * routes_cells.c - GET /v2/sheets/ID/cells: the cells of a range, for programs without a WebSocket.
 *
 * A request needs the token's account, its role on the sheet (both from ws/cache/accounts.c) and the cells
 * (ws/cache/cached_range.c). They are nearly always in memory. Those that are not are queried, in this order.
 */
#include "common/a1.h"
#include "common/edit_codec.h"
#include "core/redirect.h"
#include "ws/cache/changes.h"
#include "http/request/range.h"
#include "http/routes/routes.h"
#include "ws/wire/v2.h"
#include "ws/cache/cached_range.h"
#include "ws/room/room.h"

#include <stdio.h>
#include <string.h>

/* ---- arguments ---- */

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

/* Reads the arguments. False: answered. */
static bool
cells_key(Request *request, RangeKey *key)
{
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
	return request_arg_flag(request, "styles", &key->styles) && request_arg_flag(request, "formulas", &key->formulas);
}

/* ---- cells ---- */

static void
cells_release(void *own)
{
	cached_range_unpin(own);
}

void
routes_add_computed(Request *request, int64_t computed)
{
	char seq[24];

	if (computed < 0)
		return;
	snprintf(seq, sizeof(seq), "%lld", (long long) computed);
	request_add_header(request, "X-Pg-Sheet-Computed", seq);
}

void
routes_give_range(Request *request, RangeAnswer *answer)
{
	request->own = answer;
	request->free_own = cells_release;
	request_add_header(request, "Cache-Control", "private, no-cache");
	routes_add_computed(request, answer->computed);
	if (range_not_modified(request, answer->etag))
		return;
	request->text = answer->body;
	request->length = answer->len;
	request_json(request, 200, NULL);
}

static void
cells_read(void *arg, RangeStatus status, RangeAnswer *answer, const PGresult *res)
{
	Request *request = arg;

	if (request_is_gone(request))
		;
	else if (status == RANGE_READY)
	{
		cached_range_pin(answer);
		routes_give_range(request, answer);
	}
	else if (status == RANGE_TOO_LARGE)
		request_error(request, 413, "the cells of this range are more than 16 MB: ask for a smaller one");
	else if (status == RANGE_BUSY)
		request_too_busy(request);
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
	answer = !redirect_is_here(key.sheet_id) || room_may_be_ahead(key.sheet_id) ? NULL : cached_range_find(&key);
	if (answer != NULL)
	{
		routes_give_range(request, answer);
		return;
	}
	request_begin_step(request);
	cached_range_ask(&key, request->claims.uid, cells_read, request);
}

/* ---- access ---- */

static void cells_query_access(Request *request);

static void
cells_access(Request *request, PGresult *res)
{
	if (changes_since(request->sheet_id, request->asked) ||
		changes_since(changes_of_uid(request->claims.uid), request->asked))
		cells_query_access(request); /* res may be older than the change */
	else if (sheet_is_open(request, res))
	{
		accounts_put_reader(request->sheet_id, request->claims.uid, request->asked);
		cells_find(request);
	}
}

static void
cells_query_access(Request *request)
{
	request->asked = changes_now();
	sheet_query_info(request, cells_access);
}

void
route_sheet_cells(Request *request)
{
	if (accounts_may_read(request->sheet_id, request->claims.uid))
		cells_find(request);
	else
		cells_query_access(request);
}
