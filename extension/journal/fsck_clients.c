/*
 * fsck_clients.c - is what is noted of clients of protocol v2 (clients.c) what clients can have sent?
 *
 * The log does not have the numbers of operations, so nothing tells what a wrong one should be: it is reported and left
 * alone. A number that is too high would let edits be dropped as landed, one that is too low would let them land twice.
 * What can be mended without risk:
 *
 *   of an account or a sheet that is gone   nobody can ask for it: the row is deleted
 *   a time to come                          the clock was put back, and the row would be kept too long: it begins its
 *                                           last days now
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "fsck.h"
#include "journal.h"
#include "miscadmin.h"
#include "remove.h"
#include "storage.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define CLIENT_MAX_NUMBER ((INT64CONST(1) << 53) - 1) /* of protocol v2 */
#define CLIENT_CLOCK_STEP (60 * USECS_PER_SEC)		  /* clocks are adjusted */

typedef struct FsckClients
{
	int64 sheet_id;
	bool repair;
	FsckReportFn report;
	void *report_arg;
	int findings;
	Snapshot snapshot;
	Relation rel; /* with repair */
	TimestampTz now;
	int64 uid; /* the last account that was looked for */
	bool account_is_here;
} FsckClients;

static void
clients_report(FsckClients *fsck, StorageScan *scan, FsckSeverity severity, bool repaired, const char *what)
{
	char *place = psprintf("client " INT64_FORMAT " of account " INT64_FORMAT, storage_int64(scan, CLIENT_CLIENT),
						   storage_int64(scan, CLIENT_UID));

	fsck->findings++;
	fsck->report(fsck->report_arg, fsck->sheet_id, severity, what, place, repaired);
	pfree(place);
}

/* Rows come in the order of their accounts. */
static bool
clients_account_is_here(FsckClients *fsck, int64 uid)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, uid};
	StorageScan scan;

	if (uid == fsck->uid)
		return fsck->account_is_here;
	storage_scan_begin(&scan, STORAGE_ACCOUNT, fsck->snapshot, &key, 1);
	fsck->account_is_here = storage_scan_next(&scan, ForwardScanDirection);
	fsck->uid = uid;
	storage_scan_end(&scan);
	return fsck->account_is_here;
}

static void
clients_delete(FsckClients *fsck, StorageScan *scan)
{
	if (!fsck->repair)
		return;
	PreventCommandIfReadOnly("sheet.fsck() with repair");
	simple_table_tuple_delete(fsck->rel, &scan->slot->tts_tid, fsck->snapshot);
}

static void
clients_begin_last_days(FsckClients *fsck, StorageScan *scan)
{
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	if (!fsck->repair)
		return;
	PreventCommandIfReadOnly("sheet.fsck() with repair");
	for (int column = CLIENT_SHEET_ID; column <= CLIENT_COLUMNS; column++)
		values[column - 1] = Int64GetDatum(storage_int64(scan, column));
	values[CLIENT_AT - 1] = TimestampTzGetDatum(fsck->now);
	storage_update(STORAGE_CLIENT, fsck->rel, &scan->slot->tts_tid, values, nulls);
}

static void
clients_check_row(FsckClients *fsck, StorageScan *scan)
{
	int64 client = storage_int64(scan, CLIENT_CLIENT), landed = storage_int64(scan, CLIENT_LANDED);

	if (!clients_account_is_here(fsck, storage_int64(scan, CLIENT_UID)))
	{
		clients_delete(fsck, scan);
		clients_report(fsck, scan, FSCK_WARNING, fsck->repair, "the account is gone");
		return;
	}
	if (client < 1 || client > CLIENT_MAX_NUMBER)
		clients_report(fsck, scan, FSCK_ERROR, false, "no client can have this number");
	if (landed < 1 || landed > CLIENT_MAX_NUMBER)
		clients_report(fsck, scan, FSCK_ERROR, false,
					   psprintf("operation " INT64_FORMAT
								", noted as its last that landed, is none that it can have sent",
								landed));
	if (storage_int64(scan, CLIENT_AT) > fsck->now + CLIENT_CLOCK_STEP)
	{
		clients_begin_last_days(fsck, scan);
		clients_report(fsck, scan, FSCK_WARNING, fsck->repair, "the time of its last operation is still to come");
	}
}

int
fsck_clients(int64 sheet_id, bool repair, FsckReportFn report, void *arg)
{
	FsckClients fsck = {.sheet_id = sheet_id, .repair = repair, .report = report, .report_arg = arg};
	StorageKey key = {CLIENT_SHEET_ID, BTEqualStrategyNumber, false, sheet_id};
	bool latest = repair || !IsolationUsesXactSnapshot();
	StorageScan scan;

	if (repair)
	{
		journal_lock_sheet(sheet_id);
		fsck.rel = storage_open(STORAGE_CLIENT, RowExclusiveLock);
	}
	fsck.now = GetCurrentTimestamp();
	fsck.snapshot = RegisterSnapshot(latest ? GetLatestSnapshot() : GetTransactionSnapshot());
	storage_scan_begin(&scan, STORAGE_CLIENT, fsck.snapshot, &key, 1);
	while (storage_scan_next(&scan, ForwardScanDirection))
		clients_check_row(&fsck, &scan);
	storage_scan_end(&scan);
	UnregisterSnapshot(fsck.snapshot);
	if (fsck.rel != NULL)
		table_close(fsck.rel, NoLock);
	if (repair && fsck.findings > 0)
		CommandCounterIncrement();
	return fsck.findings;
}

int
fsck_clients_without_sheet(int64 sheet_id, bool repair, FsckReportFn report, void *arg)
{
	if (repair)
	{
		PreventCommandIfReadOnly("sheet.fsck() with repair");
		journal_lock_sheet(sheet_id);
		(void) remove_rows(STORAGE_CLIENT, sheet_id, NULL, NULL);
	}
	report(arg, sheet_id, FSCK_WARNING, "clients are noted of a sheet that is gone", "", repair);
	return 1;
}
