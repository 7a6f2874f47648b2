/*
 * api_cells.c - writing cells for programs: PUT a rectangle, PATCH single cells, append rows; and PATCH of the
 * rectangle of a share link, for its guests.
 *
 * Any gateway writes: the database decides under the sheet's lock (extension/api/programs/write_cells.c), and the one
 * that serves the sheet hears of it as of any edit by SQL. The statement does not wait for the sheet; if another
 * transaction holds it, it is sent again where statements may wait for a moment, of which an account has one under way.
 */
#include "common/a1.h"
#include "http/api/api.h"
#include "http/api/api_values.h"
#include "ws/cache/cached_range.h"
#include "ws/edit/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITE_CELLS_MAX 16384 /* as an operation of protocol v2 */

typedef struct CellWrite
{
	Buf edits; /* a batch of the edit codec */
	EditWriter writer;
	Buf scratch;
	bool raw;
	uint32_t count;
	A1Range range; /* of the cells; of appended rows, from row 0 on */
	bool append;
	bool named; /* the answer names the range */
	bool conditional;
	int64_t if_seq;
	int64_t part_rows, part_cols; /* of the rectangle of a link; 0: any */
} CellWrite;

static const char write_cells_sql[] = "SELECT seq, \"row\" FROM sheet.write_cells($1, $2, $3, $4, $5, $6)";
static const char link_write_sql[] =
	"SELECT sheet_id, seq, \"row\", col, content FROM sheet.link_write($1, $2, $3, $4, $5)";

static void
write_free(void *own)
{
	CellWrite *write = own;

	buf_free(&write->edits);
	buf_free(&write->scratch);
	free(write);
}

/* ---- arguments ---- */

static bool
write_refuse(Request *request, int status, const char *reason)
{
	request_error(request, status, reason);
	return false;
}

bool
api_if_match(Request *request, bool *given, int64_t *seq)
{
	char text[128], *tag, *end = NULL;

	*given = false;
	if (head_field(&request->head, "if-match") == NULL)
		return true;
	if (!request_header(request, "if-match", text, sizeof(text)))
		text[0] = '\0';
	tag = strncmp(text, "W/", 2) == 0 ? text + 2 : text; /* proxies that compress weaken ETags; a seq stays exact */
	if (strcmp(tag, "*") == 0)
		return true;
	if (tag[0] == '"' && tag[1] >= '0' && tag[1] <= '9')
		*seq = strtoll(tag + 1, &end, 10);
	*given = end != NULL && *seq <= (int64_t) JSON_MAX_NUMBER && (*end == '"' || *end == '-') &&
			 end + strcspn(end, "\"") + 1 == tag + strlen(tag);
	if (!*given)
		request_error(request, 400, "If-Match is one ETag, as an answer had it, or a seq in quotes");
	return *given;
}

/* The state of the request. NULL: answered. */
static CellWrite *
write_create(Request *request)
{
	CellWrite *write = request_own(request, sizeof(CellWrite), write_free);
	char input[8] = "typed";

	if (write == NULL)
		return NULL;
	if (request_has_arg(request, "input") && !request_arg(request, "input", input, sizeof(input)))
		input[0] = '\0';
	write->raw = strcmp(input, "raw") == 0;
	if (!write->raw && strcmp(input, "typed") != 0)
		request_error(request, 400, "input is typed or raw");
	else if (api_if_match(request, &write->conditional, &write->if_seq))
		return write;
	return NULL;
}

/* ---- edits ---- */

static bool
write_check_count(Request *request, size_t count)
{
	if (count > WRITE_CELLS_MAX)
		return write_refuse(request, 413, "a request writes at most 16384 cells");
	return count > 0 || write_refuse(request, 400, "there is no cell to write");
}

