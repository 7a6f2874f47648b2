/*
 * cached_table.c - cells as a table: CSV, TSV, JSON or HTML, for published views; and those of a rectangle that are not
 * empty, for GET /v2/link/cells.
 *
 * CSV is RFC 4180 with CRLF. TSV has the same quotes, which spreadsheet programs and pandas expect. Both leave out an
 * apostrophe that an import does not need (common/csv.h). Else contents are not changed: a program that must not run
 * formulas of others has to read them as texts. In JSON a row is an array of strings, and null for an empty cell. HTML
 * is in table_html.c.
 *
 * Rows and columns that are empty up to the last content are written. So the size is checked before each row.
 */
#include "ws/cache/cached_table.h"

#include "common/csv.h"
#include "common/edit_codec.h"
#include "support/json.h"
#include "ws/cache/table_html.h"
#include "ws/wire/v2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells ---- */

int
table_compare_cells(const void *a, const void *b)
{
	const TableCell *one = a, *other = b;

	if (one->row != other->row)
		return one->row < other->row ? -1 : 1;
	return (one->col > other->col) - (one->col < other->col);
}

static bool
table_add(Table *table, const TableSource *source, const Edit *edit)
{
	bool hidden = source->hide_formulas && edit->content.len > 0 && edit->content.data[0] == '=';
	TableCell cell = {edit->row - source->row, edit->col - source->col, edit->content, edit->style, hidden};

	if (hidden)
		cell.content.len = 0;
	if ((table->form == RANGE_CSV || table->form == RANGE_TSV) &&
		csv_omits_apostrophe(cell.content.data, cell.content.len))
	{
		cell.content.data++;
		cell.content.len--;
	}
	if (table->count == table->room)
	{
		size_t room = table->room > 0 ? table->room * 2 : 256;
		TableCell *cells = realloc(table->cells, room * sizeof(TableCell));

		if (cells == NULL)
			return false;
		table->cells = cells;
		table->room = room;
	}
	table->cells[table->count++] = cell;
	if (source->rows == 0 && cell.content.len > 0)
	{
		table->rows = cell.row >= table->rows ? cell.row + 1 : table->rows;
		table->cols = cell.col >= table->cols ? cell.col + 1 : table->cols;
	}
	return true;
}

static RangeStatus
table_read(Table *table, const TableSource *source)
{
	EditReader reader;
	EditBatch batch;
	EditError error;
	Edit edit;

	edit_reader_init(&reader, source->cells, source->len);
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
		{
			if (edit.content.len == 0 && edit.style.len == 0)
				continue;
			if (table->count == TABLE_CELLS_MAX)
				return RANGE_TOO_LARGE;
			if (!table_add(table, source, &edit))
				return RANGE_BUSY;
		}
		if (error != EDIT_END)
			return RANGE_FAILED;
	}
	if (error != EDIT_END)
		return RANGE_FAILED;
	if (table->count > 0)
		qsort(table->cells, table->count, sizeof(TableCell), table_compare_cells);
	return RANGE_READY;
}

/* ---- texts ---- */

/* A line that is empty would be no row to many readers, so an only field is quoted. */
static void
table_put_field(const Table *table, EditText text)
{
	char separator = table->form == RANGE_CSV ? ',' : '\t';

	if (text.len == 0 && table->cols == 1)
		buf_puts(table->to, "\"\"");
	else if (buf_reserve(table->to, 2 * (size_t) text.len + 2))
		table->to->len += csv_write(table->to->data + table->to->len, text.data, text.len, separator);
}

/* ---- rows ---- */

/* cell: NULL if it is empty. */
static void
table_put_cell(const Table *table, const TableCell *cell, uint32_t col)
{
	EditText content = cell != NULL ? cell->content : (EditText){"", 0};

	if (table->form == RANGE_JSON)
	{
		buf_puts(table->to, col > 0 ? "," : "");
		if (content.len > 0)
			buf_put_json(table->to, content.data, content.len);
		else
			buf_puts(table->to, "null");
	}
	else
	{
		if (col > 0)
			buf_puts(table->to, table->form == RANGE_CSV ? "," : "\t");
		table_put_field(table, content);
	}
}

static bool
table_put_rows(const Table *table)
{
	const TableCell *cell = table->cells, *end = cell + table->count;
	size_t begin = table->to->len;

	for (uint32_t row = 0; row < table->rows && !buf_failed(table->to); row++)
	{
		if (table->to->len - begin + table->cols > TABLE_BYTES_MAX)
			return false;
		if (table->form == RANGE_JSON)
			buf_puts(table->to, row > 0 ? ",[" : "[");
		for (uint32_t col = 0; col < table->cols; col++)
		{
			bool here = cell < end && cell->row == row && cell->col == col;

			table_put_cell(table, here ? cell : NULL, col);
			cell += here;
			if (table->to->len - begin > TABLE_BYTES_MAX)
				return false;
		}
		while (cell < end && cell->row == row) /* styled only, past the last column */
			cell++;
		buf_puts(table->to, table->form == RANGE_JSON ? "]" : "\r\n");
	}
	return table->to->len - begin <= TABLE_BYTES_MAX;
}

/* [row,col,content,style]: null for a content that is hidden; a style only if there is one. */
static bool
table_put_part(const Table *table)
{
	Buf *to = table->to;

	buf_printf(to, "{\"rows\":%u,\"cols\":%u,\"cells\":[", table->rows, table->cols);
	for (size_t i = 0; i < table->count; i++)
	{
		const TableCell *cell = &table->cells[i];

		buf_printf(to, "%s[%u,%u,", i > 0 ? "," : "", cell->row, cell->col);
		if (cell->hidden)
			buf_puts(to, "null");
		else
			buf_put_json(to, cell->content.data, cell->content.len);
		if (cell->style.len > 0 && v2_is_json_object(cell->style.data, cell->style.len))
		{
			buf_puts(to, ",");
			buf_put(to, cell->style.data, cell->style.len);
		}
		buf_puts(to, "]");
		if (to->len > TABLE_BYTES_MAX)
			return false;
	}
	buf_puts(to, "]}");
	return true;
}

RangeStatus
cached_table_put(Buf *to, RangeForm form, const TableSource *source)
{
	Table table = {.to = to, .form = form, .rows = source->rows, .cols = source->cols};
	RangeStatus status = table_read(&table, source);

	if (status == RANGE_READY && form == RANGE_PART)
	{
		if (!table_put_part(&table))
			status = RANGE_TOO_LARGE;
	}
	else if (status == RANGE_READY &&
			 (uint64_t) table.rows * table.cols > (form == RANGE_HTML ? TABLE_HTML_MAX : TABLE_BYTES_MAX))
		status = RANGE_TOO_LARGE;
	else if (status == RANGE_READY && form == RANGE_HTML)
		status = table_put_html(&table, source);
	else if (status == RANGE_READY)
	{
		if (form == RANGE_JSON)
			buf_printf(to, "\"seq\":%lld,\"rows\":[", (long long) source->seq);
		if (!table_put_rows(&table))
			status = RANGE_TOO_LARGE;
		if (form == RANGE_JSON)
			buf_puts(to, "]}");
	}
	free(table.cells);
	return status == RANGE_READY && buf_failed(to) ? RANGE_BUSY : status;
}
