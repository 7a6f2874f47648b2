/*
 * v2_block.h - a block of cells for a member of protocol v2: what v2_block.c and v2_large_block.c share.
 */
#ifndef V2_BLOCK_H
#define V2_BLOCK_H

#include "db/pgconn.h"
#include "ws/v2/v2_session.h"

/* A `get`, or the cells behind a `nack`. It counts as a query of its session until block_finish(). */
typedef struct BlockQuestion
{
	struct BlockQuestion *next; /* of the session, or of those that wait for a streaming connection */
	Session *session;
	V2Block block;
	/* The next message. */
	Buf edits;
	EditWriter writer;
	uint32_t count;
} BlockQuestion;

/* ---- v2_block.c ---- */
/* Returns whether the session still waits for it. */
extern bool block_is_wanted(const BlockQuestion *question);
/* Sends cells of sheet.read_cells() as messages, except for the last. Returns false if they are malformed. */
extern bool block_put_cells(BlockQuestion *question, const char *cells, size_t len);
/* Sends the last message. */
extern void block_put_end(BlockQuestion *question);
/* Ends the question, answered or not, frees it, and reads the session's next block. */
extern void block_finish(BlockQuestion *question);

/* ---- v2_large_block.c ---- */
/* Reads the block over a streaming connection, when one is free. */
extern void large_block_add(BlockQuestion *question);

#endif
