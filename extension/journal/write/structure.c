/*
 * structure.c - inserting and deleting rows and columns.
 *
 * No cell is moved; only the row map or column map changes. Cells that a deletion removes are emptied first, by edits
 * that store the previous contents: so the log shows who removed what, old versions and rollbacks need nothing else,
 * and the rows that the map puts after all others are empty, as they must be. All of it is one transaction.
 *
 * The maps are the transaction's own until the commit. Then a copy replaces those of the shared grid, where room for it
 * is reserved. Staged edits have physical rows and columns, which do not change.
 */
#include "postgres.h"

#include "journal/journal.h"
#include "journal/replay/load.h"
#include "journal/replay/replay.h"
#include "journal/write/base.h"
#include "journal/write/staging.h"
#include "journal/write/structure.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* ---- changing the maps ---- */

static void
structure_check_runs(const LineMaps *maps, bool rows)
{
	const char *what = rows ? "rows" : "columns";

	if (line_maps_one(maps, rows ? LINE_ROW : LINE_COL).count > LINE_MAPS_MAX_RUNS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("%s have been inserted or deleted in too many places of the sheet", what),
						errdetail("Its %s would lie in more than %d pieces.", what, LINE_MAPS_MAX_RUNS),
						errhint("Copy the sheet to a new one, with sheet.export_csv() and sheet.import_csv().")));
}

/* Reserves room in the shared grid, so that publishing the maps cannot fail. The entry names the transaction, so the
 * grid stays. */
static void
structure_reserve(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;
	bool done = entry == NULL || entry->grid == NULL || ws->maps == NULL || ws->drop_grid;

	while (!done)
	{
		GridAllocator allocator = cache_allocator(entry);

		cache_lock_change(entry);
		done = grid_reserve_maps(&allocator, entry->grid, ws->maps);
		ws->pins = true;
		LWLockRelease(&entry->lock);
		if (!done && !cache_evict(entry, line_maps_bytes(ws->maps)))
			done = ws->drop_grid = true;
	}
}

void
structure_change_maps(WriterSheet *ws, const Edit *edit)
{
	MemoryContext old = MemoryContextSwitchTo(writer_grid_context(ws));
	GridAllocator allocator = journal_context_allocator();
	SubTransactionId subid = GetCurrentSubTransactionId();
	uint32 *extent = edit_is_of_rows(edit->kind) ? &ws->meta.rows : &ws->meta.cols;
	LineChange change;
	LineMaps *maps;

	Assert(ws->line_maps_known && writer_has_changes(ws));
	(void) line_change_of(edit, &change);									/* it was checked */
	(void) line_maps_change(&allocator, ws->maps, &change, *extent, &maps); /* this allocator raises an error */
	MemoryContextSwitchTo(old);
	structure_check_runs(maps, change.rows);
	/* Maps that the same subtransaction has made are not a state that a rollback restores. */
	if (ws->line_maps_subid == subid)
		line_maps_free(&allocator, ws->maps);
	ws->maps = maps;
	ws->line_maps_subid = subid;
	structure_reserve(ws);
	*extent = extent_after(&change, *extent);
}

/* ---- the cells of a logical rectangle ---- */

typedef struct StructureCells
{
	StructureCell *cells;
	Size count, size;
} StructureCells;

static void
structure_add_cell(StructureCells *list, uint32 row, uint32 col)
{
	if (list->count == list->size)
	{
		list->size = Max(list->size * 2, 256);
		list->cells = list->cells == NULL ? palloc(sizeof(StructureCell) * list->size)
										  : repalloc_huge(list->cells, sizeof(StructureCell) * list->size);
	}
	list->cells[list->count++] = (StructureCell){row, col};
}

static void
structure_add_cells(const Grid *grid, const LineMaps *maps, const GridRect *rect, StructureCells *list)
{
	GridScan scan;
	GridCell cell;

	grid_view_init(&scan, grid, maps, rect->row0, rect->col0, rect->row1, rect->col1);
	while (grid_scan_next(&scan, &cell))
		structure_add_cell(list, cell.row, cell.col);
}

/* Staged edits within a physical rectangle whose first cell is at the given logical row and column. */
static void
structure_add_staged_part(const WriterSheet *ws, const GridRect *part, uint32 row, uint32 col, StructureCells *list)
{
	for (uint32 i = 0; i < ws->nstaged; i++)
	{
		const StagedEdit *staged = &ws->staged[i];

		if (!staged->resize && staged->row >= part->row0 && staged->row <= part->row1 && staged->col >= part->col0 &&
			staged->col <= part->col1)
			structure_add_cell(list, row + (staged->row - part->row0), col + (staged->col - part->col0));
	}
}

static void
structure_add_staged(const WriterSheet *ws, const GridRect *rect, StructureCells *list)
{
	GridRect part;
	uint32 rows, cols;

	for (uint32 row = rect->row0; ws->nstaged > 0 && row <= rect->row1; row += rows)
	{
		rows = line_maps_run_at(ws->maps, LINE_ROW, row, rect->row1, &part.row0);
		part.row1 = part.row0 + rows - 1;
		CHECK_FOR_INTERRUPTS(); /* many edits times many runs */
		for (uint32 col = rect->col0; col <= rect->col1; col += cols)
		{
			cols = line_maps_run_at(ws->maps, LINE_COL, col, rect->col1, &part.col0);
			part.col1 = part.col0 + cols - 1;
			structure_add_staged_part(ws, &part, row, col, list);
		}
	}
}

