/*
 * fanout.h - one stream of frames that many receivers read; see fanout.c.
 */
#ifndef FANOUT_H
#define FANOUT_H

#include "support/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct FanoutBlock FanoutBlock;

typedef struct Fanout
{
	FanoutBlock *tail; /* where frames are appended; NULL before the first */
	uint64_t end;	   /* bytes ever appended */
	bool failed;	   /* something could not be appended; nothing is any more, so there is no gap */
} Fanout;

/* A receiver's position in the stream. It keeps its block and, through that, all later ones. */
typedef struct FanoutCursor
{
	FanoutBlock *block; /* NULL: not attached */
	size_t offset;		/* in the block */
	size_t cut;			/* bytes left of a frame of which a part was written; 0: a frame begins here */
} FanoutCursor;

/* Appends one frame (RFC 6455: FIN, unmasked) with this payload. A payload that has failed fails the stream. */
extern void fanout_append_message(Fanout *fanout, bool binary, const Buf *payload);
extern void fanout_fail(Fanout *fanout);
extern void fanout_free(Fanout *fanout);

/* Attaches the cursor at the end of the stream. Returns false when there is no memory. */
extern bool fanout_attach(Fanout *fanout, FanoutCursor *cursor);
extern void fanout_copy(FanoutCursor *to, const FanoutCursor *from);
extern void fanout_detach(FanoutCursor *cursor);
/* Moves forward to an absolute position, which must be the end of a frame. */
extern void fanout_seek(FanoutCursor *cursor, uint64_t position);
extern uint64_t fanout_position(const FanoutCursor *cursor);
/* Returns what can be written now, up to the end of a frame, in memory that is valid until the cursor moves past it.
 * Returns false at the end of the stream. */
extern bool fanout_peek(FanoutCursor *cursor, const char **data, size_t *len);
extern void fanout_advance(FanoutCursor *cursor, size_t len);

#endif
