/*
 * batches.c - the stored batches of a sheet: one at a time in either direction, edit by edit, or as bytes.
 *
 * The columns of a batch (its seqs, segment, time) are read without its edits, which are detoasted only on demand.
 */
#include "postgres.h"

#include "common/edit_read.h"
#include "lib/stringinfo.h"
#include "journal/replay/batches.h"
#include "journal/store/history.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "support/stoppoint.h"
#include "utils/memutils.h"

struct BatchScan
{
	StorageScan scan;
	int64 sheet_id;
	int64 low, high;
	bool backward;
	StoredBatch batch;
	struct varlena *bytes; /* to free with the next batch, or NULL */
};

/* ---- one batch at a time ---- */

static void
batches_open(StorageScan *scan, int64 sheet_id, int strategy, int64 seq, Snapshot snapshot)
{
	StorageKey keys[2] = {storage_key_int64(LOG_BATCH_SHEET_ID, BTEqualStrategyNumber, sheet_id),
						  storage_key_int64(LOG_BATCH_FIRST_SEQ, strategy, seq)};

	storage_scan_begin(scan, STORAGE_LOG_BATCH, snapshot, keys, 2);
}

/* The last column first, so that the slot deforms all columns at once. */
static void
batches_get_columns(StorageScan *scan, StoredBatch *batch)
{
	batch->batch_no = storage_int64(scan, LOG_BATCH_BATCH_NO);
	batch->origin = storage_int64(scan, LOG_BATCH_ORIGIN);
	batch->epoch = storage_int64(scan, LOG_BATCH_EPOCH);
	batch->at = storage_int64(scan, LOG_BATCH_AT);
	batch->segment_id = storage_int64(scan, LOG_BATCH_SEGMENT_ID);
	batch->last_seq = storage_int64(scan, LOG_BATCH_LAST_SEQ);
	batch->first_seq = storage_int64(scan, LOG_BATCH_FIRST_SEQ);
}

/* The batch that contains seq, or the last one before it. */
static bool
batches_find_seq(int64 sheet_id, int64 seq, Snapshot snapshot, StoredBatch *batch)
{
	StorageScan scan;
	bool found;

	batches_open(&scan, sheet_id, BTLessEqualStrategyNumber, seq, snapshot);
	found = storage_scan_next(&scan, BackwardScanDirection);
	if (found)
		batches_get_columns(&scan, batch);
	storage_scan_end(&scan);
	return found;
}

BatchScan *
batches_begin(int64 sheet_id, int64 low, int64 high, bool backward, Snapshot snapshot)
{
	BatchScan *scan = palloc0(sizeof(BatchScan));
	StoredBatch start;

	scan->sheet_id = sheet_id;
	scan->low = low;
	scan->high = high;
	scan->backward = backward;
	/* The lowest seq may be inside a batch. */
	if (!backward && low > 1 && batches_find_seq(sheet_id, low, snapshot, &start) && start.last_seq >= low)
		low = start.first_seq;
	batches_open(&scan->scan, sheet_id, backward ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber,
				 backward ? high : low, snapshot);
	return scan;
}

static void
batches_free_bytes(BatchScan *scan)
{
	if (scan->bytes != NULL)
		pfree(scan->bytes);
	scan->bytes = NULL;
}

bool
batches_next(BatchScan *scan, StoredBatch *batch)
{
	batches_free_bytes(scan);
	if (!storage_scan_next(&scan->scan, scan->backward ? BackwardScanDirection : ForwardScanDirection))
		return false;
	batches_get_columns(&scan->scan, &scan->batch);
	*batch = scan->batch;
	return scan->backward ? batch->last_seq >= scan->low : batch->first_seq <= scan->high;
}

static const struct varlena *
batches_data(BatchScan *scan)
{
	bool copy;
	struct varlena *bytes = storage_bytes(&scan->scan, LOG_BATCH_DATA, &copy);

	if (copy)
		scan->bytes = bytes;
	return bytes;
}

Size
batches_size(BatchScan *scan)
{
	return storage_raw_size(&scan->scan, LOG_BATCH_DATA);
}

void
batches_read_edits(BatchScan *scan, EditReader *reader)
{
	const struct varlena *data = batches_data(scan);
	int64 count = scan->batch.last_seq - scan->batch.first_seq + 1;

	edit_reader_init_edits(reader, VARDATA_ANY(data), VARSIZE_ANY_EXHDR(data),
						   (uint32) Min(Max(count, 0), SHEET_MAX_BATCH_EDITS));
}

void
batches_end(BatchScan *scan)
{
	batches_free_bytes(scan);
	storage_scan_end(&scan->scan);
	pfree(scan);
}

/* ---- edit by edit ---- */

