/*
 * iteration.h - what rooms do in each iteration of the event loop, and in each second; see iteration.c.
 */
#ifndef ITERATION_H
#define ITERATION_H

#include <stdbool.h>

/* At the end of an iteration, when all input has been read. */
extern void iteration_finish(void);
/* Returns whether receivers are left to be served: the loop must not sleep. */
extern bool iteration_has_more(void);
/* Returns whether a room waits for its time: the loop must come again soon. */
extern bool iteration_has_waiting(void);
/* Once in a second: ends leases and locks that were not renewed, and lets rooms move to other gateways. */
extern void iteration_tick_rooms(void);

#endif
