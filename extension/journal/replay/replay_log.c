/*
 * replay_log.c - what was made after a seq: edit by edit, as bytes for those who follow, and one batch by its number.
 */
#include "postgres.h"

#include "common/edit_read.h"
#include "journal/replay/replay_batches.h"
#include "journal/store/replay_find.h"
#include "journal/replay/replay_log.h"
#include "support/stoppoint.h"
#include "journal/store/timeconv.h"
#include "utils/memutils.h"

static ReplayBatches *
replay_since(int64 sheet_id, int64 since, Snapshot snapshot)
{
	return replay_batches_begin(sheet_id, Max(since, 0) + 1, PG_INT64_MAX, false, snapshot);
}

/* ---- edit by edit ---- */

static void
replay_batch_edits(ReplayBatches *batches, const ReplayBatch *batch, int64 sheet_id, int64 since, int64 until,
				   ReplayEditFn fn, void *arg)
{
	int64 seq = batch->first_seq, at = timeconv_to_unix(batch->at);
	EditReader start, reader;
	EditError error;
	Edit edit;

	replay_batches_edits(batches, &start);
	reader = start; /* of which nobody has the address */
	for (; (error = edit_read_inline(&reader, &edit)) == EDIT_OK; seq++, at++)
		if (seq > since && seq <= until)
			fn(arg, seq, at, &edit);
	error = replay_stored_end(&reader, error);
	if (error != EDIT_END)
		replay_corrupted(sheet_id, "the batch before seq", seq, error);
}

void
replay_edits(int64 sheet_id, int64 since, int64 until, Snapshot snapshot, ReplayEditFn fn, void *arg)
{
	ReplayBatches *batches = replay_batches_begin(sheet_id, Max(since, 0) + 1, until, false, snapshot);
	ReplayBatch batch;

	while (replay_batches_next(batches, &batch))
	{
		STOP_POINT("replay-batch");
		replay_batch_edits(batches, &batch, sheet_id, since, until, fn, arg);
	}
	replay_batches_end(batches);
}

/* ---- as bytes ---- */

/* A buffer that grows. */
typedef struct TailBuffer
{
	char *bytes;
	Size used, room;
} TailBuffer;

/* Adds a batch with its header. */
static void
replay_add_batch(TailBuffer *tail, const ReplayBatch *stored, const struct varlena *data)
{
	EditBatch batch = {stored->first_seq, timeconv_to_unix(stored->at), stored->last_seq - stored->first_seq + 1};
	Size len = VARSIZE_ANY_EXHDR(data);
	EditWriter writer;

	if (tail->used + EDIT_BATCH_HEAD_MAX + len > MaxAllocSize)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("the batches are too large for one result")));
	if (tail->used + EDIT_BATCH_HEAD_MAX + len > tail->room)
	{
		tail->room = Max(tail->room * 2, tail->used + EDIT_BATCH_HEAD_MAX + len);
		tail->bytes = repalloc_huge(tail->bytes, tail->room);
	}
	edit_write_batch(&writer, (uint8_t *) tail->bytes + tail->used, &batch);
	memcpy(writer.pos, VARDATA_ANY(data), len);
	tail->used = (char *) writer.pos + len - tail->bytes;
}

bytea *
replay_tail(int64 sheet_id, int64 since, Size max_bytes, Snapshot snapshot, int64 *last_seq)
{
	TailBuffer tail = {palloc(8192), VARHDRSZ, 8192};
	ReplayBatches *batches = replay_since(sheet_id, since, snapshot);
	ReplayBatch batch;

	*last_seq = since;
	while (replay_batches_next(batches, &batch))
	{
		const struct varlena *data = replay_batches_data(batches);

		if (tail.used > VARHDRSZ && tail.used + VARSIZE_ANY_EXHDR(data) > max_bytes)
			break;
		replay_add_batch(&tail, &batch, data);
		*last_seq = batch.last_seq;
	}
	replay_batches_end(batches);
	if (tail.used == VARHDRSZ)
		return NULL;
	SET_VARSIZE(tail.bytes, tail.used);
	return (bytea *) tail.bytes;
}

/* ---- one batch ---- */

bool
replay_find_batch(int64 sheet_id, int64 since, int64 origin, int64 batch_no, Snapshot snapshot, int64 *first_seq,
				  int64 *last_seq, int64 *at)
{
	ReplayBatches *batches = replay_since(sheet_id, since, snapshot);
	ReplayBatch batch;
	bool found = false;

	while (!found && replay_batches_next(batches, &batch))
		found = batch.origin == origin && batch.batch_no == batch_no;
	if (found)
	{
		*first_seq = batch.first_seq;
		*at = batch.at;
	}
	/* One with structure edits is stored in parts. */
	for (bool more = found; more && batch.origin == origin && batch.batch_no == batch_no;
		 more = replay_batches_next(batches, &batch))
		*last_seq = batch.last_seq;
	replay_batches_end(batches);
	return found;
}
