/*
 * publish.c - the end of a transaction that has edited sheets, in shared memory.
 *
 * Publication happens in XACT_EVENT_COMMIT: after the transaction has become visible, and before its locks are
 * released. An error there would be a PANIC. So nothing here allocates or raises an error. All room was reserved when
 * the edits were staged. It waits for the entry's lock alone, and for locks whose holders wait for nothing: of the list
 * of followers (follow_publish), and of the worker's queue (publish_growth, recheck_taken_over).
 */
#include "postgres.h"

#include "journal/follow/follow.h"
#include "journal/store/recheck.h"
#include "journal/write/publish.h"
#include "journal/write/staging.h"
#include "support/stoppoint.h"

/* Prefetch distances, in edits: of the tile, of the cell's slot (two thirds of it), and of its content (one third).
 * While the commit waited, other processes have used the processor's cache. */
#define PUBLISH_AHEAD 24

/*
 * An edit of a tile that was non-resident when room should have been reserved. If it still is, a load that is under way
 * becomes void. Returns false if another session has loaded the tile meanwhile.
 */
static bool
publish_non_resident(CacheEntry *entry, const StagedEdit *edit)
{
	grid_resize(entry->grid, edit->row + 1, edit->col + 1);
	if (grid_is_formula(edit->content.data, edit->content.len))
		grid_note_formula(entry->grid, edit->row, edit->col);
	entry->nonresident_edits++;
	return grid_is_nonresident(entry->grid, edit->row, edit->col);
}

static inline void
publish_prefetch(const StagedEdit *edit, uint32 left)
{
	const StagedEdit *slot = edit + PUBLISH_AHEAD / 3 * 2, *content = edit + PUBLISH_AHEAD / 3;

	if (left > PUBLISH_AHEAD)
		grid_prefetch_tile(edit[PUBLISH_AHEAD].tile);
	if (left > PUBLISH_AHEAD / 3 * 2)
		grid_prefetch_set(slot->tile, slot->row, slot->col);
	if (left > PUBLISH_AHEAD / 3)
		grid_prefetch_put(content->tile, content->row, content->col, content->content.len);
}

/* Returns false if the grid must be dropped. */
static bool
publish_edits(WriterSheet *ws, CacheEntry *entry)
{
	Grid *grid = entry->grid;
	bool right = true;

	for (uint32 i = 0; i < ws->nstaged; i++)
	{
		const StagedEdit *edit = &ws->staged[i];

		publish_prefetch(edit, ws->nstaged - i);
		if (edit->tile != NULL)
			grid_tile_set(grid, edit->tile, edit->row, edit->col, edit->content.data, edit->content.len,
						  edit->style.data, edit->style.len);
		else if (edit->resize)
			grid_resize(grid, edit->row + 1, edit->col + 1);
		else
			right &= publish_non_resident(entry, edit);
	}
	return right;
}

/* The maps and the extent, which does not follow from cells at physical rows and columns. */
static void
publish_maps(WriterSheet *ws, CacheEntry *entry)
{
	if (ws->maps != ws->base_maps)
	{
		GridAllocator allocator = cache_allocator(entry);

		grid_adopt_maps(&allocator, entry->grid, ws->maps);
	}
	if (ws->meta.rows != 0)
		grid_set_extent(entry->grid, ws->meta.rows, ws->meta.cols);
}

/*
 * Unpins the tiles, frees what is reserved, and ends the entry's writer. Caller must hold entry->lock in exclusive
 * mode; it is released.
 */
static void
publish_unpin(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;

	if (entry->grid != NULL)
	{
		GridAllocator allocator = cache_allocator(entry);

		grid_release(&allocator, entry->grid);
	}
	if (entry->state == CACHE_PINNED)
		cache_set_state(entry, CACHE_RESIDENT);
	ws->pins = false;
	if (ws->fxid != 0)
		entry->writer_fxid = 0;
	LWLockRelease(&entry->lock);
	ConditionVariableBroadcast(&entry->changed);
}

static void
publish_entry(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;
	Grid *dropped = NULL;

	STOP_POINT_NO_FAIL("publish");
	if (ws->forget)
		pg_atomic_fetch_add_u64(&CacheState->forgotten, 1);
	cache_lock_change(entry);
	if (entry->grid != NULL && (ws->forget || ws->drop_grid))
		dropped = cache_detach_grid(entry);
	if (entry->grid != NULL)
	{
		if (publish_edits(ws, entry))
			publish_maps(ws, entry);
		else
			dropped = cache_detach_grid(entry);
		STOP_POINT_NO_FAIL("publish-locked");
	}
	entry->changes++;
	entry->seq = ws->meta.last_seq;
	entry->last_fxid = ws->meta.last_fxid;
	entry->meta = ws->meta;
	entry->meta_valid = !ws->forget;
	publish_unpin(ws);
	cache_free_detached(dropped);
	STOP_POINT_NO_FAIL("publish-done");
}

void
publish_withdraw(WriterSheet *ws)
{
	if (ws->entry == NULL || (ws->fxid == 0 && !ws->pins))
		return;
	STOP_POINT_NO_FAIL("withdraw");
	cache_lock_change(ws->entry);
	publish_unpin(ws);
	ws->fxid = 0;
	ws->drop_grid = false;
}

/* Nothing was changed, but the sheet's state was read. */
static void
publish_state(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;

	cache_lock_change(entry);
	if (!entry->meta_valid && ws->learned)
	{
		entry->meta = ws->meta;
		entry->meta_valid = true;
	}
	LWLockRelease(&entry->lock);
}

/* Counts a new version, and registers a segment that has become long. */
static void
publish_growth(const WriterSheet *ws, const CacheMeta *before)
{
	bool sealed = before->segment_id != ws->meta.segment_id;

	if (sealed && before->segment_id != 0)
		workqueue_count((WorkCounter) ws->cause, 1);
	workqueue_report_growth(ws->sheet_id, ws->meta.last_seq, sealed ? (SegmentLength){0, 0} : cache_tail(before),
							cache_tail(&ws->meta));
}

void
publish_sheet(WriterSheet *ws)
{
	const CacheMeta *before;

	if (ws->entry != NULL && (writer_has_changes(ws) || ws->forget))
		publish_entry(ws);
	else if (ws->entry != NULL)
	{
		publish_state(ws);
		publish_withdraw(ws);
	}
	if (!writer_has_changes(ws))
		return;
	before = &dlist_head_element(WriterChange, link, &ws->changes)->before;
	if (before->last_seq < ws->meta.last_seq) /* a purged sheet has no edits */
	{
		follow_publish(ws->sheet_id, ws->meta.last_seq, ws->origin);
		publish_growth(ws, before);
	}
	if (ws->taken_over && ws->entry != NULL)
		recheck_taken_over(ws->sheet_id, ws->entry);
}
