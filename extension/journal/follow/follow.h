/*
 * follow.h - telling gateways, through shared memory, that a sheet has changed; see follow.c.
 */
#ifndef FOLLOW_H
#define FOLLOW_H

#include "postgres.h"

/* The sheet itself changed (trashed, recovered, purged, renamed, shared), not its cells: read its row again. */
#define FOLLOW_STATUS (-1)

#define FOLLOW_ANSWER_MAX 1024 /* sheets in one answer; the rest comes with the next */

typedef struct FollowAnswer
{
	bool lost; /* events are missing: look at all sheets */
	int count;
	int64 sheet_ids[FOLLOW_ANSWER_MAX]; /* -uid for an account */
	int64 seqs[FOLLOW_ANSWER_MAX];		/* the newest seq, or FOLLOW_STATUS */
} FollowAnswer;

extern Size follow_shmem_size(void);
/* From the shmem startup hook, under AddinShmemInitLock. */
extern void follow_shmem_startup(bool preloaded);
/* Registers the transaction callback; from _PG_init. */
extern void follow_init(void);

/*
 * The sheet's last seq is now `seq`. For the journal's commit callback: cannot fail, does not allocate.
 * Followers of the same database whose origin differs are woken. A no-op without shared memory.
 */
extern void follow_publish(int64 sheet_id, int64 seq, int64 origin);
/* The database is new, or has another name: who follows it from an earlier cursor may have known another one. */
extern void follow_publish_database(Oid database);
/* Publishes FOLLOW_STATUS when the current transaction commits (nothing when it aborts or the subtransaction does). */
extern void follow_note_status(int64 sheet_id);
/* The same for an account whose name or tokens have changed: the event names the sheet -uid. */
extern void follow_note_account(int64 uid);

/* False without shared memory: the functions below must not be called then. */
extern bool follow_possible(void);
/* The cursor before which everything has happened by now. */
extern uint64 follow_head(void);
/*
 * Waits at most `timeout_ms` for events from `cursor` on that are not of `origin`, adds them to the answer, which must
 * be zeroed, and returns the next cursor. 53300 when too many sessions follow.
 */
extern uint64 follow_next(int64 origin, uint64 cursor, int timeout_ms, FollowAnswer *answer);

#endif
