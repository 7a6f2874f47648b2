/*
 * workqueue.c - sheets that need a version or a check, and counters of what was done for them.
 *
 * The queue is an unordered array in shared memory. It is short, and searched only when a segment has become long or a
 * sheet is opened that must be checked. Adding an item wakes the launcher (worker/launcher.c), and nobody waits.
 *
 * An item stays until its work is done. A worker that fails makes it due later; one that dies leaves it as it is. The
 * whole queue may be lost with shared memory, and items may be refused when it is full: then the launcher has every
 * database searched for long segments. A check for which there is no room is requested again by whoever uses the sheet
 * next (recheck.c).
 *
 * Lock: one LWLock for everything but the atomic variables. It is a leaf: taken under an entry's lock and the cache's
 * directory lock, with no other lock taken below it.
 */
#include "postgres.h"

#include "support/workqueue.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_version_stats);

#define WORKQUEUE_SHEETS	  1024
#define WORKQUEUE_SEARCHES	  4096			/* databases */
#define WORKQUEUE_EVICT_EDITS 1000			/* at eviction a shorter segment needs no version ... */
#define WORKQUEUE_EVICT_BYTES (1024 * 1024) /* ... unless it is as large as this */

typedef struct WorkQueue
{
	LWLock lock;
	int tranche;
	PGPROC *launcher; /* NULL: none */
	int used;		  /* items */
	int sheets;		  /* items that are no searches */
	WorkItem items[WORKQUEUE_SHEETS + WORKQUEUE_SEARCHES];
	pg_atomic_uint32 requested; /* a search of all databases */
	pg_atomic_uint32 workers;
	pg_atomic_uint64 counters[WORK_COUNTERS];
} WorkQueue;

int workqueue_edits = 100000;
int workqueue_kilobytes = 65536;
int workqueue_interval = 60000;

static WorkQueue *queue = NULL;

const char *
version_cause_name(VersionCause cause)
{
	static const char *const names[VERSION_CAUSES] = {"commit", "rollback", "log", "eviction"};

	return (unsigned) cause < VERSION_CAUSES ? names[cause] : "unknown";
}

/* ---- start-up ---- */

