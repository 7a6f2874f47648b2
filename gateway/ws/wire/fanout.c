/*
 * fanout.c - one stream of frames that many receivers read.
 *
 * Server frames are not masked, so the same bytes go to every receiver: a frame is encoded once, into a list of blocks,
 * and each receiver has a cursor. A receiver is given the rest of its block in one write: many frames a system call, no
 * copy. A block holds whole frames only, so a frame that a socket took a part of lies in one piece. Its cursor knows
 * how much of it is left: nothing else may be written before.
 *
 * A block lives as long as someone holds it: the stream its tail, a cursor its block, a block its successor. A receiver
 * that lags keeps the blocks from its place on alive; the room bounds how far that may go.
 *
 * What is committed must be told to all, so a stream for which there is no memory ends where it is: who reads it is
 * closed by the room (publish.c), comes again, and reads what is committed.
 */
#include "ws/wire/fanout.h"

#include "ws/wire/frame.h"

#include <stdlib.h>
#include <string.h>

#define FANOUT_BLOCK_BYTES 65536

struct FanoutBlock
{
	FanoutBlock *next;
	uint64_t start; /* position of data[0] in the stream */
	size_t used;
	size_t size;
	int holders;
	char data[];
};

static void
block_release(FanoutBlock *block)
{
	while (block != NULL && --block->holders == 0)
	{
		FanoutBlock *next = block->next;

		free(block);
		block = next;
	}
}

void
fanout_fail(Fanout *fanout)
{
	fanout->failed = true;
}

/* A place for `len` bytes that belong together; NULL: the stream has failed. */
static char *
fanout_room(Fanout *fanout, size_t len)
{
	FanoutBlock *block = fanout->tail;
	char *to;

	if (fanout->failed)
		return NULL;
	if (block == NULL || block->size - block->used < len)
	{
		size_t size = len > FANOUT_BLOCK_BYTES ? len : FANOUT_BLOCK_BYTES;

		block = malloc(sizeof(FanoutBlock) + size);
		if (block == NULL)
		{
			fanout->failed = true;
			return NULL;
		}
		*block = (FanoutBlock){.start = fanout->end, .size = size, .holders = 1};
		if (fanout->tail != NULL)
		{
			fanout->tail->next = block;
			block->holders++;
			block_release(fanout->tail);
		}
		fanout->tail = block;
	}
	to = block->data + block->used;
	block->used += len;
	fanout->end += len;
	return to;
}

void
fanout_append_message(Fanout *fanout, bool binary, const Buf *payload)
{
	unsigned char header[FRAME_SENT_HEADER_MAX];
	size_t header_len = frame_header(header, binary ? FRAME_BINARY : FRAME_TEXT, payload->len);
	char *to;

	if (buf_failed(payload))
		fanout_fail(fanout);
	to = fanout_room(fanout, header_len + payload->len);
	if (to == NULL)
		return;
	memcpy(to, header, header_len);
	if (payload->len > 0)
		memcpy(to + header_len, payload->data, payload->len);
}

/* Bytes of the first frame at data. */
static size_t
fanout_frame_size(const char *data)
{
	const unsigned char *p = (const unsigned char *) data;
	uint64_t len = p[1];

	if (len < 126)
		return 2 + (size_t) len;
	if (len == 126)
		return 4 + ((size_t) p[2] << 8 | p[3]);
	len = 0;
	for (int i = 0; i < 8; i++)
		len = len << 8 | p[2 + i];
	return 10 + (size_t) len;
}

void
fanout_append(Fanout *fanout, const char *frames, size_t len)
{
	while (len > 0)
	{
		size_t room = fanout->tail != NULL ? fanout->tail->size - fanout->tail->used : 0;
		size_t take = fanout_frame_size(frames);
		char *to;

		/* As many whole frames as fit into the block, at least one. */
		if (len <= room)
			take = len;
		else
		{
			if (take > room)
				room = take > FANOUT_BLOCK_BYTES ? take : FANOUT_BLOCK_BYTES;
			while (take < len)
			{
				size_t next = fanout_frame_size(frames + take);

				if (take + next > room)
					break;
				take += next;
			}
		}
		to = fanout_room(fanout, take);
		if (to == NULL)
			return;
		memcpy(to, frames, take);
		frames += take;
		len -= take;
	}
}

void
fanout_free(Fanout *fanout)
{
	block_release(fanout->tail);
	fanout->tail = NULL;
}

bool
fanout_attach(Fanout *fanout, FanoutCursor *cursor)
{
	if (fanout->tail == NULL && fanout_room(fanout, 0) == NULL)
		return false;
	cursor->block = fanout->tail;
	cursor->block->holders++;
	cursor->offset = cursor->block->used;
	cursor->cut = 0;
	return true;
}

void
fanout_copy(FanoutCursor *to, const FanoutCursor *from)
{
	*to = *from;
	to->block->holders++;
}

void
fanout_detach(FanoutCursor *cursor)
{
	if (cursor->block != NULL)
		block_release(cursor->block);
	cursor->block = NULL;
}

/* To the next block when this one is used up. */
static bool
fanout_step(FanoutCursor *cursor)
{
	FanoutBlock *block = cursor->block;

	if (cursor->offset < block->used || block->next == NULL)
		return cursor->offset < block->used;
	block->next->holders++;
	cursor->block = block->next;
	cursor->offset = 0;
	block_release(block);
	return fanout_step(cursor);
}

void
fanout_seek(FanoutCursor *cursor, uint64_t position)
{
	while (position > cursor->block->start + cursor->block->used && cursor->block->next != NULL)
	{
		cursor->offset = cursor->block->used;
		(void) fanout_step(cursor);
	}
	cursor->cut = 0;
	if (position > cursor->block->start + cursor->offset)
		cursor->offset = (size_t) (position - cursor->block->start);
}

uint64_t
fanout_position(const FanoutCursor *cursor)
{
	return cursor->block->start + cursor->offset;
}

bool
fanout_peek(FanoutCursor *cursor, const char **data, size_t *len)
{
	if (!fanout_step(cursor))
		return false;
	*data = cursor->block->data + cursor->offset;
	*len = cursor->block->used - cursor->offset;
	return true;
}

void
fanout_advance(FanoutCursor *cursor, size_t len)
{
	const FanoutBlock *block = cursor->block;
	size_t end = cursor->cut;

	/* Most writes take the whole block: no frame need be looked at. */
	if (cursor->offset + len == block->used)
		end = len;
	while (end < len)
		end += fanout_frame_size(block->data + cursor->offset + end);
	cursor->cut = end - len;
	cursor->offset += len;
}