static bool
write_begin_batch(Request *request, CellWrite *write, size_t count)
{
	EditBatch head = {.count = (uint32_t) count};

	if (!write_check_count(request, count))
		return false;
	if (buf_reserve(&write->edits, EDIT_BATCH_HEAD_MAX))
	{
		edit_write_batch(&write->writer, (uint8_t *) write->edits.data, &head);
		write->edits.len = (size_t) ((char *) write->writer.pos - write->edits.data);
	}
	write->count = (uint32_t) count;
	return true;
}

/* False: answered. */
static bool
write_put_cell(Request *request, CellWrite *write, uint32_t row, uint32_t col, const cJSON *value)
{
	Edit edit = {.kind = EDIT_SET, .uid = 1, .row = row, .col = col};
	char name[A1_MAX], reason[A1_MAX + 80];

	if (row >= SHEET_MAX_ROWS || col >= SHEET_MAX_COLS)
		return write_refuse(request, 400, "a sheet has at most 16777216 rows and 16384 columns");
	if (value_content(value, write->raw, &write->scratch, &edit.content))
	{
		edits_put(&write->edits, &write->writer, &edit);
		return true;
	}
	a1_format_cell(name, row, col);
	snprintf(reason, sizeof(reason), "%s is not a string, a number, true, false or null", name);
	return write_refuse(request, 400, reason);
}

/* ---- {"values": [[...], ...]} ---- */

/* How many cells the rows have, and the longest one. False: answered. */
static bool
write_measure(Request *request, const cJSON *values, size_t *rows, size_t *cols, size_t *count)
{
	const cJSON *line;

	*rows = *cols = *count = 0;
	if (!cJSON_IsArray(values))
		return write_refuse(request, 400, "values is needed: a list of rows, each a list of values");
	cJSON_ArrayForEach(line, values)
	{
		size_t len = 0;

		if (!cJSON_IsArray(line))
			return write_refuse(request, 400, "values is a list of rows, each a list of values");
		for (const cJSON *value = line->child; value != NULL; value = value->next)
			len++;
		*count += len;
		*cols = len > *cols ? len : *cols;
		(*rows)++;
	}
	return true;
}

/* The cells from write->range's upper left corner on. False: answered. */
static bool
write_put_values(Request *request, CellWrite *write, const cJSON *values)
{
	uint32_t row = write->range.row0;
	const cJSON *line, *value;

	cJSON_ArrayForEach(line, values)
	{
		uint32_t col = write->range.col0;

		cJSON_ArrayForEach(value, line)
		{
			if (!write_put_cell(request, write, row, col++, value))
				return false;
		}
		row++;
	}
	return true;
}

/* Sets the lower right corner. The range has at most so many rows and columns as the request has values. */
static void
write_set_extent(CellWrite *write, size_t rows, size_t cols)
{
	write->range.row1 = write->range.row0 + (uint32_t) rows - 1;
	write->range.col1 = write->range.col0 + (uint32_t) cols - 1;
}

/* Is every row as wide as the range, and are there as many? */
static bool
write_fills_range(const A1Range *range, const cJSON *values, size_t rows)
{
	const cJSON *line;

	if (rows != range->row1 - range->row0 + 1)
		return false;
	cJSON_ArrayForEach(line, values)
	{
		if ((uint32_t) cJSON_GetArraySize(line) != range->col1 - range->col0 + 1)
			return false;
	}
	return true;
}

/* ---- PUT /v2/sheets/ID/cells?range= {values} ---- */

bool
check_put_cells(Request *request)
{
	CellWrite *write = write_create(request);
	const cJSON *values = request_member(request, "values");
	size_t rows, cols, count;
	char text[64];

	if (write == NULL)
		return false;
	if (!request_arg(request, "range", text, sizeof(text)) || !a1_parse_range(text, strlen(text), &write->range))
		return write_refuse(request, 400, "range is needed, as B2:D4, or B2 for the upper left corner");
	if (!write_measure(request, values, &rows, &cols, &count) || !write_check_count(request, count))
		return false;
	if (write->range.row0 == write->range.row1 && write->range.col0 == write->range.col1)
		write_set_extent(write, rows, cols);
	else if (!write_fills_range(&write->range, values, rows))
		return write_refuse(request, 400, "values has not as many rows and columns as the range");
	write->named = true;
	return write_begin_batch(request, write, count) && write_put_values(request, write, values);
}

