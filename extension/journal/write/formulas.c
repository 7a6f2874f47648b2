/*
 * formulas.c - rewrites the formulas of a sheet after rows or columns were inserted or deleted in it or in another tab
 * of its book, or a tab was renamed (tab_references.c).
 *
 * The rewritten contents are edits of the log like others, in the transaction of the change and directly behind it. So
 * replay, versions, rollback and followers need to know nothing of formulas.
 *
 * Only tiles that may have formulas are read (grid_next_formulas). Those that are non-resident are loaded, some at a
 * time, after which it is known whether they have any; so the first structure edit of a sheet that was just opened
 * reads all of its tiles. Own edits of the transaction replace what the shared grid has. Without room in the cache, the
 * sheet is read from storage.
 */
#include "postgres.h"

#include "journal/journal.h"
#include "journal/replay/load.h"
#include "journal/replay/replay.h"
#include "journal/write/base.h"
#include "journal/write/formulas.h"
#include "journal/write/staging.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define FORMULAS_TILES 256 /* read under the entry's lock, or loaded, at once */
#define FORMULAS_LOADS 10  /* of the same tile, which may be evicted again before it is read */

/* ---- collecting ---- */

/* Adds the cell, at its physical row and column, if the formula changes. One that becomes too long has no content. */
static void
formulas_add(Formulas *formulas, uint32 row, uint32 col, EditText content)
{
	FormulaShift shift = FORMULA_SAME;
	EditText now = content;
	char *copy = NULL;

	for (int i = 0; i < 2 && formulas->texts[i] == NULL; i++)
		formulas->texts[i] = palloc(SHEET_MAX_CONTENT_BYTES);
	for (uint32 i = 0; i < Max(formulas->nchanges, 1) && shift != FORMULA_TOO_LONG; i++)
	{
		char *to = formulas->texts[now.data == formulas->texts[0]]; /* not the one that is read */
		uint32 len;

		formulas->change.move_arg = &formulas->changes[i];
		shift = formula_shift(now, &formulas->change, to, &len);
		if (shift == FORMULA_SHIFTED)
			now = (EditText){to, len};
	}
	if (now.data == content.data && shift != FORMULA_TOO_LONG)
		return;
	if (formulas->count == formulas->size)
	{
		formulas->size = Max(formulas->size * 2, 256);
		formulas->cells = formulas->cells == NULL
							  ? palloc(sizeof(FormulaCell) * formulas->size)
							  : repalloc_huge(formulas->cells, sizeof(FormulaCell) * formulas->size);
	}
	if (shift != FORMULA_TOO_LONG)
		copy = memcpy(MemoryContextAlloc(CurTransactionContext, now.len), now.data, now.len);
	formulas->cells[formulas->count++] = (FormulaCell){row, col, {copy, now.len}};
}

/* own: own edits of the transaction replace the grid's contents, and are collected elsewhere. */
static void
formulas_scan_tile(Formulas *formulas, const Grid *grid, GridTileNo no, bool own)
{
	uint32 row = no.row * GRID_TILE_ROWS, col = no.col * GRID_TILE_COLS;
	GridScan scan;
	GridCell cell;
	EditText newer;

	grid_scan_init(&scan, grid, row, col, row + GRID_TILE_ROWS - 1, col + GRID_TILE_COLS - 1);
	while (grid_scan_next(&scan, &cell))
		if (grid_is_formula(cell.content, cell.content_len) &&
			!(own && staging_find_content(formulas->ws, cell.row, cell.col, &newer)))
			formulas_add(formulas, cell.row, cell.col, (EditText){cell.content, cell.content_len});
}

/* Reads resident tiles from *next on, up to one that is not; then lists that and others. Returns false at the end. */
static bool
formulas_scan_some(Formulas *formulas, const Grid *grid, bool own, GridTileNo *next, GridTileNo *missing,
				   uint32 *nmissing)
{
	GridTileNo no;
	bool resident;

	*nmissing = 0;
	for (uint32 i = 0; i < FORMULAS_TILES; i++)
	{
		if (!grid_next_formulas(grid, next, &resident))
			return false;
		if (!resident)
			break;
		formulas_scan_tile(formulas, grid, *next, own);
		next->col++;
	}
	for (no = *next; *nmissing < FORMULAS_TILES && grid_next_formulas(grid, &no, &resident); no.col++)
		if (!resident)
			missing[(*nmissing)++] = no;
	return true;
}

/* Returns false if the shared grid cannot be used. */
static bool
formulas_scan_shared(Formulas *formulas)
{
	WriterSheet *ws = formulas->ws;
	CacheEntry *entry = ws->entry;
	GridTileNo next = {0, 0}, last = {0, 0}, missing[FORMULAS_TILES];
	uint32 nmissing, loads = 0;
	bool more = true;

	if (entry == NULL || ws->base != NULL)
		return false;
	while (more)
	{
		LoadResult loaded;
		bool there;

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&entry->lock, LW_SHARED);
		there = entry->grid != NULL;
		if (there)
			more = formulas_scan_some(formulas, entry->grid, true, &next, missing, &nmissing);
		LWLockRelease(&entry->lock);
		if (!there)
			return false;
		if (!more || nmissing == 0)
			continue;
		loads = missing[0].row == last.row && missing[0].col == last.col ? loads + 1 : 0;
		last = missing[0];
		if (loads >= FORMULAS_LOADS || !base_may_load(ws))
			return false;
		loaded = load_tiles(ws->sheet_id, entry, missing, nmissing);
		if (loaded != LOAD_DONE && loaded != LOAD_BUSY)
			return false;
	}
	return true;
}

