/*
 * turn.h - what rooms do in each turn of the loop; see turn.c.
 */
#ifndef TURN_H
#define TURN_H

/* At the end of a turn: sends batches, publishes, pauses and resumes senders. */
extern void turn_finish(void);

#endif
