/*
 * axes.h - the two axes of a sheet: between the rows and columns that people see (logical) and those under which cells
 * lie in tiles (physical).
 *
 * Axes are one piece of memory that is not changed while others look at it: a change makes new ones. NULL is the
 * identity of both, which costs nothing.
 */
#ifndef AXES_H
#define AXES_H

#include "grid/axis.h"
#include "grid/grid.h"

#define AXES_MAX_ROWS 16777216
#define AXES_MAX_COLS 16384
/* So many runs an axis may have before a change is refused: what a version stores and a lookup searches is bounded. */
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

/* Bytes that a copy takes, and room for one with some more runs; its runs are not set. */
extern size_t axes_bytes(const Axes *axes);
extern Axes *axes_make_room(const GridAllocator *allocator, const Axes *axes);
/* The axes after a change of a sheet that has had so many rows, or columns, in new memory; *to is NULL when they are
 * the identity. False when there is no room. */
extern bool axes_change(const GridAllocator *allocator, const Axes *axes, const AxesChange *change, uint32_t extent,
						Axes **to);
extern bool axes_copy(const GridAllocator *allocator, const Axes *axes, Axes **to);
extern void axes_free(const GridAllocator *allocator, Axes *axes); /* NULL: nothing */
extern bool axes_equal(const Axes *a, const Axes *b);
/* What a change makes of the number of rows, or columns, that a sheet has. */
extern uint32_t axes_extent(const AxesChange *change, uint32_t extent);

/*
 * As bytes: for each axis the number of its runs, then of each run its length and its place, all as LEB128. The same
 * axes give the same bytes.
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

/* The rectangles of physical cells that make up one of logical cells. Of axes with many runs of columns they are as
 * wide as the sheet: more than what was asked for. */
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
extern bool axes_parts_next(AxesParts *parts, GridRect *physical);

#endif
