/* axes.c - the row map and the column map of a sheet; see axes.h. */
#include "grid/axes.h"

#include "common/edit_read.h"
#include "common/edit_write.h"
#include "common/extent.h"

#include <stdlib.h>
#include <string.h>

void
axes_locate_mapped(const Axes *axes, uint32_t *row, uint32_t *col)
{
	Axis rows = axes_axis(axes, AXES_ROW), cols = axes_axis(axes, AXES_COL);

	*row = axis_locate(&rows, *row);
	*col = axis_locate(&cols, *col);
}

/* ---- memory ---- */

static size_t
axes_size(uint32_t runs)
{
	return sizeof(Axes) + runs * sizeof(AxisRun);
}

size_t
axes_bytes(const Axes *axes)
{
	return axes_size(axes->counts[AXES_ROW] + axes->counts[AXES_COL]);
}

static Axes *
axes_alloc(const GridAllocator *allocator, uint32_t runs)
{
	size_t size = axes_size(runs);
	Axes *axes = allocator->alloc(allocator->ctx, size);

	if (axes != NULL)
	{
		axes->size = (uint32_t) size;
		axes->counts[AXES_ROW] = axes->counts[AXES_COL] = 0;
	}
	return axes;
}

Axes *
axes_make_room(const GridAllocator *allocator, const Axes *axes)
{
	uint32_t runs = axes->counts[AXES_ROW] + axes->counts[AXES_COL];

	return axes_alloc(allocator, runs + runs / 4 + AXIS_GROWS);
}

void
axes_free(const GridAllocator *allocator, Axes *axes)
{
	if (axes != NULL)
		allocator->free(allocator->ctx, axes, axes->size);
}

bool
axes_copy(const GridAllocator *allocator, const Axes *axes, Axes **to)
{
	uint32_t runs;

	*to = NULL;
	if (axes == NULL)
		return true;
	runs = axes->counts[AXES_ROW] + axes->counts[AXES_COL];
	*to = axes_alloc(allocator, runs);
	if (*to == NULL)
		return false;
	memcpy((*to)->counts, axes->counts, sizeof(axes->counts));
	memcpy((*to)->runs, axes->runs, runs * sizeof(AxisRun));
	return true;
}

bool
axes_equal(const Axes *a, const Axes *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return memcmp(a->counts, b->counts, sizeof(a->counts)) == 0 &&
		   memcmp(a->runs, b->runs, (a->counts[AXES_ROW] + a->counts[AXES_COL]) * sizeof(AxisRun)) == 0;
}

/* ---- changes ---- */

static uint32_t
axes_change_line(const Axis *axis, const AxesChange *change, uint32_t extent, AxisRun *to)
{
	return change->insert ? axis_insert(axis, change->at, change->n, extent, to)
						  : axis_remove(axis, change->at, change->n, extent, to);
}

static uint32_t
axes_copy_line(const Axis *axis, AxisRun *to)
{
	if (axis->count > 0)
		memcpy(to, axis->runs, axis->count * sizeof(AxisRun));
	return axis->count;
}

bool
axes_change(const GridAllocator *allocator, const Axes *axes, const AxesChange *change, uint32_t extent, Axes **to)
{
	Axes *made;
	uint32_t used = 0;

	made = axes_alloc(allocator, axes_axis(axes, AXES_ROW).count + axes_axis(axes, AXES_COL).count + AXIS_GROWS);
	*to = made;
	if (made == NULL)
		return false;
	for (AxesLine line = AXES_ROW; line <= AXES_COL; line++)
	{
		Axis axis = axes_axis(axes, line);
		AxisRun *runs = made->runs + used;

		made->counts[line] =
			line == change->line ? axes_change_line(&axis, change, extent, runs) : axes_copy_line(&axis, runs);
		used += made->counts[line];
	}
	if (used > 0)
		return true;
	axes_free(allocator, made);
	*to = NULL;
	return true;
}

uint32_t
axes_extent(const AxesChange *change, uint32_t extent)
{
	return extent_after(extent, axes_limit(change->line), change->insert, change->at, change->n);
}

/* ---- bytes ---- */

#define AXES_NUMBER_MAX 5

size_t
axes_encode_bound(const Axes *axes)
{
	return AXES_NUMBER_MAX * 2 * (1 + (size_t) axes->counts[AXES_ROW] + axes->counts[AXES_COL]);
}

static uint8_t *
axes_put_line(uint8_t *to, const Axis *axis)
{
	to = codec_put_number(to, axis->count);
	for (uint32_t i = 0; i < axis->count; i++)
	{
		uint32_t end = i + 1 < axis->count ? axis->runs[i + 1].start : axis->limit;

		to = codec_put_number(to, end - axis->runs[i].start);
		to = codec_put_number(to, axis->runs[i].place);
	}
	return to;
}

size_t
axes_encode(const Axes *axes, uint8_t *to)
{
	uint8_t *end = to;

	for (AxesLine line = AXES_ROW; line <= AXES_COL; line++)
	{
		Axis axis = axes_axis(axes, line);

		end = axes_put_line(end, &axis);
	}
	return (size_t) (end - to);
}

