/*
 * fsck_segments.c - checks the segments of a sheet: their rows, batches and commit records.
 *
 * First the rows of all tables are read, and put side by side for each segment. Then each segment's last batch is
 * decoded. Nothing is replayed: fsck_versions.c does that when a version is missing or does not fit its segment.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/xact.h"
#include "journal/fsck/fsck_private.h"
#include "journal/replay/batches.h"
#include "journal/store/history.h"
#include "journal/store/property_store.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "journal/store/version_store.h"
#include "journal/write/edit_life.h"
#include "support/stoppoint.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define FSCK_MAX_SEGMENTS 10000000 /* a higher number is damage */

/* ---- findings and repairs ---- */

void
fsck_report(Fsck *fsck, FsckSeverity severity, bool mendable, const char *place, const char *what)
{
	fsck->findings++;
	fsck->mendable |= mendable;
	if (fsck->report != NULL)
		fsck->report(fsck->report_arg, fsck->sheet_id, severity, what, place, mendable && fsck->repair);
}

void
fsck_written(Fsck *fsck)
{
	fsck->wrote = true;
	CommandCounterIncrement();
	UnregisterSnapshot(fsck->snapshot);
	fsck->snapshot = RegisterSnapshot(GetLatestSnapshot());
}

static char *
segment_place(int64 segment_id)
{
	return psprintf("segment " INT64_FORMAT, segment_id);
}

char *
fsck_seq_place(int64 segment_id, int64 seq)
{
	return psprintf("segment " INT64_FORMAT ", seq " INT64_FORMAT, segment_id, seq);
}

char *
fsck_version_place(int64 version_id)
{
	return psprintf("version " INT64_FORMAT, version_id);
}

/* ---- the array of segments ---- */

static FsckSegment *
segment_find(const Fsck *fsck, int64 segment_id)
{
	int64 index = segment_id - fsck->start.version_id - 1;

	return index >= 0 && index < fsck->count ? &fsck->segments[index] : NULL;
}

/* Finds or adds the segment. Returns NULL for a number that no segment can have. */
static FsckSegment *
segment_get(Fsck *fsck, int64 segment_id)
{
	int64 index = segment_id - fsck->start.version_id - 1;

	if (index < 0 || index >= FSCK_MAX_SEGMENTS)
		return NULL;
	if (index >= fsck->allocated)
	{
		fsck->allocated = Max(index + 1, 16 + fsck->allocated * 2);
		fsck->segments = fsck->segments == NULL ? palloc(sizeof(FsckSegment) * fsck->allocated)
												: repalloc_huge(fsck->segments, sizeof(FsckSegment) * fsck->allocated);
	}
	for (; fsck->count <= index; fsck->count++)
		fsck->segments[fsck->count] = (FsckSegment){.segment_id = fsck->start.version_id + 1 + fsck->count};
	return &fsck->segments[index];
}

/* ---- reading ---- */

/* Calls fn with each row of the sheet, in the order of the table's key. */
static void
segments_read(Fsck *fsck, StorageTable table, void (*fn)(Fsck *fsck, StorageScan *scan))
{
	StorageKey key = {1, BTEqualStrategyNumber, false, fsck->sheet_id};
	StorageScan scan;

	storage_scan_begin(&scan, table, fsck->snapshot, &key, 1);
	while (storage_scan_next(&scan, ForwardScanDirection))
		fn(fsck, &scan);
	storage_scan_end(&scan);
}

static void
segments_add_row(Fsck *fsck, StorageScan *scan)
{
	int64 segment_id = storage_int64(scan, SEGMENT_SEGMENT_ID);
	FsckSegment *segment = segment_get(fsck, segment_id);

	if (segment == NULL)
	{
		fsck_report(fsck, FSCK_ERROR, false, segment_place(segment_id), "no segment can have this number");
		return;
	}
	segment->has_row = true;
	segment->row_seq = storage_int64(scan, SEGMENT_FIRST_SEQ);
}

/* A batch that does not follow the batch before it. If a single seq is missing between two segments, that was the
 * commit record, which segments_check_records() handles. */
