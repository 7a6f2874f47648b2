/*
 * stoppoint.h - places where a test can end, fail or hold a backend; see stoppoint.c.
 *
 * Setting pg_sheet.stop_point (superusers, hidden) is up to four of NAME:ACTION or NAME:ACTION:N, separated by blanks,
 * for the session's N-th passage:
 *
 *   kill    the backend ends itself with SIGKILL
 *   panic   PANIC: the server restarts and recovers
 *   error   ERROR
 *   cancel  as by pg_cancel_backend(): the statement ends at the next check for interrupts
 *   halt    the process stops until it gets SIGCONT
 *   wait    waits until pg_advisory_lock(hashtext(NAME)) is released
 *
 * A point costs one branch while the setting is empty. Names are words joined by hyphens, each used at one place.
 */
#ifndef STOPPOINT_H
#define STOPPOINT_H

#include "postgres.h"

extern bool stop_point_armed;
extern void stop_point_reached(const char *name, bool may_fail);

#define STOP_POINT(name)                                                                                               \
	do                                                                                                                 \
	{                                                                                                                  \
		if (unlikely(stop_point_armed))                                                                                \
			stop_point_reached((name), true);                                                                          \
	} while (0)

/* For places where an error would be a PANIC, or where locks are held that the deadlock detector does not know: `error`
 * is ignored, and `wait` polls. */
#define STOP_POINT_NO_FAIL(name)                                                                                       \
	do                                                                                                                 \
	{                                                                                                                  \
		if (unlikely(stop_point_armed))                                                                                \
			stop_point_reached((name), false);                                                                         \
	} while (0)

/* Defines the setting. From _PG_init. */
extern void stop_point_init(void);

#endif
