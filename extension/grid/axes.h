/*
 * axes.h - the row map and the column map of a sheet: from logical rows and columns, which people see, to physical
 * ones, under which cells lie in tiles.
 *
 * Both are in one allocation that is immutable: a change makes a new one. NULL is the identity of both, and costs
 * nothing.
 */
#ifndef AXES_H
#define AXES_H

#include "grid/axis.h"
#include "grid/grid.h"

#define AXES_MAX_ROWS 16777216
#define AXES_MAX_COLS 16384
/* Limit of the runs of one map, so that what a version stores and a lookup searches is bounded. */
#define AXES_MAX_RUNS 16384

typedef enum AxesLine
{
	AXES_ROW,
	AXES_COL
} AxesLine;

struct Axes
{
	uint32_t size;		/* bytes that were taken for it */
	uint32_t counts[2]; /* runs of rows, of columns */
	AxisRun runs[];		/* those of rows first */
};

/* Inserting or removing rows or columns. */
typedef struct AxesChange
{
	AxesLine line;
	bool insert;
	uint32_t at;
	uint32_t n;
} AxesChange;

static inline uint32_t
axes_limit(AxesLine line)
{
	return line == AXES_ROW ? AXES_MAX_ROWS : AXES_MAX_COLS;
}

static inline Axis
axes_axis(const Axes *axes, AxesLine line)
{
	if (axes == NULL)
		return (Axis){axes_limit(line), 0, NULL};
	return (Axis){axes_limit(line), axes->counts[line], axes->runs + (line == AXES_ROW ? 0 : axes->counts[AXES_ROW])};
}

extern void axes_locate_mapped(const Axes *axes, uint32_t *row, uint32_t *col);
/* From logical to physical. */
static inline void
axes_locate(const Axes *axes, uint32_t *row, uint32_t *col)
{
	if (axes != NULL)
		axes_locate_mapped(axes, row, col);
}

/* How many lines of [from, last] are adjacent in both orders from logical line `from` on, and the physical line of the
 * first. */
extern uint32_t axes_run_at(const Axes *axes, AxesLine line, uint32_t from, uint32_t last, uint32_t *place);

/* Bytes that a copy takes; and memory for a copy with some more runs, which are not set. */
extern size_t axes_bytes(const Axes *axes);
extern Axes *axes_make_room(const GridAllocator *allocator, const Axes *axes);
/* The maps after a change of a sheet that had `extent` rows, or columns, in new memory; *to is NULL for the identity.
 * Returns false if there is no room. */
extern bool axes_change(const GridAllocator *allocator, const Axes *axes, const AxesChange *change, uint32_t extent,
						Axes **to);
extern bool axes_copy(const GridAllocator *allocator, const Axes *axes, Axes **to);
extern void axes_free(const GridAllocator *allocator, Axes *axes); /* NULL: nothing */
extern bool axes_equal(const Axes *a, const Axes *b);
/* The extent after a change. */
extern uint32_t axes_extent(const AxesChange *change, uint32_t extent);

/*
 * As bytes: for the row map, then the column map, the number of runs, then of each run its length and the physical
 * number of its first line, all as LEB128. The same maps give the same bytes.
 */
extern size_t axes_encode_bound(const Axes *axes);
extern size_t axes_encode(const Axes *axes, uint8_t *to); /* not of the identity */
typedef enum AxesDecoded
{
	AXES_DECODED,
	AXES_NO_ROOM,
	AXES_DAMAGED
} AxesDecoded;
extern AxesDecoded axes_decode(const GridAllocator *allocator, const uint8_t *bytes, size_t len, Axes **to);

/* The physical rectangles that make up a logical one. With many runs of columns they are as wide as the sheet, hence
 * contain more than what was asked for. */
typedef struct AxesParts
{
	const Axes *axes;
	GridRect rect;		  /* logical */
	uint32_t row;		  /* the next one */
	uint32_t rows, place; /* of the present run */
	uint32_t col;		  /* the next one in it */
	bool wide;
} AxesParts;
extern void axes_parts_init(AxesParts *parts, const Axes *axes, const GridRect *rect);
extern bool axes_parts_next(AxesParts *parts, GridRect *part);

#endif
