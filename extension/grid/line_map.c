/* line_map.c - the row map or the column map of a sheet; see line_map.h. */
#include "grid/line_map.h"

#include <stdlib.h>
#include <string.h>

/* The number of the run that has the index. */
static uint32_t
line_map_find(const LineMap *map, uint32_t index)
{
	uint32_t low = 0, count = map->count;

	while (count > 1)
	{
		uint32_t half = count / 2;

		low += (map->runs[low + half].start <= index) * half;
		count -= half;
	}
	return low;
}

int
line_map_compare_places(const void *run, const void *other)
{
	uint32_t place = ((const LineMapRun *) run)->place, other_place = ((const LineMapRun *) other)->place;

	return place < other_place ? -1 : place > other_place;
}

uint32_t
line_map_locate(const LineMap *map, uint32_t index)
{
	const LineMapRun *run;

	if (map->count == 0)
		return index;
	run = &map->runs[line_map_find(map, index)];
	return run->place + (index - run->start);
}

static uint32_t
line_map_end(const LineMap *map, uint32_t run)
{
	return run + 1 < map->count ? map->runs[run + 1].start : map->limit;
}

uint32_t
line_map_run_at(const LineMap *map, uint32_t index, uint32_t *place)
{
	uint32_t run;

	*place = index;
	if (map->count == 0)
		return map->limit - index;
	run = line_map_find(map, index);
	*place = map->runs[run].place + (index - map->runs[run].start);
	return line_map_end(map, run) - index;
}

/* ---- walking over runs, without a search for each of them ---- */

typedef struct LineMapWalk
{
	const LineMap *map;
	uint32_t from, until;
	uint32_t run; /* the one that has `from` */
} LineMapWalk;

static LineMapWalk
line_map_walk(const LineMap *map, uint32_t from, uint32_t until)
{
	return (LineMapWalk){map, from, until, map->count > 0 && from < until ? line_map_find(map, from) : 0};
}

/* The next part of a run: returns its length, 0 at the end. */
static inline uint32_t
line_map_next(LineMapWalk *walk, uint32_t *place)
{
	const LineMap *map = walk->map;
	uint32_t from = walk->from, length;

	if (from >= walk->until)
		return 0;
	*place = from;
	length = walk->until - from;
	if (map->count > 0)
	{
		*place = map->runs[walk->run].place + (from - map->runs[walk->run].start);
		if (line_map_end(map, walk->run) < walk->until)
			length = line_map_end(map, walk->run) - from;
		walk->run++;
	}
	walk->from += length;
	return length;
}

/* ---- changes: slices of the old map in a new order ---- */

typedef struct LineMapBuilder
{
	LineMapRun *runs;
	uint32_t count;
	uint32_t length; /* lines so far */
} LineMapBuilder;

static void
line_map_append_run(LineMapBuilder *to, uint32_t place, uint32_t length)
{
	const LineMapRun *last = to->count > 0 ? &to->runs[to->count - 1] : (const LineMapRun *) 0;

	if (last == (const LineMapRun *) 0 || last->place + (to->length - last->start) != place)
		to->runs[to->count++] = (LineMapRun){.start = to->length, .place = place};
	to->length += length;
}

/* Appends lines [from, until) of the old map. */
static void
line_map_append(LineMapBuilder *to, const LineMap *map, uint32_t from, uint32_t until)
{
	LineMapWalk walk = line_map_walk(map, from, until);
	uint32_t place, length;

	while ((length = line_map_next(&walk, &place)) > 0)
		line_map_append_run(to, place, length);
}

static uint32_t
line_map_built(const LineMapBuilder *built)
{
	return built->count == 1 ? 0 : built->count;
}

/* ---- inserting ---- */

#define LINE_MAP_NONE  UINT32_MAX
#define LINE_MAP_ALIGN 64 /* as tiles are: so lines that are inserted lie in few of them */

/* In the middle of a free run. */
static uint32_t
line_map_middle(uint32_t place, uint32_t length, uint32_t n)
{
	uint32_t middle = place + (length - n) / 2;
	uint32_t aligned = middle - middle % LINE_MAP_ALIGN;

	return aligned >= place ? aligned : middle;
}

/* The physical number of the first of n free lines for an insertion at `at`; lines from `from` on are free.
 * LINE_MAP_NONE if no free run is so long. */
