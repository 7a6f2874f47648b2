/*
 * ckptqueue.c - sheets that want a checkpoint or a check, in shared memory; see ckptqueue.h.
 *
 * The queue is an array without order: it is short, and looked at only when a log has become long, or a sheet is opened
 * that must be checked.
 */
#include "postgres.h"

#include "support/ckptqueue.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#define CKPTQUEUE_ITEMS		  1024
#define CKPTQUEUE_EVICT_EDITS 1000			/* shorter logs are not sealed at eviction */
#define CKPTQUEUE_EVICT_BYTES (1024 * 1024) /* unless they are as large as this */
#define CKPTQUEUE_LEAVE_DELAY 1000			/* ms until what a worker has left is due again */

typedef struct CkptSlot
{
	Oid database; /* InvalidOid: free */
	int32 ticket; /* of the worker that was asked for */
	uint32 life;  /* of the launcher that has asked */
	bool rescan;
	bool entered; /* the worker has come */
	bool left;	  /* it has gone again ... */
	CkptEnd end;  /* ... like this */
} CkptSlot;

typedef struct CkptShared
{
	LWLock lock;
	int tranche;
	PGPROC *launcher;
	uint32 life;		/* how many launchers there have been */
	uint32 last_ticket; /* of a worker */
	bool rescan;		/* every database must be looked through */
	int used;
	CkptItem items[CKPTQUEUE_ITEMS];
	CkptSlot slots[CKPTQUEUE_WORKERS];
	pg_atomic_uint64 made[CKPT_CAUSES];
	pg_atomic_uint64 failures;
	pg_atomic_uint64 rescans;
	pg_atomic_uint64 replayed;
	pg_atomic_uint64 longest_lock;
	pg_atomic_uint64 checked;
	pg_atomic_uint64 damaged;
} CkptShared;

int ckptqueue_edits = 100000;
int ckptqueue_kilobytes = 65536;
int ckptqueue_interval = 60000;

static CkptShared *ckpt_shared = NULL;

const char *
ckpt_cause_name(CkptCause cause)
{
	static const char *const names[CKPT_CAUSES] = {"commit", "rollback", "log", "eviction"};

	return (unsigned) cause < CKPT_CAUSES ? names[cause] : "unknown";
}

/* ---- start-up ---- */

