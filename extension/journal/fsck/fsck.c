/*
 * fsck.c - checks a sheet's log and versions against each other, and restores what can be rebuilt.
 *
 * The log is the truth. The rows of segments, the versions and, where a version is left, a single lost commit record
 * follow from it and from each other, and can be written again. A crash leaves no partial state, since a version's
 * commit record, segment row and tiles are written in one transaction. What is found is damage: storage that failed, or
 * rows that were deleted.
 *
 * A hole in the log or a record that does not decode is reported with its place. Nothing that would follow from it is
 * derived: the replay continues with the next version that can be read from its own tiles. What is stored is replaced
 * only if it is certain that it is wrong, and not the log (fsck_versions.c).
 *
 * The brief check reads segment rows, the numbers of batches and tiles, and the last batch of each segment. The full
 * check, and the brief one when a version is missing, replays the whole log in order and compares the cells with each
 * version. After a repair a second run finds nothing. A sheet that was trimmed begins with the version that its mark
 * names (trim.c).
 *
 * Repairs, by what is missing or wrong:
 *
 *   a segment's row                    segment_write_row()        fsck_segments.c
 *   a version's commit record          segment_restore_record()   fsck_segments.c
 *   a version                          version_rewrite()          fsck_versions.c
 *   the sheet's row of property_set    state_check_properties()   fsck_versions.c
 *   the sheet's row of referring       state_check_names()        fsck_versions.c, of the full check
 *   a row of sheet.client              fsck_check_clients()       here
 *   entries of the timer               fsck_repair_timer()        api/functions/fsck_api.c, of sheet.fsck_all()
 *
 * Locks: the check reads one snapshot and takes no lock on the sheet, so writers do not wait for it. If something can
 * be repaired, the check is repeated under the sheet lock, so that the log does not grow meanwhile; the second check
 * repairs and reports.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "journal/fsck/fsck.h"
#include "journal/fsck/fsck_private.h"
#include "journal/journal.h"
#include "miscadmin.h"
#include "journal/store/storage.h"
#include "journal/store/history.h"
#include "support/stoppoint.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* A repair must follow from all that is committed, and the caller's snapshot must see it. */
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

/* Finds the first row of the table whose first column, an id, compares to *id by the strategy. Sets *id to it. */
static bool
fsck_find_id(StorageTable table, int strategy, Snapshot snapshot, int64 *id)
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

/* ---- clients of protocol v2 (journal/store/clients.c) ---- */

/*
 * The log does not have the numbers of operations, so nothing tells what a wrong number should be: it is reported and
 * left alone. A number that is too high would drop edits as acknowledged, and one that is too low would apply them
 * twice. Two things can be repaired without risk:
 *
 *   A row of an account or a sheet that is gone is deleted. Nobody can ask for it.
 *   A time in the future, after the clock was put back, is set to now. The row would be kept too long.
 */
#define CLIENT_MAX_NUMBER ((INT64CONST(1) << 53) - 1) /* of protocol v2 */
#define CLIENT_CLOCK_STEP (60 * USECS_PER_SEC)		  /* clocks are adjusted */

/* Sets the time of the scan's row. */
static void
fsck_set_client_time(StorageScan *scan, TimestampTz now)
{
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	for (int column = CLIENT_SHEET_ID; column <= CLIENT_COLUMNS; column++)
		values[column - 1] = Int64GetDatum(storage_int64(scan, column));
	values[CLIENT_AT - 1] = TimestampTzGetDatum(now);
	storage_update(STORAGE_CLIENT, &scan->slot->tts_tid, values, nulls);
}

