/*
 * upload_pace.h - when the next part of a file may be written to the database; see upload_pace.c.
 */
#ifndef UPLOAD_PACE_H
#define UPLOAD_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* The turn of an upload to write a part. Zeroed at first. */
typedef struct PaceTurn
{
	struct PaceTurn *next;
	int64_t account;
	uint64_t order; /* the lowest one is next; while it does not wait, the order that its next part has at least */
	bool waits;
	bool taken;		/* until pace_end() */
	uint64_t began; /* ns: when it was taken */
	void (*fn)(void *arg);
	void *arg;
} PaceTurn;

/* Takes the turn, and returns true, or calls fn(arg) when it has been taken. */
extern bool pace_begin(PaceTurn *turn, int64_t account, void (*fn)(void *arg), void *arg);
/* The part is written, or will not be. May be called at any time. */
extern void pace_end(PaceTurn *turn);

#endif