void
ckptqueue_define_settings(void)
{
	DefineCustomIntVariable(
		"pg_sheet.version_edits",
		"Number of edits since a sheet's last version after which a version is saved automatically.", "0: no limit.",
		&ckptqueue_edits, 100000, 0, INT_MAX, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"pg_sheet.version_bytes",
		"Size of the edits since a sheet's last version after which a version is saved automatically.", "0: no limit.",
		&ckptqueue_kilobytes, 65536, 0, MAX_KILOBYTES, PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_sheet.version_interval",
							"Minimum time between a sheet's last version and an automatic one.", NULL,
							&ckptqueue_interval, 60000, 0, 24 * 3600 * 1000, PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
}

Size
ckptqueue_shmem_size(void)
{
	return MAXALIGN(sizeof(CkptShared));
}

static void
ckptqueue_create(void)
{
	memset(ckpt_shared, 0, sizeof(CkptShared));
	ckpt_shared->tranche = LWLockNewTrancheId();
	LWLockInitialize(&ckpt_shared->lock, ckpt_shared->tranche);
	for (int i = 0; i < CKPT_CAUSES; i++)
		pg_atomic_init_u64(&ckpt_shared->made[i], 0);
	pg_atomic_init_u64(&ckpt_shared->failures, 0);
	pg_atomic_init_u64(&ckpt_shared->rescans, 0);
	pg_atomic_init_u64(&ckpt_shared->replayed, 0);
	pg_atomic_init_u64(&ckpt_shared->longest_lock, 0);
	pg_atomic_init_u64(&ckpt_shared->checked, 0);
	pg_atomic_init_u64(&ckpt_shared->damaged, 0);
}

void
ckptqueue_shmem_startup(void)
{
	bool found;

	ckpt_shared = ShmemInitStruct("pg_sheet checkpoint queue", ckptqueue_shmem_size(), &found);
	if (!found)
		ckptqueue_create();
	LWLockRegisterTranche(ckpt_shared->tranche, "pg_sheet_checkpoint_queue");
}

/* ---- items; the lock is held ---- */

static CkptItem *
ckptqueue_find(Oid database, int64 sheet_id)
{
	for (int i = 0; i < ckpt_shared->used; i++)
	{
		CkptItem *item = &ckpt_shared->items[i];

		if (item->sheet_id == sheet_id && item->database == database)
			return item;
	}
	return NULL;
}

/* NULL when there is no room. */
static CkptItem *
ckptqueue_add(Oid database, int64 sheet_id)
{
	CkptItem *item;

	if (ckpt_shared->used == CKPTQUEUE_ITEMS)
		return NULL;
	item = &ckpt_shared->items[ckpt_shared->used++];
	*item = (CkptItem){.database = database, .sheet_id = sheet_id, .cause = CKPT_BY_EVICTION, .slot = -1};
	return item;
}

static void
ckptqueue_remove(CkptItem *item)
{
	*item = ckpt_shared->items[--ckpt_shared->used];
}

static void
ckptqueue_wake(void)
{
	if (ckpt_shared->launcher != NULL)
		SetLatch(&ckpt_shared->launcher->procLatch);
}

/* ---- noting ---- */

/* A sheet that is in the queue keeps its place, its failures, and the time at which it is due. */
static void
ckptqueue_put(Oid database, int64 sheet_id, int64 seq, CkptCause cause)
{
	CkptItem *item;

	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	item = ckptqueue_find(database, sheet_id);
	if (item == NULL)
	{
		item = ckptqueue_add(database, sheet_id);
		ckpt_shared->rescan |= item == NULL;
		ckptqueue_wake();
	}
	if (item != NULL)
	{
		item->seq = Max(item->seq, seq);
		if (cause == CKPT_BY_LOG)
			item->cause = cause;
	}
	LWLockRelease(&ckpt_shared->lock);
}

static inline bool
ckptqueue_passes(int64 before, int64 after, int64 limit)
{
	return limit > 0 && after / limit > before / limit;
}

void
ckptqueue_note_growth(int64 sheet_id, int64 seq, CkptTail before, CkptTail after)
{
	if (ckpt_shared == NULL)
		return;
	if (ckptqueue_passes(before.edits, after.edits, ckptqueue_edits) ||
		ckptqueue_passes(before.bytes, after.bytes, (int64) ckptqueue_kilobytes * 1024))
		ckptqueue_put(MyDatabaseId, sheet_id, seq, CKPT_BY_LOG);
}

void
ckptqueue_note_eviction(Oid database, int64 sheet_id, int64 seq, CkptTail tail)
{
	if (ckpt_shared == NULL || (ckptqueue_edits == 0 && ckptqueue_kilobytes == 0))
		return;
	if (tail.edits >= CKPTQUEUE_EVICT_EDITS || tail.bytes >= CKPTQUEUE_EVICT_BYTES)
		ckptqueue_put(database, sheet_id, seq, CKPT_BY_EVICTION);
}

bool
ckptqueue_note_check(int64 sheet_id, CkptCheck why)
{
	CkptItem *item;

	if (ckpt_shared == NULL)
		return true;
	if (ckpt_shared->used == CKPTQUEUE_ITEMS) /* seen without the lock: whoever asks again finds room */
		return false;
	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	item = ckptqueue_find(MyDatabaseId, sheet_id);
	if (item == NULL)
		item = ckptqueue_add(MyDatabaseId, sheet_id);
	if (item != NULL)
	{
		item->check = why;
		item->due = 0;
		ckptqueue_wake();
	}
	LWLockRelease(&ckpt_shared->lock);
	return item != NULL;
}

/* ---- counting ---- */

void
ckptqueue_count(CkptCause cause)
{
	if (ckpt_shared != NULL)
		pg_atomic_fetch_add_u64(&ckpt_shared->made[cause], 1);
}

void
ckptqueue_count_check(bool damaged)
{
	pg_atomic_fetch_add_u64(&ckpt_shared->checked, 1);
	if (damaged)
		pg_atomic_fetch_add_u64(&ckpt_shared->damaged, 1);
}

void
ckptqueue_count_replay(int64 edits)
{
	if (ckpt_shared != NULL)
		pg_atomic_fetch_add_u64(&ckpt_shared->replayed, edits);
}

void
ckptqueue_count_failure(void)
{
	pg_atomic_fetch_add_u64(&ckpt_shared->failures, 1);
}

void
ckptqueue_count_lock(int64 microseconds)
{
	uint64 longest = pg_atomic_read_u64(&ckpt_shared->longest_lock);

	while (longest < (uint64) microseconds &&
		   !pg_atomic_compare_exchange_u64(&ckpt_shared->longest_lock, &longest, (uint64) microseconds))
		continue;
}

bool
ckptqueue_stats(CkptStats *stats)
{
	if (ckpt_shared == NULL)
		return false;
	memset(stats, 0, sizeof(*stats));
	for (int i = 0; i < CKPT_CAUSES; i++)
		stats->made[i] = (int64) pg_atomic_read_u64(&ckpt_shared->made[i]);
	stats->failures = (int64) pg_atomic_read_u64(&ckpt_shared->failures);
	stats->rescans = (int64) pg_atomic_read_u64(&ckpt_shared->rescans);
	stats->replayed = (int64) pg_atomic_read_u64(&ckpt_shared->replayed);
	stats->longest_lock = (int64) pg_atomic_read_u64(&ckpt_shared->longest_lock);
	stats->checked = (int64) pg_atomic_read_u64(&ckpt_shared->checked);
	stats->damaged = (int64) pg_atomic_read_u64(&ckpt_shared->damaged);
	LWLockAcquire(&ckpt_shared->lock, LW_SHARED);
	stats->queued = ckpt_shared->used;
	for (int i = 0; i < CKPTQUEUE_WORKERS; i++)
		stats->workers += OidIsValid(ckpt_shared->slots[i].database);
	LWLockRelease(&ckpt_shared->lock);
	return true;
}

/* ---- the launcher ---- */

static void
ckptqueue_detach_launcher(int code, Datum arg)
{
	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	ckpt_shared->launcher = NULL;
	LWLockRelease(&ckpt_shared->lock);
}

void
ckptqueue_attach_launcher(void)
{
	before_shmem_exit(ckptqueue_detach_launcher, (Datum) 0);
	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	ckpt_shared->launcher = MyProc;
	ckpt_shared->life++;
	ckpt_shared->rescan = true;
	/* Of those whom a launcher before us has asked for, only they who are at work keep their slots. */
	for (int i = 0; i < CKPTQUEUE_WORKERS; i++)
		if (!ckpt_shared->slots[i].entered || ckpt_shared->slots[i].left)
			ckpt_shared->slots[i].database = InvalidOid;
	LWLockRelease(&ckpt_shared->lock);
}

void
ckptqueue_ask_rescan(void)
{
	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	ckpt_shared->rescan = true;
	LWLockRelease(&ckpt_shared->lock);
}

bool
ckptqueue_take_rescan(void)
{
	bool asked;

	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	asked = ckpt_shared->rescan;
	ckpt_shared->rescan = false;
	LWLockRelease(&ckpt_shared->lock);
	if (asked)
		pg_atomic_fetch_add_u64(&ckpt_shared->rescans, 1);
	return asked;
}

/* Lock held. */
static bool
ckptqueue_has_worker(Oid database)
{
	for (int i = 0; i < CKPTQUEUE_WORKERS; i++)
		if (ckpt_shared->slots[i].database == database)
			return true;
	return false;
}

Oid
ckptqueue_due_database(TimestampTz now, TimestampTz *next)
{
	Oid found = InvalidOid;

	*next = 0;
	LWLockAcquire(&ckpt_shared->lock, LW_SHARED);
	for (int i = 0; i < ckpt_shared->used && !OidIsValid(found); i++)
	{
		const CkptItem *item = &ckpt_shared->items[i];

		if (item->slot >= 0 || ckptqueue_has_worker(item->database))
			continue;
		if (item->due <= now)
			found = item->database;
		else if (*next == 0 || item->due < *next)
			*next = item->due;
	}
	LWLockRelease(&ckpt_shared->lock);
	return found;
}

void
ckptqueue_put_off(Oid database, TimestampTz until)
{
	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < ckpt_shared->used; i++)
		if (ckpt_shared->items[i].database == database)
			ckpt_shared->items[i].due = Max(ckpt_shared->items[i].due, until);
	LWLockRelease(&ckpt_shared->lock);
}

