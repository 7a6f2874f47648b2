/*
 * cached_table.c - cells as a table: CSV, TSV, JSON or HTML, for published views; and those of a rectangle that are not
 * empty, for GET /v2/link/cells.
 *
 * CSV is RFC 4180 with CRLF. TSV has the same quotes, which spreadsheet programs and pandas expect. Contents are not
 * changed: a program that must not run formulas of others has to read them as texts. In JSON a row is an array of
 * strings, and null for an empty cell. HTML has the old attributes for colours and alignment (bgcolor, align), because
 * a strict Content Security Policy permits no styles in elements.
 *
 * Rows and columns that are empty up to the last content are written. So the size is checked before each row.
 */
#include "ws/cache/cached_table.h"

#include "common/a1.h"
#include "common/edit_codec.h"
#include "support/json.h"
#include "ws/wire/v2.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct TableCell
{
	uint32_t row, col; /* in the table */
	EditText content, style;
	bool hidden; /* the content */
} TableCell;

typedef struct Table
{
	Buf *to;
	RangeForm form;
	TableCell *cells; /* in reading order */
	size_t count, room;
	uint32_t rows, cols;
} Table;

/* ---- cells ---- */

static int
table_compare(const void *a, const void *b)
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
		qsort(table->cells, table->count, sizeof(TableCell), table_compare);
	return RANGE_READY;
}

/* ---- texts ---- */

static void
table_put_quoted(Buf *to, EditText text)
{
	const char *quote;

	buf_puts(to, "\"");
	while (text.len > 0 && (quote = memchr(text.data, '"', text.len)) != NULL)
	{
		uint32_t len = (uint32_t) (quote + 1 - text.data);

		buf_put(to, text.data, len);
		buf_puts(to, "\"");
		text.data += len;
		text.len -= len;
	}
	buf_put(to, text.data, text.len);
	buf_puts(to, "\"");
}

/* A line that is empty would be no row to many readers, so an only field is quoted. */
static void
table_put_field(const Table *table, EditText text)
{
	char separator = table->form == RANGE_CSV ? ',' : '\t';

	for (uint32_t i = 0; i < text.len; i++)
	{
		char c = text.data[i];

		if (c == '"' || c == '\r' || c == '\n' || c == separator)
		{
			table_put_quoted(table->to, text);
			return;
		}
	}
	if (text.len == 0 && table->cols == 1)
		buf_puts(table->to, "\"\"");
	else
		buf_put(table->to, text.data, text.len);
}

/* ---- styles: what of them HTML shows without CSS ---- */

#define LOOK_COLOUR 24

typedef struct Look
{
	bool bold, italic;
	int align; /* Univer's: 1 left, 2 centre, 3 right */
	char colour[LOOK_COLOUR], ground[LOOK_COLOUR];
} Look;

/* A colour as #rrggbb or a name; "" for what is neither. Nothing else gets into the page. */
static void
look_colour(const char *text, size_t len, char to[LOOK_COLOUR])
{
	char copy[40];
	int red, green, blue;
	size_t digits;

	to[0] = '\0';
	if (len == 0 || len >= sizeof(copy))
		return;
	memcpy(copy, text, len);
	copy[len] = '\0';
	digits = copy[0] == '#' ? strspn(copy + 1, "0123456789abcdefABCDEF") : 0;
	if (digits == len - 1 && (digits == 3 || digits == 6 || digits == 8))
		snprintf(to, LOOK_COLOUR, "%.7s", copy);
	else if (len < LOOK_COLOUR && strspn(copy, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == len &&
			 strcmp(copy, "transparent") != 0)
		memcpy(to, copy, len + 1);
	else if ((sscanf(copy, "rgb(%d , %d , %d )", &red, &green, &blue) == 3 ||
			  sscanf(copy, "rgba(%d , %d , %d ,", &red, &green, &blue) == 3) &&
			 ((red | green | blue) & ~255) == 0)
		snprintf(to, LOOK_COLOUR, "#%02x%02x%02x", red & 255, green & 255, blue & 255);
}

static bool
look_is(EditText name, const char *text)
{
	return name.len == strlen(text) && memcmp(name.data, text, name.len) == 0;
}

static void
look_number(Look *look, EditText name, int value)
{
	if (look_is(name, "bl"))
		look->bold = value == 1;
	else if (look_is(name, "it"))
		look->italic = value == 1;
	else if (look_is(name, "ht"))
		look->align = value;
}

/* The end of the JSON string that begins at p, behind its quote. */
static const char *
look_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p : end;
}

