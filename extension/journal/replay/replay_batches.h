/*
 * replay_batches.h - the stored batches of a sheet, one at a time, in either direction; see replay_batches.c.
 */
#ifndef REPLAY_BATCHES_H
#define REPLAY_BATCHES_H

#include "postgres.h"
#include "common/edit_codec.h"
#include "utils/snapshot.h"

typedef struct ReplayBatch
{
	int64 first_seq, last_seq;
	int64 segment_id;
	int64 at; /* TimestampTz of the first edit; the others follow by one microsecond each */
	int64 epoch, origin, batch_no;
} ReplayBatch;
typedef struct ReplayBatches ReplayBatches;

/* The batches that hold any seq from low to high, oldest or newest first. Begin keeps the snapshot, which must outlive
 * the iterator; everything is in the current memory context. */
extern ReplayBatches *replay_batches_begin(int64 sheet_id, int64 low, int64 high, bool backward, Snapshot snapshot);
extern bool replay_batches_next(ReplayBatches *batches, ReplayBatch *batch);
/* The current batch's edits as they are stored; valid until the next batch. */
extern const struct varlena *replay_batches_data(ReplayBatches *batches);
/* Bytes of them, which are not read for it. */
extern Size replay_batches_size(ReplayBatches *batches);
/* Sets the reader on the first of them. */
extern void replay_batches_edits(ReplayBatches *batches, EditReader *reader);
extern void replay_batches_end(ReplayBatches *batches);

/* The edits of a stored batch: of the row's `data`, whose bytes must outlive the reader. */
extern void replay_stored_edits(EditReader *reader, const struct varlena *data, int64 first_seq, int64 last_seq);
/* After a read that gave `error`: EDIT_END when the edits are as many as the row says, and nothing is left of them. */
static inline EditError
replay_stored_end(const EditReader *reader, EditError error)
{
	return error == EDIT_END && reader->pos != reader->end ? EDIT_TRUNCATED : error;
}

/* What grows from batch to batch. */
typedef enum ReplayField
{
	REPLAY_LID,
	REPLAY_AT,		/* of the first edit */
	REPLAY_LAST_AT, /* of the last edit */
} ReplayField;
/* first_seq of the first batch whose field is at least value, PG_INT64_MAX when there is none. Bisects; the number of
 * batches that were looked at is added to *probes. */
extern int64 replay_seek(int64 sheet_id, ReplayField field, int64 value, Snapshot snapshot, int64 *probes);

#endif