void
workqueue_define_settings(void)
{
	DefineCustomIntVariable(
		"pg_sheet.version_edits",
		"Number of edits since a sheet's last version after which a version is saved automatically.", "0: no limit.",
		&workqueue_edits, 100000, 0, INT_MAX, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable(
		"pg_sheet.version_bytes",
		"Size of the edits since a sheet's last version after which a version is saved automatically.", "0: no limit.",
		&workqueue_kilobytes, 65536, 0, MAX_KILOBYTES, PGC_SIGHUP, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_sheet.version_interval",
							"Minimum time between a sheet's last version and an automatic one.", NULL,
							&workqueue_interval, 60000, 0, 24 * 3600 * 1000, PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
}

Size
workqueue_shmem_size(void)
{
	return MAXALIGN(sizeof(WorkQueue));
}

void
workqueue_shmem_startup(void)
{
	bool found;

	queue = ShmemInitStruct("pg_sheet work queue", workqueue_shmem_size(), &found);
	if (!found)
	{
		memset(queue, 0, sizeof(WorkQueue));
		queue->tranche = LWLockNewTrancheId();
		LWLockInitialize(&queue->lock, queue->tranche);
		pg_atomic_init_u32(&queue->requested, 0);
		pg_atomic_init_u32(&queue->workers, 0);
		for (int i = 0; i < WORK_COUNTERS; i++)
			pg_atomic_init_u64(&queue->counters[i], 0);
	}
	LWLockRegisterTranche(queue->tranche, "pg_sheet_work_queue");
}

/* ---- items; callers hold the lock in exclusive mode ---- */

static WorkItem *
queue_find(Oid database, int64 sheet_id)
{
	for (int i = 0; i < queue->used; i++)
		if (queue->items[i].sheet_id == sheet_id && queue->items[i].database == database)
			return &queue->items[i];
	return NULL;
}

/* Finds or adds the item. Returns NULL when there is no room. */
static WorkItem *
queue_get(Oid database, int64 sheet_id)
{
	bool search = sheet_id == WORKQUEUE_SEARCH;
	WorkItem *item = queue_find(database, sheet_id);

	if (item != NULL)
		return item;
	if (search ? queue->used - queue->sheets == WORKQUEUE_SEARCHES : queue->sheets == WORKQUEUE_SHEETS)
		return NULL;
	item = &queue->items[queue->used++];
	queue->sheets += !search;
	*item = (WorkItem){.database = database, .sheet_id = sheet_id, .cause = VERSION_BY_EVICTION};
	return item;
}

static void
queue_remove(WorkItem *item)
{
	queue->sheets -= item->sheet_id != WORKQUEUE_SEARCH;
	*item = queue->items[--queue->used];
}

static void
queue_wake(void)
{
	if (queue->launcher != NULL)
		SetLatch(&queue->launcher->procLatch);
}

/* ---- adding ---- */

/* An item that is queued already keeps its failures and the time at which it is due. */
static void
queue_add_version(Oid database, int64 sheet_id, int64 seq, VersionCause cause)
{
	WorkItem *item;

	LWLockAcquire(&queue->lock, LW_EXCLUSIVE);
	item = queue_get(database, sheet_id);
	if (item == NULL)
		pg_atomic_write_u32(&queue->requested, 1);
	else
	{
		item->seq = Max(item->seq, seq);
		if (cause == VERSION_BY_LENGTH)
			item->cause = cause;
	}
	queue_wake();
	LWLockRelease(&queue->lock);
}

static inline bool
queue_passes(int64 before, int64 after, int64 limit)
{
	return limit > 0 && after / limit > before / limit;
}

void
workqueue_report_growth(int64 sheet_id, int64 seq, SegmentLength before, SegmentLength after)
{
	if (queue != NULL && (queue_passes(before.edits, after.edits, workqueue_edits) ||
						  queue_passes(before.bytes, after.bytes, (int64) workqueue_kilobytes * 1024)))
		queue_add_version(MyDatabaseId, sheet_id, seq, VERSION_BY_LENGTH);
}

void
workqueue_report_eviction(Oid database, int64 sheet_id, int64 seq, SegmentLength length)
{
	if (queue != NULL && (workqueue_edits != 0 || workqueue_kilobytes != 0) &&
		(length.edits >= WORKQUEUE_EVICT_EDITS || length.bytes >= WORKQUEUE_EVICT_BYTES))
		queue_add_version(database, sheet_id, seq, VERSION_BY_EVICTION);
}

bool
workqueue_add_check(int64 sheet_id, CheckCause cause)
{
	WorkItem *item;

	if (queue == NULL)
		return true;
	/* Read without the lock: a caller that is refused asks again. */
	if (queue->sheets == WORKQUEUE_SHEETS)
		return false;
	LWLockAcquire(&queue->lock, LW_EXCLUSIVE);
	item = queue_get(MyDatabaseId, sheet_id);
	if (item != NULL)
	{
		item->check = cause;
		item->due = 0;
		queue_wake();
	}
	LWLockRelease(&queue->lock);
	return item != NULL;
}

/* ---- counters ---- */

void
workqueue_count(WorkCounter counter, int64 n)
{
	uint64 longest;

	if (queue == NULL)
		return;
	if (counter != WORK_LONGEST_LOCK)
	{
		pg_atomic_fetch_add_u64(&queue->counters[counter], n);
		return;
	}
	longest = pg_atomic_read_u64(&queue->counters[counter]);
	while (longest < (uint64) n && !pg_atomic_compare_exchange_u64(&queue->counters[counter], &longest, (uint64) n))
		continue;
}

/* version_stats_read(): one row; no row without shared memory. */
Datum
sheet_version_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum values[WORK_COUNTERS + 2];
	bool nulls[lengthof(values)] = {0};

	InitMaterializedSRF(fcinfo, 0);
	if (queue == NULL)
		return (Datum) 0;
	for (int i = 0; i < WORK_COUNTERS; i++)
		values[i] = Int64GetDatum((int64) pg_atomic_read_u64(&queue->counters[i]));
	values[WORK_LONGEST_LOCK] =
		Float8GetDatum(pg_atomic_read_u64(&queue->counters[WORK_LONGEST_LOCK]) / 1000.0); /* ms */
	values[WORK_COUNTERS] = Int32GetDatum(queue->sheets);								  /* read without the lock */
	values[WORK_COUNTERS + 1] = Int32GetDatum((int32) pg_atomic_read_u32(&queue->workers));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}

/* ---- the launcher ---- */

static void
queue_detach_launcher(int code, Datum arg)
{
	LWLockAcquire(&queue->lock, LW_EXCLUSIVE);
	queue->launcher = NULL;
	LWLockRelease(&queue->lock);
}

void
workqueue_attach_launcher(void)
{
	before_shmem_exit(queue_detach_launcher, (Datum) 0);
	LWLockAcquire(&queue->lock, LW_EXCLUSIVE);
	queue->launcher = MyProc;
	LWLockRelease(&queue->lock);
	workqueue_request_search();
}

void
workqueue_wake(void)
{
	if (queue == NULL)
		return;
	LWLockAcquire(&queue->lock, LW_SHARED);
	queue_wake();
	LWLockRelease(&queue->lock);
}

void
workqueue_request_search(void)
{
	pg_atomic_write_u32(&queue->requested, 1);
}

bool
workqueue_take_request(void)
{
	return pg_atomic_exchange_u32(&queue->requested, 0) != 0;
}

void
workqueue_add_search(Oid database)
{
	WorkItem *item;

	LWLockAcquire(&queue->lock, LW_EXCLUSIVE);
	item = queue_get(database, WORKQUEUE_SEARCH);
	if (item != NULL)
	{
		item->seq++; /* so that a search that has begun is repeated */
		item->due = 0;
	}
	LWLockRelease(&queue->lock);
}

static bool
queue_is_busy(Oid database, const Oid *busy, int count)
{
	for (int i = 0; i < count; i++)
		if (busy[i] == database)
			return true;
	return false;
}

/* No delay is longer than that between two versions, or than the longest one after a failure. An item that would wait
 * longer was put off before the clock was set back. */
static bool
queue_is_due(const WorkItem *item, TimestampTz now)
{
	int longest = Max(workqueue_interval, WORKQUEUE_DELAY_MAX_MS);

	return item->due <= now || item->due > TimestampTzPlusMilliseconds(now, longest);
}

Oid
workqueue_due_database(const Oid *busy, int count, TimestampTz *next)
{
	TimestampTz now = GetCurrentTimestamp();
	Oid found = InvalidOid;

	*next = 0;
	LWLockAcquire(&queue->lock, LW_SHARED);
	for (int i = 0; i < queue->used && !OidIsValid(found); i++)
	{
		const WorkItem *item = &queue->items[i];

		if (queue_is_busy(item->database, busy, count))
			continue;
		if (queue_is_due(item, now))
			found = item->database;
		else if (*next == 0 || item->due < *next)
			*next = item->due;
	}
	LWLockRelease(&queue->lock);
	return found;
}

void
workqueue_put_off(Oid database, int ms)
{
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms);

	LWLockAcquire(&queue->lock, LW_EXCLUSIVE);
	for (int i = 0; i < queue->used; i++)
		if (queue->items[i].database == database)
			queue->items[i].due = Max(queue->items[i].due, until);
	LWLockRelease(&queue->lock);
}

