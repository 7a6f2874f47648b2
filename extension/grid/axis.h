/*
 * axis.h - the order of a sheet's rows, or of its columns: which physical one lies at each logical index.
 *
 * An axis is a permutation of [0, limit): nothing is ever added to it or lost. Lines from the extent of the sheet on
 * are free: they hold nothing, so that any of them may lie anywhere there. Inserting takes free lines, and removing
 * lines, which the caller has emptied, makes them free. So each undoes the other, and there is always room; an axis
 * needs no counter of what was used.
 *
 * It is kept as runs of lines that lie one behind the other in both orders, as few as there can be. Not one: the
 * identity. Free lines are sorted by their place, so that what is free again becomes one run with its neighbours.
 * Inserted lines are taken where they go on the line before them, or lead to the one behind: rows that are inserted one
 * after another, in either direction, are one run. Others come from the middle of the largest free run, where there is
 * room on both sides.
 *
 * The extent is not part of an axis, but decides how it changes: whoever follows the log has to follow both.
 */
#ifndef AXIS_H
#define AXIS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct AxisRun
{
	uint32_t start; /* logical; the run ends where the next one starts, the last one at the limit */
	uint32_t place; /* physical, of its first line */
} AxisRun;

typedef struct Axis
{
	uint32_t limit;
	uint32_t count;		 /* of runs; 0: the identity */
	const AxisRun *runs; /* by start, the first one at 0 */
} Axis;

/* So many runs more than before may come out of one change. */
#define AXIS_GROWS 4

/* The physical line at an index below the limit. */
extern uint32_t axis_locate(const Axis *axis, uint32_t index);
/* The same, and how many lines from it on lie one behind the other in both orders. */
extern uint32_t axis_run_at(const Axis *axis, uint32_t index, uint32_t *place);
/*
 * The axis after a change; n is not 0, at + n not above the limit, and of lines to be removed none lies at the extent
 * or behind it. Where fewer than n lines are free, an insert takes the last n lines, which the caller knows to be
 * empty. Returns the number of runs, for which `to` has room.
 */
extern uint32_t axis_insert(const Axis *axis, uint32_t at, uint32_t n, uint32_t extent, AxisRun *to);
extern uint32_t axis_remove(const Axis *axis, uint32_t at, uint32_t n, uint32_t extent, AxisRun *to);

#endif
