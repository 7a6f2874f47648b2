/*
 * table_html.c - cells as a table in HTML: what the grid shows, but for what is said in docs/PROTOCOL.md.
 *
 * It has the old attributes for colours, alignment and sizes (bgcolor, align, width), because a strict Content Security
 * Policy permits no styles in elements.
 */
#include "ws/cache/table_html.h"

#include "common/a1.h"
#include "ws/cache/cell_format.h"
#include "ws/cache/table_layout.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- styles: what of them HTML shows without CSS ---- */

#define LOOK_COLOUR	 24
#define LOOK_PATTERN 256

typedef struct Look
{
	bool bold, italic, underlined, struck;
	int align;	  /* Univer's: 1 left, 2 centre, 3 right */
	int vertical; /* 1 top, 2 middle, 3 bottom */
	char colour[LOOK_COLOUR], ground[LOOK_COLOUR];
	size_t pattern_len; /* of the number format; 0: none */
	char pattern[LOOK_PATTERN];
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
	else if (look_is(name, "vt"))
		look->vertical = value;
}

/* A number format as JSON has it: only quotes, backslashes and slashes may be escaped. */
static void
look_pattern(Look *look, EditText text)
{
	size_t len = 0;

	for (uint32_t i = 0; i < text.len && len < LOOK_PATTERN; i++)
	{
		if (text.data[i] == '\\' && (++i == text.len || strchr("\"\\/", text.data[i]) == NULL))
			return;
		look->pattern[len++] = text.data[i];
	}
	look->pattern_len = len < LOOK_PATTERN ? len : 0;
}

/* The end of the JSON string that begins at p, behind its quote. */
static const char *
look_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p : end;
}

/* Reads bl, it, ht, vt, ul.s, st.s, cl.rgb, bg.rgb and n.pattern. A style is JSON of anybody: what is not understood is
 * passed over. */
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
			else if (depth == 2 && look_is(names[2], "pattern") && look_is(names[1], "n"))
				look_pattern(look, text);
		}
		else if ((depth == 1 || depth == 2) && *p >= '0' && *p <= '9' &&
				 (p + 1 == end || !isdigit((unsigned char) p[1])))
		{
			if (p[-1] != ':' && !isspace((unsigned char) p[-1]))
				;
			else if (depth == 1)
				look_number(look, names[1], *p - '0');
			else if (look_is(names[2], "s") && look_is(names[1], "ul"))
				look->underlined = *p == '1';
			else if (look_is(names[2], "s") && look_is(names[1], "st"))
				look->struck = *p == '1';
		}
	}
}

/* ---- cells ---- */

static void
html_put_text(Buf *to, const CellValue *value, const Look *look)
{
	Buf shown = {NULL, 0, 0};
	bool number = value->kind == CELL_NUMBER || value->kind == CELL_DATE || value->kind == CELL_TIME;

	if (number && look->pattern_len > 0 && cell_format_put(&shown, value->number, look->pattern, look->pattern_len))
		buf_put_html(to, shown.data, shown.len);
	else
		buf_put_html(to, value->text.data, value->text.len);
	if (buf_failed(&shown))
		buf_fail(to);
	buf_free(&shown);
}

static const char *
html_align(const CellValue *value, const Look *look)
{
	static const char *const aligns[] = {NULL, "left", "center", "right"};

	if (look->align >= 1 && look->align <= 3)
		return aligns[look->align];
	return value->kind == CELL_TEXT ? NULL : value->kind == CELL_BOOLEAN ? "center" : "right";
}

/* The attributes of the element, its end, and the content. */
static void
html_put_cell(Buf *to, const TableCell *cell)
{
	static const char *const valigns[] = {NULL, "top", "middle", "bottom"};
	CellValue value = cell_value(cell->content);
	Look look = {0};
	const char *align;

	if (cell->style.len > 0)
		look_read(cell->style, &look);
	align = html_align(&value, &look);
	if (align != NULL)
		buf_printf(to, " align=\"%s\"", align);
	if (look.vertical >= 1 && look.vertical <= 3)
		buf_printf(to, " valign=\"%s\"", valigns[look.vertical]);
	if (look.ground[0] != '\0')
		buf_printf(to, " bgcolor=\"%s\"", look.ground);
	buf_puts(to, ">");
	if (cell->content.len > 0)
	{
		if (look.colour[0] != '\0')
			buf_printf(to, "<font color=\"%s\">", look.colour);
		buf_puts(to, look.bold ? "<b>" : "");
		buf_puts(to, look.italic ? "<i>" : "");
		buf_puts(to, look.underlined ? "<u>" : "");
		buf_puts(to, look.struck ? "<s>" : "");
		html_put_text(to, &value, &look);
		buf_puts(to, look.struck ? "</s>" : "");
		buf_puts(to, look.underlined ? "</u>" : "");
		buf_puts(to, look.italic ? "</i>" : "");
		buf_puts(to, look.bold ? "</b>" : "");
		buf_puts(to, look.colour[0] != '\0' ? "</font>" : "");
	}
}

