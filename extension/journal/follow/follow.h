/*
 * follow.h - publishing changes of sheets to gateways, through shared memory; see follow.c.
 */
#ifndef FOLLOW_H
#define FOLLOW_H

#include "postgres.h"
#include "common/sql_interface.h"

typedef struct FollowAnswer
{
	bool lost; /* events are missing: read all sheets again */
	int count;
	int64 sheet_ids[FOLLOW_ANSWER_MAX]; /* -uid for an account */
	int64 seqs[FOLLOW_ANSWER_MAX];		/* the newest seq, or a number of common/sql_interface.h */
} FollowAnswer;

extern Size follow_shmem_size(void);
/* From the shmem startup hook, under AddinShmemInitLock. */
extern void follow_shmem_startup(bool preloaded);
/* Registers the transaction callback; from _PG_init. */
extern void follow_init(void);

/*
 * The sheet's last seq is now `seq`. Wakes the followers of the same database with another origin. For the journal's
 * commit callback: cannot fail, does not allocate. A no-op without shared memory.
 */
extern void follow_publish(int64 sheet_id, int64 seq, int64 origin);
/* The database was created or renamed: cursors from before refer to another database. */
extern void follow_publish_database(Oid database);
/* Registers FOLLOW_STATUS, which is published if the current (sub)transaction commits. */
extern void follow_register_status(int64 sheet_id);
/* The same for an account whose name or tokens changed: the event has the sheet id -uid. A change of a link is one of
 * its sheet. */
extern void follow_register_account(int64 uid);
/* The same with FOLLOW_REMINDERS. */
extern void follow_register_reminders(int64 uid);
/* The same for a sheet with FOLLOW_VALUES. */
extern void follow_register_values(int64 sheet_id);
/* The same for a sheet with FOLLOW_BOOK. */
extern void follow_register_book(int64 sheet_id);

/* False without shared memory: then the functions below must not be called. */
extern bool follow_possible(void);
/* The cursor after the newest event. */
extern uint64 follow_head(void);
/*
 * Waits at most `timeout_ms` for events from `cursor` on whose origin is not `origin`, adds them to the answer, which
 * must be zeroed, and returns the next cursor. 53300 if too many sessions follow.
 */
extern uint64 follow_next(int64 origin, uint64 cursor, int timeout_ms, FollowAnswer *answer);

#endif
