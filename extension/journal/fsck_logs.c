/*
 * fsck_logs.c - what is stored of each log, and whether it is complete: heads, seqs, commit records, versions.
 *
 * Nothing is replayed here: rows are counted and compared, and the last batch of each log is decoded.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "append.h"
#include "fsck_private.h"
#include "journal.h"
#include "loghead.h"
#include "replay.h"
#include "stoppoint.h"
#include "storage.h"
#include "timeconv.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#define FSCK_MAX_LOGS 10000000 /* a higher number is damage */

static FsckLog *
logs_find(const Fsck *fsck, int64 lid)
{
	int64 index = lid - fsck->start.cid - 1;

	return index >= 0 && index < fsck->nlogs ? &fsck->logs[index] : NULL;
}

/* The log of that number, made when it is not there yet; NULL when it cannot be one. */
static FsckLog *
logs_get(Fsck *fsck, int64 lid)
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

static char *
logs_place(int64 lid)
{
	return psprintf("log " INT64_FORMAT, lid);
}

static char *
logs_version_place(int64 cid)
{
	return psprintf("version " INT64_FORMAT, cid);
}

/* ---- reading ---- */

static void
logs_scan(Fsck *fsck, StorageScan *scan, StorageTable table)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, fsck->sheet_id};

	storage_scan_begin(scan, table, fsck->snapshot, &key, 1);
}

static void
logs_read_heads(Fsck *fsck)
{
	StorageScan scan;

	logs_scan(fsck, &scan, STORAGE_LOG_HEAD);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		int64 lid = storage_int64(&scan, LOG_HEAD_LID);
		FsckLog *log = logs_get(fsck, lid);

		if (log == NULL)
			fsck_report(fsck, FSCK_ERROR, false, logs_place(lid), "there can be no log of this number");
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
logs_note_hole(Fsck *fsck, int64 before_lid, FsckLog *log, int64 expected, int64 first_seq)
{
	FsckLog *before = logs_find(fsck, before_lid);

	if (before != NULL && before->lid < log->lid && log->has_head && log->head_seq == first_seq)
	{
		if (first_seq == expected + 1)
			return;			   /* logs_check_records() looks at it */
		before->broken = true; /* at its end */
	}
	else
		log->broken = true;
	fsck_report(fsck, FSCK_ERROR, false, psprintf("log " INT64_FORMAT ", seq " INT64_FORMAT, log->lid, first_seq),
				psprintf("edits are missing or doubled: seq " INT64_FORMAT " was expected", expected));
}

static void
logs_note_batch(FsckLog *log, StorageScan *scan, int64 first_seq, int64 last_seq)
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
logs_of_batch(Fsck *fsck, StorageScan *scan, int64 before_lid, int64 first_seq)
{
	int64 lid = storage_int64(scan, LOG_BATCH_LID);
	FsckLog *log;

	if (lid > fsck->start.cid && lid >= before_lid && lid <= Max(before_lid + 1, fsck->start.cid + fsck->nlogs))
		return logs_get(fsck, lid);
	log = logs_get(fsck, Max(before_lid, fsck->start.cid + 1));
	log->broken = true;
	fsck_report(fsck, FSCK_ERROR, false, psprintf("seq " INT64_FORMAT, first_seq),
				psprintf("the batch cannot belong to log " INT64_FORMAT, lid));
	return log;
}

/* seq must be gapless over batches, and a batch must not be empty. Returns the newest log that has one. */
static int64
logs_read_batches(Fsck *fsck)
{
	int64 lid = fsck->start.cid, expected = fsck->start.seq + 1;
	StorageScan scan;

	logs_scan(fsck, &scan, STORAGE_LOG_BATCH);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		int64 first_seq = storage_int64(&scan, LOG_BATCH_FIRST_SEQ);
		int64 last_seq = storage_int64(&scan, LOG_BATCH_LAST_SEQ);
		FsckLog *log = logs_of_batch(fsck, &scan, lid, first_seq);

		if (first_seq != expected || last_seq < first_seq)
			logs_note_hole(fsck, lid, log, expected, first_seq);
		logs_note_batch(log, &scan, first_seq, last_seq);
		lid = log->lid;
		expected = last_seq + 1;
	}
	storage_scan_end(&scan);
	return lid;
}

/* One log at most is empty: the open one. What is said of others is not believed. */
static void
logs_cut_empty(Fsck *fsck, int64 newest)
{
	int64 kept = Min(newest + 1 - fsck->start.cid, fsck->nlogs);

	for (int64 i = kept; i < fsck->nlogs; i++)
		if (fsck->logs[i].has_head)
			fsck_report(fsck, FSCK_ERROR, false, logs_place(fsck->logs[i].lid),
						"the log has a head, but the one before it holds no edits");
	fsck->nlogs = (int) kept;
}

