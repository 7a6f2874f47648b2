/*
 * ckptqueue.h - sheets that want a checkpoint, or to be checked: a small queue in shared memory between those who find
 * it out (writers at commit, the cache when it evicts, whoever opens a sheet) and the background workers
 * (extension/worker).
 *
 * Who wakes whom: whoever adds a sheet sets the launcher's latch; nobody waits for anybody. The launcher starts a
 * worker for a database with work, and PostgreSQL wakes the launcher when a worker starts or ends.
 *
 * What is in shared memory: the queue, the workers' slots, counters. All of it may be lost: the launcher begins its
 * life by having every database looked through for long logs (a rescan), and does so again when the queue has
 * overflowed. A check for which there is no room is asked for again by whoever uses the sheet next (recheck.c).
 *
 * Locks: one LWLock for everything here, a leaf: taken under an entry's lock and the cache's directory lock, and with
 * nothing below it. What writers and the cache call does not allocate and cannot fail.
 *
 * An item's life: noted -> taken by the worker in a slot -> settled by a version that is at least as new as the note,
 * or put off (too early, an error, the worker's death) to be taken again when it is due.
 */
#ifndef CKPTQUEUE_H
#define CKPTQUEUE_H

#include "postgres.h"
#include "datatype/timestamp.h"

/* Why a version was made: stored with it, and as the row of its commit record. */
typedef enum CkptCause
{
	CKPT_BY_COMMIT,	  /* sheet.commit */
	CKPT_BY_ROLLBACK, /* sheet.rollback */
	CKPT_BY_LOG,	  /* the open log had become long */
	CKPT_BY_EVICTION, /* the cache gave the sheet up */
	CKPT_CAUSES
} CkptCause;

/* Was it made by the background worker? */
static inline bool
ckpt_is_automatic(CkptCause cause)
{
	return cause == CKPT_BY_LOG || cause == CKPT_BY_EVICTION;
}

extern const char *ckpt_cause_name(CkptCause cause);

/* Why a sheet is to be checked (recheck.c). */
typedef enum CkptCheck
{
	CKPT_CHECK_NONE,
	CKPT_CHECK_CRASH,	/* opened for the first time since the server has crashed */
	CKPT_CHECK_TAKEOVER /* claimed from a gateway that did not release it */
} CkptCheck;

/* ---- settings; 0: off ---- */
extern int ckptqueue_edits;		/* of an open log that is to be sealed */
extern int ckptqueue_kilobytes; /* the same, by the size of its edits before compression */
extern int ckptqueue_interval;	/* ms that at least lie between a version and an automatic one */
/* From _PG_init while preloading. */
extern void ckptqueue_define_settings(void);

/* ---- start-up ---- */
extern Size ckptqueue_shmem_size(void);
extern void ckptqueue_shmem_startup(void); /* under AddinShmemInitLock */

/* ---- noting: no allocation, no error; nothing without shared memory ---- */
/* The length of an open log. */
typedef struct CkptTail
{
	int64 edits;
	int64 bytes; /* of what was appended since the server knows the sheet: may be too low */
} CkptTail;

/* A commit has made the open log grow. Each multiple of a limit notes the sheet, so that a lost note is made up for. */
extern void ckptqueue_note_growth(int64 sheet_id, int64 seq, CkptTail before, CkptTail after);
/* The cache has evicted the sheet: a log that is not quite short is sealed now, so that opening it again is cheap. */
extern void ckptqueue_note_eviction(Oid database, int64 sheet_id, int64 seq, CkptTail tail);

/* A sheet of this database is to be checked. False: there is no room. */
extern bool ckptqueue_note_check(int64 sheet_id, CkptCheck why);

/* ---- counting ---- */
extern void ckptqueue_count(CkptCause cause);
/* A sheet was checked by itself. */
extern void ckptqueue_count_check(bool damaged);
/* Edits that were read from logs to rebuild the cells of a sheet. */
extern void ckptqueue_count_replay(int64 edits);
extern void ckptqueue_count_failure(void);
/* For how long a worker held a sheet's lock. */
extern void ckptqueue_count_lock(int64 microseconds);

typedef struct CkptStats
{
	int64 made[CKPT_CAUSES];
	int64 failures, rescans, replayed;
	int64 longest_lock;		/* microseconds */
	int64 checked, damaged; /* sheets, by themselves */
	int queued, workers;
} CkptStats;
/* False without shared memory. */
extern bool ckptqueue_stats(CkptStats *stats);

/* ---- the launcher ---- */
#define CKPTQUEUE_WORKERS 3 /* that run at once, each in another database */

/* This process is woken from now on. Asks for a rescan. */
extern void ckptqueue_attach_launcher(void);
extern void ckptqueue_ask_rescan(void);
/* Takes the request for a rescan, if there is one. */
extern bool ckptqueue_take_rescan(void);
/* A database that has due items and no worker, or InvalidOid; then *next is when an item will be due (0: none). */
extern Oid ckptqueue_due_database(TimestampTz now, TimestampTz *next);
/* Items of the database are not due before then. */
extern void ckptqueue_put_off(Oid database, TimestampTz until);
/* The database is gone, or has no sheets. */
extern void ckptqueue_discard(Oid database);
/* A slot for a worker in the database, -1 when there is none. *ticket is the worker's to come in with. */
extern int ckptqueue_assign(Oid database, bool rescan, int32 *ticket);
/* How a worker has ended. */
typedef enum CkptEnd
{
	CKPT_END_FAILED,   /* before it could begin */
	CKPT_END_LEFT,	   /* it was told to go, or an error ended it */
	CKPT_END_FINISHED, /* nothing more was due */
} CkptEnd;
/* Gives the slot back after its worker has ended. */
extern CkptEnd ckptqueue_release(int slot);

/* ---- a worker ---- */
typedef struct CkptItem
{
	Oid database;
	int64 sheet_id;
	int64 seq; /* a version from this one on settles it; 0: none is wanted */
	CkptCause cause;
	CkptCheck check; /* before anything else */
	int slot;		 /* of the worker that has taken it, or -1 */
	uint32 failures;
	TimestampTz due;
} CkptItem;

/* Returns our slot, or -1: the launcher that has assigned it is no more. */
extern int ckptqueue_enter(int32 ticket, Oid *database, bool *rescan);
/* At the worker's end, in whatever way: what it had taken is due again, a little later. */
extern void ckptqueue_leave(int slot, CkptEnd end);
/* The next due item of the slot's database, a copy. */
extern bool ckptqueue_take(int slot, CkptItem *item);
/* There is a version of seq now, or nothing to do (PG_INT64_MAX). An item that was noted anew meanwhile stays. */
extern void ckptqueue_settle(int slot, const CkptItem *item, int64 seq);
/* The item's check is done. */
extern void ckptqueue_settle_check(int slot, const CkptItem *item);
/* Tries again then; `failures` is the item's from now on. An item that no queue holds is added when there is room. */
extern void ckptqueue_retry(int slot, const CkptItem *item, TimestampTz due, uint32 failures);

#endif
