/*
 * values.c - the stored values of a rectangle, by the rows and columns that people see.
 *
 * Values are stored by physical rows and columns (value_store.h). The maps lead from logical to physical lines, so they
 * are inverted here: the runs are sorted by physical lines. A line that is not in the rectangle is left out.
 */
#include "postgres.h"

#include "grid/line_maps.h"
#include "journal/journal.h"
#include "journal/read/read.h"
#include "journal/replay/batches.h"
#include "journal/store/trimmark.h"
#include "journal/store/value_store.h"
#include "utils/snapmgr.h"

#define VALUES_SPANS_MAX 16 /* physical ranges of rows that are read one by one */

/* A run of lines by its physical lines. */
typedef struct ValuesRun
{
	LineMapRun run; /* first: for line_map_compare_places() */
	uint32 first;	/* logical */
} ValuesRun;

/* Physical lines to logical ones. */
typedef struct ValuesLines
{
	uint32 low, high; /* of the rectangle */
	uint32 count;	  /* of runs; 0: the identity */
	ValuesRun *runs;
} ValuesLines;

typedef struct ValuesRead
{
	ValuesLines rows, cols;
	JournalValueFn fn;
	void *arg;
} ValuesRead;

/* ---- lines ---- */

/* Keeps the parts of the map's runs that are in the rectangle. */
static void
values_lines_init(ValuesLines *lines, const LineMap *map, uint32 low, uint32 high)
{
	*lines = (ValuesLines){.low = low, .high = high};
	if (map->count == 0)
		return;
	lines->runs = palloc(sizeof(ValuesRun) * map->count);
	for (uint32 at = low; at <= high;)
	{
		uint32 place;
		uint32 length = Min(line_map_run_at(map, at, &place), high - at + 1);

		lines->runs[lines->count++] = (ValuesRun){{.length = length, .place = place}, at};
		at += length;
	}
	qsort(lines->runs, lines->count, sizeof(ValuesRun), line_map_compare_places);
}

/* The logical line; false: it is not in the rectangle. */
static bool
values_locate(const ValuesLines *lines, uint32 place, uint32 *line)
{
	uint32 low = 0, high = lines->count;

	*line = place;
	if (lines->runs == NULL)
		return place >= lines->low && place <= lines->high;
	while (low < high)
	{
		uint32 middle = (low + high) / 2;

		if (lines->runs[middle].run.place <= place)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || place - lines->runs[low - 1].run.place >= lines->runs[low - 1].run.length)
		return false;
	*line = lines->runs[low - 1].first + (place - lines->runs[low - 1].run.place);
	return true;
}

/* ---- reading ---- */

static void
values_pass(void *arg, uint32 row, uint32 col, const ValueEntry *entry)
{
	ValuesRead *read = arg;
	uint32 logical[2];

	if (values_locate(&read->rows, row, &logical[0]) && values_locate(&read->cols, col, &logical[1]))
		read->fn(read->arg, logical[0], logical[1], entry);
}

/* Reads the tiles of the rectangle's rows. Spans of physical rows that touch the same tiles are read once. */
static void
values_read_rows(int64 sheet_id, ValuesRead *read, Snapshot snapshot)
{
	const ValuesLines *rows = &read->rows;
	uint32 low = rows->low, high = rows->high;
	bool single = rows->count > 0 && rows->count <= VALUES_SPANS_MAX;

	if (rows->count > 0)
	{
		const ValuesRun *last = &rows->runs[rows->count - 1];

		low = rows->runs[0].run.place;
		high = single ? low + rows->runs[0].run.length - 1 : last->run.place + last->run.length - 1;
	}
	for (uint32 i = 1; single && i < rows->count; i++)
	{
		const LineMapRun *run = &rows->runs[i].run;

		if (run->place / VALUE_TILE_ROWS > high / VALUE_TILE_ROWS)
		{
			value_store_read(sheet_id, low, high, snapshot, values_pass, read);
			low = run->place;
		}
		high = run->place + run->length - 1;
	}
	value_store_read(sheet_id, low, high, snapshot, values_pass, read);
}

bool
journal_read_values(int64 sheet_id, const uint32 rect[4], const LineMaps *maps, bool fresh, int64 *computed,
					JournalValueFn fn, void *arg)
{
	Snapshot snapshot = RegisterSnapshot(read_snapshot(fresh));
	bool found = value_store_state(sheet_id, snapshot, computed);

	if (found && *computed > 0)
	{
		LineMap rows = line_maps_one(maps, LINE_ROW), cols = line_maps_one(maps, LINE_COL);
		ValuesRead read = {.fn = fn, .arg = arg};

		values_lines_init(&read.rows, &rows, rect[0], rect[2]);
		values_lines_init(&read.cols, &cols, rect[1], rect[3]);
		values_read_rows(sheet_id, &read, snapshot);
		if (value_store_is_behind(sheet_id, snapshot))
			*computed = 0;
	}
	UnregisterSnapshot(snapshot);
	return found;
}

bool
journal_has_formulas(int64 sheet_id, bool fresh)
{
	Snapshot snapshot = RegisterSnapshot(read_snapshot(fresh));
	int64 computed;
	bool found = value_store_state(sheet_id, snapshot, &computed);

	UnregisterSnapshot(snapshot);
	return found;
}

/* ---- where places are now ---- */

typedef struct ValuesChanges
{
	LineChange *changes;
	uint32 count, most;
} ValuesChanges;

/* Counts those that do not fit, too. */
static void
values_look_at(void *arg, int64 seq, int64 at, const Edit *edit)
{
	ValuesChanges *found = arg;
	LineChange change;

	if (!line_change_of(edit, &change))
		return;
	if (found->count < found->most)
		found->changes[found->count] = change;
	found->count++;
}

bool
journal_line_changes(int64 sheet_id, int64 since, int64 until, uint32 most, LineChange **changes, uint32 *count)
{
	ValuesChanges found = {.most = most};
	Snapshot snapshot;
	TrimMark mark;

	*count = 0;
	if (since == until)
		return true;
	found.changes = palloc(sizeof(LineChange) * most);
	snapshot = RegisterSnapshot(read_snapshot(true));
	trim_mark(sheet_id, snapshot, &mark);
	if (mark.version_id != 0 && since < mark.seq)
		found.count = most + 1;
	else
		batches_each_edit(sheet_id, since, until, snapshot, values_look_at, &found);
	UnregisterSnapshot(snapshot);
	*changes = found.changes;
	*count = found.count;
	return found.count <= most;
}