void
ckptqueue_discard(Oid database)
{
	if (ckpt_shared == NULL)
		return;
	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	for (int i = ckpt_shared->used - 1; i >= 0; i--)
		if (ckpt_shared->items[i].database == database)
			ckptqueue_remove(&ckpt_shared->items[i]);
	LWLockRelease(&ckpt_shared->lock);
}

int
ckptqueue_assign(Oid database, bool rescan, int32 *ticket)
{
	int slot = -1;

	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < CKPTQUEUE_WORKERS && slot < 0 && !ckptqueue_has_worker(database); i++)
		if (!OidIsValid(ckpt_shared->slots[i].database))
			slot = i;
	if (slot >= 0)
	{
		*ticket = (int32) ++ckpt_shared->last_ticket;
		ckpt_shared->slots[slot] =
			(CkptSlot){.database = database, .ticket = *ticket, .life = ckpt_shared->life, .rescan = rescan};
	}
	LWLockRelease(&ckpt_shared->lock);
	return slot;
}

CkptEnd
ckptqueue_release(int slot)
{
	CkptSlot *mine = &ckpt_shared->slots[slot];
	CkptEnd end;

	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	end = mine->end;
	*mine = (CkptSlot){0};
	LWLockRelease(&ckpt_shared->lock);
	return end;
}

