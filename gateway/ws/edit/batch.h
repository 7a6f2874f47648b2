/*
 * batch.h - edits of a room and the messages about them, in one order; see batch.c.
 */
#ifndef BATCH_H
#define BATCH_H

#include "support/buf.h"
#include "common/edit_codec.h"
#include "ws/edit/locks.h"
#include "ws/edit/writes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct V2Client;

#define BATCH_PART_BYTES 262144 /* the edits of one message end with the one that passes this */

/* A position in a batch: a message ends here, or a cell or range is locked or freed. */
typedef struct RoomEvent
{
	size_t edits_len; /* bytes of edits before it */
	uint32_t count;	  /* edits before it; the next one is written in full */
	bool is_lock;	  /* the other fields are set: */
	bool freed;
	bool range; /* false: of a cell */
	uint32_t rect[4];
	LockHolder holder;
} RoomEvent;

/* Operations of one client in a batch. */
typedef struct BatchClient
{
	struct V2Client *client;
	int64_t uid;
	uint64_t id;
	uint64_t before; /* the client's last operation before these */
	uint64_t first, last;
} BatchClient;

typedef struct RoomBatch
{
	struct RoomBatch *next;
	Buf edits; /* edit codec, without the batch's header */
	EditWriter writer;
	uint32_t count;
	WriterRuns writers; /* which client of a guest has made which edits */
	size_t writers_size;
	uint32_t rows, cols; /* the extent that the edits need, without structure edits */
	bool refusable;		 /* one operation and nothing else, which the database may refuse: it has structure edits or
							properties */
	bool structural;	 /* it has structure edits */
	bool uncertain;		 /* it was sent, and may be stored */
	Buf infos;			 /* what clients of protocol v1 have sent with edits and is no style (v1_stream.c) */
	RoomEvent *events;
	size_t event_count, event_size;
	BatchClient *clients;
	size_t client_count, client_size;
	int64_t collected;	/* structural: `edits` are the stored ones up to this seq; 0: as they were sent */
	Buf emptied;		/* collected Edits that empty cells, if nothing has followed them yet */
	unsigned cancelled; /* how often the database could not store it in time */
	uint64_t number;	/* of the room's batches, from 1 on */
	int64_t seq;		/* the sheet's seq with the batch, once committed */
} RoomBatch;

/* Returns NULL when there is no memory. */
extern RoomBatch *batch_create(void);
/* Copies edits, events and infos, for publishing them later. Returns NULL when there is no memory. */
extern RoomBatch *batch_copy(const RoomBatch *batch);
extern void batch_free(RoomBatch *batch);
/* Reserves memory for `edits` bytes of encoded edits, so that adding them cannot fail. Returns false without memory;
 * the batch is unchanged then. */
extern bool batch_reserve(RoomBatch *batch, size_t edits);
/* Returns whether something could not be put for want of memory: the batch cannot be used. */
extern bool batch_failed(const RoomBatch *batch);

/* The edits that are appended next are of this client (0: of none that counts). Returns false when there is no memory;
 * the batch is unchanged then. */
extern bool batch_begin_writer(RoomBatch *batch, uint64_t client);
/* Appends an edit. */
extern void batch_put_edit(RoomBatch *batch, const Edit *edit);
/* The same; a message ends before it if it has become long. */
extern void batch_put_edit_in_parts(RoomBatch *batch, const Edit *edit);
/* Removes all edits; the caller owns them. Who has made them stays. */
extern Buf batch_take_edits(RoomBatch *batch);
/* Adds an event: the next edit begins a message. Returns NULL when there is no memory. */
extern RoomEvent *batch_add_event(RoomBatch *batch);

/* Appends an edit to a buffer of edits in the edit codec. */
static inline void
edits_put(Buf *edits, EditWriter *writer, const Edit *edit)
{
	if (!buf_reserve(edits, edit_size_bound(edit)))
		return;
	writer->pos = (uint8_t *) edits->data + edits->len;
	edit_write(writer, edit);
	edits->len = (size_t) ((char *) writer->pos - edits->data);
}

#endif
