/*
 * timer.h - what expires: entries of the table sheet.timer, which the timer's worker (worker/timers.c) serves when
 * their time has come. See docs/design/timer.md.
 *
 * The timer cleans up. Whoever uses an object compares its end with the clock: an entry may be served late.
 */
#ifndef TIMER_H
#define TIMER_H

#include "postgres.h"
#include "timer/timer_board.h"

/* ---- entries, in the caller's transaction and with the rights of the tables' owner ---- */
/* Sets the time of the object, or changes it. Other parts may also write sheet.timer by SQL: a trigger sees it. */
extern void timer_set(TimerKind kind, int64 id, TimestampTz at);
/* Does nothing if there is no entry. The entry of an object that is gone may also be left to the timer. */
extern void timer_remove(TimerKind kind, int64 id);

extern const char *timer_kind_name(TimerKind kind);
/* Returns TIMER_KINDS if no kind has the name. */
extern TimerKind timer_kind_find(const char *name);

/* ---- start-up ---- */
extern Size timer_shmem_size(void);
extern void timer_shmem_startup(void); /* under AddinShmemInitLock */
extern void timer_init(void);		   /* from _PG_init */

/* ---- counters: the columns of sheet.timer_stats, in their order ---- */
typedef enum TimerCounter
{
	TIMER_SERVED,
	TIMER_FAILURES,
	TIMER_SCANS,
	TIMER_WAKES,
	TIMER_LATE, /* a maximum, in microseconds */
	TIMER_COUNTERS
} TimerCounter;

extern void timer_count(TimerCounter counter, int64 n);

/* ---- the launcher; see timer_board.h ---- */
/* Ends the workers of an earlier launcher, which nobody watches. */
extern void timer_attach_launcher(void);
/* Also for a database that was created as a copy. Does nothing without shared memory. */
extern void timer_look(Oid database);
extern Oid timer_due_database(const Oid *busy, int count, TimestampTz *next);
extern void timer_put_off(Oid database, int ms);
extern void timer_discard(Oid database);
/* While it is set, workers end as soon as nothing is due, so that others can start. */
extern void timer_set_crowded(bool crowded);

/* ---- a worker, of its database ---- */
/* Returns false if there is nothing to do, or another worker does it. */
extern bool timer_attach(void);
/* Copies what the worker was told, `max` entries at most, and the horizon. Returns the number of entries, or -1: the
 * worker has to end. */
extern int timer_take(TimerEntry *entries, int max, TimestampTz *horizon, bool *crowded);
extern bool timer_sleep(TimestampTz horizon, TimestampTz until);
extern TimestampTz timer_scan_begin(void);
extern void timer_lower_horizon(TimestampTz horizon);
extern void timer_leave(TimestampTz earliest, int put_off_ms);

#endif
