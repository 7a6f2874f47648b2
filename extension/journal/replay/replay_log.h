/*
 * replay_log.h - what was made after a seq: edit by edit, as bytes, and one batch by its number; see replay_log.c.
 */
#ifndef REPLAY_LOG_H
#define REPLAY_LOG_H

#include "postgres.h"
#include "common/edit_codec.h"
#include "utils/snapshot.h"

/* Calls fn for each edit stored in batches with seq after `since` and up to `until`, in their order. */
typedef void (*ReplayEditFn)(void *arg, int64 seq, int64 at /* Unix microseconds */, const Edit *edit);
extern void replay_edits(int64 sheet_id, int64 since, int64 until, Snapshot snapshot, ReplayEditFn fn, void *arg);

/* Stored batches with last_seq > since, oldest first, that fit into max_bytes; one at least. NULL when there are none.
 * *last_seq: of the last that is in. 54000 when they are more than one value can hold. */
extern bytea *replay_tail(int64 sheet_id, int64 since, Size max_bytes, Snapshot snapshot, int64 *last_seq);
/* Finds (origin, batch_no) in the batches with last_seq > since. */
extern bool replay_find_batch(int64 sheet_id, int64 since, int64 origin, int64 batch_no, Snapshot snapshot,
							  int64 *first_seq, int64 *last_seq, int64 *at);

#endif
