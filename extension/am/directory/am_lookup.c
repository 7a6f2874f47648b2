/*
 * am_lookup.c - see am_lookup.h.
 *
 * The entries of a key cut its positions into ranges, each with the blocks to look into: nearly always one. The rows of
 * a range are found, sorted when they have to be, and given out.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "executor/tuptable.h"
#include "am/directory/am_lookup.h"
#include "am/page/am_space.h"
#include "am/page/am_standby.h"
#include "miscadmin.h"
#include "storage/predicate.h"

static void
am_lookup_drop_page(AmSource *source)
{
	if (BufferIsValid(source->buffer))
		ReleaseBuffer(source->buffer);
	else
		pfree(source->page);
	pfree(source);
}

static void
am_lookup_release(AmLookup *lookup)
{
	ListCell *cell;

	foreach (cell, lookup->sources)
		am_lookup_drop_page(lfirst(cell));
	list_free(lookup->sources);
	lookup->sources = NIL;
	lookup->nfound = 0;
	lookup->current = -1;
}

static void
am_lookup_remember(AmLookup *lookup, int64 position, AmSource *source, const AmRowRef *ref)
{
	if (lookup->nfound == lookup->room)
	{
		lookup->room = Max(64, lookup->room * 2);
		lookup->found = lookup->found == NULL ? palloc(lookup->room * sizeof(AmFound))
											  : repalloc(lookup->found, lookup->room * sizeof(AmFound));
	}
	lookup->found[lookup->nfound++] = (AmFound){position, source, *ref};
}

static bool
am_lookup_matches(AmLookup *lookup, const AmSource *source, const AmRowRef *ref, int64 *position)
{
	am_slot_store_at(lookup->probe, lookup->rel, source, ref);
	slot_getsomeattrs(lookup->probe, 2);
	*position = DatumGetInt64(lookup->probe->tts_values[1]);
	return DatumGetInt64(lookup->probe->tts_values[0]) == lookup->key && *position >= lookup->range_begin &&
		   *position < lookup->range_end;
}

/* The rows of the locked page that the snapshot sees. */
static int
am_lookup_visible(AmLookup *lookup, Buffer buffer, AmRowRef *rows)
{
	int n = 0;
	AmWalk walk;

	if (!am_space_is(buffer, AM_PAGE_DATA))
		return 0;
	am_walk_begin(&walk, BufferGetPage(buffer));
	am_visibility_page(&lookup->visibility);
	while (am_walk_next(&walk))
		if (am_visibility_check(&lookup->visibility, &walk))
			rows[n++] = am_row_ref(&walk);
	if (walk.damage != NULL)
		am_space_damaged(lookup->rel, BufferGetBlockNumber(buffer), walk.damage);
	return n;
}

/*
 * Rows of the key in the block, within the range. A page without any is not kept: each transaction that failed at a
 * position may have left the name of another one.
 */
static void
am_lookup_read_block(AmLookup *lookup, BlockNumber block)
{
	Buffer buffer = am_space_read(lookup->rel, block, NULL);
	AmRowRef rows[AM_MAX_ROWS];
	int n, found_before = lookup->nfound;
	Page copy = NULL;
	AmSource *source;

	CHECK_FOR_INTERRUPTS();
	/* New rows of the page are noticed by its lock, those of new pages by the directory's. Before it is read, so that
	 * no writer comes in between. */
	PredicateLockPage(lookup->rel, block, lookup->visibility.snapshot);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	n = am_lookup_visible(lookup, buffer, rows);
	source = palloc(sizeof(AmSource));
	*source = am_standby_unlock(buffer, &copy, CurrentMemoryContext);
	for (int i = 0; i < n; i++)
	{
		int64 position;

		if (am_lookup_matches(lookup, source, &rows[i], &position))
			am_lookup_remember(lookup, position, source, &rows[i]);
	}
	ExecClearTuple(lookup->probe);
	if (lookup->nfound > found_before)
		lookup->sources = lappend(lookup->sources, source);
	else
		am_lookup_drop_page(source);
}

static int
am_lookup_compare(const void *a, const void *b)
{
	int64 left = ((const AmFound *) a)->position, right = ((const AmFound *) b)->position;

	return left < right ? -1 : left > right;
}

static void
am_lookup_sort(AmLookup *lookup)
{
	for (int i = 1; i < lookup->nfound; i++)
		if (lookup->found[i].position < lookup->found[i - 1].position)
		{
			qsort(lookup->found, lookup->nfound, sizeof(AmFound), am_lookup_compare);
			return;
		}
}

/* The rows of the next range; false when there are no more. */
static bool
am_lookup_next_range(AmLookup *lookup)
{
	bool backward = ScanDirectionIsBackward(lookup->direction);
	List *blocks = NIL;
	ListCell *cell;
	MemoryContext old;

	am_lookup_release(lookup);
	if (!lookup->more)
		return false;
	old = MemoryContextSwitchTo(lookup->context);
	lookup->range_begin = lookup->next_position;
	do
	{
		blocks = lappend_oid(blocks, lookup->next_block);
		lookup->more = am_directory_next(&lookup->entries, &lookup->next_position, &lookup->next_block);
	} while (lookup->more && lookup->next_position == lookup->range_begin);
	if (!backward)
		lookup->range_end = lookup->more ? lookup->next_position : PG_INT64_MAX;
	foreach (cell, blocks)
		am_lookup_read_block(lookup, lfirst_oid(cell));
	list_free(blocks);
	if (backward)
		lookup->range_end = lookup->range_begin;
	am_lookup_sort(lookup);
	lookup->current = backward ? lookup->nfound : -1;
	MemoryContextSwitchTo(old);
	return true;
}

void
am_lookup_begin(AmLookup *lookup, Relation rel, Relation directory, Snapshot snapshot, int64 key, int64 from,
				ScanDirection direction)
{
	memset(lookup, 0, sizeof(*lookup));
	lookup->rel = rel;
	lookup->key = key;
	lookup->direction = direction;
	lookup->probe = table_slot_create(rel, NULL);
	lookup->context = CurrentMemoryContext;
	lookup->current = -1;
	lookup->range_end = from == PG_INT64_MAX ? from : from + 1; /* backward: the first range ends there */
	am_visibility_begin(&lookup->visibility, rel, snapshot);
	am_directory_begin(&lookup->entries, directory, snapshot, key, from, direction);
	lookup->more = am_directory_next(&lookup->entries, &lookup->next_position, &lookup->next_block);
}

bool
am_lookup_next(AmLookup *lookup, TupleTableSlot *slot)
{
	int step = ScanDirectionIsBackward(lookup->direction) ? -1 : 1;

	for (;;)
	{
		lookup->current += step;
		if (lookup->current >= 0 && lookup->current < lookup->nfound)
		{
			AmFound *found = &lookup->found[lookup->current];

			am_slot_store_at(slot, lookup->rel, found->source, &found->ref);
			return true;
		}
		if (!am_lookup_next_range(lookup))
		{
			ExecClearTuple(slot);
			return false;
		}
	}
}

void
am_lookup_end(AmLookup *lookup)
{
	am_lookup_release(lookup);
	am_directory_end(&lookup->entries);
	ExecDropSingleTupleTableSlot(lookup->probe);
	if (lookup->found != NULL)
		pfree(lookup->found);
}
