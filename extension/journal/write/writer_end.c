/*
 * writer_end.c - the end of a transaction, or of a subtransaction, that has edited sheets.
 *
 * At commit the changes are set in the shared grid. That happens in XACT_EVENT_COMMIT, after the transaction has become
 * visible and before its locks go: an error there would be a PANIC, so nothing here allocates, raises or waits for
 * anything but an entry's lock and, once for each sheet, the directory's, whose holders never wait for us. All room was
 * reserved when the edits were appended.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "journal/follow/follow.h"
#include "journal/store/fsck_auto.h"
#include "journal/write/kept.h"
#include "support/stoppoint.h"
#include "utils/memutils.h"
#include "journal/write/writer.h"

/* ---- the end of the transaction: nothing below may fail ---- */

/* So many edits before a cell is set the processor is asked for its tile; for its place two thirds as many, and for its
 * content one third. While the commit was waited for, others have used the processor's cache. */
#define WRITER_AHEAD 24

/*
 * An edit of a tile that was non-resident when room was to be reserved. Voids a load of it that is under way. Returns
 * false if the tile has been loaded meanwhile.
 */
static bool
writer_miss_change(CacheEntry *entry, const StagedEdit *edit)
{
	grid_resize(entry->grid, edit->row + 1, edit->col + 1);
	entry->nonresident_edits++;
	return grid_is_nonresident(entry->grid, edit->row, edit->col);
}

/* The arrays end where the edits do: what lies behind is not looked at. */
static inline void
writer_prefetch_change(const StagedEdit *edit, uint32 left)
{
	const StagedEdit *place = edit + WRITER_AHEAD / 3 * 2, *content = edit + WRITER_AHEAD / 3;

	if (left > WRITER_AHEAD)
		grid_prefetch_tile(edit[WRITER_AHEAD].tile);
	if (left > WRITER_AHEAD / 3 * 2)
		grid_prefetch_set(place->tile, place->row, place->col);
	if (left > WRITER_AHEAD / 3)
		grid_prefetch_put(content->tile, content->row, content->col, content->content.len);
}

/* False when the grid cannot be kept. */
static bool
writer_apply_changes(WriterSheet *ws, CacheEntry *entry)
{
	Grid *grid = entry->grid;
	bool right = true;

	for (uint32 i = 0; i < ws->nstaged; i++)
	{
		const StagedEdit *edit = &ws->staged[i];

		writer_prefetch_change(edit, ws->nstaged - i);
		if (edit->tile != NULL)
			grid_set_there(grid, edit->tile, edit->row, edit->col, edit->content.data, edit->content.len,
						   edit->padded ? WRITER_PAD : 0, edit->style.data, edit->style.len);
		else if (edit->resize)
			grid_resize(grid, edit->row + 1, edit->col + 1);
		else
			right &= writer_miss_change(entry, edit);
	}
	return right;
}

/* Ends all pins and reservations. Caller must hold entry->lock in exclusive mode. */
static void
writer_release(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;

	if (entry->grid != NULL)
	{
		GridAllocator allocator = cache_allocator(entry);

		grid_release(&allocator, entry->grid);
	}
	if (entry->state == CACHE_PINNED)
		cache_set_state(entry, CACHE_RESIDENT);
	ws->holds = false;
}

/* What the grid's rows and columns are called, and how many there are. Cells have been set at their physical places,
 * from which the extent does not follow. */
static void
writer_apply_axes(WriterSheet *ws, CacheEntry *entry)
{
	if (ws->axes != ws->base_axes)
	{
		GridAllocator allocator = cache_allocator(entry);

		grid_adopt_axes(&allocator, entry->grid, ws->axes);
	}
	if (ws->meta.rows != 0)
		grid_set_extent(entry->grid, ws->meta.rows, ws->meta.cols);
}

static void
writer_publish(WriterSheet *ws)
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
		if (writer_apply_changes(ws, entry))
			writer_apply_axes(ws, entry);
		else
			dropped = cache_detach_grid(entry);
		STOP_POINT_NO_FAIL("publish-locked");
	}
	writer_release(ws);
	entry->changes++;
	entry->seq = ws->meta.last_seq;
	entry->last_fxid = ws->meta.last_fxid;
	entry->meta = ws->meta;
	entry->meta_valid = !ws->forget;
	entry->writer_fxid = 0;
	LWLockRelease(&entry->lock);
	ConditionVariableBroadcast(&entry->changed);
	cache_free_detached(dropped);
	STOP_POINT_NO_FAIL("publish-done");
}

/* Ends all pins and reservations; the entry does not name this transaction any more. */
static void
writer_withdraw(WriterSheet *ws)
{
	CacheEntry *entry = ws->entry;

	if (ws->fxid == 0 && !ws->holds)
		return;
	STOP_POINT_NO_FAIL("withdraw");
	cache_lock_change(entry);
	writer_release(ws);
	if (ws->fxid != 0)
		entry->writer_fxid = 0;
	LWLockRelease(&entry->lock);
	ConditionVariableBroadcast(&entry->changed);
	ws->fxid = 0;
	ws->drop_grid = false;
}

/* Nothing was changed, but something was learned. */
static void
writer_remember(WriterSheet *ws)
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

/* Counts a version, and notes a log that has become long. */
static void
writer_note_tail(const WriterSheet *ws, const CacheMeta *before)
{
	bool sealed = before->segment_id != ws->meta.segment_id;

	if (sealed && before->segment_id != 0)
		ckptqueue_count(ws->cause);
	ckptqueue_note_growth(ws->sheet_id, ws->meta.last_seq, sealed ? (CkptTail){0, 0} : cache_tail(before),
						  cache_tail(&ws->meta));
}

