/*
 * line_maps.h - the row map and the column map of a sheet: from logical rows and columns, which people see, to physical
 * ones, under which cells lie in tiles.
 *
 * Both are in one allocation that is immutable: a change makes a new one. NULL is the identity of both, and costs
 * nothing.
 */
#ifndef LINE_MAPS_H
#define LINE_MAPS_H

#include "common/edit_codec.h"
#include "grid/grid.h"
#include "grid/line_map.h"

/* Limit of the runs of one map, so that what a version stores and a lookup searches is bounded. */
#define LINE_MAPS_MAX_RUNS 16384

typedef enum LineKind
{
	LINE_ROW,
	LINE_COL
} LineKind;

struct LineMaps
{
	uint32_t size;		/* bytes that were taken for it */
	uint32_t counts[2]; /* runs of rows, of columns */
	LineMapRun runs[];	/* those of rows first */
};

static inline LineMap
line_maps_one(const LineMaps *maps, LineKind line)
{
	if (maps == NULL)
		return (LineMap){line_limit(line == LINE_ROW), 0, NULL};
	return (LineMap){line_limit(line == LINE_ROW), maps->counts[line],
					 maps->runs + (line == LINE_ROW ? 0 : maps->counts[LINE_ROW])};
}

extern void line_maps_locate_mapped(const LineMaps *maps, uint32_t *row, uint32_t *col);
/* From logical to physical. */
static inline void
line_maps_locate(const LineMaps *maps, uint32_t *row, uint32_t *col)
{
	if (maps != NULL)
		line_maps_locate_mapped(maps, row, col);
}

/* How many lines of [from, last] are adjacent in both orders from logical line `from` on, and the physical line of the
 * first. */
extern uint32_t line_maps_run_at(const LineMaps *maps, LineKind line, uint32_t from, uint32_t last, uint32_t *place);

/* Bytes that a copy takes; and memory for a copy with some more runs, which are not set. */
extern size_t line_maps_bytes(const LineMaps *maps);
extern LineMaps *line_maps_make_room(const GridAllocator *allocator, const LineMaps *maps);
/* The maps after a change of a sheet that had `extent` rows, or columns, in new memory; *to is NULL for the identity.
 * Returns false if there is no room. */
extern bool line_maps_change(const GridAllocator *allocator, const LineMaps *maps, const LineChange *change,
							 uint32_t extent, LineMaps **to);
extern bool line_maps_copy(const GridAllocator *allocator, const LineMaps *maps, LineMaps **to);
extern void line_maps_free(const GridAllocator *allocator, LineMaps *maps); /* NULL: nothing */

/*
 * As bytes: for the row map, then the column map, the number of runs, then of each run its length and the physical
 * number of its first line, all as LEB128. The same maps give the same bytes.
 */
extern size_t line_maps_encode_bound(const LineMaps *maps);
extern size_t line_maps_encode(const LineMaps *maps, uint8_t *to); /* not of the identity */
typedef enum LineMapsDecoded
{
	LINE_MAPS_DECODED,
	LINE_MAPS_NO_ROOM,
	LINE_MAPS_DAMAGED
} LineMapsDecoded;
extern LineMapsDecoded line_maps_decode(const GridAllocator *allocator, const uint8_t *bytes, size_t len,
										LineMaps **to);

/* The physical rectangles that make up a logical one. With many runs of columns they are as wide as the sheet, hence
 * contain more than what was asked for. */
typedef struct LineMapsParts
{
	const LineMaps *maps;
	GridRect rect;		  /* logical */
	uint32_t row;		  /* the next one */
	uint32_t rows, place; /* of the present run */
	uint32_t col;		  /* the next one in it */
	bool wide;
} LineMapsParts;
extern void line_maps_parts_init(LineMapsParts *parts, const LineMaps *maps, const GridRect *rect);
extern bool line_maps_parts_next(LineMapsParts *parts, GridRect *part);

#endif
