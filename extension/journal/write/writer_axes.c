/*
 * writer_axes.c - rows and columns that the current transaction inserts and deletes.
 *
 * The axes are the transaction's own until it commits: then a copy takes the place of those of the shared grid, for
 * which room is reserved when they change. Cells stay where they are, and so do staged edits, whose places are
 * physical; only the way from what people call a row to its place is another one from then on.
 */
#include "postgres.h"

#include "journal/journal.h"
#include "journal/replay/load.h"
#include "journal/replay/replay.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "journal/write/writer.h"

/* ---- changing ---- */

static void
writer_check_runs(const Axes *axes, AxesLine line)
{
	const char *what = line == AXES_ROW ? "rows" : "columns";

	if (axes_axis(axes, line).count > AXES_MAX_RUNS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("%s have been inserted or deleted in too many places of the sheet", what),
						errdetail("Its %s would lie in more than %d pieces.", what, AXES_MAX_RUNS),
						errhint("Copy the sheet to a new one, with sheet.export_csv() and sheet.import_csv().")));
}

/* Room in the shared grid, so that taking the axes over cannot fail. The entry names us: the grid stays. */
static void
writer_reserve_axes(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;
	bool done = entry == NULL || entry->grid == NULL || ws->axes == NULL || ws->drop_grid;

	while (!done)
	{
		GridAllocator allocator = cache_allocator(entry);

		cache_lock_change(entry);
		done = grid_reserve_axes(&allocator, entry->grid, ws->axes);
		ws->holds = true;
		LWLockRelease(&entry->lock);
		if (!done && !cache_evict(entry, axes_bytes(ws->axes)))
			done = ws->drop_grid = true;
	}
}

void
writer_change_axes(WriterSheet *ws, const AxesChange *change, uint32 extent)
{
	MemoryContext old = MemoryContextSwitchTo(writer_grid_context(ws));
	GridAllocator allocator = journal_context_allocator();
	SubTransactionId subid = GetCurrentSubTransactionId();
	Axes *axes;

	Assert(ws->axes_known && writer_has_changes(ws));
	(void) axes_change(&allocator, ws->axes, change, extent, &axes); /* the allocator raises by itself */
	MemoryContextSwitchTo(old);
	writer_check_runs(axes, change->line);
	/* Those that the same subtransaction has made are no state that a rollback leads to. */
	if (ws->axes_subid == subid)
		axes_free(&allocator, ws->axes);
	ws->axes = axes;
	ws->axes_subid = subid;
	writer_reserve_axes(ws);
}

/* ---- the cells of a rectangle ---- */

typedef struct CellPlaces
{
	WriterPlace *places;
	Size count, room;
} CellPlaces;

static void
writer_add_place(CellPlaces *list, uint32 row, uint32 col)
{
	if (list->count == list->room)
	{
		list->room = Max(list->room * 2, 256);
		list->places = list->places == NULL ? palloc(sizeof(WriterPlace) * list->room)
											: repalloc_huge(list->places, sizeof(WriterPlace) * list->room);
	}
	list->places[list->count++] = (WriterPlace){row, col};
}

static void
writer_add_cells(const Grid *grid, const Axes *axes, const GridRect *rect, CellPlaces *list)
{
	GridScan scan;
	GridCell cell;

	grid_view_init(&scan, grid, axes, rect->row0, rect->col0, rect->row1, rect->col1);
	while (grid_scan_next(&scan, &cell))
		writer_add_place(list, cell.row, cell.col);
}

/* Staged edits within one part of the rectangle, whose first cell is at a logical place. */
static void
writer_add_staged(const WriterSheet *ws, const GridRect *part, WriterPlace first, CellPlaces *list)
{
	for (uint32 i = 0; i < ws->nstaged; i++)
	{
		const StagedEdit *staged = &ws->staged[i];

		if (!staged->resize && staged->row >= part->row0 && staged->row <= part->row1 && staged->col >= part->col0 &&
			staged->col <= part->col1)
			writer_add_place(list, first.row + (staged->row - part->row0), first.col + (staged->col - part->col0));
	}
}

static uint32
writer_run(const Axes *axes, AxesLine line, uint32 from, uint32 last, uint32 *place)
{
	Axis axis = axes_axis(axes, line);

	return Min(axis_run_at(&axis, from, place), last - from + 1);
}

