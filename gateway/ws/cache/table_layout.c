/*
 * table_layout.c - what properties of a sheet say about a table of its cells.
 *
 * Of ranges that overlap, the smaller one counts, then the one that begins later (docs/PROTOCOL.md, Properties), as in
 * gateway/web/src/sheet/arrange.ts. A table may be a part of the sheet: of a merge that reaches out of it, the part is
 * shown, without the content if that is outside.
 */
#include "ws/cache/table_layout.h"

#include "common/properties.h"

#include <stdlib.h>
#include <string.h>

#define LAYOUT_PIXELS_MAX 2000 /* as in the page */

static void *
layout_resize(void *ctx, void *ptr, size_t size)
{
	if (size > 0)
		return realloc(ptr, size);
	free(ptr);
	return NULL;
}

static bool
layout_is(EditText text, const char *name)
{
	return text.len == strlen(name) && memcmp(text.data, name, text.len) == 0;
}

/* ---- rows and columns ---- */

/* What is stronger comes later. */
static int
layout_compare_rows(const void *a, const void *b)
{
	const PropertyTarget *one = &(*(const Property *const *) a)->target,
						 *other = &(*(const Property *const *) b)->target;
	uint32_t rows = one->row1 - one->row0, others = other->row1 - other->row0;

	if (rows != others)
		return rows > others ? -1 : 1;
	return (one->row0 > other->row0) - (one->row0 < other->row0);
}

static int
layout_compare_cols(const void *a, const void *b)
{
	const PropertyTarget *one = &(*(const Property *const *) a)->target,
						 *other = &(*(const Property *const *) b)->target;
	uint32_t cols = one->col1 - one->col0, others = other->col1 - other->col0;

	if (cols != others)
		return cols > others ? -1 : 1;
	return (one->col0 > other->col0) - (one->col0 < other->col0);
}

static uint16_t
line_size(EditText value)
{
	char text[32];
	double pixels;

	if (value.len >= sizeof(text))
		return 0;
	memcpy(text, value.data, value.len);
	text[value.len] = '\0';
	pixels = strtod(text, NULL);
	return pixels > LAYOUT_PIXELS_MAX ? LAYOUT_PIXELS_MAX : pixels > 0 ? (uint16_t) (pixels + 0.5) : 0;
}

/* The first line from `line` on that is not set. unset: of each line one that is not set or knows more; `count` behind
 * the last. */
static uint32_t
line_unset(uint32_t *unset, uint32_t line)
{
	while (unset[line] != line)
	{
		unset[line] = unset[unset[line]];
		line = unset[line];
	}
	return line;
}

/* Sets the lines of the table, whose first is `from` of the sheet. found: room for all properties; unset: for all
 * lines and one more. Each line is set once, by what is strongest: properties may overlap a thousand times. */
static void
layout_set_lines(TableLine *lines, uint32_t from, uint32_t count, bool of_rows, const char *key, const Properties *set,
				 const Property **found, uint32_t *unset)
{
	bool hides = strcmp(key, "hidden") == 0;
	size_t n = 0;

	for (uint32_t i = 0; i < set->count; i++)
	{
		const Property *property = properties_get(set, i);
		const PropertyTarget *target = &property->target;
		bool whole = of_rows ? property_has_all_cols(target) : property_has_all_rows(target);
		bool all = property_has_all_cols(target) && property_has_all_rows(target);

		if (layout_is(property->key, key) && whole && !(all && hides))
			found[n++] = property;
	}
	qsort(found, n, sizeof(*found), of_rows ? layout_compare_rows : layout_compare_cols);
	for (uint32_t line = 0; line <= count; line++)
		unset[line] = line;
	while (n-- > 0)
	{
		const PropertyTarget *target = &found[n]->target;
		uint32_t first = of_rows ? target->row0 : target->col0, last = of_rows ? target->row1 : target->col1;
		bool hidden = hides && layout_is(found[n]->value, "true");
		uint16_t size = hides ? 0 : line_size(found[n]->value);

		if (first >= from + count || last < from)
			continue;
		for (uint32_t line = line_unset(unset, first > from ? first - from : 0); line < count && from + line <= last;
			 line = line_unset(unset, line))
		{
			unset[line] = line + 1;
			if (hides)
				lines[line].hidden = hidden;
			else
				lines[line].size = size;
		}
	}
}

/* ---- merges ---- */

/* What is stronger comes first. */
static int
layout_compare_merges(const void *a, const void *b)
{
	const PropertyTarget *one = &(*(const Property *const *) a)->target,
						 *other = &(*(const Property *const *) b)->target;
	uint64_t cells = property_target_cells(one), others = property_target_cells(other);

	if (cells != others)
		return cells < others ? -1 : 1;
	if (one->row0 != other->row0)
		return one->row0 > other->row0 ? -1 : 1;
	if (one->col0 != other->col0)
		return one->col0 > other->col0 ? -1 : 1;
	return (one->row1 < other->row1) - (one->row1 > other->row1);
}

