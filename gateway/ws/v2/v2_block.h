/*
 * v2_block.h - what v2_block.c and v2_lane.c share: a block of cells on its way to a member of protocol v2.
 */
#ifndef V2_BLOCK_H
#define V2_BLOCK_H

#include "db/pgconn.h"
#include "ws/v2/v2_session.h"

/* A `get`, or the cells behind a `nack`; it counts as a query of its session until block_finish(). */
typedef struct BlockQuestion
{
	struct BlockQuestion *next; /* of the session, or of those that wait for a lane */
	Session *session;
	V2Block block;
	/* What is not sent yet: the next message. */
	Buf edits;
	EditWriter writer;
	uint32_t count;
} BlockQuestion;

/* ---- v2_block.c ---- */
/* Is somebody there to be told? */
extern bool block_is_wanted(const BlockQuestion *question);
/* Cells that were read, a stream of batches (sheet.read_cells): messages of them, but for the last. False: malformed.
 */
extern bool block_put_cells(BlockQuestion *question, const char *cells, size_t len);
/* All cells have been put: the last message. */
extern void block_put_end(BlockQuestion *question);
/* It is over, answered or not: frees it, and reads the session's next one. */
extern void block_finish(BlockQuestion *question);

/* ---- v2_lane.c ---- */
/* Reads it as its client takes it, when a connection is free. */
extern void lane_add(BlockQuestion *question);

#endif
