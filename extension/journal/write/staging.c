/*
 * staging.c - the edits of the transaction until the commit: looking up their cells, and reserving room for them.
 *
 * Staged edits are indexed by a hash of their cells, so that later edits see them. The index is built when it is first
 * needed, since most transactions edit one cell, and others set their cells in reading order, each once.
 */
#include "postgres.h"

#include "journal/write/staging.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* ---- looking up ---- */

/*
 * Blocks of 8 x 8 cells are hashed, by the finalizer of MurmurHash3 (public domain, Austin Appleby), and the cells of a
 * block are neighbours. So edits of whole rows, as of imports, find what they need in the processor's cache.
 */
static inline uint32 *
staging_newest_of(WriterSheet *ws, uint32 row, uint32 col)
{
	uint64 hash = (uint64) (row >> 3) << 32 | col >> 3;

	hash ^= hash >> 33;
	hash *= UINT64CONST(0xff51afd7ed558ccd);
	hash ^= hash >> 33;
	return &ws->newest[(hash + ((row & 7) << 3 | (col & 7))) & (ws->newest_size - 1)];
}

static void
staging_build_index(WriterSheet *ws)
{
	ws->newest_size = pg_nextpower2_32(Max(ws->staged_size, 16) * 2);
	ws->newest = MemoryContextAllocHuge(GetMemoryChunkContext(ws), sizeof(uint32) * ws->newest_size);
	memset(ws->newest, 0xFF, sizeof(uint32) * ws->newest_size);
	for (uint32 i = 0; i < ws->nstaged; i++)
	{
		StagedEdit *staged = &ws->staged[i];
		uint32 *newest;

		if (staged->resize)
			continue;
		newest = staging_newest_of(ws, staged->row, staged->col);
		staged->before = *newest;
		*newest = i;
	}
}

/* Replaces the cell's content and style by those of the newest staged edits of it. */
static void
staging_add_own(const WriterSheet *ws, const Edit *edit, StagingCell *cell)
{
	bool content = false, style = false;

	for (uint32 at = *cell->newest; at != STAGING_NONE && !(content && style); at = ws->staged[at].before)
	{
		const StagedEdit *staged = &ws->staged[at];

		if (staged->row != edit->row || staged->col != edit->col)
			continue;
		if (!content && staged->content.data != NULL)
			cell->content = staged->content;
		if (!style && staged->style.data != NULL)
			cell->style = staged->style;
		content |= staged->content.data != NULL;
		style |= staged->style.data != NULL;
	}
}

/* Whether the cell comes behind all that have been edited. */
static bool
staging_is_behind(const WriterSheet *ws, const Edit *edit)
{
	const StagedEdit *last;

	if (ws->nstaged == 0)
		return true;
	last = &ws->staged[ws->nstaged - 1];
	return ws->ascending && (edit->row > last->row || (edit->row == last->row && edit->col > last->col));
}

void
staging_lookup(WriterSheet *ws, const Edit *edit, GridTile *tile, bool indexed, StagingCell *cell)
{
	GridCell base;

	(void) grid_tile_get(tile, edit->row, edit->col, &base);
	cell->tile = tile;
	cell->content = (EditText){base.content, base.content_len};
	cell->style = (EditText){base.style, base.style_len};
	cell->newest = NULL;
	if (!indexed || (ws->newest == NULL && staging_is_behind(ws, edit)))
		return;
	if (ws->newest == NULL)
		staging_build_index(ws);
	cell->newest = staging_newest_of(ws, edit->row, edit->col);
	staging_add_own(ws, edit, cell);
}

bool
staging_find_content(WriterSheet *ws, uint32 row, uint32 col, EditText *content)
{
	if (ws->nstaged == 0)
		return false;
	if (ws->newest == NULL)
		staging_build_index(ws);
	for (uint32 at = *staging_newest_of(ws, row, col); at != STAGING_NONE; at = ws->staged[at].before)
	{
		const StagedEdit *staged = &ws->staged[at];

		if (staged->row != row || staged->col != col || staged->content.data == NULL)
			continue;
		*content = staged->content;
		return true;
	}
	return false;
}

/* ---- staging ---- */

void
staging_drop_index(WriterSheet *ws)
{
	if (ws->newest != NULL)
		pfree(ws->newest);
	ws->newest = NULL;
}

