/*
 * workqueue.h - sheets that need a version or a check: a queue in shared memory, filled by writers, by the cache and by
 * whoever opens a sheet, and emptied by the background workers (worker/worker.c). See workqueue.c.
 */
#ifndef WORKQUEUE_H
#define WORKQUEUE_H

#include "postgres.h"
#include "common/edit_codec.h"
#include "datatype/timestamp.h"

extern const char *version_cause_name(VersionCause cause);

/* Why a sheet must be checked (recheck.c). */
typedef enum CheckCause
{
	CHECK_NONE,
	CHECK_AFTER_CRASH,	 /* opened for the first time since a crash of the server */
	CHECK_AFTER_TAKEOVER /* claimed from a gateway that did not release it */
} CheckCause;

/* ---- settings ---- */
extern int workqueue_edits;		/* of an open segment that needs a version; 0: no limit */
extern int workqueue_kilobytes; /* the same for the uncompressed size of its edits */
extern int workqueue_interval;	/* minimum ms between a version and the next automatic one */

/* ---- start-up ---- */
extern void workqueue_define_settings(void); /* from _PG_init while preloading */
extern Size workqueue_shmem_size(void);
extern void workqueue_shmem_startup(void); /* under AddinShmemInitLock */

/* ---- adding: allocates nothing, raises no error, does nothing without shared memory ---- */
typedef struct SegmentLength
{
	int64 edits;
	int64 bytes; /* appended since the server knows the sheet: a lower bound */
} SegmentLength;

/* A commit has made the open segment grow. Queues the sheet at each multiple of a limit. */
extern void workqueue_report_growth(int64 sheet_id, int64 seq, SegmentLength before, SegmentLength after);
/* The cache has evicted the sheet. Queues it unless its open segment is short, so that it can be opened cheaply. */
extern void workqueue_report_eviction(Oid database, int64 sheet_id, int64 seq, SegmentLength length);
/* Queues a sheet of this database for a check. Returns false when the queue is full. */
extern bool workqueue_add_check(int64 sheet_id, CheckCause cause);

/* ---- counters ---- */
/* The columns of sheet.version_stats, in their order. The first VERSION_CAUSES count versions by cause. */
typedef enum WorkCounter
{
	WORK_FAILURES = VERSION_CAUSES,
	WORK_RESCANS,
	WORK_REPLAYED,	   /* edits that were read to rebuild cells */
	WORK_LONGEST_LOCK, /* a maximum, in microseconds */
	WORK_CHECKED,
	WORK_DAMAGED,
	WORK_COUNTERS
} WorkCounter;

extern void workqueue_count(WorkCounter counter, int64 n);

/* ---- the launcher ---- */
/* Wakes this process when the queue needs it. Requests a search of all databases. */
extern void workqueue_attach_launcher(void);
extern void workqueue_request_search(void);
/* Sets the launcher's latch, if there is one. Takes the queue's lock. */
extern void workqueue_wake(void);
/* Returns whether a search of all databases was requested, and clears the request. */
extern bool workqueue_take_request(void);
/* Queues a search of the database for long segments. */
extern void workqueue_add_search(Oid database);
/* Returns a database with a due item that is not among the `count` busy ones, or InvalidOid: then *next is the time at
 * which an item becomes due (0: none). */
extern Oid workqueue_due_database(const Oid *busy, int count, TimestampTz *next);
/* Makes no item of the database due for so many ms. */
extern void workqueue_put_off(Oid database, int ms);
/* Removes the items of a database that is gone, or has no sheets. */
extern void workqueue_discard(Oid database);
extern void workqueue_set_workers(int workers);

/* ---- a worker ---- */
#define WORKQUEUE_SEARCH PG_INT64_MIN /* in place of a sheet's id: search the database for long segments */

typedef struct WorkItem
{
	Oid database;
	int64 sheet_id;
	int64 seq; /* a version from this seq on is needed; 0: none */
	VersionCause cause;
	CheckCause check; /* comes before the version */
	uint32 failures;
	TimestampTz due;
} WorkItem;

/* Copies a due item of this database. It stays queued until it is settled. */
extern bool workqueue_take(WorkItem *item, bool may_search);
/* The item's check is done or, when it wants none, its version. What was queued meanwhile stays. */
extern void workqueue_settle(const WorkItem *item);
#define WORKQUEUE_DELAY_MAX_MS 3600000 /* the longest delay after a failure */
/* Makes the item due at a later time. Adds an item that is not queued, if there is room. */
extern void workqueue_retry(const WorkItem *item, TimestampTz due, uint32 failures);

#endif