void
batches_each_edit_of(BatchScan *scan, int64 since, int64 until, BatchesEditFn fn, void *arg)
{
	int64 seq = scan->batch.first_seq, at = timeconv_to_unix(scan->batch.at);
	EditReader start, reader;
	EditError error;
	Edit edit;

	STOP_POINT("replay-batch");
	batches_read_edits(scan, &start);
	reader = start; /* a copy whose address is not taken: the compiler keeps it in registers */
	for (; (error = edit_read_inline(&reader, &edit)) == EDIT_OK; seq++, at++)
	{
		/* Grids and maps trust their callers. */
		if (!edit_is_within_limits(&edit))
			history_corrupted(scan->sheet_id, "the edit at seq", seq, EDIT_BAD_NUMBER);
		if (seq > since && seq <= until)
			fn(arg, seq, at, &edit);
	}
	error = batches_reader_end(&reader, error);
	if (error != EDIT_END)
		history_corrupted(scan->sheet_id, "the batch before seq", seq, error);
}

void
batches_each_edit(int64 sheet_id, int64 since, int64 until, Snapshot snapshot, BatchesEditFn fn, void *arg)
{
	BatchScan *scan = batches_begin(sheet_id, Max(since, 0) + 1, until, false, snapshot);
	StoredBatch batch;

	while (batches_next(scan, &batch))
		batches_each_edit_of(scan, since, until, fn, arg);
	batches_end(scan);
}

/* ---- as bytes ---- */

/* Appends a batch with its header. */
static void
batches_append_bytes(StringInfo tail, const StoredBatch *stored, const struct varlena *data)
{
	EditBatch batch = {stored->first_seq, timeconv_to_unix(stored->at), stored->last_seq - stored->first_seq + 1};
	Size len = VARSIZE_ANY_EXHDR(data);
	EditWriter writer;

	if (tail->len + EDIT_BATCH_HEAD_MAX + len >= MaxAllocSize)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("the batches are too large for one result")));
	enlargeStringInfo(tail, EDIT_BATCH_HEAD_MAX + len);
	edit_write_batch(&writer, (uint8_t *) tail->data + tail->len, &batch);
	tail->len = (char *) writer.pos - tail->data;
	appendBinaryStringInfo(tail, VARDATA_ANY(data), len);
}

bytea *
batches_tail(int64 sheet_id, int64 since, Size max_bytes, Snapshot snapshot, int64 *last_seq)
{
	BatchScan *scan = batches_begin(sheet_id, Max(since, 0) + 1, PG_INT64_MAX, false, snapshot);
	StringInfoData tail;
	StoredBatch batch;

	initStringInfo(&tail);
	tail.len = VARHDRSZ;
	*last_seq = since;
	while (batches_next(scan, &batch))
	{
		const struct varlena *data = batches_data(scan);

		if (tail.len > VARHDRSZ && tail.len + VARSIZE_ANY_EXHDR(data) > max_bytes)
			break;
		batches_append_bytes(&tail, &batch, data);
		*last_seq = batch.last_seq;
	}
	batches_end(scan);
	if (tail.len == VARHDRSZ)
		return NULL;
	SET_VARSIZE(tail.data, tail.len);
	return (bytea *) tail.data;
}

/* ---- finding a batch ---- */

bool
batches_find(int64 sheet_id, int64 since, int64 origin, int64 batch_no, Snapshot snapshot, int64 *first_seq,
			 int64 *last_seq, int64 *at)
{
	BatchScan *scan = batches_begin(sheet_id, Max(since, 0) + 1, PG_INT64_MAX, false, snapshot);
	StoredBatch batch;
	bool found = false, matches;

	/* A batch with structure edits is stored in several rows. */
	while (batches_next(scan, &batch))
	{
		matches = batch.origin == origin && batch.batch_no == batch_no;
		if (found && !matches)
			break;
		if (!matches)
			continue;
		if (!found)
		{
			*first_seq = batch.first_seq;
			*at = batch.at;
		}
		*last_seq = batch.last_seq;
		found = true;
	}
	batches_end(scan);
	return found;
}

static int64
batches_get_field(const StoredBatch *batch, BatchField field)
{
	switch (field)
	{
		case BATCH_SEGMENT_ID:
			return batch->segment_id;
		case BATCH_AT:
			return batch->at;
		default:
			return batch->at + (batch->last_seq - batch->first_seq);
	}
}

int64
batches_seek(int64 sheet_id, BatchField field, int64 value, Snapshot snapshot, int64 *probes)
{
	StoredBatch batch;
	int64 result = PG_INT64_MAX;
	int64 low = 1, high = 0;

	if (batches_find_seq(sheet_id, PG_INT64_MAX, snapshot, &batch))
	{
		(*probes)++;
		high = batch.last_seq;
	}
	while (low <= high)
	{
		int64 middle = low + (high - low) / 2;

		(*probes)++;
		if (!batches_find_seq(sheet_id, middle, snapshot, &batch))
			low = middle + 1;
		else if (batches_get_field(&batch, field) >= value)
		{
			result = batch.first_seq;
			high = batch.first_seq - 1;
		}
		else
			low = Max(middle, batch.last_seq) + 1;
	}
	return result;
}