/* rel is open with repair only. */
static void
fsck_check_client(Fsck *fsck, StorageScan *scan, Relation rel)
{
	TimestampTz now = GetCurrentTimestamp();
	int64 uid = storage_int64(scan, CLIENT_UID);
	int64 client = storage_int64(scan, CLIENT_CLIENT);
	int64 operation = storage_int64(scan, CLIENT_ACKNOWLEDGED);
	int64 id = uid < 0 ? (int64) (0 - (uint64) uid) : uid; /* of a guest: the link */
	char *place = psprintf("client " INT64_FORMAT " of %s " INT64_FORMAT, client, uid < 0 ? "link" : "account", id);

	if (!fsck_find_id(uid < 0 ? STORAGE_LINK : STORAGE_ACCOUNT, BTEqualStrategyNumber, fsck->snapshot, &id))
	{
		if (fsck->repair)
			simple_table_tuple_delete(rel, &scan->slot->tts_tid, fsck->snapshot);
		fsck_report(fsck, FSCK_WARNING, true, place, uid < 0 ? "the link is gone" : "the account is gone");
		return;
	}
	if (client < 1 || client > CLIENT_MAX_NUMBER)
		fsck_report(fsck, FSCK_ERROR, false, place, "no client can have this number");
	if (operation < 1 || operation > CLIENT_MAX_NUMBER)
		fsck_report(fsck, FSCK_ERROR, false, place,
					psprintf("its last acknowledged operation is stored as " INT64_FORMAT
							 ", which no operation can have",
							 operation));
	if (storage_int64(scan, CLIENT_AT) > now + CLIENT_CLOCK_STEP)
	{
		if (fsck->repair)
			fsck_set_client_time(scan, now);
		fsck_report(fsck, FSCK_WARNING, true, place, "the time of its last operation is in the future");
	}
}

static void
fsck_check_clients(Fsck *fsck, bool sheet_exists)
{
	StorageKey key = {CLIENT_SHEET_ID, BTEqualStrategyNumber, false, fsck->sheet_id};
	Relation rel = fsck->repair ? storage_open(STORAGE_CLIENT, RowExclusiveLock) : NULL;
	StorageScan scan;
	bool gone = false;

	storage_scan_begin(&scan, STORAGE_CLIENT, fsck->snapshot, &key, 1);
	while (!gone && storage_scan_next(&scan, ForwardScanDirection))
	{
		gone = !sheet_exists;
		if (!gone)
			fsck_check_client(fsck, &scan, rel);
	}
	storage_scan_end(&scan);
	if (gone)
	{
		if (fsck->repair)
			(void) storage_delete_rows(STORAGE_CLIENT, fsck->sheet_id, NULL, NULL);
		fsck_report(fsck, FSCK_WARNING, true, "", "clients are stored of a sheet that is gone");
	}
	if (rel == NULL)
		return;
	table_close(rel, NoLock);
	CommandCounterIncrement();
}

/* ---- one sheet ---- */

static void
fsck_check_sheet(Fsck *fsck)
{
	trim_mark(fsck->sheet_id, fsck->snapshot, &fsck->start);
	fsck_check_segments(fsck);
	if (fsck->want_replay || fsck->full)
		fsck_check_versions(fsck);
	/* Shared memory may have the open segment as it was before the repair. */
	if (fsck->wrote)
		journal_forget(fsck->sheet_id);
}

/* Runs the check once. Of a sheet that has been purged only what is left of its clients is checked. */
static int
fsck_run(const FsckCall *call, FsckReportFn report, bool repair, bool *mendable)
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
	exists = fsck_find_id(STORAGE_SHEET, BTEqualStrategyNumber, fsck.snapshot, &id);
	if (exists)
		fsck_check_sheet(&fsck);
	if (call->clients)
		fsck_check_clients(&fsck, exists);
	UnregisterSnapshot(fsck.snapshot);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	*mendable = fsck.mendable;
	return fsck.findings;
}

int
fsck_sheet(const FsckCall *call)
{
	bool mendable;
	int findings = fsck_run(call, call->repair ? NULL : call->report, false, &mendable);

	if (findings > 0 && call->repair)
	{
		if (mendable)
		{
			PreventCommandIfReadOnly("sheet.fsck() with repair");
			journal_lock_sheet(call->sheet_id);
		}
		findings = fsck_run(call, call->report, mendable, &mendable);
	}
	STOP_POINT("fsck-end");
	return findings;
}

bool
fsck_next_sheet(int64 *after)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	int64 sheet = *after, client = *after;
	bool found = fsck_find_id(STORAGE_SHEET, BTGreaterStrategyNumber, snapshot, &sheet);
	bool noted = fsck_find_id(STORAGE_CLIENT, BTGreaterStrategyNumber, snapshot, &client);

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
