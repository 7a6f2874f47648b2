/*
 * fsck_read.c - what is stored of each log: heads, batches, versions and tiles, counted and put side by side.
 *
 * What cannot be is reported here: batches of logs that cannot be, holes between batches, versions and tiles without
 * log.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "fsck_private.h"
#include "stoppoint.h"
#include "storage.h"
#include "timeconv.h"
#include "utils/builtins.h"

#define FSCK_MAX_LOGS 10000000 /* a higher number is damage */

static FsckLog *
read_find(const Fsck *fsck, int64 lid)
{
	int64 index = lid - fsck->start.cid - 1;

	return index >= 0 && index < fsck->nlogs ? &fsck->logs[index] : NULL;
}

/* The log of that number, made when it is not there yet; NULL when it cannot be one. */
FsckLog *
fsck_get_log(Fsck *fsck, int64 lid)
{
	int64 index = lid - fsck->start.cid - 1;

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
		fsck->logs[fsck->nlogs].lid = fsck->start.cid + 1 + fsck->nlogs;
	}
	return &fsck->logs[index];
}

/* ---- reading ---- */

static void
read_scan(Fsck *fsck, StorageScan *scan, StorageTable table)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, fsck->sheet_id};

	storage_scan_begin(scan, table, fsck->snapshot, &key, 1);
}

static void
read_heads(Fsck *fsck)
{
	StorageScan scan;

	read_scan(fsck, &scan, STORAGE_LOG_HEAD);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		int64 lid = storage_int64(&scan, LOG_HEAD_LID);
		FsckLog *log = fsck_get_log(fsck, lid);

		if (log == NULL)
			fsck_report(fsck, FSCK_ERROR, false, fsck_log_place(lid), "there can be no log of this number");
		else
		{
			log->has_head = true;
			log->head_seq = storage_int64(&scan, LOG_HEAD_FIRST_SEQ);
		}
	}
	storage_scan_end(&scan);
}

/* A batch that comes after `before` and a hole: the edits between them are lost, unless they are one commit record. */
static void
read_note_hole(Fsck *fsck, int64 before_lid, FsckLog *log, int64 expected, int64 first_seq)
{
	FsckLog *before = read_find(fsck, before_lid);

	if (before != NULL && before->lid < log->lid && log->has_head && log->head_seq == first_seq)
	{
		if (first_seq == expected + 1)
			return;			   /* read_check_records() looks at it */
		before->broken = true; /* at its end */
	}
	else
		log->broken = true;
	fsck_report(fsck, FSCK_ERROR, false, psprintf("log " INT64_FORMAT ", seq " INT64_FORMAT, log->lid, first_seq),
				psprintf("edits are missing or doubled: seq " INT64_FORMAT " was expected", expected));
}

static void
read_note_batch(FsckLog *log, StorageScan *scan, int64 first_seq, int64 last_seq)
{
	if (!log->has_edits)
		log->first_seq = first_seq;
	log->has_edits = true;
	log->last_seq = last_seq;
	log->last_batch = first_seq;
	log->last_at = timeconv_to_unix(storage_int64(scan, LOG_BATCH_AT)) + (last_seq - first_seq);
}

/* Logs follow each other. The log that a batch is counted to when it names one that cannot be is the one before it. */
static FsckLog *
read_of_batch(Fsck *fsck, StorageScan *scan, int64 before_lid, int64 first_seq)
{
	int64 lid = storage_int64(scan, LOG_BATCH_LID);
	FsckLog *log;

	if (lid > fsck->start.cid && lid >= before_lid && lid <= Max(before_lid + 1, fsck->start.cid + fsck->nlogs))
		return fsck_get_log(fsck, lid);
	log = fsck_get_log(fsck, Max(before_lid, fsck->start.cid + 1));
	log->broken = true;
	fsck_report(fsck, FSCK_ERROR, false, psprintf("seq " INT64_FORMAT, first_seq),
				psprintf("the batch cannot belong to log " INT64_FORMAT, lid));
	return log;
}

/* seq must be gapless over batches, and a batch must not be empty. Returns the newest log that has one. */
static int64
read_batches(Fsck *fsck)
{
	int64 lid = fsck->start.cid, expected = fsck->start.seq + 1;
	StorageScan scan;

	read_scan(fsck, &scan, STORAGE_LOG_BATCH);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		int64 first_seq = storage_int64(&scan, LOG_BATCH_FIRST_SEQ);
		int64 last_seq = storage_int64(&scan, LOG_BATCH_LAST_SEQ);
		FsckLog *log = read_of_batch(fsck, &scan, lid, first_seq);

		if (first_seq != expected || last_seq < first_seq)
			read_note_hole(fsck, lid, log, expected, first_seq);
		read_note_batch(log, &scan, first_seq, last_seq);
		lid = log->lid;
		expected = last_seq + 1;
	}
	storage_scan_end(&scan);
	return lid;
}

/* One log at most is empty: the open one. What is said of others is not believed. */
static void
read_cut_empty(Fsck *fsck, int64 newest)
{
	int64 kept = Min(newest + 1 - fsck->start.cid, fsck->nlogs);

	for (int64 i = kept; i < fsck->nlogs; i++)
		if (fsck->logs[i].has_head)
			fsck_report(fsck, FSCK_ERROR, false, fsck_log_place(fsck->logs[i].lid),
						"the log has a head, but the one before it holds no edits");
	fsck->nlogs = (int) kept;
}

static void
read_versions(Fsck *fsck)
{
	bool start_found = fsck->start.cid == 0;
	StorageScan scan;

	read_scan(fsck, &scan, STORAGE_CHECKPOINT);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		int64 cid = storage_int64(&scan, CHECKPOINT_CID);
		FsckLog *log = read_find(fsck, cid);

		if (log != NULL)
		{
			log->has_version = true;
			log->version_seq = storage_int64(&scan, CHECKPOINT_SEQ);
			log->version_tiles = storage_int32(&scan, CHECKPOINT_TILES);
		}
		else if (cid == fsck->start.cid)
			start_found = true;
		else
			fsck_report(fsck, FSCK_ERROR, false, fsck_version_place(cid), "the checkpoint belongs to no log");
	}
	storage_scan_end(&scan);
	if (!start_found)
		fsck->want_replay = true; /* which begins with it */
}

/* Tiles of versions before the start are those that it consists of. */
static void
read_count_tiles(Fsck *fsck)
{
	StorageScan scan;
	int64 stray = 0;

	read_scan(fsck, &scan, STORAGE_CHECKPOINT_TILE);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		int64 cid = storage_int64(&scan, CHECKPOINT_TILE_CID);
		FsckLog *log = read_find(fsck, cid);

		if (log != NULL)
			log->tiles++;
		else if (cid > fsck->start.cid)
			stray = cid;
	}
	storage_scan_end(&scan);
	if (stray != 0)
		fsck_report(fsck, FSCK_ERROR, false, fsck_version_place(stray),
					"tiles are stored of a version that has no log");
}

void
fsck_read_logs(Fsck *fsck)
{
	read_heads(fsck);
	STOP_POINT("fsck-look");
	read_cut_empty(fsck, read_batches(fsck));
	read_versions(fsck);
	read_count_tiles(fsck);
}
