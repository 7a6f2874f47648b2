/*
 * fsck_logs.c - is what is stored of each log complete? Commit records, heads, versions.
 *
 * Nothing is replayed here: the last batch of each log is decoded, and numbers are compared.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "journal/write/edit_life.h"
#include "journal/fsck/fsck_private.h"
#include "journal/store/history.h"
#include "support/stoppoint.h"
#include "journal/replay/batches.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* ---- commit records ---- */

/* Does the log's last batch end in a commit record? False also when it does not decode. */
static bool
logs_is_sealed(Fsck *fsck, const FsckLog *log)
{
	StorageKey keys[] = {{1, BTEqualStrategyNumber, false, fsck->sheet_id},
						 {2, BTEqualStrategyNumber, false, log->last_batch}};
	StorageScan scan;
	EditKind last = 0;
	bool sealed = false;

	if (!log->has_edits)
		return false;
	storage_scan_begin(&scan, STORAGE_LOG_BATCH, fsck->snapshot, keys, 2);
	if (storage_scan_next(&scan, ForwardScanDirection))
	{
		EditReader reader;
		EditError error;
		Edit edit;
		bool copy;
		struct varlena *data = storage_bytes(&scan, LOG_BATCH_DATA, &copy);

		batches_reader_init(&reader, data, log->last_batch, storage_int64(&scan, LOG_BATCH_LAST_SEQ));
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
			last = edit.kind;
		sealed = batches_reader_end(&reader, error) == EDIT_END && last == EDIT_COMMIT;
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
	VersionHead head = {.sheet_id = fsck->sheet_id, .version_id = log->segment_id, .seq = seq, .at = log->last_at + 1};
	bool known = version_store_read_head(&head, fsck->snapshot);

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
	fsck_report(fsck, known ? FSCK_WARNING : FSCK_ERROR, true, fsck_log_place(log->segment_id),
				psprintf("the commit of version " INT64_FORMAT " has lost its commit record (C1)%s", log->segment_id,
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
			fsck_report(fsck, FSCK_ERROR, false, fsck_log_place(log->segment_id),
						"the sealed log does not end in a commit record");
		}
	}
}

/* ---- heads ---- */

static void
logs_write_head(Fsck *fsck, FsckLog *log, int64 first_seq)
{
	int64 at = log > fsck->logs ? log[-1].last_at : 0;

	fsck_before_write(fsck);
	if (log->has_head)
		history_delete_segment(fsck->sheet_id, log->segment_id);
	history_store_segment(fsck->sheet_id, log->segment_id, first_seq,
						  at != 0 ? at : timeconv_to_unix(GetCurrentTimestamp()));
	STOP_POINT("fsck-head");
	fsck_written(fsck);
	log->has_head = true;
	log->head_seq = first_seq;
}

/* The seq at which the log begins; 0 when nothing that is left tells it. */
static int64
logs_begin(const Fsck *fsck, const FsckLog *log)
{
	const FsckLog *before = log > fsck->logs ? log - 1 : NULL;

	if (before == NULL)
		return fsck->start.seq + 1;
	if (before->sealed)
		return before->last_seq + 1;
	/* Where it has ended is not known. */
	return log->has_head ? log->head_seq : log->has_edits ? log->first_seq : 0;
}

static void
logs_check_head(Fsck *fsck, FsckLog *log)
{
	FsckLog *before = log > fsck->logs ? log - 1 : NULL;
	int64 begins = logs_begin(fsck, log);
	const char *what = "the head of the log is missing";

	if (log->has_head && log->head_seq == begins)
		return;
	if (log->has_head)
		what = psprintf("the head of the log says that it begins at seq " INT64_FORMAT ", not " INT64_FORMAT,
						log->head_seq, begins);
	else if (begins == 0)
		what = "the head of the log is missing, and nothing tells where it began";
	else if (before != NULL && before->sealed && log == &fsck->logs[fsck->nlogs - 1] && !log->has_edits)
	{
		before->unopened = true;
		what = psprintf("the commit of version " INT64_FORMAT
						" was interrupted after its commit record (C2): the next log was not opened",
						before->segment_id);
	}
	if (begins != 0 && fsck->repair)
		logs_write_head(fsck, log, begins);
	fsck_report(fsck, begins != 0 ? FSCK_WARNING : FSCK_ERROR, begins != 0, fsck_log_place(log->segment_id), what);
}

/* The newest log is open: one that is sealed needs a successor. */
static void
logs_check_heads(Fsck *fsck)
{
	if (fsck->nlogs == 0 || fsck->logs[fsck->nlogs - 1].sealed)
		(void) fsck_get_log(fsck, fsck->start.version_id + fsck->nlogs + 1);
	for (int i = 0; i < fsck->nlogs; i++)
		logs_check_head(fsck, &fsck->logs[i]);
	/* A sheet is born with an edit that gives its size. */
	if (fsck->start.version_id == 0 && !fsck->logs[0].has_edits)
		fsck_report(fsck, FSCK_ERROR, false, fsck_log_place(1), "the log holds nothing, not even the sheet's size");
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
			fsck_report(fsck, FSCK_ERROR, false, fsck_version_place(log->segment_id),
						log->has_version ? "the checkpoint belongs to no sealed log"
										 : "tiles are stored of a version that does not exist");
	}
}

void
fsck_check_logs(Fsck *fsck)
{
	logs_check_records(fsck);
	logs_check_heads(fsck);
	logs_check_versions(fsck);
}
