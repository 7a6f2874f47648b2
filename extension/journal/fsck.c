/*
 * fsck.c - checks a sheet's log and versions against each other, and restores what can be rebuilt.
 *
 * The log is the truth: heads of logs and checkpoints follow from it and can be written again. A commit writes
 * (1) the commit record at the end of the open log, (2) the head of the next log, (3) the checkpoint, in one
 * transaction, so a crash leaves all or nothing. Storage can be damaged all the same and rows can be deleted, so every
 * partial state has a name and is handled:
 *
 *   C1  no commit record   the log is open, as if nobody had committed: no finding. When (2) or (3) are there without
 *                          it, the record follows from them and is written again
 *   C2  (1) without (2)    the newest log ends in a commit record: its successor is opened, its checkpoint written
 *   C3  (1), (2), not (3)  sealed logs without checkpoint, one or all: replayed, and written
 *   C4  all three          nothing to do
 *
 * A hole in the log, or a record that does not decode, is reported with its place. What would follow from it is not
 * derived: the replay goes on at the next version that can be read back from its own tiles. What is stored is replaced
 * only when it is certain that it is wrong and not the log (fsck_replay.c).
 *
 * The brief check reads heads, the numbers of batches and tiles, and the last batch of each log. When it misses a
 * checkpoint, or for the full check, the whole log is replayed in order, with the state compared at each commit record.
 * What was repaired is reported as such, and a second run finds nothing. A sheet that was trimmed begins with the
 * version that its mark names (trim.c).
 *
 * Locks: with repair the sheet lock is held, so that the log does not grow meanwhile; without, one snapshot is enough.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "fsck.h"
#include "fsck_private.h"
#include "journal.h"
#include "miscadmin.h"
#include "replay_find.h"
#include "stoppoint.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

void
fsck_report(Fsck *fsck, FsckSeverity severity, bool repaired, const char *place, const char *what)
{
	fsck->findings++;
	fsck->report(fsck->report_arg, fsck->sheet_id, severity, what, place, repaired);
}

char *
fsck_log_place(int64 lid)
{
	return psprintf("log " INT64_FORMAT, lid);
}

char *
fsck_version_place(int64 cid)
{
	return psprintf("version " INT64_FORMAT, cid);
}

void
fsck_before_write(Fsck *fsck)
{
	PreventCommandIfReadOnly("sheet.fsck() with repair");
}

void
fsck_written(Fsck *fsck)
{
	CommandCounterIncrement();
	UnregisterSnapshot(fsck->snapshot);
	fsck->snapshot = RegisterSnapshot(GetLatestSnapshot());
}

/* What is written again must follow from all that is committed, and the caller's snapshot must see it. */
static void
fsck_require_present(Fsck *fsck)
{
	ReplayLast present, seen;

	if (!IsolationUsesXactSnapshot())
		return;
	replay_last(fsck->sheet_id, fsck->snapshot, &present);
	replay_last(fsck->sheet_id, GetTransactionSnapshot(), &seen);
	if (present.last_seq != seen.last_seq)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errdetail("Sheet " INT64_FORMAT " has changed since this transaction's snapshot.", fsck->sheet_id)));
}

static void
fsck_begin(Fsck *fsck)
{
	bool latest = fsck->repair || !IsolationUsesXactSnapshot();

	if (fsck->repair)
		journal_lock_sheet(fsck->sheet_id);
	fsck->snapshot = RegisterSnapshot(latest ? GetLatestSnapshot() : GetTransactionSnapshot());
	if (fsck->repair)
		fsck_require_present(fsck);
	trim_mark(fsck->sheet_id, fsck->snapshot, &fsck->start);
}

int
fsck_sheet(int64 sheet_id, bool full, bool repair, FsckReportFn report, void *arg)
{
	Fsck fsck = {.sheet_id = sheet_id, .full = full, .repair = repair, .report = report, .report_arg = arg};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fsck", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	fsck_begin(&fsck);
	fsck_read_logs(&fsck);
	fsck_check_logs(&fsck);
	if (fsck.want_replay || full)
		fsck_replay(&fsck);
	UnregisterSnapshot(fsck.snapshot);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	/* Heads of logs may have been written: what shared memory knows of the sheet's open log is old. On a standby it
	 * knows of none, and nothing was written. */
	if (repair && fsck.findings > 0 && !RecoveryInProgress())
		journal_forget(sheet_id);
	STOP_POINT("fsck-end");
	return fsck.findings;
}
