/* scheduler.h - what this program asks of the system's scheduler. */
#ifndef SHEET_SCHEDULER_H
#define SHEET_SCHEDULER_H

#include <stdbool.h>

/*
 * Asks for time slices of so many milliseconds (0.1 to 100; 0: the system's own) for the calling thread. Linux 6.12 and
 * later have them. A thread with a shorter slice gets no larger share of the processor, but gets it at once when it
 * wakes up, before threads that have run for longer. In return it is interrupted more often when it works for long.
 * alone: threads and processes that it makes later have the system's own slices. Once asked for, that cannot be
 * taken back. Does nothing on other systems, older kernels, and in containers that forbid it.
 */
extern void scheduler_ask_slice(double ms, bool alone);

#endif
