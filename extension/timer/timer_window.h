/*
 * timer_window.h - the entries of the timer that a worker knows, in the order in which they are due: a heap in its
 * memory. Reads no clock.
 */
#ifndef TIMER_WINDOW_H
#define TIMER_WINDOW_H

#include "timer/timer_board.h"

#define TIMER_SLEEP_MIN_MS	20	 /* so that entries that end one after the other are served together */
#define TIMER_SLEEP_MAX_MS	5000 /* so that a step of the clock is noticed */
#define TIMER_RETRY_US		INT64CONST(1000000)
#define TIMER_RETRY_MAX_US	INT64CONST(3600000000)
#define TIMER_SCAN_PAUSE_US 500000	/* between two scans, if the first did not get to the end of the window */
#define TIMER_TURN_US		1000000 /* of a worker while others wait for one */

typedef struct TimerDue
{
	TimerEntry entry;
	TimestampTz due; /* entry.at, or later: it is tried again then */
	uint32 tries;	 /* before, that did not get the entry's lock */
} TimerDue;

typedef struct TimerWindow TimerWindow;

/* Allocates in the current memory context. Scans fill half of the capacity. */
extern TimerWindow *timer_window_create(int capacity, TimestampTz now);
/* Returns false if the window is full. */
extern bool timer_window_add(TimerWindow *window, const TimerDue *due);
extern void timer_window_clear(TimerWindow *window);
/* The earliest end of all entries, of which some may be tried later; DT_NOEND: there is none. */
extern TimestampTz timer_window_earliest(const TimerWindow *window);
/* Removes the first entries that are due, `max` at most. Returns their number. */
extern int timer_window_take(TimerWindow *window, TimestampTz now, TimerDue *dues, int max);
/* How long after a failure to wait for the next try. */
extern int64 timer_retry_delay(uint32 failures);

/* What a worker does next. */
typedef enum TimerStep
{
	TIMER_STEP_SERVE,
	TIMER_STEP_SCAN, /* after timer_window_scanned() */
	TIMER_STEP_SLEEP,
	TIMER_STEP_LEAVE
} TimerStep;

/* `crowded`: others wait for a worker. For TIMER_STEP_SLEEP, *until is the end of the sleep. */
extern TimerStep timer_window_step(const TimerWindow *window, TimestampTz horizon, bool crowded, TimestampTz now,
								   TimestampTz *until);
/* A scan begins. Returns how many entries it may add. Forgets all entries and returns true in *all if it has to read
 * the whole table, since the window is full. */
extern int timer_window_scanned(TimerWindow *window, TimestampTz now, bool *all);
/* How many ms to sleep until then: TIMER_SLEEP_MIN_MS to TIMER_SLEEP_MAX_MS. */
extern long timer_sleep_ms(TimestampTz until, TimestampTz now);

#endif
