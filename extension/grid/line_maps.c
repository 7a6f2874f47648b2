/* line_maps.c - the row map and the column map of a sheet; see line_maps.h. */
#include "grid/line_maps.h"

#include "common/edit_read.h"
#include "common/edit_write.h"

#include <stdlib.h>
#include <string.h>

void
line_maps_locate_mapped(const LineMaps *maps, uint32_t *row, uint32_t *col)
{
	LineMap rows = line_maps_one(maps, LINE_ROW), cols = line_maps_one(maps, LINE_COL);

	*row = line_map_locate(&rows, *row);
	*col = line_map_locate(&cols, *col);
}

/* ---- memory ---- */

static size_t
line_maps_size(uint32_t runs)
{
	return sizeof(LineMaps) + runs * sizeof(LineMapRun);
}

size_t
line_maps_bytes(const LineMaps *maps)
{
	return line_maps_size(maps->counts[LINE_ROW] + maps->counts[LINE_COL]);
}

static LineMaps *
line_maps_alloc(const GridAllocator *allocator, uint32_t runs)
{
	size_t size = line_maps_size(runs);
	LineMaps *maps = allocator->alloc(allocator->ctx, size);

	if (maps != NULL)
	{
		maps->size = (uint32_t) size;
		maps->counts[LINE_ROW] = maps->counts[LINE_COL] = 0;
	}
	return maps;
}

LineMaps *
line_maps_make_room(const GridAllocator *allocator, const LineMaps *maps)
{
	uint32_t runs = maps->counts[LINE_ROW] + maps->counts[LINE_COL];

	return line_maps_alloc(allocator, runs + runs / 4 + LINE_MAP_GROWS);
}

void
line_maps_free(const GridAllocator *allocator, LineMaps *maps)
{
	if (maps != NULL)
		allocator->free(allocator->ctx, maps, maps->size);
}

bool
line_maps_copy(const GridAllocator *allocator, const LineMaps *maps, LineMaps **to)
{
	uint32_t runs;

	*to = NULL;
	if (maps == NULL)
		return true;
	runs = maps->counts[LINE_ROW] + maps->counts[LINE_COL];
	*to = line_maps_alloc(allocator, runs);
	if (*to == NULL)
		return false;
	memcpy((*to)->counts, maps->counts, sizeof(maps->counts));
	memcpy((*to)->runs, maps->runs, runs * sizeof(LineMapRun));
	return true;
}

/* ---- changes ---- */

static uint32_t
line_maps_change_line(const LineMap *map, const LineChange *change, uint32_t extent, LineMapRun *to)
{
	return change->insert ? line_map_insert(map, change->at, change->n, extent, to)
						  : line_map_remove(map, change->at, change->n, extent, to);
}

static uint32_t
line_maps_copy_line(const LineMap *map, LineMapRun *to)
{
	if (map->count > 0)
		memcpy(to, map->runs, map->count * sizeof(LineMapRun));
	return map->count;
}

bool
line_maps_change(const GridAllocator *allocator, const LineMaps *maps, const LineChange *change, uint32_t extent,
				 LineMaps **to)
{
	LineMaps *made;
	uint32_t used = 0;

	made = line_maps_alloc(allocator,
						   line_maps_one(maps, LINE_ROW).count + line_maps_one(maps, LINE_COL).count + LINE_MAP_GROWS);
	*to = made;
	if (made == NULL)
		return false;
	for (LineKind line = LINE_ROW; line <= LINE_COL; line++)
	{
		LineMap map = line_maps_one(maps, line);
		LineMapRun *runs = made->runs + used;

		made->counts[line] = (line == LINE_ROW) == change->rows ? line_maps_change_line(&map, change, extent, runs)
																: line_maps_copy_line(&map, runs);
		used += made->counts[line];
	}
	if (used > 0)
		return true;
	line_maps_free(allocator, made);
	*to = NULL;
	return true;
}

/* ---- bytes ---- */

#define LINE_MAPS_NUMBER_MAX 5

size_t
line_maps_encode_bound(const LineMaps *maps)
{
	return LINE_MAPS_NUMBER_MAX * 2 * (1 + (size_t) maps->counts[LINE_ROW] + maps->counts[LINE_COL]);
}

static uint8_t *
line_maps_put_line(uint8_t *to, const LineMap *map)
{
	to = codec_put_number(to, map->count);
	for (uint32_t i = 0; i < map->count; i++)
	{
		uint32_t end = i + 1 < map->count ? map->runs[i + 1].start : map->limit;

		to = codec_put_number(to, end - map->runs[i].start);
		to = codec_put_number(to, map->runs[i].place);
	}
	return to;
}

size_t
line_maps_encode(const LineMaps *maps, uint8_t *to)
{
	uint8_t *end = to;

	for (LineKind line = LINE_ROW; line <= LINE_COL; line++)
	{
		LineMap map = line_maps_one(maps, line);

		end = line_maps_put_line(end, &map);
	}
	return (size_t) (end - to);
}

static bool
line_maps_get_number(CodecInput *input, uint32_t *value)
{
	return codec_get_u32(input, false, value) == EDIT_OK;
}