/* NULL: the cell is empty, or outside of the table. */
static const TableCell *
html_find(const Table *table, int64_t row, int64_t col)
{
	TableCell key = {.row = (uint32_t) row, .col = (uint32_t) col};

	if (row < 0 || col < 0 || table->count == 0)
		return NULL;
	return bsearch(&key, table->cells, table->count, sizeof(TableCell), table_compare_cells);
}

/* cell: at this place; NULL if it is empty. Of a merge only the first cell that is shown is one of the table; it has
 * the content of the merge's first cell. */
static void
html_put_place(const Table *table, const TableLayout *layout, const TableCell *cell, uint32_t row, uint32_t col)
{
	const TableMerge *merge = table_layout_merge(layout, row, col);
	Buf *to = table->to;

	if (merge != NULL && (merge->shown_row != row || merge->shown_col != col))
		return;
	buf_puts(to, "<td");
	if (merge != NULL)
	{
		cell = html_find(table, merge->row, merge->col);
		if (merge->rows > 1)
			buf_printf(to, " rowspan=\"%u\"", merge->rows);
		if (merge->cols > 1)
			buf_printf(to, " colspan=\"%u\"", merge->cols);
	}
	if (cell != NULL)
		html_put_cell(to, cell);
	else
		buf_puts(to, ">");
	buf_puts(to, "</td>");
}

/* ---- the table ---- */

static void
html_begin(const Table *table, const TableLayout *layout)
{
	Buf *to = table->to;

	buf_puts(to, "<table><thead><tr><td></td>");
	for (uint32_t col = 0; col < table->cols; col++)
	{
		char name[A1_MAX];

		if (layout->cols[col].hidden)
			continue;
		a1_format_column(name, col);
		buf_puts(to, "<th scope=\"col\"");
		if (layout->cols[col].size > 0)
			buf_printf(to, " width=\"%u\"", layout->cols[col].size);
		buf_printf(to, ">%s</th>", name);
	}
	buf_puts(to, "</tr></thead><tbody>\n");
}

static bool
html_put_rows(const Table *table, const TableLayout *layout)
{
	const TableCell *cell = table->cells, *end = cell + table->count;
	size_t begin = table->to->len;
	Buf *to = table->to;

	for (uint32_t row = 0; row < table->rows && !buf_failed(to); row++)
	{
		const TableLine *line = &layout->rows[row];

		if (!line->hidden)
		{
			buf_puts(to, "<tr");
			if (line->size > 0)
				buf_printf(to, " height=\"%u\"", line->size);
			buf_printf(to, "><th scope=\"row\">%u</th>", row + 1);
		}
		for (uint32_t col = 0; col < table->cols; col++)
		{
			bool here = cell < end && cell->row == row && cell->col == col;

			if (!line->hidden && !layout->cols[col].hidden)
				html_put_place(table, layout, here ? cell : NULL, row, col);
			cell += here;
			if (to->len - begin > TABLE_BYTES_MAX)
				return false;
		}
		while (cell < end && cell->row == row) /* styled only, past the last column */
			cell++;
		buf_puts(to, line->hidden ? "" : "</tr>\n");
	}
	return true;
}

RangeStatus
table_put_html(const Table *table, const TableSource *source)
{
	TableLayout layout;
	RangeStatus status = table_layout_read(&layout, source, table->rows, table->cols);

	if (status == RANGE_READY)
	{
		html_begin(table, &layout);
		if (!html_put_rows(table, &layout))
			status = RANGE_TOO_LARGE;
		buf_puts(table->to, "</tbody></table></main></body></html>\n");
	}
	table_layout_free(&layout);
	return status;
}
