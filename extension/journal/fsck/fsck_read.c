/*
 * fsck_read.c - what is stored of each log: heads, batches, versions and tiles, counted and put side by side.
 *
 * What cannot be is reported here: batches of logs that cannot be, holes between batches, versions and tiles without
 * log.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "journal/fsck/fsck_private.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "utils/builtins.h"

#define FSCK_MAX_LOGS 10000000 /* a higher number is damage */

static FsckLog *
read_find(const Fsck *fsck, int64 segment_id)
{
	int64 index = segment_id - fsck->start.version_id - 1;

	return index >= 0 && index < fsck->nlogs ? &fsck->logs[index] : NULL;
}

/* The log of that number, made when it is not there yet; NULL when it cannot be one. */
FsckLog *
fsck_get_log(Fsck *fsck, int64 segment_id)
{
	int64 index = segment_id - fsck->start.version_id - 1;

	if (index < 0 || index >= FSCK_MAX_LOGS)
		return NULL;
	if (index >= fsck->room)
	{
		fsck->room = Max(index + 1, 16 + fsck->room * 2);
		fsck->logs = fsck->logs == NULL ? palloc(sizeof(FsckLog) * fsck->room)
										: repalloc_huge(fsck->logs, sizeof(FsckLog) * fsck->room);
	}
	for (; fsck->nlogs <= index; fsck->nlogs++)
	{
		memset(&fsck->logs[fsck->nlogs], 0, sizeof(FsckLog));
		fsck->logs[fsck->nlogs].segment_id = fsck->start.version_id + 1 + fsck->nlogs;
	}
	return &fsck->logs[index];
}

/* ---- reading ---- */

/* Calls fn with each row of the sheet, in the order of the table's key. */
static void
read_rows(Fsck *fsck, StorageTable table, void (*fn)(Fsck *fsck, StorageScan *scan))
{
	StorageKey key = {1, BTEqualStrategyNumber, false, fsck->sheet_id};
	StorageScan scan;

	storage_scan_begin(&scan, table, fsck->snapshot, &key, 1);
	while (storage_scan_next(&scan, ForwardScanDirection))
		fn(fsck, &scan);
	storage_scan_end(&scan);
}

static void
read_head(Fsck *fsck, StorageScan *scan)
{
	int64 segment_id = storage_int64(scan, SEGMENT_SEGMENT_ID);
	FsckLog *log = fsck_get_log(fsck, segment_id);

	if (log == NULL)
		fsck_report(fsck, FSCK_ERROR, false, fsck_log_place(segment_id), "there can be no log of this number");
	else
	{
		log->has_head = true;
		log->head_seq = storage_int64(scan, SEGMENT_FIRST_SEQ);
	}
}

/* A batch that comes after `before` and a hole: the edits between them are lost, unless they are one commit record. */
static void
read_note_hole(Fsck *fsck, FsckLog *before, FsckLog *log, int64 first_seq)
{
	if (before != NULL && before->segment_id < log->segment_id && log->has_head && log->head_seq == first_seq)
	{
		if (first_seq == fsck->expected + 1)
			return;			   /* logs_check_records() looks at it */
		before->broken = true; /* at its end */
	}
	else
		log->broken = true;
	fsck_report(fsck, FSCK_ERROR, false, fsck_seq_place(log->segment_id, first_seq),
				psprintf("edits are missing or doubled: seq " INT64_FORMAT " was expected", fsck->expected));
}

/* Logs follow each other. The log that a batch is counted to when it names one that cannot be is the one before it. */
static FsckLog *
read_log_of_batch(Fsck *fsck, int64 segment_id, int64 first_seq)
{
	FsckLog *log;

	if (segment_id > fsck->start.version_id && segment_id >= fsck->newest &&
		segment_id <= Max(fsck->newest + 1, fsck->start.version_id + fsck->nlogs))
		return fsck_get_log(fsck, segment_id);
	log = fsck_get_log(fsck, Max(fsck->newest, fsck->start.version_id + 1));
	log->broken = true;
	fsck_report(fsck, FSCK_ERROR, false, psprintf("seq " INT64_FORMAT, first_seq),
				psprintf("the batch cannot belong to log " INT64_FORMAT, segment_id));
	return log;
}

/* seq must be gapless over batches, and a batch must not be empty. */
static void
read_batch(Fsck *fsck, StorageScan *scan)
{
	int64 first_seq = storage_int64(scan, LOG_BATCH_FIRST_SEQ);
	int64 last_seq = storage_int64(scan, LOG_BATCH_LAST_SEQ);
	FsckLog *log = read_log_of_batch(fsck, storage_int64(scan, LOG_BATCH_SEGMENT_ID), first_seq);

	if (first_seq != fsck->expected || last_seq < first_seq)
		read_note_hole(fsck, read_find(fsck, fsck->newest), log, first_seq);
	if (!log->has_edits)
		log->first_seq = first_seq;
	log->has_edits = true;
	log->last_seq = last_seq;
	log->last_batch = first_seq;
	log->last_at = timeconv_to_unix(storage_int64(scan, LOG_BATCH_AT)) + (last_seq - first_seq);
	fsck->newest = log->segment_id;
	fsck->expected = last_seq + 1;
}

/* One log at most is empty: the open one. What is said of others is not believed. */
static void
read_cut_empty(Fsck *fsck)
{
	int64 kept = Min(fsck->newest + 1 - fsck->start.version_id, fsck->nlogs);

	for (int64 i = kept; i < fsck->nlogs; i++)
		if (fsck->logs[i].has_head)
			fsck_report(fsck, FSCK_ERROR, false, fsck_log_place(fsck->logs[i].segment_id),
						"the log has a head, but the one before it holds no edits");
	fsck->nlogs = (int) kept;
}

static void
read_version(Fsck *fsck, StorageScan *scan)
{
	int64 version_id = storage_int64(scan, VERSION_VERSION_ID);
	FsckLog *log = read_find(fsck, version_id);

	if (log != NULL)
	{
		log->has_version = true;
		fsck->newest_version = version_id;
		log->version_seq = storage_int64(scan, VERSION_SEQ);
		log->version_tiles = storage_int32(scan, VERSION_TILES);
	}
	else if (version_id == fsck->start.version_id)
		fsck->has_start = true;
	else
		fsck_report(fsck, FSCK_ERROR, false, fsck_version_place(version_id), "the checkpoint belongs to no log");
}

/* Tiles of versions before the start are those that it consists of. */
static void
read_tile(Fsck *fsck, StorageScan *scan)
{
	int64 version_id = storage_int64(scan, VERSION_TILE_VERSION_ID);
	FsckLog *log = read_find(fsck, version_id);

	if (log != NULL)
		log->tiles++;
	else if (version_id > fsck->start.version_id)
		fsck->stray_tile = version_id;
}

void
fsck_read_logs(Fsck *fsck)
{
	read_rows(fsck, STORAGE_SEGMENT, read_head);
	STOP_POINT("fsck-look");
	fsck->newest = fsck->start.version_id;
	fsck->expected = fsck->start.seq + 1;
	read_rows(fsck, STORAGE_LOG_BATCH, read_batch);
	read_cut_empty(fsck);
	fsck->has_start = fsck->start.version_id == 0;
	read_rows(fsck, STORAGE_VERSION, read_version);
	fsck->want_replay = !fsck->has_start; /* it begins with that version */
	read_rows(fsck, STORAGE_VERSION_TILE, read_tile);
	if (fsck->stray_tile != 0)
		fsck_report(fsck, FSCK_ERROR, false, fsck_version_place(fsck->stray_tile),
					"tiles are stored of a version that has no log");
}
