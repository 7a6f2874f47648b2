/*
 * paste_index.c - how pastes are found: by id, by their end, by their last use, by their maker. See paste_private.h.
 *
 * The heap is ordered by (end, id), so no two pastes collide, however many end at the same time. Each paste knows its
 * place in the heap: whatever removes it, its entry goes with it, in O(log n). lib/pairingheap.h could lie in shared
 * memory too, but removing the first of n entries that were added in order takes it O(n): milliseconds under the lock.
 * lib/binaryheap.h allocates locally, and does not know the places of its entries.
 *
 * Eviction, when memory is needed:
 *
 *   1. a paste that has ended, whosever it is;
 *   2. if the maker would have more than its share of the memory, its own least recently used paste;
 *   3. otherwise that of a maker that has more than its share: there are less than PASTE_SHARES of them;
 *   4. otherwise the least recently used paste of all.
 *
 * So while there is a maker with more than its share, nobody else's pastes are evicted. A flood by one maker takes at
 * most its share of the memory from the others.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "paste/paste_private.h"

/* ---- by id ---- */

/* Ids are random. */
static uint32 *
paste_bucket(Oid database, const PasteId *id)
{
	uint64 hash;

	memcpy(&hash, id->bytes, sizeof(hash));
	return &paste_buckets[(hash ^ database) % Pastes->blocks];
}

PasteHead *
paste_index_find(const PasteId *id)
{
	for (uint32 block = *paste_bucket(MyDatabaseId, id); block != PASTE_NONE;)
	{
		PasteHead *head = paste_head(block);

		if (head->database == MyDatabaseId && memcmp(&head->id, id, sizeof(PasteId)) == 0)
			return head;
		block = head->hash_next;
	}
	return NULL;
}

static void
paste_bucket_remove(const PasteHead *head)
{
	uint32 *link = paste_bucket(head->database, &head->id), block = paste_block_of(head);

	while (*link != block)
		link = &paste_head(*link)->hash_next;
	*link = head->hash_next;
}

/* ---- by end ---- */

static bool
paste_ends_before(uint32 a, uint32 b)
{
	const PasteHead *first = paste_head(a), *second = paste_head(b);

	if (first->info.ends_at != second->info.ends_at)
		return first->info.ends_at < second->info.ends_at;
	return memcmp(&first->id, &second->id, sizeof(PasteId)) < 0;
}

static void
paste_heap_put(uint32 at, uint32 block)
{
	paste_heap[at] = block;
	paste_head(block)->heap_at = at;
}

/* Finds the place of a block, beginning at a place that is free, and puts it there. */
static void
paste_heap_place(uint32 at, uint32 block)
{
	while (at > 0 && paste_ends_before(block, paste_heap[(at - 1) / 2]))
	{
		paste_heap_put(at, paste_heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	for (;;)
	{
		uint64 child = (uint64) at * 2 + 1;

		if (child + 1 < Pastes->count && paste_ends_before(paste_heap[child + 1], paste_heap[child]))
			child++;
		if (child >= Pastes->count || !paste_ends_before(paste_heap[child], block))
			break;
		paste_heap_put(at, paste_heap[child]);
		at = (uint32) child;
	}
	paste_heap_put(at, block);
}

static void
paste_heap_remove(uint32 at)
{
	uint32 last = paste_heap[--Pastes->count];

	if (at < Pastes->count)
		paste_heap_place(at, last);
}

PasteHead *
paste_index_first(void)
{
	return Pastes->count > 0 ? paste_head(paste_heap[0]) : NULL;
}

/* ---- all of them ---- */

void
paste_index_add(PasteHead *head)
{
	uint32 *bucket = paste_bucket(head->database, &head->id), block = paste_block_of(head);

	head->hash_next = *bucket;
	*bucket = block;
	Pastes->count++;
	paste_heap_place(Pastes->count - 1, block);
	dlist_push_head(&Pastes->used, &head->used);
	dlist_push_head(&paste_makers[head->maker].pastes, &head->mine);
	paste_count(PASTE_CREATED);
}

void
paste_index_remove(PasteHead *head, PasteCounter counter)
{
	PasteChain chain = {paste_block_of(head), head->last, head->blocks};

	paste_bucket_remove(head);
	paste_heap_remove(head->heap_at);
	dlist_delete(&head->used);
	dlist_delete(&head->mine);
	paste_give_back(head->maker, &chain);
	paste_count(counter);
}

/* ---- by use ---- */

bool
paste_index_is_newest(PasteHead *head)
{
	return dlist_head_node(&Pastes->used) == &head->used;
}

void
paste_index_use(PasteHead *head)
{
	dlist_move_head(&Pastes->used, &head->used);
	dlist_move_head(&paste_makers[head->maker].pastes, &head->mine);
}

/* The maker's least recently used paste. NULL: it has none, only blocks of pastes that are being stored. */
static PasteHead *
paste_oldest_of(PasteMaker *maker)
{
	return dlist_is_empty(&maker->pastes) ? NULL : dlist_tail_element(PasteHead, mine, &maker->pastes);
}

PasteHead *
paste_index_victim(uint32 maker, uint32 more, TimestampTz now, PasteCounter *counter)
{
	PasteHead *victim = paste_index_first();
	dlist_iter iter;

	*counter = PASTE_EXPIRED;
	if (victim == NULL || victim->info.ends_at <= now)
		return victim;
	*counter = PASTE_EVICTED;
	victim = paste_makers[maker].blocks + more > Pastes->share ? paste_oldest_of(&paste_makers[maker]) : NULL;
	if (victim != NULL)
		return victim;
	dlist_foreach(iter, &Pastes->over)
	{
		victim = paste_oldest_of(dlist_container(PasteMaker, over, iter.cur));
		if (victim != NULL)
			return victim;
	}
	return dlist_tail_element(PasteHead, used, &Pastes->used);
}