static bool
target_overlaps(const PropertyTarget *a, const PropertyTarget *b)
{
	return a->row0 <= b->row1 && b->row0 <= a->row1 && a->col0 <= b->col1 && b->col0 <= a->col1;
}

/* The first of the lines from first to last that is shown, and how many are. */
static uint32_t
lines_shown(const TableLine *lines, uint32_t first, uint32_t last, uint32_t *shown)
{
	uint32_t count = 0;

	for (uint32_t line = first; line <= last; line++)
	{
		if (!lines[line].hidden && count++ == 0)
			*shown = line;
	}
	return count;
}

/* Adds the part of the merge that is in the table, if some of it is shown. */
static void
layout_add_merge(TableLayout *layout, uint32_t *count, const PropertyTarget *target, const TableSource *source,
				 uint32_t rows, uint32_t cols)
{
	int64_t row = (int64_t) target->row0 - source->row, col = (int64_t) target->col0 - source->col;
	int64_t to_row = (int64_t) target->row1 - source->row, to_col = (int64_t) target->col1 - source->col;
	TableMerge merge = {.row = row, .col = col};
	uint32_t first_row = row > 0 ? (uint32_t) row : 0, first_col = col > 0 ? (uint32_t) col : 0;

	if (row >= rows || col >= cols || to_row < 0 || to_col < 0)
		return;
	to_row = to_row < rows ? to_row : rows - 1;
	to_col = to_col < cols ? to_col : cols - 1;
	merge.rows = lines_shown(layout->rows, first_row, (uint32_t) to_row, &merge.shown_row);
	merge.cols = lines_shown(layout->cols, first_col, (uint32_t) to_col, &merge.shown_col);
	if (merge.rows == 0 || merge.cols == 0)
		return;
	layout->merges[(*count)++] = merge;
	for (uint32_t r = first_row; r <= to_row; r++)
	{
		for (uint32_t c = first_col; c <= to_col; c++)
			layout->owners[(size_t) r * cols + c] = *count;
	}
}

static bool
layout_set_merges(TableLayout *layout, const TableSource *source, uint32_t rows, uint32_t cols, const Properties *set,
				  const Property **found)
{
	size_t n = 0, counting = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < set->count; i++)
	{
		const Property *property = properties_get(set, i);

		if (layout_is(property->key, "merge") && layout_is(property->value, "true") &&
			property_target_cells(&property->target) > 1)
			found[n++] = property;
	}
	if (n == 0 || rows == 0 || cols == 0)
		return true;
	layout->merges = malloc(n * sizeof(TableMerge));
	layout->owners = calloc((size_t) rows * cols, sizeof(uint32_t));
	if (layout->merges == NULL || layout->owners == NULL)
		return false;
	qsort(found, n, sizeof(*found), layout_compare_merges);
	for (size_t i = 0; i < n; i++)
	{
		size_t other = 0;

		while (other < counting && !target_overlaps(&found[other]->target, &found[i]->target))
			other++;
		if (other < counting)
			continue;
		found[counting++] = found[i];
		layout_add_merge(layout, &count, &found[i]->target, source, rows, cols);
	}
	return true;
}

/* ---- all ---- */

static RangeStatus
layout_apply(TableLayout *layout, const TableSource *source, uint32_t rows, uint32_t cols, const Properties *set)
{
	const Property **found;
	uint32_t *unset;
	bool done;

	if (set->count == 0)
		return RANGE_READY;
	found = malloc(set->count * sizeof(*found));
	unset = malloc(((rows > cols ? rows : cols) + 1) * sizeof(*unset));
	done = found != NULL && unset != NULL;
	if (done)
	{
		layout_set_lines(layout->rows, source->row, rows, true, "height", set, found, unset);
		layout_set_lines(layout->rows, source->row, rows, true, "hidden", set, found, unset);
		layout_set_lines(layout->cols, source->col, cols, false, "width", set, found, unset);
		layout_set_lines(layout->cols, source->col, cols, false, "hidden", set, found, unset);
		done = layout_set_merges(layout, source, rows, cols, set, found);
	}
	free(found);
	free(unset);
	return done ? RANGE_READY : RANGE_BUSY;
}

RangeStatus
table_layout_read(TableLayout *layout, const TableSource *source, uint32_t rows, uint32_t cols)
{
	RangeStatus status = RANGE_FAILED;
	Properties set;

	*layout = (TableLayout){
		.rows = calloc(rows + 1, sizeof(TableLine)), .cols = calloc(cols + 1, sizeof(TableLine)), .width = cols};
	if (layout->rows == NULL || layout->cols == NULL)
		return RANGE_BUSY;
	properties_init(&set, layout_resize, NULL);
	if (properties_decode(&set, source->properties, source->properties_len))
		status = layout_apply(layout, source, rows, cols, &set);
	properties_free(&set);
	return status;
}

void
table_layout_free(TableLayout *layout)
{
	free(layout->rows);
	free(layout->cols);
	free(layout->merges);
	free(layout->owners);
}