/* From the newest on, so that each bucket of the index gets its previous value back. */
void
staging_undo(WriterSheet *ws, uint32 from)
{
	while (ws->nstaged > from)
	{
		const StagedEdit *staged = &ws->staged[--ws->nstaged];

		if (ws->newest != NULL && !staged->resize)
			*staging_newest_of(ws, staged->row, staged->col) = staged->before;
	}
}

/* Edits of more memory than this are in a context that can grow without copying. */
#define STAGING_SMALL (256 * 1024)

static void
staging_grow_to(WriterSheet *ws, uint32 size)
{
	Size bytes = sizeof(StagedEdit) * size;
	StagedEdit *staged = ws->staged;

	if (staged != NULL && ws->staged_context != NULL)
	{
		ws->staged = repalloc_huge(staged, bytes);
		return;
	}
	if (bytes > STAGING_SMALL)
		ws->staged_context = AllocSetContextCreate(writer_context, "pg_sheet staged edits", ALLOCSET_DEFAULT_SIZES);
	ws->staged = MemoryContextAllocHuge(ws->staged_context != NULL ? ws->staged_context : writer_context, bytes);
	if (staged != NULL)
	{
		memcpy(ws->staged, staged, sizeof(StagedEdit) * ws->nstaged);
		pfree(staged);
	}
}

void
staging_expect(WriterSheet *ws, uint32 n)
{
	uint64 wanted = (uint64) ws->nstaged + n;

	if (wanted <= ws->staged_size)
		return;
	if (wanted >= STAGING_NONE / 2)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many edits in one transaction"),
						errhint("Commit more often.")));
	if (ws->staged_size > 0)
		wanted = Max(wanted, (uint64) ws->staged_size * 2);
	staging_grow_to(ws, (uint32) wanted);
	ws->staged_size = (uint32) wanted;
	staging_drop_index(ws); /* its size depends on staged_size */
}

/* Reserves room where the tile must grow; false if there is none. An edit of a non-resident tile needs no room: the
 * tile will be loaded with it. */
static bool
staging_grow(WriterSheet *ws, StagedEdit *staged)
{
	CacheEntry *entry = ws->entry;
	GridAllocator allocator = cache_allocator(entry);
	bool done;

	cache_lock_change(entry);
	staged->tile =
		grid_reserve(&allocator, entry->grid, staged->row, staged->col, staged->content.len, staged->style.len);
	done = staged->tile != NULL || grid_is_nonresident(entry->grid, staged->row, staged->col);
	LWLockRelease(&entry->lock);
	return done;
}

/*
 * Reserves room in the shared grid, so that publishing cannot fail. Mostly the tile has the room: then the entry's lock
 * is not needed. `tile` is that of the state before own changes, which is mostly the shared grid.
 */
static void
staging_reserve(WriterSheet *ws, StagedEdit *staged, GridTile *tile)
{
	CacheEntry *entry = ws->entry;

	if (entry == NULL || entry->grid == NULL || ws->drop_grid)
		return;
	staged->tile = tile;
	if (tile != NULL && ws->base == NULL &&
		grid_tile_reserve(entry->grid, tile, staged->content.len, staged->style.len))
		return;
	while (!staging_grow(ws, staged))
	{
		/* The entry's lock is free here, so this may wait for tiles that others have locked. */
		if (cache_evict(entry, Max(staged->content.len + staged->style.len, 1)))
			continue;
		ws->drop_grid = true;
		return;
	}
}

void
staging_add(WriterSheet *ws, const Edit *edit, const StagingCell *cell)
{
	StagedEdit *staged = &ws->staged[ws->nstaged];

	Assert(ws->nstaged < ws->staged_size && writer_has_changes(ws));
	staged->tile = NULL;
	staged->row = edit->row;
	staged->col = edit->col;
	staged->before = STAGING_NONE;
	staged->resize = edit_is_of_extent(edit->kind);
	ws->ascending = !staged->resize && staging_is_behind(ws, edit);
	staged->content = edit->kind == EDIT_STYLE ? (EditText){NULL, 0} : edit->content;
	staged->style = edit->style;
	if (cell != NULL)
	{
		staging_reserve(ws, staged, cell->tile);
		if (cell->newest != NULL)
		{
			staged->before = *cell->newest;
			*cell->newest = ws->nstaged;
		}
	}
	ws->nstaged++;
}