/* The runs of a map, which must follow each other up to the limit, and be as few as possible. */
static bool
line_maps_get_line(CodecInput *input, uint32_t limit, uint32_t count, LineMapRun *runs)
{
	uint32_t start = 0, expected = limit;

	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t length, place;

		if (!line_maps_get_number(input, &length) || !line_maps_get_number(input, &place))
			return false;
		if (length == 0 || length > limit - start || place > limit - length || (i > 0 && place == expected))
			return false;
		runs[i] = (LineMapRun){.start = start, .place = place};
		start += length;
		expected = place + length;
	}
	return count == 0 || (count > 1 && start == limit);
}

/* Whether no physical line occurs twice; the lengths add up to the limit, so then none is left out. `sorted` has room
 * for all runs. */
static bool
line_maps_is_permutation(const LineMap *map, LineMapRun *sorted)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < map->count; i++)
	{
		uint32_t end = i + 1 < map->count ? map->runs[i + 1].start : map->limit;

		sorted[i] = (LineMapRun){.length = end - map->runs[i].start, .place = map->runs[i].place};
	}
	qsort(sorted, map->count, sizeof(LineMapRun), line_map_compare_places);
	for (uint32_t i = 0; i < map->count; i++)
	{
		if (sorted[i].place != next)
			return false;
		next += sorted[i].length;
	}
	return true;
}

/* `maps` has room for `room` runs, and for as many more as working memory. */
static bool
line_maps_get_lines(CodecInput *input, LineMaps *maps, uint32_t room)
{
	uint32_t used = 0;

	for (LineKind line = LINE_ROW; line <= LINE_COL; line++)
	{
		uint32_t count;
		LineMap map;

		if (!line_maps_get_number(input, &count) || count > room - used ||
			!line_maps_get_line(input, line_limit(line == LINE_ROW), count, maps->runs + used))
			return false;
		maps->counts[line] = count;
		used += count;
		map = line_maps_one(maps, line);
		if (!line_maps_is_permutation(&map, maps->runs + room))
			return false;
	}
	return used > 0 && input->pos == input->end;
}

LineMapsDecoded
line_maps_decode(const GridAllocator *allocator, const uint8_t *bytes, size_t len, LineMaps **to)
{
	/* A run has two bytes at least. */
	uint32_t room = len / 2 < 2 * (LINE_MAPS_MAX_RUNS + LINE_MAP_GROWS) ? (uint32_t) (len / 2)
																		: 2 * (LINE_MAPS_MAX_RUNS + LINE_MAP_GROWS);
	CodecInput input = {bytes, bytes + len};
	LineMaps *work = line_maps_alloc(allocator, room * 2);
	LineMapsDecoded result = LINE_MAPS_DAMAGED;

	*to = NULL;
	if (work == NULL)
		return LINE_MAPS_NO_ROOM;
	if (line_maps_get_lines(&input, work, room))
		result = line_maps_copy(allocator, work, to) ? LINE_MAPS_DECODED : LINE_MAPS_NO_ROOM;
	line_maps_free(allocator, work);
	return result;
}

/* ---- parts ---- */

#define LINE_MAPS_NARROW 16 /* runs of columns */

void
line_maps_parts_init(LineMapsParts *parts, const LineMaps *maps, const GridRect *rect)
{
	*parts = (LineMapsParts){.maps = maps, .rect = *rect, .row = rect->row0};
	if (parts->rect.row1 >= SHEET_MAX_ROWS)
		parts->rect.row1 = SHEET_MAX_ROWS - 1;
	if (parts->rect.col1 >= SHEET_MAX_COLS)
		parts->rect.col1 = SHEET_MAX_COLS - 1;
	parts->wide = line_maps_one(maps, LINE_COL).count > LINE_MAPS_NARROW;
	parts->col = parts->rect.col1 + 1;
}

uint32_t
line_maps_run_at(const LineMaps *maps, LineKind line, uint32_t from, uint32_t last, uint32_t *place)
{
	LineMap map = line_maps_one(maps, line);
	uint32_t length = line_map_run_at(&map, from, place);

	return length > last - from ? last - from + 1 : length;
}

bool
line_maps_parts_next(LineMapsParts *parts, GridRect *part)
{
	uint32_t cols, place;

	if (parts->rect.col0 > parts->rect.col1)
		return false;
	if (parts->col > parts->rect.col1)
	{
		if (parts->row > parts->rect.row1)
			return false;
		parts->rows = line_maps_run_at(parts->maps, LINE_ROW, parts->row, parts->rect.row1, &parts->place);
		parts->row += parts->rows;
		parts->col = parts->rect.col0;
	}
	if (parts->wide)
	{
		*part = (GridRect){parts->place, 0, parts->place + parts->rows - 1, SHEET_MAX_COLS - 1};
		parts->col = parts->rect.col1 + 1;
		return true;
	}
	cols = line_maps_run_at(parts->maps, LINE_COL, parts->col, parts->rect.col1, &place);
	*part = (GridRect){parts->place, place, parts->place + parts->rows - 1, place + cols - 1};
	parts->col += cols;
	return true;
}
