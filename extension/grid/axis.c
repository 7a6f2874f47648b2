/* axis.c - the row map or the column map of a sheet; see axis.h. */
#include "grid/axis.h"

#include <stdlib.h>
#include <string.h>

/* The number of the run that has the index. */
static uint32_t
axis_find(const Axis *axis, uint32_t index)
{
	uint32_t low = 0, count = axis->count;

	while (count > 1)
	{
		uint32_t half = count / 2;

		low += (axis->runs[low + half].start <= index) * half;
		count -= half;
	}
	return low;
}

uint32_t
axis_locate(const Axis *axis, uint32_t index)
{
	const AxisRun *run;

	if (axis->count == 0)
		return index;
	run = &axis->runs[axis_find(axis, index)];
	return run->place + (index - run->start);
}

static uint32_t
axis_end(const Axis *axis, uint32_t run)
{
	return run + 1 < axis->count ? axis->runs[run + 1].start : axis->limit;
}

uint32_t
axis_run_at(const Axis *axis, uint32_t index, uint32_t *place)
{
	uint32_t run;

	*place = index;
	if (axis->count == 0)
		return axis->limit - index;
	run = axis_find(axis, index);
	*place = axis->runs[run].place + (index - axis->runs[run].start);
	return axis_end(axis, run) - index;
}

/* ---- walking over runs, without a search for each of them ---- */

typedef struct AxisWalk
{
	const Axis *axis;
	uint32_t from, until;
	uint32_t run; /* the one that has `from` */
} AxisWalk;

static AxisWalk
axis_walk(const Axis *axis, uint32_t from, uint32_t until)
{
	return (AxisWalk){axis, from, until, axis->count > 0 && from < until ? axis_find(axis, from) : 0};
}

/* The next part of a run: returns its length, 0 at the end. */
static inline uint32_t
axis_next(AxisWalk *walk, uint32_t *place)
{
	const Axis *axis = walk->axis;
	uint32_t from = walk->from, length;

	if (from >= walk->until)
		return 0;
	*place = from;
	length = walk->until - from;
	if (axis->count > 0)
	{
		*place = axis->runs[walk->run].place + (from - axis->runs[walk->run].start);
		if (axis_end(axis, walk->run) < walk->until)
			length = axis_end(axis, walk->run) - from;
		walk->run++;
	}
	walk->from += length;
	return length;
}

/* ---- changes: slices of the old map in a new order ---- */

typedef struct AxisBuilder
{
	AxisRun *runs;
	uint32_t count;
	uint32_t length; /* lines so far */
} AxisBuilder;

static void
axis_append_run(AxisBuilder *to, uint32_t place, uint32_t length)
{
	const AxisRun *last = to->count > 0 ? &to->runs[to->count - 1] : (const AxisRun *) 0;

	if (last == (const AxisRun *) 0 || last->place + (to->length - last->start) != place)
		to->runs[to->count++] = (AxisRun){to->length, place};
	to->length += length;
}

/* Appends lines [from, until) of the old map. */
static void
axis_append(AxisBuilder *to, const Axis *axis, uint32_t from, uint32_t until)
{
	AxisWalk walk = axis_walk(axis, from, until);
	uint32_t place, length;

	while ((length = axis_next(&walk, &place)) > 0)
		axis_append_run(to, place, length);
}

static uint32_t
axis_built(const AxisBuilder *built)
{
	return built->count == 1 ? 0 : built->count;
}

/* ---- inserting ---- */

#define AXIS_NONE  UINT32_MAX
#define AXIS_ALIGN 64 /* as tiles are: so lines that are inserted lie in few of them */

/* In the middle of a free run. */
static uint32_t
axis_middle(uint32_t place, uint32_t length, uint32_t n)
{
	uint32_t middle = place + (length - n) / 2;
	uint32_t aligned = middle - middle % AXIS_ALIGN;

	return aligned >= place ? aligned : middle;
}

/* The physical number of the first of n free lines for an insertion at `at`; lines from `from` on are free. AXIS_NONE
 * if no free run is so long. */