static uint32_t
line_map_choose(const LineMap *map, uint32_t at, uint32_t n, uint32_t from)
{
	uint32_t after = at > 0 ? line_map_locate(map, at - 1) + 1 : LINE_MAP_NONE;
	uint32_t before = at < from ? line_map_locate(map, at) : LINE_MAP_NONE;
	uint32_t leading = LINE_MAP_NONE, largest = 0, middle = LINE_MAP_NONE;
	LineMapWalk walk = line_map_walk(map, from, map->limit);
	uint32_t place, length;

	while ((length = line_map_next(&walk, &place)) > 0)
	{
		if (after != LINE_MAP_NONE && after >= place && length >= n && after - place <= length - n)
			return after;
		if (before != LINE_MAP_NONE && before >= n && before - n >= place && before - place <= length)
			leading = before - n;
		if (length >= n && length > largest)
		{
			largest = length;
			middle = line_map_middle(place, length, n);
		}
	}
	return leading != LINE_MAP_NONE ? leading : middle;
}

/* The free lines from `from` on without n of them. */
static void
line_map_append_others(LineMapBuilder *to, const LineMap *map, uint32_t from, uint32_t taken, uint32_t n)
{
	LineMapWalk walk = line_map_walk(map, from, map->limit);
	uint32_t place, length;

	while ((length = line_map_next(&walk, &place)) > 0)
	{
		if (taken < place || taken >= place + length)
			line_map_append_run(to, place, length);
		else
		{
			if (taken > place)
				line_map_append_run(to, place, taken - place);
			if (taken + n < place + length)
				line_map_append_run(to, taken + n, place + length - (taken + n));
		}
	}
}

uint32_t
line_map_insert(const LineMap *map, uint32_t at, uint32_t n, uint32_t extent, LineMapRun *to)
{
	LineMapBuilder built = {to, 0, 0};
	uint32_t from = at > extent ? at : extent;
	uint32_t place = map->limit - from >= n ? line_map_choose(map, at, n, from) : LINE_MAP_NONE;

	line_map_append(&built, map, 0, at);
	if (place == LINE_MAP_NONE)
	{
		line_map_append(&built, map, map->limit - n, map->limit);
		line_map_append(&built, map, at, map->limit - n);
	}
	else
	{
		line_map_append_run(&built, place, n);
		line_map_append(&built, map, at, from);
		line_map_append_others(&built, map, from, place, n);
	}
	return line_map_built(&built);
}

/* ---- removing ---- */

/* Lines [from, until) as pieces. Returns their number. */
static uint32_t
line_map_list_pieces(const LineMap *map, uint32_t from, uint32_t until, LineMapRun *to)
{
	LineMapWalk walk = line_map_walk(map, from, until);
	uint32_t count = 0, place, length;

	while ((length = line_map_next(&walk, &place)) > 0)
		to[count++] = (LineMapRun){.length = length, .place = place};
	return count;
}

/* Sorts pieces of which all but the first `loose` are sorted already. */
static void
line_map_sort_pieces(LineMapRun *pieces, uint32_t count, uint32_t loose)
{
	LineMapRun first = pieces[0];
	uint32_t at = 1;

	if (loose > 1)
	{
		qsort(pieces, count, sizeof(LineMapRun), line_map_compare_places);
		return;
	}
	while (at < count && pieces[at].place < first.place)
		at++;
	memmove(pieces, pieces + 1, (at - 1) * sizeof(LineMapRun));
	pieces[at - 1] = first;
}

uint32_t
line_map_remove(const LineMap *map, uint32_t at, uint32_t n, uint32_t extent, LineMapRun *to)
{
	LineMapBuilder built = {to, 0, 0};
	uint32_t from = at + n > extent ? at + n : extent;
	uint32_t removed, pieces;
	LineMapRun *list;

	line_map_append(&built, map, 0, at);
	line_map_append(&built, map, at + n, from);
	list = to + built.count;
	removed = line_map_list_pieces(map, at, at + n, list);
	pieces = removed + line_map_list_pieces(map, from, map->limit, list + removed);
	if (removed > 0)
		line_map_sort_pieces(list, pieces, removed);
	for (uint32_t i = 0; i < pieces; i++)
	{
		LineMapRun piece = list[i]; /* it may be overwritten by itself at the earliest */

		line_map_append_run(&built, piece.place, piece.length);
	}
	return line_map_built(&built);
}