/* Reads bl, it, ht, cl.rgb and bg.rgb. A style is JSON of anybody: what is not understood is passed over. */
static void
look_read(EditText style, Look *look)
{
	const char *p = style.data, *end = p + style.len;
	EditText names[3] = {{"", 0}, {"", 0}, {"", 0}}; /* by depth */
	int depth = 0;

	*look = (Look){0};
	for (; p < end; p++)
	{
		if (*p == '{' || *p == '[')
			depth++;
		else if (*p == '}' || *p == ']')
			depth--;
		else if (*p == '"')
		{
			EditText text = {p + 1, 0};

			p = look_string(p, end);
			text.len = (uint32_t) (p - text.data);
			while (p + 1 < end && isspace((unsigned char) p[1]))
				p++;
			if (p + 1 < end && p[1] == ':')
			{
				if (depth == 1 || depth == 2)
					names[depth] = text;
			}
			else if (depth == 2 && look_is(names[2], "rgb") && look_is(names[1], "cl"))
				look_colour(text.data, text.len, look->colour);
			else if (depth == 2 && look_is(names[2], "rgb") && look_is(names[1], "bg"))
				look_colour(text.data, text.len, look->ground);
		}
		else if (depth == 1 && *p >= '0' && *p <= '9' && (p + 1 == end || !isdigit((unsigned char) p[1])))
		{
			if (p[-1] == ':' || isspace((unsigned char) p[-1]))
				look_number(look, names[1], *p - '0');
		}
	}
}

/* ---- rows ---- */

static bool
table_is_number(EditText text)
{
	bool digit = false;

	for (uint32_t i = 0; i < text.len; i++)
	{
		digit |= text.data[i] >= '0' && text.data[i] <= '9';
		if (text.data[i] == '\0' || strchr("+-0123456789.,%eE", text.data[i]) == NULL)
			return false;
	}
	return digit;
}

static void
table_put_html_cell(Buf *to, const TableCell *cell)
{
	static const char *const aligns[] = {NULL, "left", "center", "right"};
	const char *align;
	Look look = {0};

	if (cell->style.len > 0)
		look_read(cell->style, &look);
	align = look.align >= 1 && look.align <= 3 ? aligns[look.align] : table_is_number(cell->content) ? "right" : NULL;
	buf_puts(to, "<td");
	if (align != NULL)
		buf_printf(to, " align=\"%s\"", align);
	if (look.ground[0] != '\0')
		buf_printf(to, " bgcolor=\"%s\"", look.ground);
	buf_puts(to, ">");
	if (cell->content.len > 0)
	{
		if (look.colour[0] != '\0')
			buf_printf(to, "<font color=\"%s\">", look.colour);
		buf_puts(to, look.bold ? "<b>" : "");
		buf_puts(to, look.italic ? "<i>" : "");
		buf_put_html(to, cell->content.data, cell->content.len);
		buf_puts(to, look.italic ? "</i>" : "");
		buf_puts(to, look.bold ? "</b>" : "");
		buf_puts(to, look.colour[0] != '\0' ? "</font>" : "");
	}
	buf_puts(to, "</td>");
}

/* cell: NULL if it is empty. */
static void
table_put_cell(const Table *table, const TableCell *cell, uint32_t col)
{
	EditText content = cell != NULL ? cell->content : (EditText){"", 0};

	if (table->form == RANGE_HTML && cell != NULL)
		table_put_html_cell(table->to, cell);
	else if (table->form == RANGE_HTML)
		buf_puts(table->to, "<td></td>");
	else if (table->form == RANGE_JSON)
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

static void
table_begin_row(const Table *table, uint32_t row)
{
	if (table->form == RANGE_HTML)
		buf_printf(table->to, "<tr><th scope=\"row\">%u</th>", row + 1);
	else if (table->form == RANGE_JSON)
		buf_puts(table->to, row > 0 ? ",[" : "[");
}

static void
table_end_row(const Table *table)
{
	buf_puts(table->to, table->form == RANGE_HTML ? "</tr>\n" : table->form == RANGE_JSON ? "]" : "\r\n");
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
		table_begin_row(table, row);
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
		table_end_row(table);
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

static void
table_begin(const Table *table, int64_t seq)
{
	if (table->form == RANGE_JSON)
		buf_printf(table->to, "\"seq\":%lld,\"rows\":[", (long long) seq);
	if (table->form != RANGE_HTML)
		return;
	buf_puts(table->to, "<table><thead><tr><td></td>");
	for (uint32_t col = 0; col < table->cols; col++)
	{
		char name[A1_MAX];

		a1_format_column(name, col);
		buf_printf(table->to, "<th scope=\"col\">%s</th>", name);
	}
	buf_puts(table->to, "</tr></thead><tbody>\n");
}

static void
table_end(const Table *table)
{
	if (table->form == RANGE_JSON)
		buf_puts(table->to, "]}");
	else if (table->form == RANGE_HTML)
		buf_puts(table->to, "</tbody></table></main></body></html>\n");
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
	else if (status == RANGE_READY)
	{
		table_begin(&table, source->seq);
		if (!table_put_rows(&table))
			status = RANGE_TOO_LARGE;
		table_end(&table);
	}
	free(table.cells);
	return status == RANGE_READY && buf_failed(to) ? RANGE_BUSY : status;
}
