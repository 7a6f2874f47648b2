/*
 * writer_cells.c - the cells that the current transaction edits: looked up, staged, and room for them reserved.
 *
 * An edit passes here once: the tile of its cell is found, what the cell holds now is compared by the caller, and the
 * edit is staged with its tile. Staged edits are noted by the hash of their cells, so that later edits see them; the
 * table is built when it is first needed, since most transactions edit one cell.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "utils/memutils.h"
#include "journal/write/writer.h"

/* ---- looking up ---- */

/* The finalizer of MurmurHash3 (public domain, Austin Appleby). */
static inline uint32 *
writer_newest_of(WriterSheet *ws, uint32 row, uint32 col)
{
	uint64 hash = (uint64) row << 32 | col;

	hash ^= hash >> 33;
	hash *= UINT64CONST(0xff51afd7ed558ccd);
	hash ^= hash >> 33;
	return &ws->newest[hash & (ws->newest_size - 1)];
}

/* With own changes of earlier calls, when this call is the first to ask. */
static void
writer_note_staged(WriterSheet *ws)
{
	ws->newest_size = pg_nextpower2_32(Max(ws->staged_room, 16) * 2);
	ws->newest = MemoryContextAllocHuge(writer_context, sizeof(uint32) * ws->newest_size);
	memset(ws->newest, 0xFF, sizeof(uint32) * ws->newest_size);
	for (uint32 i = 0; i < ws->nstaged; i++)
	{
		StagedEdit *staged = &ws->staged[i];
		uint32 *newest;

		if (staged->resize)
			continue;
		newest = writer_newest_of(ws, staged->row, staged->col);
		staged->before = *newest;
		*newest = i;
	}
}

/* What own edits have left in the cell takes the place of what was there before. */
static void
writer_add_own(const WriterSheet *ws, const Edit *edit, WriterCell *cell)
{
	bool content = false, style = false;

	for (uint32 at = *cell->newest; at != WRITER_NONE && !(content && style); at = ws->staged[at].before)
	{
		const StagedEdit *staged = &ws->staged[at];

		if (staged->row != edit->row || staged->col != edit->col)
			continue;
		if (!content && staged->content.data != NULL)
		{
			cell->content = staged->content;
			cell->readable = staged->padded ? WRITER_PAD : 0;
		}
		if (!style && staged->style.data != NULL)
			cell->style = staged->style;
		content |= staged->content.data != NULL;
		style |= staged->style.data != NULL;
	}
}

void
writer_lookup(WriterSheet *ws, const Edit *edit, GridTile *tile, bool note, WriterCell *cell)
{
	GridCell held;

	(void) grid_get_there(tile, edit->row, edit->col, &held);
	cell->tile = tile;
	cell->content = (EditText){held.content, held.content_len};
	cell->readable = held.readable;
	cell->style = (EditText){held.style, held.style_len};
	cell->newest = NULL;
	if (!note)
		return;
	if (ws->newest == NULL)
		writer_note_staged(ws);
	cell->newest = writer_newest_of(ws, edit->row, edit->col);
	writer_add_own(ws, edit, cell);
}

/* ---- staging ---- */

/* The newest first, so that what was the newest before each of them is so again. Edits of the size are not noted. */
void
writer_take_back(WriterSheet *ws, uint32 from)
{
	while (ws->nstaged > from)
	{
		const StagedEdit *staged = &ws->staged[--ws->nstaged];

		if (ws->newest != NULL && !staged->resize)
			*writer_newest_of(ws, staged->row, staged->col) = staged->before;
	}
}

void
writer_forget_staged(WriterSheet *ws)
{
	if (ws->newest != NULL)
		pfree(ws->newest);
	ws->newest = NULL;
}

void
writer_expect(WriterSheet *ws, uint32 n)
{
	uint64 wanted = (uint64) ws->nstaged + n;

	if (wanted <= ws->staged_room)
		return;
	if (wanted >= WRITER_NONE / 2)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many edits in one transaction"),
						errhint("Commit more often.")));
	if (ws->staged_room > 0)
		wanted = Max(wanted, (uint64) ws->staged_room * 2);
	ws->staged = ws->staged == NULL ? MemoryContextAllocHuge(writer_context, sizeof(StagedEdit) * wanted)
									: repalloc_huge(ws->staged, sizeof(StagedEdit) * wanted);
	ws->staged_room = (uint32) wanted;
	writer_forget_staged(ws); /* the table grows with it */
}

/* Room for the edit where the tile must grow; false when there is none. What is missing need not be set: it is as it
 * will be when it is loaded. */
static bool
writer_grow(WriterSheet *ws, StagedEdit *staged)
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
 * Room for the edit in the shared grid, so that setting it cannot fail. Mostly the tile has the room: then readers are
 * not disturbed. `tile` is that of the state before own changes, which is mostly the shared grid.
 */
static void
writer_reserve(WriterSheet *ws, StagedEdit *staged, GridTile *tile)
{
	CacheEntry *entry = ws->entry;

	if (entry == NULL || entry->grid == NULL || ws->drop_grid)
		return;
	staged->tile = tile;
	if (tile != NULL && ws->base == NULL &&
		grid_reserve_there(entry->grid, tile, staged->content.len, staged->style.len))
		return;
	while (!writer_grow(ws, staged))
	{
		/* Others' tiles may have been locked; now they can be waited for. */
		if (cache_evict(entry, Max(staged->content.len + staged->style.len, 1)))
			continue;
		ws->drop_grid = true;
		return;
	}
}

void
writer_stage(WriterSheet *ws, const Edit *edit, bool padded, const WriterCell *cell)
{
	StagedEdit *staged = &ws->staged[ws->nstaged];

	Assert(ws->nstaged < ws->staged_room && writer_has_changes(ws));
	staged->tile = NULL;
	staged->row = edit->row;
	staged->col = edit->col;
	staged->before = WRITER_NONE;
	staged->resize = edit->kind == EDIT_RESIZE;
	staged->padded = padded;
	staged->content = edit->kind == EDIT_STYLE ? (EditText){NULL, 0} : edit->content;
	staged->style = edit->style;
	if (cell != NULL)
	{
		writer_reserve(ws, staged, cell->tile);
		if (cell->newest != NULL)
		{
			staged->before = *cell->newest;
			*cell->newest = ws->nstaged;
		}
	}
	ws->nstaged++;
}
