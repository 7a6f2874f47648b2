/*
 * line_map.h - the row map or the column map of a sheet: which physical line lies at each logical index. A line is a
 * row or a column.
 *
 * A map is a permutation of [0, limit): no line is ever added to it or lost. Lines from the extent of the sheet on are
 * free: they hold nothing, so their order does not matter. An insertion takes free lines, and a deletion makes lines
 * free, which the caller has emptied. So each undoes the other, there is always room, and no counter of used lines is
 * needed.
 *
 * A map is stored as the fewest possible runs of lines that are adjacent in both orders. No runs: the identity. Free
 * lines are sorted by physical number, so that freed lines become one run with their neighbours. Inserted lines are
 * taken where they continue the line before them, or lead to the one behind: rows that are inserted one after another,
 * in either direction, are one run. Other lines come from the middle of the largest free run, where there is room on
 * both sides.
 *
 * The extent is not part of a map, but determines how it changes: a replay of the log must follow both.
 */
#ifndef LINE_MAP_H
#define LINE_MAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LineMapRun
{
	union
	{
		uint32_t start;	 /* logical; the run ends where the next one starts, the last one at the limit */
		uint32_t length; /* of a run that is not in a map */
	};
	uint32_t place; /* physical number of its first line */
} LineMapRun;

typedef struct LineMap
{
	uint32_t limit;
	uint32_t count;			/* of runs; 0: the identity */
	const LineMapRun *runs; /* by start, the first one at 0 */
} LineMap;

/* A change adds at most so many runs. */
#define LINE_MAP_GROWS 4

/* For qsort(): by physical lines. */
extern int line_map_compare_places(const void *run, const void *other);
/* The physical line at an index below the limit. */
extern uint32_t line_map_locate(const LineMap *map, uint32_t index);
/* The same; returns how many lines from it on are adjacent in both orders. */
extern uint32_t line_map_run_at(const LineMap *map, uint32_t index, uint32_t *place);
/*
 * The map after a change. n > 0, at + n <= limit, and lines to be removed are before the extent. If fewer than n lines
 * are free, an insertion takes the last n lines, which the caller knows to be empty. `to` has room for LINE_MAP_GROWS
 * more runs than before. Returns the number of runs.
 */
extern uint32_t line_map_insert(const LineMap *map, uint32_t at, uint32_t n, uint32_t extent, LineMapRun *to);
extern uint32_t line_map_remove(const LineMap *map, uint32_t at, uint32_t n, uint32_t extent, LineMapRun *to);

#endif