static void
logs_read_versions(Fsck *fsck)
{
	bool start_found = fsck->start.cid == 0;
	StorageScan scan;

	logs_scan(fsck, &scan, STORAGE_CHECKPOINT);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		int64 cid = storage_int64(&scan, CHECKPOINT_CID);
		FsckLog *log = logs_find(fsck, cid);

		if (log != NULL)
		{
			log->has_version = true;
			log->version_seq = storage_int64(&scan, CHECKPOINT_SEQ);
			log->version_tiles = storage_int32(&scan, CHECKPOINT_TILES);
		}
		else if (cid == fsck->start.cid)
			start_found = true;
		else
			fsck_report(fsck, FSCK_ERROR, false, logs_version_place(cid), "the checkpoint belongs to no log");
	}
	storage_scan_end(&scan);
	if (!start_found)
		fsck->want_replay = true; /* which begins with it */
}

/* Tiles of versions before the start are those that it consists of. */
static void
logs_count_tiles(Fsck *fsck)
{
	StorageScan scan;
	int64 stray = 0;

	logs_scan(fsck, &scan, STORAGE_CHECKPOINT_TILE);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		int64 cid = storage_int64(&scan, CHECKPOINT_TILE_CID);
		FsckLog *log = logs_find(fsck, cid);

		if (log != NULL)
			log->tiles++;
		else if (cid > fsck->start.cid)
			stray = cid;
	}
	storage_scan_end(&scan);
	if (stray != 0)
		fsck_report(fsck, FSCK_ERROR, false, logs_version_place(stray),
					"tiles are stored of a version that has no log");
}

/* ---- commit records ---- */

/* Does the stored batch end in a commit record? False also when it does not decode. */
static bool
logs_ends_in_commit(const struct varlena *data)
{
	EditReader reader;
	EditBatch batch;
	Edit edit;
	EditKind last = 0;
	EditError error;

	edit_reader_init(&reader, VARDATA_ANY(data), VARSIZE_ANY_EXHDR(data));
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
			last = edit.kind;
		if (error != EDIT_END)
			return false;
	}
	return error == EDIT_END && last == EDIT_COMMIT;
}

static bool
logs_is_sealed(Fsck *fsck, const FsckLog *log)
{
	StorageKey keys[] = {{1, BTEqualStrategyNumber, false, fsck->sheet_id},
						 {2, BTEqualStrategyNumber, false, log->last_batch}};
	StorageScan scan;
	bool sealed = false;

	if (!log->has_edits)
		return false;
	storage_scan_begin(&scan, STORAGE_LOG_BATCH, fsck->snapshot, keys, 2);
	if (storage_scan_next(&scan, ForwardScanDirection))
	{
		bool copy;
		struct varlena *data = storage_bytes(&scan, LOG_BATCH_DATA, &copy);

		sealed = logs_ends_in_commit(data);
		if (copy)
			pfree(data);
	}
	storage_scan_end(&scan);
	return sealed;
}

/* The seq that only the log's lost commit record can have had; 0 when there is none. */
static int64
logs_lost_record(const Fsck *fsck, const FsckLog *log, const FsckLog *next)
{
	int64 seq = log->last_seq + 1;

	if (log->sealed || log->broken || !log->has_edits)
		return 0;
	if (log->has_version && log->version_seq != seq)
		return 0;
	if (next != NULL && next->has_edits && next->first_seq != seq + 1)
		return 0;
	if (next != NULL && next->has_head && next->head_seq != seq + 1)
		return 0;
	return log->has_version || (next != NULL && next->has_head) ? seq : 0;
}

/* C1 with traces of what came after it: the record is written as the version's row tells it. */
static void
logs_restore_record(Fsck *fsck, FsckLog *log, int64 seq)
{
	CheckpointHead head = {.sheet_id = fsck->sheet_id, .cid = log->lid, .seq = seq, .at = log->last_at + 1};
	bool known = checkpoint_read_head(&head, fsck->snapshot);

	if (fsck->repair)
	{
		fsck_before_write(fsck);
		append_commit_record(&head);
		STOP_POINT("fsck-record");
		fsck_written(fsck);
		log->sealed = true;
		log->last_batch = log->last_seq = seq;
		log->last_at = head.at;
	}
	else
		log->unrecorded = true;
	fsck_report(fsck, known ? FSCK_WARNING : FSCK_ERROR, fsck->repair, logs_place(log->lid),
				psprintf("the commit of version " INT64_FORMAT " has lost its commit record (C1)%s", log->lid,
						 known ? "" : ", and with it who made it and its label"));
}