static void
segments_add_hole(Fsck *fsck, FsckSegment *before, FsckSegment *segment, int64 first_seq)
{
	if (before != NULL && before->segment_id < segment->segment_id && segment->has_row && segment->row_seq == first_seq)
	{
		if (first_seq == fsck->expected + 1)
			return;
		before->broken = true;
	}
	else
		segment->broken = true;
	fsck_report(fsck, FSCK_ERROR, false, fsck_seq_place(segment->segment_id, first_seq),
				psprintf("edits are missing or doubled: seq " INT64_FORMAT " was expected", fsck->expected));
}

/* Returns the segment of a batch. A batch that names an impossible segment is counted to the one before it. */
static FsckSegment *
segments_of_batch(Fsck *fsck, int64 segment_id, int64 first_seq)
{
	FsckSegment *segment;

	if (segment_id > fsck->start.version_id && segment_id >= fsck->newest &&
		segment_id <= Max(fsck->newest + 1, fsck->start.version_id + fsck->count))
		return segment_get(fsck, segment_id);
	segment = segment_get(fsck, Max(fsck->newest, fsck->start.version_id + 1));
	segment->broken = true;
	fsck_report(fsck, FSCK_ERROR, false, psprintf("seq " INT64_FORMAT, first_seq),
				psprintf("the batch cannot belong to segment " INT64_FORMAT, segment_id));
	return segment;
}

static void
segments_add_batch(Fsck *fsck, const StoredBatch *batch)
{
	FsckSegment *segment = segments_of_batch(fsck, batch->segment_id, batch->first_seq);

	if (batch->first_seq != fsck->expected || batch->last_seq < batch->first_seq)
		segments_add_hole(fsck, segment_find(fsck, fsck->newest), segment, batch->first_seq);
	if (!segment->has_edits)
		segment->first_seq = batch->first_seq;
	segment->has_edits = true;
	segment->last_seq = batch->last_seq;
	segment->last_batch = batch->first_seq;
	segment->last_at = timeconv_to_unix(batch->at) + (batch->last_seq - batch->first_seq);
	fsck->newest = segment->segment_id;
	fsck->expected = batch->last_seq + 1;
}

static void
segments_read_batches(Fsck *fsck)
{
	BatchScan *batches = batches_begin(fsck->sheet_id, PG_INT64_MIN, PG_INT64_MAX, false, fsck->snapshot);
	StoredBatch batch;

	fsck->newest = fsck->start.version_id;
	fsck->expected = fsck->start.seq + 1;
	while (batches_next(batches, &batch))
		segments_add_batch(fsck, &batch);
	batches_end(batches);
}

/* Only the newest segment may be empty. Removes other empty segments at the end. */
static void
segments_cut_empty(Fsck *fsck)
{
	int64 count = Min(fsck->newest + 1 - fsck->start.version_id, fsck->count);

	for (int64 i = count; i < fsck->count; i++)
		if (fsck->segments[i].has_row)
			fsck_report(fsck, FSCK_ERROR, false, segment_place(fsck->segments[i].segment_id),
						"the segment has a row, but the one before it holds no edits");
	fsck->count = (int) count;
}

static void
segments_add_version(Fsck *fsck, StorageScan *scan)
{
	int64 version_id = storage_int64(scan, VERSION_VERSION_ID);
	FsckSegment *segment = segment_find(fsck, version_id);

	if (segment != NULL)
	{
		segment->has_version = true;
		segment->version_seq = storage_int64(scan, VERSION_SEQ);
		segment->version_tiles = storage_int32(scan, VERSION_TILES);
	}
	else if (version_id == fsck->start.version_id)
		fsck->has_start = true;
	else
		fsck_report(fsck, FSCK_ERROR, false, fsck_version_place(version_id), "the version belongs to no segment");
}

/* Tiles of versions before the start belong to the version with which the history begins. */
static void
segments_add_tile(Fsck *fsck, StorageScan *scan)
{
	int64 version_id = storage_int64(scan, VERSION_TILE_VERSION_ID);
	FsckSegment *segment = segment_find(fsck, version_id);

	if (segment != NULL)
		segment->tiles++;
	else if (version_id > fsck->start.version_id)
		fsck->stray_tile = version_id;
}

