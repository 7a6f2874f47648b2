/*
 * fanout.c - one stream of frames that many receivers read.
 *
 * Server frames are not masked, so all receivers get the same bytes: a frame is encoded once, into a list of blocks,
 * and each receiver has a cursor. A receiver is written the rest of its block at once: many frames a system call, no
 * copy. A block holds whole frames, so a frame of which a socket took a part is contiguous. The cursor knows how much
 * of it is left, and nothing else may be written before.
 *
 * Blocks are counted: the stream refers to its tail, a cursor to its block, a block to its successor. A receiver that
 * lags keeps the blocks from its position on in memory; room/publish.c bounds them.
 *
 * Every receiver must get everything that is committed. So a stream for which there is no memory fails, and takes
 * nothing more: the room closes its receivers, which connect again and read what is stored.
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
	int references;
	char data[];
};

static void
block_release(FanoutBlock *block)
{
	while (block != NULL && --block->references == 0)
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

/* Appends `len` contiguous bytes for the caller to fill in. Returns NULL if the stream has failed. */
static char *
fanout_reserve(Fanout *fanout, size_t len)
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
		*block = (FanoutBlock){.start = fanout->end, .size = size, .references = 1};
		if (fanout->tail != NULL)
		{
			fanout->tail->next = block;
			block->references++;
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
	to = fanout_reserve(fanout, header_len + payload->len);
	if (to == NULL)
		return;
	memcpy(to, header, header_len);
	if (payload->len > 0)
		memcpy(to + header_len, payload->data, payload->len);
}

/* Size of the frame at data. */
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
fanout_free(Fanout *fanout)
{
	block_release(fanout->tail);
	fanout->tail = NULL;
}

bool
fanout_attach(Fanout *fanout, FanoutCursor *cursor)
{
	if (fanout->tail == NULL && fanout_reserve(fanout, 0) == NULL)
		return false;
	cursor->block = fanout->tail;
	cursor->block->references++;
	cursor->offset = cursor->block->used;
	cursor->cut = 0;
	return true;
}

void
fanout_copy(FanoutCursor *to, const FanoutCursor *from)
{
	*to = *from;
	to->block->references++;
}

void
fanout_detach(FanoutCursor *cursor)
{
	if (cursor->block != NULL)
		block_release(cursor->block);
	cursor->block = NULL;
}

/* Moves to the next block at the end of this one. Returns false at the end of the stream. */
static bool
fanout_step(FanoutCursor *cursor)
{
	FanoutBlock *block = cursor->block;

	if (cursor->offset < block->used || block->next == NULL)
		return cursor->offset < block->used;
	block->next->references++;
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

	/* Most writes take the whole block, and its frames need not be walked. */
	if (cursor->offset + len == block->used)
		end = len;
	while (end < len)
		end += fanout_frame_size(block->data + cursor->offset + end);
	cursor->cut = end - len;
	cursor->offset += len;
}
