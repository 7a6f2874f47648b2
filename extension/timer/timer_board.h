/*
 * timer_board.h - for each database with entries of the timer, what its worker does not know yet and when a worker is
 * needed. The structures lie in shared memory (timer.c).
 *
 * Callers serialise all calls. The functions allocate nothing, raise no error, and read no clock: `now` is passed.
 *
 * A database has a horizon. Every committed entry that ends before it is known: to the worker, or told, which means in
 * the board's list. Entries from the horizon on are only in the table, and are found by the scan that is due when the
 * horizon has come. So what has no room in the list costs an earlier scan and is not lost. An entry may be known twice,
 * or be known and gone: the worker looks at the table before it acts.
 */
#ifndef TIMER_BOARD_H
#define TIMER_BOARD_H

#include "postgres.h"
#include "datatype/timestamp.h"

#define TIMER_DATABASES 4096
#define TIMER_TOLD		16384
#define TIMER_WINDOW_US INT64CONST(60000000)
#define TIMER_LATER_US	INT64CONST(60000000) /* the longest time for which a database is put off */

/* Kinds of objects that expire. timer.c has their names, worker/timers.c their statements. */
typedef enum TimerKind
{
	TIMER_UPLOAD,		  /* an unfinished upload: its upload_id */
	TIMER_REVOKED_TOKENS, /* revoked tokens of an account, of which the first expires: its uid */
	TIMER_CALENDAR_EDIT,  /* a commit of edits of a calendar: its edit_id */
	TIMER_CALENDAR,		  /* a calendar whose series are to be expanded further: its sheet_id */
	TIMER_REMINDER,		  /* a task with reminders: its task_id */
	TIMER_KINDS
} TimerKind;

typedef struct TimerEntry
{
	int64 id; /* in its kind */
	TimestampTz at;
	TimerKind kind;
} TimerEntry;

typedef struct TimerDatabase
{
	Oid database;
	struct PGPROC *worker; /* NULL: none */
	TimestampTz horizon;
	TimestampTz told;		/* the first end in the list; DT_NOEND: none is in it */
	TimestampTz until;		/* of the worker's sleep: what ends later need not wake it; DT_NOBEGIN: it is awake */
	TimestampTz not_before; /* no worker is started earlier */
} TimerDatabase;

typedef struct TimerTold
{
	Oid database;
	TimerEntry entry;
} TimerTold;

typedef struct TimerBoard
{
	int databases;
	int told_count;
	TimerDatabase database[TIMER_DATABASES];
	TimerTold told[TIMER_TOLD];
} TimerBoard;

typedef enum TimerWake
{
	TIMER_WAKE_NOBODY,
	TIMER_WAKE_WORKER,
	TIMER_WAKE_LAUNCHER
} TimerWake;

/* ---- committed entries ---- */
/* Tells of an entry that has become visible. Returns who must look at the board now. */
extern TimerWake timer_board_tell(TimerBoard *board, Oid database, const TimerEntry *entry, TimestampTz now);

/* ---- the launcher ---- */
/* Nothing is known of the database, whose worker has to read the whole table. Does nothing while it has a worker. */
extern void timer_board_look(TimerBoard *board, Oid database);
/* Of the databases that need a worker now, have none and are not among the `count` busy ones: the one that needs it for
 * the longest time. If there is none, InvalidOid, and *next is when that changes (DT_NOEND: not by itself). */
extern Oid timer_board_due(const TimerBoard *board, const Oid *busy, int count, TimestampTz now, TimestampTz *next);
/* No worker is started before. At most TIMER_LATER_US from now: a longer time is one from before the clock stepped. */
extern void timer_board_put_off(TimerBoard *board, Oid database, TimestampTz not_before);
/* The database is gone, or has no timer. */
extern void timer_board_discard(TimerBoard *board, Oid database);

/* ---- a worker ---- */
/* The database, or NULL. Valid until the lock is released. */
extern TimerDatabase *timer_board_find(TimerBoard *board, Oid database);
/* Returns false if the database is not on the board, or has a worker. */
extern bool timer_board_attach(TimerBoard *board, Oid database, struct PGPROC *worker);
/* Moves at most `max` entries of the list to `entries`. Returns their number. */
extern int timer_board_take(TimerBoard *board, Oid database, TimerEntry *entries, int max);
/* The worker may sleep until then. Returns false if it may not: there is something to take, or the horizon has become
 * nearer than `horizon`. */
extern bool timer_board_sleep(TimerBoard *board, Oid database, TimestampTz horizon, TimestampTz until);
/* The worker calls this before it takes the snapshot of a scan. All entries that commit later are put into the list.
 * Returns the horizon, at which the scan begins. */
extern TimestampTz timer_board_scan_begin(TimerBoard *board, Oid database);
/* The worker knows no entry from there on: after a scan, or when it has forgotten what it knew. */
extern void timer_board_lower_horizon(TimerBoard *board, Oid database, TimestampTz horizon);
/* The worker ends. `earliest` is the first end of the entries that it knows and has not served; DT_NOEND: there are
 * none.
 */
extern void timer_board_leave(TimerBoard *board, Oid database, TimestampTz earliest);

#endif
