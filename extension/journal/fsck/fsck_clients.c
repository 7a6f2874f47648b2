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
#include "journal/fsck/fsck_private.h"
#include "journal/store/storage.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define CLIENT_MAX_NUMBER ((INT64CONST(1) << 53) - 1) /* of protocol v2 */
#define CLIENT_CLOCK_STEP (60 * USECS_PER_SEC)		  /* clocks are adjusted */

typedef struct FsckClients
{
	Fsck *fsck;
	StorageScan scan; /* its current row is looked at */
	Relation rel;	  /* with repair */
	TimestampTz now;
	int64 uid; /* the last account that was looked for */
	bool account_is_here;
} FsckClients;

static void
clients_report(FsckClients *clients, FsckSeverity severity, bool mends, const char *what)
{
	fsck_report(clients->fsck, severity, mends,
				psprintf("client " INT64_FORMAT " of account " INT64_FORMAT,
						 storage_int64(&clients->scan, CLIENT_CLIENT), storage_int64(&clients->scan, CLIENT_UID)),
				what);
}

/* Rows come in the order of their accounts. */
static bool
clients_account_is_here(FsckClients *clients)
{
	int64 uid = storage_int64(&clients->scan, CLIENT_UID);
	StorageKey key = {1, BTEqualStrategyNumber, false, uid};
	StorageScan scan;

	if (uid == clients->uid)
		return clients->account_is_here;
	storage_scan_begin(&scan, STORAGE_ACCOUNT, clients->fsck->snapshot, &key, 1);
	clients->account_is_here = storage_scan_next(&scan, ForwardScanDirection);
	clients->uid = uid;
	storage_scan_end(&scan);
	return clients->account_is_here;
}

static void
clients_delete(FsckClients *clients)
{
	if (clients->rel == NULL)
		return;
	fsck_before_write(clients->fsck);
	simple_table_tuple_delete(clients->rel, &clients->scan.slot->tts_tid, clients->fsck->snapshot);
}

static void
clients_begin_last_days(FsckClients *clients)
{
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	if (clients->rel == NULL)
		return;
	fsck_before_write(clients->fsck);
	for (int column = CLIENT_SHEET_ID; column <= CLIENT_COLUMNS; column++)
		values[column - 1] = Int64GetDatum(storage_int64(&clients->scan, column));
	values[CLIENT_AT - 1] = TimestampTzGetDatum(clients->now);
	storage_update(STORAGE_CLIENT, &clients->scan.slot->tts_tid, values, nulls);
}

static void
clients_check_row(FsckClients *clients)
{
	int64 client = storage_int64(&clients->scan, CLIENT_CLIENT);
	int64 landed = storage_int64(&clients->scan, CLIENT_LANDED);

	if (!clients_account_is_here(clients))
	{
		clients_delete(clients);
		clients_report(clients, FSCK_WARNING, true, "the account is gone");
		return;
	}
	if (client < 1 || client > CLIENT_MAX_NUMBER)
		clients_report(clients, FSCK_ERROR, false, "no client can have this number");
	if (landed < 1 || landed > CLIENT_MAX_NUMBER)
		clients_report(clients, FSCK_ERROR, false,
					   psprintf("operation " INT64_FORMAT
								", noted as its last that landed, is none that it can have sent",
								landed));
	if (storage_int64(&clients->scan, CLIENT_AT) > clients->now + CLIENT_CLOCK_STEP)
	{
		clients_begin_last_days(clients);
		clients_report(clients, FSCK_WARNING, true, "the time of its last operation is still to come");
	}
}

/* Of a sheet that is gone: nobody can ask for them. */
static void
clients_remove(Fsck *fsck)
{
	if (fsck->repair)
	{
		fsck_before_write(fsck);
		(void) storage_delete_rows(STORAGE_CLIENT, fsck->sheet_id, NULL, NULL);
	}
	fsck_report(fsck, FSCK_WARNING, true, "", "clients are noted of a sheet that is gone");
}

void
fsck_check_clients(Fsck *fsck, bool exists)
{
	FsckClients clients = {.fsck = fsck, .now = GetCurrentTimestamp()};
	StorageKey key = {CLIENT_SHEET_ID, BTEqualStrategyNumber, false, fsck->sheet_id};

	if (fsck->repair)
		clients.rel = storage_open(STORAGE_CLIENT, RowExclusiveLock);
	storage_scan_begin(&clients.scan, STORAGE_CLIENT, fsck->snapshot, &key, 1);
	while (storage_scan_next(&clients.scan, ForwardScanDirection))
	{
		if (exists)
			clients_check_row(&clients);
		else
		{
			clients_remove(fsck);
			break;
		}
	}
	storage_scan_end(&clients.scan);
	if (clients.rel != NULL)
		table_close(clients.rel, NoLock);
	if (fsck->wrote)
		fsck_written(fsck);
}
