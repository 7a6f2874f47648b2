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
	bool failed;	   /* something could not be appended: nothing is any more, so that there is no gap */
} Fanout;

/* A receiver's place in the stream. It holds its block and, through it, all later ones. */
typedef struct FanoutCursor
{
	FanoutBlock *block; /* NULL: not attached */
	size_t offset;		/* in the block */
	size_t cut;			/* bytes from here to the end of a frame that has begun before; 0: a frame begins here */
} FanoutCursor;

/* Appends one frame (RFC 6455: FIN, unmasked) with this payload. One that has failed makes the stream fail. */
extern void fanout_append_message(Fanout *fanout, bool binary, const Buf *payload);
/* Appends whole frames, headers included. */
extern void fanout_append(Fanout *fanout, const char *frames, size_t len);
extern void fanout_fail(Fanout *fanout);
extern void fanout_free(Fanout *fanout);

/* At the end of the stream. False: no memory. */
extern bool fanout_attach(Fanout *fanout, FanoutCursor *cursor);
extern void fanout_copy(FanoutCursor *to, const FanoutCursor *from);
extern void fanout_detach(FanoutCursor *cursor);
/* Moves on to an absolute position at or after the cursor's; it must be where a frame ends. */
extern void fanout_seek(FanoutCursor *cursor, uint64_t position);
extern uint64_t fanout_position(const FanoutCursor *cursor);
/* What can be written now, up to the end of a frame, in memory that stays until the cursor moves past it. False at the
 * end. */
extern bool fanout_peek(FanoutCursor *cursor, const char **data, size_t *len);
extern void fanout_advance(FanoutCursor *cursor, size_t len);

#endif