/* ---- a worker ---- */

int
ckptqueue_enter(int32 ticket, Oid *database, bool *rescan)
{
	int slot = -1;

	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < CKPTQUEUE_WORKERS && slot < 0; i++)
	{
		CkptSlot *held = &ckpt_shared->slots[i];

		if (!OidIsValid(held->database) || held->ticket != ticket)
			continue;
		slot = i;
		held->entered = true;
		*database = held->database;
		*rescan = held->rescan;
	}
	LWLockRelease(&ckpt_shared->lock);
	return slot;
}

void
ckptqueue_leave(int slot, CkptEnd end)
{
	TimestampTz later = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), CKPTQUEUE_LEAVE_DELAY);

	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < ckpt_shared->used; i++)
	{
		CkptItem *item = &ckpt_shared->items[i];

		if (item->slot != slot)
			continue;
		item->slot = -1;
		item->due = later;
	}
	/* The launcher that has asked for us wants to know how we have ended; another one does not know of us. */
	ckpt_shared->slots[slot].left = true;
	ckpt_shared->slots[slot].end = end;
	if (ckpt_shared->slots[slot].life != ckpt_shared->life)
		ckpt_shared->slots[slot].database = InvalidOid;
	ckptqueue_wake();
	LWLockRelease(&ckpt_shared->lock);
}

bool
ckptqueue_take(int slot, CkptItem *item)
{
	TimestampTz now = GetCurrentTimestamp();
	bool found = false;

	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < ckpt_shared->used && !found; i++)
	{
		CkptItem *next = &ckpt_shared->items[i];

		found = next->database == MyDatabaseId && next->slot < 0 && next->due <= now;
		if (found)
		{
			next->slot = slot;
			*item = *next;
		}
	}
	LWLockRelease(&ckpt_shared->lock);
	return found;
}

void
ckptqueue_settle(int slot, const CkptItem *item, int64 seq)
{
	CkptItem *held;

	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	held = ckptqueue_find(item->database, item->sheet_id);
	if (held != NULL && (held->slot == slot || held->slot < 0))
	{
		held->slot = -1;
		held->due = 0;
		held->failures = 0;
		if (held->seq <= Max(seq, item->seq) && held->check == CKPT_CHECK_NONE)
			ckptqueue_remove(held);
	}
	LWLockRelease(&ckpt_shared->lock);
}

void
ckptqueue_settle_check(int slot, const CkptItem *item)
{
	CkptItem *held;

	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	held = ckptqueue_find(item->database, item->sheet_id);
	if (held != NULL && held->slot == slot)
	{
		held->slot = -1;
		held->due = 0;
		held->failures = 0;
		held->check = CKPT_CHECK_NONE;
		if (held->seq == 0)
			ckptqueue_remove(held);
	}
	LWLockRelease(&ckpt_shared->lock);
}

void
ckptqueue_retry(int slot, const CkptItem *item, TimestampTz due, uint32 failures)
{
	CkptItem *held;

	LWLockAcquire(&ckpt_shared->lock, LW_EXCLUSIVE);
	held = ckptqueue_find(item->database, item->sheet_id);
	if (held == NULL && (held = ckptqueue_add(item->database, item->sheet_id)) != NULL)
	{
		held->seq = item->seq;
		held->cause = item->cause;
		held->check = item->check;
	}
	if (held != NULL && (held->slot == slot || held->slot < 0))
	{
		held->slot = -1;
		held->due = due;
		held->failures = failures;
	}
	LWLockRelease(&ckpt_shared->lock);
}