static void
writer_close(WriterSheet *ws, bool commit)
{
	bool changed = writer_has_changes(ws);

	if (ws->entry != NULL)
	{
		if (commit && (changed || ws->forget))
			writer_publish(ws);
		else
		{
			if (commit)
				writer_remember(ws);
			writer_withdraw(ws);
		}
	}
	if (commit && changed)
	{
		WriterChange *first = dlist_head_element(WriterChange, link, &ws->changes);

		if (first->before.last_seq < ws->meta.last_seq) /* of a sheet that was purged nothing is left */
		{
			follow_publish(ws->sheet_id, ws->meta.last_seq, ws->origin);
			writer_note_tail(ws, &first->before);
		}
	}
	if (commit && changed && ws->taken_over && ws->entry != NULL)
		fsck_auto_take_over(ws->sheet_id, ws->entry);
	if (ws->entry != NULL)
		cache_unpin(ws->entry);
	dlist_delete(&ws->link);
}

static bool writer_epochs_reset = false;

void
writer_reset_epochs(void)
{
	writer_epochs_reset = true;
}

static void
writer_close_all(bool commit)
{
	dlist_mutable_iter iter;

	if (writer_epochs_reset && commit && cache_enabled())
		pg_atomic_fetch_add_u64(&CacheState->epoch_round, 1);
	writer_epochs_reset = false;

	dlist_foreach_modify(iter, &writer_sheets) writer_close(dlist_container(WriterSheet, link, iter.cur), commit);
	kept_end_transaction();
	if (writer_context == NULL)
		return;
	writer_forget_bytes();
	MemoryContextReset(writer_context);
	MemoryContextReset(writer_scratch);
}

static void
writer_refuse_prepare(void)
{
	dlist_iter iter;

	if (writer_epochs_reset)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("cannot PREPARE a transaction that has reset the epochs of sheets")));

	dlist_foreach(iter, &writer_sheets)
	{
		WriterSheet *ws = dlist_container(WriterSheet, link, iter.cur);

		if (writer_has_changes(ws) || ws->forget)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("cannot PREPARE a transaction that has edited sheets"),
							errdetail("Nothing tells this extension when a prepared transaction is committed."),
							errhint("Use COMMIT.")));
	}
}

static void
writer_xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			writer_close_all(true);
			break;
		case XACT_EVENT_ABORT:
			cache_release_at_abort();
			writer_close_all(false);
			break;
		case XACT_EVENT_PRE_PREPARE:
			writer_refuse_prepare();
			break;
		case XACT_EVENT_PREPARE:
			writer_close_all(false);
			break;
		case XACT_EVENT_PARALLEL_ABORT:
			cache_release_at_abort();
			break;
		default:
			break;
	}
}

/* ---- subtransactions ---- */

static void
writer_abort_changes(WriterSheet *ws, SubTransactionId subid)
{
	while (writer_has_changes(ws))
	{
		WriterChange *change = dlist_tail_element(WriterChange, link, &ws->changes);

		if (change->subid != subid)
			break;
		ws->meta = change->before;
		ws->axes = change->axes_known ? change->axes : ws->base_axes;
		ws->axes_subid = InvalidSubTransactionId;
		writer_take_back(ws, change->from);
		dlist_delete(&change->link);
		pfree(change);
	}
	if (!writer_has_changes(ws))
		writer_forget_staged(ws);
}

/* What it has allocated, and what was put beside it for whole grids. */
static void
writer_free(WriterSheet *ws)
{
	writer_forget_staged(ws);
	if (ws->staged != NULL)
		pfree(ws->staged);
	if (ws->grid_context != NULL)
		MemoryContextDelete(ws->grid_context);
	pfree(ws);
}

void
writer_give_up(WriterSheet *ws)
{
	writer_close(ws, false);
	writer_free(ws);
}

/* The lock goes when the subtransaction that took it is rolled back, and with it all that we know. */
static void
writer_abort_sub(WriterSheet *ws, SubTransactionId subid)
{
	writer_abort_changes(ws, subid);
	if (ws->locked_in == subid)
		writer_give_up(ws);
	else if (!writer_has_changes(ws))
	{
		if (ws->entry != NULL)
			writer_withdraw(ws);
	}
}

/* Changes are a stack, as subtransactions are: those of the innermost one come last. */
static void
writer_commit_sub(WriterSheet *ws, SubTransactionId subid, SubTransactionId parent)
{
	dlist_iter iter;

	if (ws->locked_in == subid)
		ws->locked_in = parent;
	if (ws->axes_subid == subid)
		ws->axes_subid = parent;
	dlist_reverse_foreach(iter, &ws->changes)
	{
		WriterChange *change = dlist_container(WriterChange, link, iter.cur);

		if (change->subid != subid)
			break;
		change->subid = parent;
	}
}

static void
writer_subxact_callback(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	dlist_mutable_iter iter;

	if (event == SUBXACT_EVENT_ABORT_SUB)
		cache_release_at_abort();
	else if (event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	dlist_foreach_modify(iter, &writer_sheets)
	{
		WriterSheet *ws = dlist_container(WriterSheet, link, iter.cur);

		if (event == SUBXACT_EVENT_ABORT_SUB)
			writer_abort_sub(ws, subid);
		else
			writer_commit_sub(ws, subid, parent);
	}
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		writer_hand_bytes(subid, parent);
	else if (writer_context != NULL)
	{
		writer_free_bytes_of(subid);
		MemoryContextReset(writer_scratch); /* of a call that an error has ended: no other is under way */
	}
}

void
writer_init(void)
{
	RegisterXactCallback(writer_xact_callback, NULL);
	RegisterSubXactCallback(writer_subxact_callback, NULL);
}