static uint32_t
axis_choose(const Axis *axis, uint32_t at, uint32_t n, uint32_t from)
{
	uint32_t after = at > 0 ? axis_locate(axis, at - 1) + 1 : AXIS_NONE;
	uint32_t before = at < from ? axis_locate(axis, at) : AXIS_NONE;
	uint32_t leading = AXIS_NONE, largest = 0, middle = AXIS_NONE;
	AxisWalk walk = axis_walk(axis, from, axis->limit);
	uint32_t place, length;

	while ((length = axis_next(&walk, &place)) > 0)
	{
		if (after != AXIS_NONE && after >= place && length >= n && after - place <= length - n)
			return after;
		if (before != AXIS_NONE && before >= n && before - n >= place && before - place <= length)
			leading = before - n;
		if (length >= n && length > largest)
		{
			largest = length;
			middle = axis_middle(place, length, n);
		}
	}
	return leading != AXIS_NONE ? leading : middle;
}

/* The free lines from `from` on without n of them. */
static void
axis_append_others(AxisBuilder *to, const Axis *axis, uint32_t from, uint32_t taken, uint32_t n)
{
	AxisWalk walk = axis_walk(axis, from, axis->limit);
	uint32_t place, length;

	while ((length = axis_next(&walk, &place)) > 0)
	{
		if (taken < place || taken >= place + length)
			axis_append_run(to, place, length);
		else
		{
			if (taken > place)
				axis_append_run(to, place, taken - place);
			if (taken + n < place + length)
				axis_append_run(to, taken + n, place + length - (taken + n));
		}
	}
}

uint32_t
axis_insert(const Axis *axis, uint32_t at, uint32_t n, uint32_t extent, AxisRun *to)
{
	AxisBuilder built = {to, 0, 0};
	uint32_t from = at > extent ? at : extent;
	uint32_t place = axis->limit - from >= n ? axis_choose(axis, at, n, from) : AXIS_NONE;

	axis_append(&built, axis, 0, at);
	if (place == AXIS_NONE)
	{
		axis_append(&built, axis, axis->limit - n, axis->limit);
		axis_append(&built, axis, at, axis->limit - n);
	}
	else
	{
		axis_append_run(&built, place, n);
		axis_append(&built, axis, at, from);
		axis_append_others(&built, axis, from, place, n);
	}
	return axis_built(&built);
}

/* ---- removing ---- */

static int
axis_compare_places(const void *a, const void *b)
{
	const AxisRun *x = a, *y = b;

	return x->place < y->place ? -1 : x->place > y->place;
}

/* Lines [from, until) as pieces, with their lengths in `start`. Returns their number. */
static uint32_t
axis_list_pieces(const Axis *axis, uint32_t from, uint32_t until, AxisRun *to)
{
	AxisWalk walk = axis_walk(axis, from, until);
	uint32_t count = 0, place, length;

	while ((length = axis_next(&walk, &place)) > 0)
		to[count++] = (AxisRun){length, place};
	return count;
}

/* Sorts pieces of which all but the first `loose` are sorted already. */
static void
axis_sort_pieces(AxisRun *pieces, uint32_t count, uint32_t loose)
{
	AxisRun first = pieces[0];
	uint32_t at = 1;

	if (loose > 1)
	{
		qsort(pieces, count, sizeof(AxisRun), axis_compare_places);
		return;
	}
	while (at < count && pieces[at].place < first.place)
		at++;
	memmove(pieces, pieces + 1, (at - 1) * sizeof(AxisRun));
	pieces[at - 1] = first;
}

uint32_t
axis_remove(const Axis *axis, uint32_t at, uint32_t n, uint32_t extent, AxisRun *to)
{
	AxisBuilder built = {to, 0, 0};
	uint32_t from = at + n > extent ? at + n : extent;
	uint32_t removed, pieces;
	AxisRun *list;

	axis_append(&built, axis, 0, at);
	axis_append(&built, axis, at + n, from);
	list = to + built.count;
	removed = axis_list_pieces(axis, at, at + n, list);
	pieces = removed + axis_list_pieces(axis, from, axis->limit, list + removed);
	if (removed > 0)
		axis_sort_pieces(list, pieces, removed);
	for (uint32_t i = 0; i < pieces; i++)
	{
		AxisRun piece = list[i]; /* it may be overwritten by itself at the earliest */

		axis_append_run(&built, piece.place, piece.start);
	}
	return axis_built(&built);
}
