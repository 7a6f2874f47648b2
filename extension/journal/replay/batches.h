/*
 * batches.h - the stored batches of a sheet: one at a time in either direction, edit by edit, or as bytes; see
 * batches.c.
 */
#ifndef BATCHES_H
#define BATCHES_H

#include "postgres.h"
#include "common/edit_codec.h"
#include "utils/snapshot.h"

typedef struct StoredBatch
{
	int64 first_seq, last_seq;
	int64 segment_id;
	int64 at; /* TimestampTz of the first edit; the next ones follow by one microsecond each */
	int64 epoch, origin, batch_no;
} StoredBatch;
typedef struct BatchScan BatchScan;

/* The batches that contain any seq from low to high, oldest or newest first. The snapshot must outlive the scan, which
 * lives in the current memory context. */
extern BatchScan *batches_begin(int64 sheet_id, int64 low, int64 high, bool backward, Snapshot snapshot);
extern bool batches_next(BatchScan *scan, StoredBatch *batch);
/* The size of the current batch's edits, without reading them. */
extern Size batches_size(BatchScan *scan);
/* Sets the reader to the first of them. They are valid until the next batch. */
extern void batches_read_edits(BatchScan *scan, EditReader *reader);
extern void batches_end(BatchScan *scan);

/* Given the error that ended the reading: EDIT_END if the data has as many edits as the row says and nothing else. */
static inline EditError
batches_reader_end(const EditReader *reader, EditError error)
{
	return error == EDIT_END && reader->pos != reader->end ? EDIT_TRUNCATED : error;
}

/* Calls fn for each stored edit with a seq after `since` and up to `until`, in order. at: Unix microseconds. The
 * function below is also called by the benchmark log. */
typedef void (*BatchesEditFn)(void *arg, int64 seq, int64 at, const Edit *edit);
extern PGDLLEXPORT void batches_each_edit(int64 sheet_id, int64 since, int64 until, Snapshot snapshot, BatchesEditFn fn,
										  void *arg);
/* The same for the current batch of a scan. */
extern void batches_each_edit_of(BatchScan *scan, int64 since, int64 until, BatchesEditFn fn, void *arg);

/* Stored batches with last_seq > since, oldest first, as many as fit into max_bytes but at least one; NULL if there are
 * none. *last_seq: of the last one returned. 54000 if they exceed the size of a value. */
extern bytea *batches_tail(int64 sheet_id, int64 since, Size max_bytes, Snapshot snapshot, int64 *last_seq);
/* Finds (origin, batch_no) in the batches with last_seq > since. */
extern bool batches_find(int64 sheet_id, int64 since, int64 origin, int64 batch_no, Snapshot snapshot, int64 *first_seq,
						 int64 *last_seq, int64 *at);

/* What never decreases from batch to batch. */
typedef enum BatchField
{
	BATCH_SEGMENT_ID,
	BATCH_AT,	   /* of the first edit */
	BATCH_LAST_AT, /* of the last edit */
} BatchField;
/* first_seq of the first batch whose field is at least `value`, PG_INT64_MAX if there is none. Bisects; adds the number
 * of batches read to *probes. */
extern int64 batches_seek(int64 sheet_id, BatchField field, int64 value, Snapshot snapshot, int64 *probes);

#endif
