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
 * Locks: the check reads one snapshot and takes no lock on the sheet, so writers do not wait for it. Only what can be
 * repaired is looked for again under the sheet lock, so that the log does not grow meanwhile; then that second check is
 * the one that is reported.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/xact.h"
#include "journal/fsck/fsck.h"
#include "journal/fsck/fsck_private.h"
#include "journal/journal.h"
#include "miscadmin.h"
#include "journal/store/history.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

void
fsck_report(Fsck *fsck, FsckSeverity severity, bool mends, const char *place, const char *what)
{
	fsck->findings++;
	fsck->mends |= mends;
	if (fsck->report != NULL)
		fsck->report(fsck->report_arg, fsck->sheet_id, severity, what, place, mends && fsck->repair);
}

char *
fsck_log_place(int64 segment_id)
{
	return psprintf("log " INT64_FORMAT, segment_id);
}

char *
fsck_seq_place(int64 segment_id, int64 seq)
{
	return psprintf("log " INT64_FORMAT ", seq " INT64_FORMAT, segment_id, seq);
}

char *
fsck_version_place(int64 version_id)
{
	return psprintf("version " INT64_FORMAT, version_id);
}

void
fsck_before_write(Fsck *fsck)
{
	PreventCommandIfReadOnly("sheet.fsck() with repair");
	fsck->wrote = true;
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
	HistoryLast present, seen;

	if (!IsolationUsesXactSnapshot())
		return;
	history_last_edit(fsck->sheet_id, fsck->snapshot, &present);
	history_last_edit(fsck->sheet_id, GetTransactionSnapshot(), &seen);
	if (present.last_seq != seen.last_seq)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errdetail("Sheet " INT64_FORMAT " has changed since this transaction's snapshot.", fsck->sheet_id)));
}

/* The first sheet in the order of ids of which the table has a row, by its relation to *id, which it becomes. */
static bool
fsck_find_sheet(StorageTable table, int strategy, Snapshot snapshot, int64 *id)
{
	StorageKey key = {1, strategy, false, *id};
	StorageScan scan;
	bool found;

	storage_scan_begin(&scan, table, snapshot, &key, 1);
	found = storage_scan_next(&scan, ForwardScanDirection);
	if (found)
		*id = storage_int64(&scan, 1);
	storage_scan_end(&scan);
	return found;
}

static void
fsck_check_sheet(Fsck *fsck)
{
	trim_mark(fsck->sheet_id, fsck->snapshot, &fsck->start);
	fsck_read_logs(fsck);
	fsck_check_logs(fsck);
	if (fsck->want_replay || fsck->full)
		fsck_replay(fsck);
	/* Heads of logs may have been written: what shared memory knows of the sheet's open log is old. */
	if (fsck->wrote)
		journal_forget(fsck->sheet_id);
}

/* The check once. A sheet that has been purged meanwhile has nothing to be checked but what is left of its clients. */
static int
fsck_check(const FsckCall *call, FsckReportFn report, bool repair, bool *mends)
{
	Fsck fsck = {.sheet_id = call->sheet_id, .full = call->full, .repair = repair, .report = report};
	bool latest = call->repair || !IsolationUsesXactSnapshot();
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fsck", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	int64 id = call->sheet_id;
	bool exists;

	fsck.report_arg = call->arg;
	fsck.snapshot = RegisterSnapshot(latest ? GetLatestSnapshot() : GetTransactionSnapshot());
	if (repair)
		fsck_require_present(&fsck);
	exists = fsck_find_sheet(STORAGE_SHEET, BTEqualStrategyNumber, fsck.snapshot, &id);
	if (exists)
		fsck_check_sheet(&fsck);
	if (call->clients)
		fsck_check_clients(&fsck, exists);
	UnregisterSnapshot(fsck.snapshot);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	*mends = fsck.mends;
	return fsck.findings;
}

int
fsck_sheet(const FsckCall *call)
{
	bool mends;
	int findings = fsck_check(call, call->repair ? NULL : call->report, false, &mends);

	if (findings > 0 && call->repair)
	{
		if (mends)
			journal_lock_sheet(call->sheet_id);
		findings = fsck_check(call, call->report, mends, &mends);
	}
	STOP_POINT("fsck-end");
	return findings;
}

bool
fsck_next_sheet(int64 *after)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	int64 sheet = *after, client = *after;
	bool found = fsck_find_sheet(STORAGE_SHEET, BTGreaterStrategyNumber, snapshot, &sheet);
	bool noted = fsck_find_sheet(STORAGE_CLIENT, BTGreaterStrategyNumber, snapshot, &client);

	UnregisterSnapshot(snapshot);
	*after = found && (!noted || sheet < client) ? sheet : client;
	return found || noted;
}

int64
fsck_count_sheets(int64 after)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageKey key = {1, BTGreaterStrategyNumber, false, after};
	StorageScan scan;
	int64 count = 0;

	storage_scan_begin(&scan, STORAGE_SHEET, snapshot, &key, 1);
	while (storage_scan_next(&scan, ForwardScanDirection))
		count++;
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return count;
}

/* ---- findings as text ---- */

#define FSCK_LINES 20 /* of a message */

static void
fsck_add_line(void *arg, int64 sheet_id, FsckSeverity severity, const char *what, const char *place, bool repaired)
{
	FsckSummary *summary = arg;

	summary->repaired += repaired;
	if (++summary->findings <= FSCK_LINES)
		appendStringInfo(&summary->lines, "%s%s%s%s%s", summary->findings > 1 ? "\n" : "", place,
						 place[0] != '\0' ? ": " : "", what, repaired ? " (repaired)" : "");
	else if (summary->findings == FSCK_LINES + 1)
		appendStringInfoString(&summary->lines, "\n...");
}

void
fsck_summarize(const FsckCall *call, FsckSummary *summary)
{
	FsckCall own = *call;

	own.report = fsck_add_line;
	own.arg = summary;
	summary->findings = summary->repaired = 0;
	initStringInfo(&summary->lines);
	(void) fsck_sheet(&own);
}
