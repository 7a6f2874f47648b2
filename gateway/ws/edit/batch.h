/*
 * batch.h - edits and the frames that tell of them, in one order; see batch.c.
 */
#ifndef BATCH_H
#define BATCH_H

#include "support/buf.h"
#include "common/edit_codec.h"
#include "ws/v2/v2.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct RoomClient;

/* A place in a batch, where a message ends or what is no edit has happened. */
typedef struct RoomEvent
{
	size_t edits_len; /* before it ... */
	uint32_t count;	  /* ... and so many edits; the next one is written in full */
	bool is_lock;
	V2HeldCell cell; /* a lock's */
} RoomEvent;

/* Operations of a client that are in a batch. */
typedef struct BatchClient
{
	struct RoomClient *client;
	uint64_t before; /* the last one that was taken before these */
	uint64_t first, last;
} BatchClient;

typedef struct RoomBatch
{
	struct RoomBatch *next;
	Buf edits; /* edit codec, without the batch's header */
	EditWriter writer;
	uint32_t count;
	uint32_t rows, cols; /* so many a sheet has at least that has these edits; structure edits do not count */
	bool has_v1;		 /* frames tell of its edits; otherwise nobody was there to read them */
	bool structural;	 /* one operation with structure edits, which takes no more */
	Buf frames;			 /* complete frames of protocol v1 */
	RoomEvent *events;
	size_t event_count, event_size;
	BatchClient *clients;
	size_t client_count, client_size;
	uint64_t number; /* among the room's batches, from 1 on */
	int64_t seq;	 /* of the sheet with the batch, once it is committed */
} RoomBatch;

/* An empty one, of no list; NULL: no memory. */
extern RoomBatch *batch_create(void);
extern void batch_free(RoomBatch *batch);
/* Room for edits of so many bytes in the codec's form, which take so many bytes as frames of protocol v1: that many can
 * be put without failing. False: no memory; the batch is as it was. */
extern bool batch_reserve(RoomBatch *batch, size_t edits, size_t frames);
/* There was no memory for something that is in it: it is of no use. */
extern bool batch_failed(const RoomBatch *batch);

/* The batch's next edit, whatever becomes of it. */
extern void batch_put_edit(RoomBatch *batch, const Edit *edit);
/* It has no edits any more, and takes them anew; they are the caller's now. */
extern Buf batch_take_edits(RoomBatch *batch);
/* The next edit of the batch begins a message; the event that is added may be filled in. NULL: no memory. */
extern RoomEvent *batch_add_event(RoomBatch *batch);

/* A frame of protocol v1 in the order of the edits. */
extern void batch_add_v1_frame(RoomBatch *batch, const Buf *payload);
/* The frame of protocol v1 that tells of an edit. */
extern void batch_add_v1_edit(RoomBatch *batch, const Edit *edit, const char *info, size_t info_len,
							  const Buf *name_json);
/* It was made without frames of protocol v1, and gets them. */
extern void batch_add_v1_frames(RoomBatch *batch);
/* Its frames of protocol v1, if it has any, tell of the edits that it has now. */
extern void batch_renew_v1_frames(RoomBatch *batch);

#endif