/* All logs but the newest end in a commit record. */
static void
logs_check_records(Fsck *fsck)
{
	for (int i = 0; i < fsck->nlogs; i++)
	{
		FsckLog *log = &fsck->logs[i];
		FsckLog *next = i + 1 < fsck->nlogs ? log + 1 : NULL;
		int64 lost;

		log->sealed = logs_is_sealed(fsck, log);
		lost = logs_lost_record(fsck, log, next);
		if (lost != 0)
			logs_restore_record(fsck, log, lost);
		else if (!log->sealed && next != NULL)
		{
			log->broken = true;
			fsck_report(fsck, FSCK_ERROR, false, logs_place(log->lid),
						"the sealed log does not end in a commit record");
		}
	}
}

/* ---- heads ---- */

static void
logs_write_head(Fsck *fsck, FsckLog *log, int64 first_seq)
{
	int64 at = log > fsck->logs ? log[-1].last_at : 0;

	if (!fsck->repair)
		return;
	fsck_before_write(fsck);
	if (log->has_head)
		loghead_delete(fsck->sheet_id, log->lid);
	loghead_write(fsck->sheet_id, log->lid, first_seq, at != 0 ? at : timeconv_to_unix(GetCurrentTimestamp()));
	STOP_POINT("fsck-head");
	fsck_written(fsck);
	log->has_head = true;
	log->head_seq = first_seq;
}

static void
logs_check_head(Fsck *fsck, FsckLog *log)
{
	FsckLog *before = log > fsck->logs ? log - 1 : NULL;
	int64 begins = before != NULL ? before->last_seq + 1 : fsck->start.seq + 1;
	const char *what;

	if (before != NULL && !before->sealed) /* where it has ended is not known */
		begins = log->has_head ? log->head_seq : log->has_edits ? log->first_seq : begins;
	if (log->has_head && log->head_seq == begins)
		return;
	if (log->has_head)
		what = psprintf("the head of the log says that it begins at seq " INT64_FORMAT ", not " INT64_FORMAT,
						log->head_seq, begins);
	else if (before != NULL && before->sealed && log == &fsck->logs[fsck->nlogs - 1] && !log->has_edits)
	{
		before->unopened = true;
		what = psprintf("the commit of version " INT64_FORMAT
						" was interrupted after its commit record (C2): the next log was not opened",
						before->lid);
	}
	else
		what = "the head of the log is missing";
	logs_write_head(fsck, log, begins);
	fsck_report(fsck, FSCK_WARNING, fsck->repair, logs_place(log->lid), what);
}

/* The newest log is open: one that is sealed needs a successor. */
static void
logs_check_heads(Fsck *fsck)
{
	if (fsck->nlogs == 0 || fsck->logs[fsck->nlogs - 1].sealed)
		(void) logs_get(fsck, fsck->start.cid + fsck->nlogs + 1);
	for (int i = 0; i < fsck->nlogs; i++)
		logs_check_head(fsck, &fsck->logs[i]);
	/* A sheet is born with an edit that gives its size. */
	if (fsck->start.cid == 0 && !fsck->logs[0].has_edits)
		fsck_report(fsck, FSCK_ERROR, false, logs_place(1), "the log holds nothing, not even the sheet's size");
}

/* ---- versions ---- */

/* Every sealed log needs its checkpoint with its tiles, and no other may exist. */
static void
logs_check_versions(Fsck *fsck)
{
	for (int i = 0; i < fsck->nlogs; i++)
	{
		FsckLog *log = &fsck->logs[i];

		if (log->sealed)
		{
			/* Reported by the replay, which knows whether it could be restored. */
			if (!log->has_version || log->version_seq != log->last_seq || log->version_tiles != log->tiles)
				fsck->want_replay = true;
		}
		else if (!log->broken && !log->unrecorded && (log->has_version || log->tiles > 0))
			fsck_report(fsck, FSCK_ERROR, false, logs_version_place(log->lid),
						log->has_version ? "the checkpoint belongs to no sealed log"
										 : "tiles are stored of a version that does not exist");
	}
}

void
fsck_check_logs(Fsck *fsck)
{
	logs_read_heads(fsck);
	STOP_POINT("fsck-look");
	logs_cut_empty(fsck, logs_read_batches(fsck));
	logs_read_versions(fsck);
	logs_count_tiles(fsck);
	logs_check_records(fsck);
	logs_check_heads(fsck);
	logs_check_versions(fsck);
}