static bool
axes_get_number(CodecInput *input, uint32_t *value)
{
	return codec_get_u32(input, false, value) == EDIT_OK;
}

/* The runs of a map, which must follow each other up to the limit, and be as few as possible. */
static bool
axes_get_line(CodecInput *input, uint32_t limit, uint32_t count, AxisRun *runs)
{
	uint32_t start = 0, expected = limit;

	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t length, place;

		if (!axes_get_number(input, &length) || !axes_get_number(input, &place))
			return false;
		if (length == 0 || length > limit - start || place > limit - length || (i > 0 && place == expected))
			return false;
		runs[i] = (AxisRun){start, place};
		start += length;
		expected = place + length;
	}
	return count == 0 || (count > 1 && start == limit);
}

static int
axes_compare_places(const void *a, const void *b)
{
	const AxisRun *x = a, *y = b;

	return x->place < y->place ? -1 : x->place > y->place;
}

/* Whether no physical line occurs twice; the lengths add up to the limit, so then none is left out. `sorted` has room
 * for all runs. */
static bool
axes_is_permutation(const Axis *axis, AxisRun *sorted)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < axis->count; i++)
	{
		uint32_t end = i + 1 < axis->count ? axis->runs[i + 1].start : axis->limit;

		sorted[i] = (AxisRun){end - axis->runs[i].start, axis->runs[i].place}; /* start: the length */
	}
	qsort(sorted, axis->count, sizeof(AxisRun), axes_compare_places);
	for (uint32_t i = 0; i < axis->count; i++)
	{
		if (sorted[i].place != next)
			return false;
		next += sorted[i].start;
	}
	return true;
}

/* `axes` has room for `room` runs, and for as many more as working memory. */
static bool
axes_get_lines(CodecInput *input, Axes *axes, uint32_t room)
{
	uint32_t used = 0;

	for (AxesLine line = AXES_ROW; line <= AXES_COL; line++)
	{
		uint32_t count;
		Axis axis;

		if (!axes_get_number(input, &count) || count > room - used ||
			!axes_get_line(input, axes_limit(line), count, axes->runs + used))
			return false;
		axes->counts[line] = count;
		used += count;
		axis = axes_axis(axes, line);
		if (!axes_is_permutation(&axis, axes->runs + room))
			return false;
	}
	return used > 0 && input->pos == input->end;
}

AxesDecoded
axes_decode(const GridAllocator *allocator, const uint8_t *bytes, size_t len, Axes **to)
{
	/* A run has two bytes at least. */
	uint32_t room =
		len / 2 < 2 * (AXES_MAX_RUNS + AXIS_GROWS) ? (uint32_t) (len / 2) : 2 * (AXES_MAX_RUNS + AXIS_GROWS);
	CodecInput input = {bytes, bytes + len};
	Axes *work = axes_alloc(allocator, room * 2);
	AxesDecoded result = AXES_DAMAGED;

	*to = NULL;
	if (work == NULL)
		return AXES_NO_ROOM;
	if (axes_get_lines(&input, work, room))
		result = axes_copy(allocator, work, to) ? AXES_DECODED : AXES_NO_ROOM;
	axes_free(allocator, work);
	return result;
}

/* ---- parts ---- */

#define AXES_NARROW 16 /* runs of columns */

void
axes_parts_init(AxesParts *parts, const Axes *axes, const GridRect *rect)
{
	*parts = (AxesParts){.axes = axes, .rect = *rect, .row = rect->row0};
	if (parts->rect.row1 >= AXES_MAX_ROWS)
		parts->rect.row1 = AXES_MAX_ROWS - 1;
	if (parts->rect.col1 >= AXES_MAX_COLS)
		parts->rect.col1 = AXES_MAX_COLS - 1;
	parts->wide = axes_axis(axes, AXES_COL).count > AXES_NARROW;
	parts->col = parts->rect.col1 + 1;
}

uint32_t
axes_run_at(const Axes *axes, AxesLine line, uint32_t from, uint32_t last, uint32_t *place)
{
	Axis axis = axes_axis(axes, line);
	uint32_t length = axis_run_at(&axis, from, place);

	return length > last - from ? last - from + 1 : length;
}

bool
axes_parts_next(AxesParts *parts, GridRect *part)
{
	uint32_t cols, place;

	if (parts->rect.col0 > parts->rect.col1)
		return false;
	if (parts->col > parts->rect.col1)
	{
		if (parts->row > parts->rect.row1)
			return false;
		parts->rows = axes_run_at(parts->axes, AXES_ROW, parts->row, parts->rect.row1, &parts->place);
		parts->row += parts->rows;
		parts->col = parts->rect.col0;
	}
	if (parts->wide)
	{
		*part = (GridRect){parts->place, 0, parts->place + parts->rows - 1, AXES_MAX_COLS - 1};
		parts->col = parts->rect.col1 + 1;
		return true;
	}
	cols = axes_run_at(parts->axes, AXES_COL, parts->col, parts->rect.col1, &place);
	*part = (GridRect){parts->place, place, parts->place + parts->rows - 1, place + cols - 1};
	parts->col += cols;
	return true;
}