void
workqueue_discard(Oid database)
{
	if (queue == NULL)
		return;
	LWLockAcquire(&queue->lock, LW_EXCLUSIVE);
	for (int i = queue->used - 1; i >= 0; i--)
		if (queue->items[i].database == database)
			queue_remove(&queue->items[i]);
	LWLockRelease(&queue->lock);
}

void
workqueue_set_workers(int workers)
{
	pg_atomic_write_u32(&queue->workers, workers);
}

/* ---- a worker ---- */

bool
workqueue_take(WorkItem *item, bool may_search)
{
	TimestampTz now = GetCurrentTimestamp();
	bool found = false;

	LWLockAcquire(&queue->lock, LW_SHARED);
	for (int i = 0; i < queue->used && !found; i++)
	{
		*item = queue->items[i];
		found = item->database == MyDatabaseId && queue_is_due(item, now) &&
				(may_search || item->sheet_id != WORKQUEUE_SEARCH);
	}
	LWLockRelease(&queue->lock);
	return found;
}

void
workqueue_settle(const WorkItem *item)
{
	WorkItem *queued;

	LWLockAcquire(&queue->lock, LW_EXCLUSIVE);
	queued = queue_find(item->database, item->sheet_id);
	if (queued != NULL)
	{
		if (item->check != CHECK_NONE)
			queued->check = CHECK_NONE;
		else if (queued->seq <= item->seq)
			queued->seq = 0;
		queued->due = 0;
		queued->failures = 0;
		if (queued->seq == 0 && queued->check == CHECK_NONE)
			queue_remove(queued);
	}
	LWLockRelease(&queue->lock);
}

void
workqueue_retry(const WorkItem *item, TimestampTz due, uint32 failures)
{
	WorkItem *queued;

	LWLockAcquire(&queue->lock, LW_EXCLUSIVE);
	queued = queue_get(item->database, item->sheet_id);
	if (queued != NULL)
	{
		if (queued->seq == 0 && queued->check == CHECK_NONE) /* just added */
			*queued = *item;
		queued->due = due;
		queued->failures = failures;
	}
	LWLockRelease(&queue->lock);
}