static void
writer_add_all_staged(const WriterSheet *ws, const GridRect *rect, CellPlaces *list)
{
	GridRect part;
	uint32 rows, cols;

	for (uint32 row = rect->row0; ws->nstaged > 0 && row <= rect->row1; row += rows)
	{
		rows = writer_run(ws->axes, AXES_ROW, row, rect->row1, &part.row0);
		part.row1 = part.row0 + rows - 1;
		CHECK_FOR_INTERRUPTS(); /* many edits times many runs */
		for (uint32 col = rect->col0; col <= rect->col1; col += cols)
		{
			cols = writer_run(ws->axes, AXES_COL, col, rect->col1, &part.col0);
			part.col1 = part.col0 + cols - 1;
			writer_add_staged(ws, &part, (WriterPlace){row, col}, list);
		}
	}
}

#define WRITER_LIST_TILES 256 /* loaded at once */
#define WRITER_LIST_LOADS 10  /* so many more than are needed when nothing goes in between */

typedef enum WriterListed
{
	WRITER_LISTED,
	WRITER_LIST_AGAIN,
	WRITER_LIST_PRIVATELY
} WriterListed;

/* From the shared grid, when it has, or can load, the tiles. */
static WriterListed
writer_list_shared(WriterSheet *ws, const GridRect *rect, CellPlaces *list, uint32 *missing)
{
	CacheEntry *entry = ws->entry;
	GridTileNo tiles[WRITER_LIST_TILES];
	LoadResult loaded;
	bool there;

	*missing = 0;
	LWLockAcquire(&entry->lock, LW_SHARED);
	there = entry->grid != NULL;
	if (there)
		*missing = grid_list_nonresident(entry->grid, ws->axes, rect, tiles, WRITER_LIST_TILES);
	if (there && *missing == 0)
		writer_add_cells(entry->grid, ws->axes, rect, list);
	LWLockRelease(&entry->lock);
	if (there && *missing == 0)
		return WRITER_LISTED;
	if (!there || !writer_may_load(ws))
		return WRITER_LIST_PRIVATELY;
	loaded = load_tiles(ws->sheet_id, entry, tiles, Min(*missing, WRITER_LIST_TILES));
	return loaded == LOAD_DONE || loaded == LOAD_BUSY ? WRITER_LIST_AGAIN : WRITER_LIST_PRIVATELY;
}

static bool
writer_list_through_cache(WriterSheet *ws, const GridRect *rect, CellPlaces *list)
{
	WriterListed listed = WRITER_LIST_AGAIN;
	uint32 missing, tries = 0, most = 1;

	if (ws->entry == NULL || ws->base != NULL)
		return false;
	for (; listed == WRITER_LIST_AGAIN && tries < most; tries++)
	{
		listed = writer_list_shared(ws, rect, list, &missing);
		if (tries == 0)
			most = missing / WRITER_LIST_TILES + WRITER_LIST_LOADS;
	}
	return listed == WRITER_LISTED;
}

/* From storage, where own changes are. */
static void
writer_list_private(WriterSheet *ws, const GridRect *rect, CellPlaces *list)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet cells", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GridAllocator allocator = journal_context_allocator();
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	Grid *grid = NULL;
	int64 seq;

	if (!replay_sheet(ws->sheet_id, snapshot, &allocator, &grid, &seq))
		elog(ERROR, "out of memory");
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	writer_add_cells(grid, grid_axes(grid), rect, list);
	MemoryContextDelete(context);
}

static int
writer_compare_places(const void *a, const void *b)
{
	const WriterPlace *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->col < y->col ? -1 : x->col > y->col;
}

WriterPlace *
writer_list_cells(WriterSheet *ws, const GridRect *rect, bool exact, Size *count)
{
	CellPlaces list = {0};
	Size kept = 0;

	if ((!exact || ws->nstaged == 0) && writer_list_through_cache(ws, rect, &list))
		writer_add_all_staged(ws, rect, &list);
	else
		writer_list_private(ws, rect, &list);
	if (list.count > 1)
		qsort(list.places, list.count, sizeof(WriterPlace), writer_compare_places);
	for (Size i = 0; i < list.count; i++)
		if (i == 0 || writer_compare_places(&list.places[i], &list.places[kept - 1]) != 0)
			list.places[kept++] = list.places[i];
	*count = kept;
	return list.places;
}
