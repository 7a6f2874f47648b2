/*
 * paste.c - storing, reading and removing pastes.
 *
 * One LWLock guards all pastes: exclusive for changes, shared for reading. It is a leaf. It is held for microseconds: a
 * step that removes pastes removes PASTE_STEP of them at most, then the lock is released, and a text is copied in under
 * no lock, into blocks that are still its creator's own.
 *
 * A creator has blocks that belong to no paste. No error is raised and no interrupt is served until they do, so no
 * block is lost. A process that is killed takes shared memory with it.
 *
 * Each function that finds a paste compares its end with the clock. The sweep only frees memory.
 */
#include "postgres.h"

#include <time.h>

#include "miscadmin.h"
#include "paste/paste_private.h"
#include "support/workqueue.h"
#include "utils/timestamp.h"

#define PASTE_STEP	   16
#define SWEEP_STEP	   64
#define SWEEP_PAUSE_MS 1	/* between steps: a lock that is taken again at once would starve those who wait */
#define SWEEP_DELAY_MS 1000 /* after an end, so that many are removed at a time */

/* ---- storing ---- */

/* Takes up to `wanted` blocks, for which up to PASTE_STEP pastes are removed. Returns false if there are none. */
static bool
paste_step(uint32 maker, uint32 wanted, PasteChain *chain)
{
	TimestampTz now = GetCurrentTimestamp();
	uint32 before = chain->blocks;
	PasteCounter counter;
	PasteHead *victim;

	LWLockAcquire(&Pastes->lock, LW_EXCLUSIVE);
	for (int i = 0; i < PASTE_STEP && Pastes->free < wanted; i++)
	{
		victim = paste_index_victim(maker, wanted, now, &counter);
		if (victim == NULL)
			break;
		paste_index_remove(victim, counter);
	}
	paste_take(maker, wanted, chain);
	LWLockRelease(&Pastes->lock);
	return chain->blocks > before;
}

/* Returns whether the launcher sleeps for too long. Caller must hold the lock. */
static bool
paste_is_swept_late(const PasteHead *head)
{
	TimestampTz sweep_at = TimestampTzPlusMilliseconds(head->info.ends_at, SWEEP_DELAY_MS);

	if (sweep_at >= Pastes->sweep_at)
		return false;
	Pastes->sweep_at = sweep_at;
	return true;
}

static bool
paste_enter(const PasteChain *chain, const PasteId *id, const PasteInfo *info, uint32 maker)
{
	PasteHead *head = paste_head(chain->first);
	bool late;

	head->last = chain->last;
	head->blocks = chain->blocks;
	head->maker = maker;
	head->id = *id;
	head->database = MyDatabaseId;
	head->info = *info;
	head->info.blocked = false;
	pg_atomic_init_u64(&head->views, 0);
	LWLockAcquire(&Pastes->lock, LW_EXCLUSIVE);
	paste_index_add(head);
	late = paste_is_swept_late(head);
	LWLockRelease(&Pastes->lock);
	return late;
}

bool
paste_add(const PasteId *id, const PasteInfo *info, const char *text)
{
	Size len = (Size) info->title_len + info->lang_len + info->content_len;
	uint32 maker = (uint32) (info->origin % Pastes->makers), needed = paste_blocks_for(len);
	PasteChain chain = {0};

	while (chain.blocks < needed)
	{
		if (paste_step(maker, needed - chain.blocks, &chain))
			continue;
		LWLockAcquire(&Pastes->lock, LW_EXCLUSIVE);
		paste_give_back(maker, &chain);
		LWLockRelease(&Pastes->lock);
		paste_count(PASTE_REFUSED);
		return false;
	}
	paste_fill(chain.first, text, len);
	if (paste_enter(&chain, id, info, maker))
		workqueue_wake();
	return true;
}

/* ---- reading ---- */

static void
paste_copy_info(PasteHead *head, PasteInfo *info)
{
	*info = head->info;
	info->views = (int64) pg_atomic_read_u64(&head->views);
}

/* Makes the paste the most recently used one, or removes it if it has ended. */
static void
paste_touch(const PasteId *id, TimestampTz now)
{
	PasteHead *head;

	LWLockAcquire(&Pastes->lock, LW_EXCLUSIVE);
	head = paste_index_find(id);
	if (head != NULL && head->info.ends_at <= now)
		paste_index_remove(head, PASTE_EXPIRED);
	else if (head != NULL)
		paste_index_use(head);
	LWLockRelease(&Pastes->lock);
}