/* Formulas that the transaction itself has set. */
static void
formulas_scan_own(Formulas *formulas)
{
	WriterSheet *ws = formulas->ws;
	EditText newest;

	for (uint32 i = 0; i < ws->nstaged; i++)
	{
		const StagedEdit *staged = &ws->staged[i];

		if (!staged->resize && formula_is(staged->content) &&
			staging_find_content(ws, staged->row, staged->col, &newest) && newest.data == staged->content.data)
			formulas_add(formulas, staged->row, staged->col, newest);
	}
}

/* From storage, which has own edits, too. */
static void
formulas_scan_private(Formulas *formulas)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet formulas", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Snapshot snapshot = RegisterSnapshot(writer_snapshot());
	GridTileNo next = {0, 0}, none[FORMULAS_TILES];
	uint32 nnone;
	int64 seq;
	Grid *grid = replay_sheet_privately(formulas->ws->sheet_id, snapshot, &seq);

	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	while (formulas_scan_some(formulas, grid, false, &next, none, &nnone))
		CHECK_FOR_INTERRUPTS();
	MemoryContextDelete(context);
}

/* ---- from physical to logical rows and columns ---- */

/* The runs of a map by their physical lines; NULL: the identity. */
static LineMapRun *
formulas_invert(const LineMap *map)
{
	LineMapRun *runs;

	if (map->count == 0)
		return NULL;
	runs = palloc(sizeof(LineMapRun) * map->count);
	memcpy(runs, map->runs, sizeof(LineMapRun) * map->count);
	qsort(runs, map->count, sizeof(LineMapRun), line_map_compare_places);
	return runs;
}

static uint32
formulas_line(const LineMapRun *runs, uint32 count, uint32 physical)
{
	uint32 low = 0;

	if (runs == NULL)
		return physical;
	while (count > 1)
	{
		uint32 half = count / 2;

		low += runs[low + half].place <= physical ? half : 0;
		count -= half;
	}
	return runs[low].start + (physical - runs[low].place);
}

static int
formulas_compare_cells(const void *a, const void *b)
{
	const FormulaCell *x = a, *y = b;

	return grid_compare_cells(x->row, x->col, y->row, y->col);
}

/* The author may not see other tabs: then only the server's log says where the formula is. */
static void
formulas_refuse(const Formulas *formulas, const FormulaCell *cell)
{
	char *where = psprintf("The one that comes to row %u, column %u of sheet " INT64_FORMAT
						   " would have more than %d characters when its references are rewritten.",
						   cell->row, cell->col, formulas->ws->sheet_id, SHEET_MAX_CHARS);

	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("a formula would become too long"),
			 formulas->change.own ? errdetail("%s", where)
								  : errdetail("One in a tab that refers to this one would have more than %d characters "
											  "when its references are rewritten.",
											  SHEET_MAX_CHARS),
			 formulas->change.own ? 0 : errdetail_log("%s", where), errhint("Shorten the formula first.")));
}

static void
formulas_place(Formulas *formulas)
{
	LineMap rows = line_maps_one(formulas->ws->maps, LINE_ROW), cols = line_maps_one(formulas->ws->maps, LINE_COL);
	LineMapRun *row_runs = formulas_invert(&rows), *col_runs = formulas_invert(&cols);

	for (Size i = 0; i < formulas->count; i++)
	{
		FormulaCell *cell = &formulas->cells[i];

		cell->row = formulas_line(row_runs, rows.count, cell->row);
		cell->col = formulas_line(col_runs, cols.count, cell->col);
		if (cell->content.data == NULL)
			formulas_refuse(formulas, cell);
	}
	qsort(formulas->cells, formulas->count, sizeof(FormulaCell), formulas_compare_cells);
}

/* ---- the edits ---- */

void
formulas_begin(WriterSheet *ws, const FormulaChange *change, const LineChange *changes, uint32 nchanges,
			   Formulas *formulas)
{
	*formulas = (Formulas){.ws = ws, .change = *change, .changes = changes, .nchanges = nchanges};
	if (nchanges > 0)
		formulas->change.move = formula_move_lines;
	if (formulas_scan_shared(formulas))
		formulas_scan_own(formulas);
	else
	{
		formulas->count = 0;
		formulas_scan_private(formulas);
	}
	if (formulas->count > 0)
		formulas_place(formulas);
}

uint32
formulas_next(Formulas *formulas, uint64 uid, Edit *edits, uint32 most)
{
	uint32 n = 0;

	for (; n < most && formulas->done < formulas->count; n++)
	{
		const FormulaCell *cell = &formulas->cells[formulas->done++];

		edits[n] = (Edit){.kind = EDIT_SET, .uid = uid, .row = cell->row, .col = cell->col, .content = cell->content};
	}
	return n;
}
