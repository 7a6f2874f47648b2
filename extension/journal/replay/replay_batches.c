/*
 * replay_batches.c - the stored batches of a sheet, one at a time, in either direction.
 *
 * What a batch says of itself (its seqs, log, time) is read without its edits: these are fetched and unpacked only when
 * they are asked for.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "journal/replay/replay_batches.h"
#include "journal/store/storage.h"

struct ReplayBatches
{
	StorageScan scan;
	int64 sheet_id;
	int64 low, high;
	bool backward;
	ReplayBatch batch;
	struct varlena *bytes; /* to be freed with the next batch, or NULL */
};

static void
batches_open(StorageScan *scan, int64 sheet_id, int strategy, int64 seq, Snapshot snapshot)
{
	StorageKey keys[2] = {{1, BTEqualStrategyNumber, false, sheet_id}, {2, strategy, false, seq}};

	storage_scan_begin(scan, STORAGE_LOG_BATCH, snapshot, keys, 2);
}

/* The last column first: the slot then unpacks all of them at once. */
static void
batches_describe(StorageScan *scan, ReplayBatch *batch)
{
	batch->batch_no = storage_int64(scan, LOG_BATCH_BATCH_NO);
	batch->origin = storage_int64(scan, LOG_BATCH_ORIGIN);
	batch->epoch = storage_int64(scan, LOG_BATCH_EPOCH);
	batch->at = storage_int64(scan, LOG_BATCH_AT);
	batch->segment_id = storage_int64(scan, LOG_BATCH_SEGMENT_ID);
	batch->last_seq = storage_int64(scan, LOG_BATCH_LAST_SEQ);
	batch->first_seq = storage_int64(scan, LOG_BATCH_FIRST_SEQ);
}

/* The batch that holds seq, or the last one before it. */
static bool
batches_find(int64 sheet_id, int64 seq, Snapshot snapshot, ReplayBatch *batch)
{
	StorageScan scan;
	bool found;

	batches_open(&scan, sheet_id, BTLessEqualStrategyNumber, seq, snapshot);
	found = storage_scan_next(&scan, BackwardScanDirection);
	if (found)
		batches_describe(&scan, batch);
	storage_scan_end(&scan);
	return found;
}

ReplayBatches *
replay_batches_begin(int64 sheet_id, int64 low, int64 high, bool backward, Snapshot snapshot)
{
	ReplayBatches *batches = palloc0(sizeof(ReplayBatches));
	ReplayBatch start;

	batches->sheet_id = sheet_id;
	batches->low = low;
	batches->high = high;
	batches->backward = backward;
	if (backward)
		batches_open(&batches->scan, sheet_id, BTLessEqualStrategyNumber, high, snapshot);
	else
	{
		/* The first seq that is wanted may lie inside a batch. */
		if (low > 1 && batches_find(sheet_id, low, snapshot, &start) && start.last_seq >= low)
			low = start.first_seq;
		batches_open(&batches->scan, sheet_id, BTGreaterEqualStrategyNumber, low, snapshot);
	}
	return batches;
}

static void
batches_free_bytes(ReplayBatches *batches)
{
	if (batches->bytes != NULL)
		pfree(batches->bytes);
	batches->bytes = NULL;
}

bool
replay_batches_next(ReplayBatches *batches, ReplayBatch *batch)
{
	batches_free_bytes(batches);
	if (!storage_scan_next(&batches->scan, batches->backward ? BackwardScanDirection : ForwardScanDirection))
		return false;
	batches_describe(&batches->scan, &batches->batch);
	*batch = batches->batch;
	return batches->backward ? batch->last_seq >= batches->low : batch->first_seq <= batches->high;
}

const struct varlena *
replay_batches_data(ReplayBatches *batches)
{
	bool copy;
	struct varlena *bytes = storage_bytes(&batches->scan, LOG_BATCH_DATA, &copy);

	if (copy)
		batches->bytes = bytes;
	return bytes;
}

Size
replay_batches_size(ReplayBatches *batches)
{
	return storage_raw_size(&batches->scan, LOG_BATCH_DATA);
}

void
replay_stored_edits(EditReader *reader, const struct varlena *data, int64 first_seq, int64 last_seq)
{
	int64 count = last_seq - first_seq + 1;

	edit_reader_init_edits(reader, VARDATA_ANY(data), VARSIZE_ANY_EXHDR(data),
						   (uint32) Min(Max(count, 0), SHEET_MAX_BATCH_EDITS));
}

void
replay_batches_edits(ReplayBatches *batches, EditReader *reader)
{
	replay_stored_edits(reader, replay_batches_data(batches), batches->batch.first_seq, batches->batch.last_seq);
}

void
replay_batches_end(ReplayBatches *batches)
{
	batches_free_bytes(batches);
	storage_scan_end(&batches->scan);
	pfree(batches);
}

/* ---- looking for a time or a log ---- */

static int64
batches_field(const ReplayBatch *batch, ReplayField field)
{
	switch (field)
	{
		case REPLAY_LID:
			return batch->segment_id;
		case REPLAY_AT:
			return batch->at;
		default:
			return batch->at + (batch->last_seq - batch->first_seq);
	}
}

int64
replay_seek(int64 sheet_id, ReplayField field, int64 value, Snapshot snapshot, int64 *probes)
{
	ReplayBatch batch;
	int64 result = PG_INT64_MAX;
	int64 low = 1, high = 0;

	if (batches_find(sheet_id, PG_INT64_MAX, snapshot, &batch))
	{
		(*probes)++;
		high = batch.last_seq;
	}
	while (low <= high)
	{
		int64 middle = low + (high - low) / 2;

		(*probes)++;
		if (!batches_find(sheet_id, middle, snapshot, &batch))
			low = middle + 1;
		else if (batches_field(&batch, field) >= value)
		{
			result = batch.first_seq;
			high = batch.first_seq - 1;
		}
		else
			low = Max(middle, batch.last_seq) + 1;
	}
	return result;
}