bool
paste_read(const PasteId *id, int64 views, PasteInfo *info, char *text)
{
	TimestampTz now = GetCurrentTimestamp();
	bool open = false, touch = false;
	PasteHead *head;

	LWLockAcquire(&Pastes->lock, LW_SHARED);
	head = paste_index_find(id);
	if (head != NULL)
	{
		bool ended = head->info.ends_at <= now;

		open = !ended && !head->info.blocked;
		touch = ended || (open && !paste_index_is_newest(head));
		if (open)
		{
			pg_atomic_fetch_add_u64(&head->views, views);
			paste_copy_info(head, info);
			if (text != NULL)
				paste_copy(paste_block_of(head), text, (Size) info->title_len + info->lang_len + info->content_len);
		}
	}
	LWLockRelease(&Pastes->lock);
	paste_count(open ? PASTE_HITS : PASTE_MISSES);
	if (touch)
		paste_touch(id, now);
	return open;
}

/* ---- for operators ---- */

/* Finds a paste that has not ended. Caller must hold the lock. */
static PasteHead *
paste_find_open(const PasteId *id, TimestampTz now)
{
	PasteHead *head = paste_index_find(id);

	return head != NULL && head->info.ends_at > now ? head : NULL;
}

bool
paste_block(const PasteId *id, bool blocked)
{
	TimestampTz now = GetCurrentTimestamp();
	PasteHead *head;

	LWLockAcquire(&Pastes->lock, LW_EXCLUSIVE);
	head = paste_find_open(id, now);
	if (head != NULL)
		head->info.blocked = blocked;
	LWLockRelease(&Pastes->lock);
	return head != NULL;
}

bool
paste_remove(const PasteId *id)
{
	TimestampTz now = GetCurrentTimestamp();
	PasteHead *head;

	LWLockAcquire(&Pastes->lock, LW_EXCLUSIVE);
	head = paste_find_open(id, now);
	if (head != NULL)
		paste_index_remove(head, PASTE_REMOVED);
	LWLockRelease(&Pastes->lock);
	return head != NULL;
}

uint32
paste_places(uint32 *places, uint32 max)
{
	uint32 count;

	LWLockAcquire(&Pastes->lock, LW_SHARED);
	count = Pastes->count;
	memcpy(places, paste_heap, Min(count, max) * sizeof(uint32));
	LWLockRelease(&Pastes->lock);
	return count;
}

bool
paste_describe(uint32 place, PasteId *id, PasteInfo *info, char *text)
{
	TimestampTz now = GetCurrentTimestamp();
	PasteHead *head = paste_head(place);
	uint32 at;
	bool found;

	LWLockAcquire(&Pastes->lock, LW_SHARED);
	/* By now the block may have a piece of text where a head has its place in the heap. The heap has heads only. */
	at = head->heap_at;
	found = at < Pastes->count && paste_heap[at] == place && head->database == MyDatabaseId && head->info.ends_at > now;
	if (found)
	{
		*id = head->id;
		paste_copy_info(head, info);
		paste_copy(place, text, (Size) info->title_len + info->lang_len);
	}
	LWLockRelease(&Pastes->lock);
	return found;
}

void
paste_read_stats(PasteStats *stats)
{
	Size cost = (Size) paste_memory_kb * 1024 / Pastes->blocks;

	LWLockAcquire(&Pastes->lock, LW_SHARED);
	stats->pastes = Pastes->count;
	stats->bytes = (int64) ((Pastes->blocks - Pastes->free) * cost);
	stats->sweep_ns = Pastes->sweep_ns;
	LWLockRelease(&Pastes->lock);
	stats->budget = (int64) paste_memory_kb * 1024;
	stats->share = (int64) (Pastes->share * cost);
	for (int i = 0; i < PASTE_COUNTERS; i++)
		stats->counters[i] = (int64) pg_atomic_read_u64(&Pastes->counters[i]);
}

/* ---- the launcher ---- */

/* The processor time of this process: what the machine takes from it meanwhile is not counted. */
static int64
paste_cpu_ns(void)
{
	struct timespec time = {0};

	(void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (int64) time.tv_sec * 1000000000 + time.tv_nsec;
}

long
paste_sweep(void)
{
	TimestampTz now = GetCurrentTimestamp();
	PasteHead *head = NULL;
	long wait = -1;
	int64 began;

	if (!paste_enabled())
		return wait;
	LWLockAcquire(&Pastes->lock, LW_EXCLUSIVE);
	began = paste_cpu_ns();
	for (int i = 0; i < SWEEP_STEP && (head = paste_index_first()) != NULL && head->info.ends_at <= now; i++)
		paste_index_remove(head, PASTE_EXPIRED);
	head = paste_index_first();
	Pastes->sweep_at = DT_NOEND;
	if (head != NULL && head->info.ends_at <= now)
	{
		Pastes->sweep_at = DT_NOBEGIN; /* nobody needs to wake the launcher */
		wait = SWEEP_PAUSE_MS;
	}
	else if (head != NULL)
	{
		Pastes->sweep_at = TimestampTzPlusMilliseconds(head->info.ends_at, SWEEP_DELAY_MS);
		wait = TimestampDifferenceMilliseconds(now, Pastes->sweep_at) + 1;
	}
	Pastes->sweep_ns = Max(Pastes->sweep_ns, paste_cpu_ns() - began);
	LWLockRelease(&Pastes->lock);
	return wait;
}