/* ---- PATCH /v2/sheets/ID/cells {cells: [{a1, value}, ...]} ---- */

bool
check_patch_cells(Request *request)
{
	CellWrite *write = write_create(request);
	const cJSON *cells = request_member(request, "cells"), *cell;

	if (write == NULL)
		return false;
	if (!cJSON_IsArray(cells))
		return write_refuse(request, 400, "cells is needed: a list of objects with a1 and value");
	if (!write_begin_batch(request, write, (size_t) cJSON_GetArraySize(cells)))
		return false;
	cJSON_ArrayForEach(cell, cells)
	{
		const cJSON *name = cJSON_GetObjectItemCaseSensitive(cell, "a1");
		const cJSON *value = cJSON_GetObjectItemCaseSensitive(cell, "value");
		uint32_t row, col;

		if (!cJSON_IsString(name) || value == NULL || cJSON_GetArraySize(cell) != 2 ||
			!a1_parse_cell(name->valuestring, strlen(name->valuestring), &row, &col))
			return write_refuse(request, 400, "each of cells has a1, a cell as B2, and value, and nothing else");
		if (!write_put_cell(request, write, row, col, value))
			return false;
	}
	return true;
}

/* ---- POST /v2/sheets/ID/append?column= {values} ---- */

bool
check_append_rows(Request *request)
{
	CellWrite *write = write_create(request);
	const cJSON *values = request_member(request, "values");
	char column[8] = "A", cell[16];
	uint32_t row;
	size_t rows, cols, count;

	if (write == NULL)
		return false;
	if (request_has_arg(request, "column") && !request_arg(request, "column", column, sizeof(column)))
		column[0] = '\0';
	snprintf(cell, sizeof(cell), "%s1", column);
	if (column[strspn(column, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")] != '\0' ||
		!a1_parse_cell(cell, strlen(cell), &row, &write->range.col0))
		return write_refuse(request, 400, "column is the first column, as B");
	if (!write_measure(request, values, &rows, &cols, &count) || !write_check_count(request, count))
		return false;
	write_set_extent(write, rows, cols);
	write->append = write->named = true;
	return write_begin_batch(request, write, count) && write_put_values(request, write, values);
}

/* ---- the database ---- */

static void write_answered(Request *request, PGresult *res);

static void
write_send(Request *request, DatabaseClass class, bool nowait)
{
	CellWrite *write = request->own;

	request_query(request, class, write_cells_sql,
				  PARAMS(request_sheet(request), pgparam_bytes(write->edits.data, (int) write->edits.len),
						 write->conditional ? request_int64(request, write->if_seq) : pgparam_null(),
						 pgparam_text(write->append ? "true" : "false"), pgparam_text(nowait ? "true" : "false"),
						 request_uid(request)),
				  REQUEST_TEXT_RAW, write_answered);
}

/* {"seq":18,"cells":9,"range":"B2:D4"}; of appended rows also the first one, from 0. */
static void
write_succeeded(Request *request, const PGresult *res)
{
	CellWrite *write = request->own;
	int64_t seq = atoll(PQgetvalue(res, 0, 0));
	char range[A1_RANGE_MAX], etag[32];
	Buf body = {NULL, 0, 0};

	cached_range_committed(request->sheet_id, seq);
	buf_printf(&body, "{\"seq\":%lld,\"cells\":%u", (long long) seq, write->count);
	if (write->append)
	{
		uint32_t first = (uint32_t) atoll(PQgetvalue(res, 0, 1));

		write->range.row0 += first;
		write->range.row1 += first;
		buf_printf(&body, ",\"row\":%u", first);
	}
	if (write->named)
	{
		a1_format_range(range, &write->range);
		routes_put_member(&body, "range", range);
	}
	buf_puts(&body, "}");
	snprintf(etag, sizeof(etag), "\"%lld\"", (long long) seq);
	request_add_header(request, "ETag", etag);
	request_json(request, 200, &body);
}

static void
write_answered(Request *request, PGresult *res)
{
	if (!request_succeeded(res) || PQntuples(res) != 1)
		api_sql_error(request, res);
	else if (PQgetisnull(res, 0, 0))
		write_send(request, DATABASE_LONG, false); /* another transaction holds the sheet */
	else
		write_succeeded(request, res);
}

void
route_write_cells(Request *request)
{
	const CellWrite *write = request->own;

	if (buf_failed(&write->edits) || buf_failed(&write->scratch))
		request_out_of_memory(request);
	else
		write_send(request, DATABASE_WRITES, true);
}

/* ---- PATCH /v2/link/cells {cells: [[row, col, content, seen], ...], rows, cols} ---- */

/*
 * Guests of the rectangle of a link: extension/api/programs/link_write.c has what they may write. Rows and columns
 * count from its first cell. An answer tells nothing of the rest of the sheet, not even by its seq.
 */

/* The row, or the column. */
static bool
part_place(const cJSON *item, uint32_t *place)
{
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < SHEET_MAX_ROWS) ||
		item->valuedouble != (uint32_t) item->valuedouble)
		return false;
	*place = (uint32_t) item->valuedouble;
	return true;
}