#define STRUCTURE_TILES 256 /* non-resident tiles that are loaded at once */
#define STRUCTURE_LOADS 10	/* loads whose tiles may be evicted again before they are read */

/* Lists cells of the shared grid if its tiles are resident or can be loaded; false otherwise. */
static bool
structure_list_shared(WriterSheet *ws, const GridRect *rect, StructureCells *list)
{
	CacheEntry *entry = ws->entry;
	GridTileNo tiles[STRUCTURE_TILES];
	uint32 absent = 0, most = 1;
	bool there = entry != NULL && ws->base == NULL;

	for (uint32 tries = 0; there && tries < most; tries++)
	{
		LoadResult loaded;

		LWLockAcquire(&entry->lock, LW_SHARED);
		there = entry->grid != NULL;
		if (there)
			absent = grid_list_nonresident(entry->grid, ws->maps, rect, tiles, STRUCTURE_TILES);
		if (there && absent == 0)
			structure_add_cells(entry->grid, ws->maps, rect, list);
		LWLockRelease(&entry->lock);
		if (!there || absent == 0)
			return there;
		if (!base_may_load(ws))
			return false;
		loaded = load_tiles(ws->sheet_id, entry, tiles, Min(absent, STRUCTURE_TILES));
		there = loaded == LOAD_DONE || loaded == LOAD_BUSY;
		if (tries == 0)
			most = absent / STRUCTURE_TILES + STRUCTURE_LOADS;
	}
	return false;
}

/* From storage, which has own changes, too. */
static void
structure_list_private(WriterSheet *ws, const GridRect *rect, StructureCells *list)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet cells", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	int64 seq;
	Grid *grid = replay_sheet_privately(ws->sheet_id, snapshot, &seq);

	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	structure_add_cells(grid, grid_maps(grid), rect, list);
	MemoryContextDelete(context);
}

static int
structure_compare_cells(const void *a, const void *b)
{
	const StructureCell *x = a, *y = b;

	return grid_compare_cells(x->row, x->col, y->row, y->col);
}

/* The cells with content or style at present, each once. Unless `exact`, cells that own changes have emptied may be
 * among them. */
static StructureCell *
structure_list_cells(WriterSheet *ws, const GridRect *rect, bool exact, Size *count)
{
	StructureCells list = {0};
	Size n = 0;

	if ((!exact || ws->nstaged == 0) && structure_list_shared(ws, rect, &list))
		structure_add_staged(ws, rect, &list);
	else
		structure_list_private(ws, rect, &list);
	if (list.count > 1)
		qsort(list.cells, list.count, sizeof(StructureCell), structure_compare_cells);
	for (Size i = 0; i < list.count; i++)
		if (i == 0 || structure_compare_cells(&list.cells[i], &list.cells[n - 1]) != 0)
			list.cells[n++] = list.cells[i];
	*count = n;
	return list.cells;
}

/* ---- a structure edit ---- */

static GridRect
structure_lines(bool rows, uint32 first, uint32 n)
{
	if (rows)
		return (GridRect){first, 0, first + n - 1, SHEET_MAX_COLS - 1};
	return (GridRect){0, first, SHEET_MAX_ROWS - 1, first + n - 1};
}

/* Rows or columns that an insertion moves beyond the end of sheets must be empty. */
static void
structure_check_end(WriterSheet *ws, const LineChange *change, uint32 extent)
{
	uint32 limit = line_limit(change->rows);
	GridRect rect = structure_lines(change->rows, limit - change->n, change->n);
	StructureCell *cells;
	Size count;

	if (extent <= limit - change->n)
		return;
	cells = structure_list_cells(ws, &rect, true, &count);
	if (count > 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("there is no room for %u more %s", change->n, change->rows ? "rows" : "columns"),
			 errdetail(
				 "Row %u, column %u holds something and would be pushed beyond the end; a sheet has at most %d rows "
				 "and %d columns.",
				 cells[0].row, cells[0].col, SHEET_MAX_ROWS, SHEET_MAX_COLS),
			 errhint("Delete rows or columns at the end first.")));
}

bool
structure_begin(WriterSheet *ws, const Edit *edit, Structure *structure)
{
	LineChange *change = &structure->change;
	uint32 extent;
	GridRect rect;

	memset(structure, 0, sizeof(*structure));
	(void) base_find_tiles(ws, NULL, 0, NULL); /* the extent and the maps */
	(void) line_change_of(edit, change);	   /* it was checked */
	extent = change->rows ? ws->meta.rows : ws->meta.cols;
	if (change->insert)
		structure_check_end(ws, change, extent);
	else if (change->at >= extent)
		return false;
	else
	{
		change->n = Min(change->n, extent - change->at);
		rect = structure_lines(change->rows, change->at, change->n);
		structure->cells = structure_list_cells(ws, &rect, false, &structure->count);
	}
	structure->uid = edit->uid;
	structure->edit = line_change_edit(change, edit->uid, structure->text);
	return true;
}

uint32
structure_empty_cells(Structure *structure, Edit *edits, uint32 most)
{
	uint32 n = 0;

	for (; n < most && structure->done < structure->count; n++)
	{
		const StructureCell *cell = &structure->cells[structure->done++];

		edits[n] = (Edit){.kind = EDIT_SET,
						  .uid = structure->uid,
						  .row = cell->row,
						  .col = cell->col,
						  .content = {"", 0},
						  .style = {"", 0}};
	}
	return n;
}