/* ---- commit records ---- */

/* Returns whether the segment's last batch ends in a commit record. Returns false if it does not decode. */
static bool
segment_is_sealed(Fsck *fsck, const FsckSegment *segment)
{
	BatchScan *batches;
	StoredBatch batch;
	bool sealed = false;

	if (!segment->has_edits)
		return false;
	batches = batches_begin(fsck->sheet_id, segment->last_batch, segment->last_batch, false, fsck->snapshot);
	if (batches_next(batches, &batch))
	{
		EditReader reader;
		EditError error;
		EditKind last = 0;
		Edit edit;

		batches_read_edits(batches, &reader);
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
			last = edit.kind;
		sealed = batches_reader_end(&reader, error) == EDIT_END && last == EDIT_COMMIT;
	}
	batches_end(batches);
	return sealed;
}

/* Returns whether the segment has lost its commit record, and nothing else: the version or the next segment's row is
 * there, and everything that is stored agrees that its seq was the one after the last batch. */
static bool
segment_lacks_record(const FsckSegment *segment, const FsckSegment *next)
{
	int64 seq = segment->last_seq + 1;

	return !segment->sealed && !segment->broken && segment->has_edits &&
		   (segment->has_version || (next != NULL && next->has_row)) &&
		   (!segment->has_version || segment->version_seq == seq) &&
		   (next == NULL || !next->has_edits || next->first_seq == seq + 1) &&
		   (next == NULL || !next->has_row || next->row_seq == seq + 1);
}

/* Writes the lost commit record again, with what the version's row tells of it. Without repair the segment counts as
 * broken. */
static void
segment_restore_record(Fsck *fsck, FsckSegment *segment)
{
	VersionHead head = {.sheet_id = fsck->sheet_id,
						.version_id = segment->segment_id,
						.seq = segment->last_seq + 1,
						.at = segment->last_at + 1};
	bool known = version_store_read_head(&head, fsck->snapshot);

	if (fsck->repair)
	{
		append_commit_record(&head);
		STOP_POINT("fsck-record");
		fsck_written(fsck);
		segment->sealed = true;
		segment->last_batch = segment->last_seq = head.seq;
		segment->last_at = head.at;
	}
	else
		segment->broken = true;
	fsck_report(fsck, known ? FSCK_WARNING : FSCK_ERROR, true, segment_place(segment->segment_id),
				known ? "the commit record of the version is missing"
					  : "the commit record of the version is missing, and with it its account and its label");
}

/* Every segment but the newest ends in a commit record. */
static void
segments_check_records(Fsck *fsck)
{
	for (int i = 0; i < fsck->count; i++)
	{
		FsckSegment *segment = &fsck->segments[i];
		FsckSegment *next = i + 1 < fsck->count ? segment + 1 : NULL;

		segment->sealed = segment_is_sealed(fsck, segment);
		if (segment_lacks_record(segment, next))
			segment_restore_record(fsck, segment);
		else if (!segment->sealed && next != NULL)
		{
			segment->broken = true;
			fsck_report(fsck, FSCK_ERROR, false, segment_place(segment->segment_id),
						"the segment does not end in a commit record, and another one follows");
		}
	}
}

/* ---- segment rows ---- */

/* Returns the seq at which the segment begins, or 0 if nothing that is stored tells it. */
static int64
segment_begin(const Fsck *fsck, const FsckSegment *segment)
{
	if (segment == fsck->segments)
		return fsck->start.seq + 1;
	if (segment[-1].sealed)
		return segment[-1].last_seq + 1;
	return segment->has_row ? segment->row_seq : segment->has_edits ? segment->first_seq : 0;
}