/* What the guest has seen, as GET gives it: a content, or null for a formula, for which "=" stands. */
static bool
part_seen(const cJSON *item, EditText *seen)
{
	if (item == NULL)
		*seen = (EditText){NULL, 0};
	else if (cJSON_IsNull(item))
		*seen = (EditText){"=", 1};
	else if (cJSON_IsString(item))
		*seen = (EditText){item->valuestring, (uint32_t) strlen(item->valuestring)};
	else
		return false;
	return true;
}

/* False: answered. */
static bool
part_put_cell(Request *request, CellWrite *write, const cJSON *cell)
{
	Edit edit = {.kind = EDIT_SET, .uid = 1};
	int count = cJSON_IsArray(cell) ? cJSON_GetArraySize(cell) : 0;
	const cJSON *value = count > 2 ? cJSON_GetArrayItem(cell, 2) : NULL;

	if (count < 3 || count > 4 || !part_place(cJSON_GetArrayItem(cell, 0), &edit.row) ||
		!part_place(cJSON_GetArrayItem(cell, 1), &edit.col))
		return write_refuse(request, 400, "each of cells is a list: row and column from 0, content, and what was seen");
	/* A content that is null is hidden: whoever sends it back does not mean to empty the cell. */
	if (cJSON_IsNull(value) || !value_content(value, write->raw, &write->scratch, &edit.content))
		return write_refuse(request, 400,
							"a content is a string, a number, true or false; an empty string empties the cell");
	if (!part_seen(cJSON_GetArrayItem(cell, 3), &edit.old))
		return write_refuse(request, 400, "what was seen is a string, or null for a formula");
	if (edit.content.len > 0 && edit.content.data[0] == '=')
	{
		request_error_code(request, 400, "formula",
						   "guests of a part of a sheet write no formulas: put ' before the =");
		return false;
	}
	edits_put(&write->edits, &write->writer, &edit);
	return true;
}

/* The size of the rectangle that the guest has seen; 0: he does not say. False: answered. */
static bool
part_size(Request *request, CellWrite *write)
{
	int64_t rows = 0, cols = 0;
	bool given = request_member(request, "rows") != NULL || request_member(request, "cols") != NULL;

	if (given && (!request_number(request, "rows", 1, SHEET_MAX_ROWS, &rows) ||
				  !request_number(request, "cols", 1, SHEET_MAX_COLS, &cols)))
		return write_refuse(request, 400, "rows and cols are the size of the part that was seen, or are both absent");
	write->part_rows = rows;
	write->part_cols = cols;
	return true;
}

