/*
 * held.h - sheets that another transaction holds; see held.c.
 */
#ifndef HELD_H
#define HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Room;
struct Session;

/* What a room knows of the transaction that holds its sheet. */
typedef struct Held
{
	struct Room *next, *prev; /* rooms whose sheet is held */
	bool listed;
	bool trying;		  /* its statement goes to the database now */
	bool told;			  /* editors know of the holder */
	uint64_t since;		  /* ms of the loop's clock: the room waits since then */
	uint64_t told_at;	  /* ms */
	uint64_t began;		  /* ms of the loop's clock: the transaction began about then */
	char transaction[24]; /* of the holder; "": not known yet */
	char holder[256];	  /* its account or role ... */
	char application[64]; /* ... and its application_name */
} Held;

/* Another transaction holds the sheet: the room waits for it. Its next statement is asked for by held_try(). */
extern void held_wait(struct Room *room);
/* The room waits no more. */
extern void held_end(struct Room *room);
/* Tells an editor who has just come, when the others know. */
extern void held_greet(const struct Room *room, struct Session *session);
/* Rooms that wait. */
extern size_t held_count(void);

/* From commit.c: sends what the room waits with, on the connections that may wait for sheets. False: not now. */
extern bool commit_try_held(struct Room *room);

#endif