static void
segment_write_row(Fsck *fsck, FsckSegment *segment, int64 first_seq)
{
	int64 at = segment > fsck->segments ? segment[-1].last_at : 0;

	if (segment->has_row)
		history_delete_segment(fsck->sheet_id, segment->segment_id);
	history_store_segment(fsck->sheet_id, segment->segment_id, first_seq,
						  at != 0 ? at : timeconv_to_unix(GetCurrentTimestamp()));
	STOP_POINT("fsck-head");
	fsck_written(fsck);
	segment->has_row = true;
	segment->row_seq = first_seq;
}

static void
segment_check_row(Fsck *fsck, FsckSegment *segment)
{
	int64 begin = segment_begin(fsck, segment);
	const char *what = "the segment's row is missing";

	if (segment->has_row && segment->row_seq == begin)
		return;
	if (segment->has_row)
		what = psprintf("the segment's row says that it begins at seq " INT64_FORMAT ", not " INT64_FORMAT,
						segment->row_seq, begin);
	else if (begin == 0)
		what = "the segment's row is missing, and nothing tells where it began";
	if (begin != 0 && fsck->repair)
		segment_write_row(fsck, segment, begin);
	fsck_report(fsck, begin != 0 ? FSCK_WARNING : FSCK_ERROR, begin != 0, segment_place(segment->segment_id), what);
}

/* The newest segment is open: one that is sealed needs a successor. */
static void
segments_check_rows(Fsck *fsck)
{
	if (fsck->count == 0 || fsck->segments[fsck->count - 1].sealed)
		(void) segment_get(fsck, fsck->start.version_id + fsck->count + 1);
	for (int i = 0; i < fsck->count; i++)
		segment_check_row(fsck, &fsck->segments[i]);
	/* A sheet is created with an edit that sets its size. */
	if (fsck->start.version_id == 0 && !fsck->segments[0].has_edits)
		fsck_report(fsck, FSCK_ERROR, false, segment_place(1), "the segment holds nothing, not even the sheet's size");
}

/* ---- versions, without looking into them ---- */

/* Every sealed segment needs its version with its tiles, and no other may exist. A version that is missing or does not
 * fit is reported by fsck_check_versions(), which knows whether it can be rebuilt. */
static void
segments_check_versions(Fsck *fsck)
{
	for (int i = 0; i < fsck->count; i++)
	{
		FsckSegment *segment = &fsck->segments[i];

		if (segment->sealed)
			fsck->want_replay |= !segment->has_version || segment->version_seq != segment->last_seq ||
								 segment->version_tiles != segment->tiles;
		else if (!segment->broken && (segment->has_version || segment->tiles > 0))
			fsck_report(fsck, FSCK_ERROR, false, fsck_version_place(segment->segment_id),
						segment->has_version ? "the version belongs to no sealed segment"
											 : "tiles are stored of a version that does not exist");
	}
}

/* Properties that do not decode, or are missing although the newest version has some, are compared with the log. */
static void
segments_check_properties(Fsck *fsck)
{
	bytea *bytes = property_store_read(fsck->sheet_id, fsck->snapshot);
	int64 newest = fsck->start.version_id + fsck->count - 1;
	Properties set;

	property_store_init(&set);
	if (bytes != NULL)
		fsck->want_replay |= !property_store_try_decode(bytes, &set);
	else
		fsck->want_replay |= property_store_read_version(fsck->sheet_id, newest, fsck->snapshot) != NULL;
	properties_free(&set);
}

void
fsck_check_segments(Fsck *fsck)
{
	segments_read(fsck, STORAGE_SEGMENT, segments_add_row);
	STOP_POINT("fsck-look");
	segments_read_batches(fsck);
	segments_cut_empty(fsck);
	fsck->has_start = fsck->start.version_id == 0;
	segments_read(fsck, STORAGE_VERSION, segments_add_version);
	fsck->want_replay = !fsck->has_start; /* which reports that it is missing */
	segments_read(fsck, STORAGE_VERSION_TILE, segments_add_tile);
	if (fsck->stray_tile != 0)
		fsck_report(fsck, FSCK_ERROR, false, fsck_version_place(fsck->stray_tile),
					"tiles are stored of a version that has no segment");
	segments_check_records(fsck);
	segments_check_rows(fsck);
	segments_check_versions(fsck);
	segments_check_properties(fsck);
}