bool
check_patch_part(Request *request)
{
	const cJSON *cells = request_member(request, "cells"), *cell;
	CellWrite *write;

	if (head_field(&request->head, "if-match") != NULL)
		return write_refuse(request, 400, "instead of If-Match, each of cells has what was seen");
	write = write_create(request);
	if (write == NULL || !part_size(request, write))
		return false;
	if (!cJSON_IsArray(cells))
		return write_refuse(request, 400, "cells is needed: a list of [row, column, content, what was seen]");
	if (!write_begin_batch(request, write, (size_t) cJSON_GetArraySize(cells)))
		return false;
	cJSON_ArrayForEach(cell, cells)
	{
		if (!part_put_cell(request, write, cell))
			return false;
	}
	return true;
}

static void
part_sql_error(Request *request, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);

	if (strcmp(state, "42809") == 0)
		request_error(request, 403, "the link is not to a part of a sheet");
	else if (strcmp(state, "42501") == 0)
		request_error_code(request, 403, "role", "the link is for viewers");
	else if (strcmp(state, "28000") == 0)
		request_refuse_token(request); /* the link has ended meanwhile */
	else if (strcmp(state, "55000") == 0)
		request_error(request, 403, "the part of the sheet has been deleted");
	else if (strcmp(state, "SM001") == 0)
		request_error_code(request, 412, "moved", "rows or columns were inserted or deleted in the part of the sheet");
	else if (!request_sql_error_code(request, res, "outside"))
		request_sql_error(request, res);
}

/* A cell has another content than was seen: nothing is stored. The answer has the cell as GET does. */
static void
part_changed(Request *request, const PGresult *res)
{
	Buf body = {NULL, 0, 0};

	buf_printf(
		&body,
		"{\"success\":false,\"msg\":0,\"data\":\"a cell has another content\",\"code\":\"changed\",\"cell\":[%s,%s,",
		PQgetvalue(res, 0, 2), PQgetvalue(res, 0, 3));
	if (PQgetisnull(res, 0, 4))
		buf_puts(&body, "null");
	else
		buf_puts_json(&body, PQgetvalue(res, 0, 4));
	buf_puts(&body, "]}");
	request_json(request, 412, &body);
}

static void part_written(Request *request, PGresult *res);

static void
part_send(Request *request, DatabaseClass class, bool nowait)
{
	CellWrite *write = request->own;
	PgParam rows = write->part_rows != 0 ? request_int64(request, write->part_rows) : pgparam_null();
	PgParam cols = write->part_cols != 0 ? request_int64(request, write->part_cols) : pgparam_null();

	request_query(request, class, link_write_sql,
				  PARAMS(pgparam_bytes(write->edits.data, (int) write->edits.len), rows, cols,
						 pgparam_text(nowait ? "true" : "false"), request_uid(request)),
				  REQUEST_TEXT_RAW, part_written);
}

static void
part_written(Request *request, PGresult *res)
{
	const CellWrite *write = request->own;
	Buf body = {NULL, 0, 0};

	if (!request_succeeded(res) || PQntuples(res) != 1)
		part_sql_error(request, res);
	else if (PQgetisnull(res, 0, 0))
		part_send(request, DATABASE_LONG, false); /* another transaction holds the sheet */
	else if (PQgetisnull(res, 0, 1))
		part_changed(request, res);
	else
	{
		cached_range_committed(atoll(PQgetvalue(res, 0, 0)), atoll(PQgetvalue(res, 0, 1)));
		buf_printf(&body, "{\"cells\":%u}", write->count);
		request_json(request, 200, &body);
	}
}

void
route_write_part(Request *request)
{
	const CellWrite *write = request->own;

	if (buf_failed(&write->edits) || buf_failed(&write->scratch))
		request_out_of_memory(request);
	else
		part_send(request, DATABASE_WRITES, true);
}
