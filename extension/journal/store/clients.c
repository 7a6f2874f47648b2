/*
 * clients.c - which operations of protocol v2 are acknowledged.
 *
 * A client numbers its operations and its gateway sends them in order, so the highest acknowledged number is
 * sufficient. It is stored in the transaction of the edits, under the sheet lock: an operation that is sent again is
 * recognised, by whatever gateway and however late. Operations whose edits changed nothing are stored as well, since
 * the same edits could change something later.
 *
 * A row is kept for CLIENTS_RETENTION_DAYS after the client's last operation. Each new client deletes expired rows, and
 * examines only a few rows of its sheet: those that follow its own key, and those that follow a random one. Client
 * numbers are random. The first range finds the rows of an account that connects again and again with new clients, the
 * second those of accounts that connected once. So a new client costs the same in every sheet, and expired rows stay a
 * fraction of all.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "common/pg_prng.h"
#include "journal/store/storage.h"
#include "journal/store/clients.h"
#include "support/stoppoint.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define CLIENTS_RETENTION_DAYS 7
#define CLIENTS_SWEEP		   16 /* rows examined in each of the two ranges */

static void
clients_keys(StorageKey keys[3], int64 sheet_id, int64 uid, int strategy, int64 client)
{
	keys[0] = storage_key_int64(CLIENT_SHEET_ID, BTEqualStrategyNumber, sheet_id);
	keys[1] = storage_key_int64(CLIENT_UID, BTEqualStrategyNumber, uid);
	keys[2] = storage_key_int64(CLIENT_CLIENT, strategy, client);
}

/* The client's highest acknowledged operation, 0 if it has no row; *tid: its row. */
static int64
clients_find(int64 sheet_id, int64 uid, int64 client, ItemPointer tid)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageKey keys[3];
	StorageScan scan;
	int64 highest = 0;

	clients_keys(keys, sheet_id, uid, BTEqualStrategyNumber, client);
	storage_scan_begin(&scan, STORAGE_CLIENT, snapshot, keys, 3);
	if (storage_scan_next(&scan, ForwardScanDirection))
	{
		highest = storage_int64(&scan, CLIENT_ACKNOWLEDGED);
		*tid = scan.slot->tts_tid;
	}
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return highest;
}

int64
journal_acknowledged(int64 sheet_id, int64 uid, int64 client)
{
	ItemPointerData unused;

	return clients_find(sheet_id, uid, client, &unused);
}

bool
clients_check(int64 sheet_id, const JournalClient *clients, int nclients)
{
	int acknowledged = 0;

	/* The lock of a writer, before reading: REINDEX blocks writers while it waits for readers. */
	if (nclients > 0)
		table_close(storage_open(STORAGE_CLIENT, RowExclusiveLock), NoLock);
	for (int i = 0; i < nclients; i++)
	{
		const JournalClient *client = &clients[i];
		int64 highest = journal_acknowledged(sheet_id, client->uid, client->client);

		if (highest >= client->last)
			acknowledged++;
		if ((highest >= client->first && highest < client->last) || (acknowledged > 0 && acknowledged <= i))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("some operations of this batch are acknowledged already"),
					 errdetail("Client " INT64_FORMAT " of account " INT64_FORMAT " sends operations " INT64_FORMAT
							   " to " INT64_FORMAT "; the last acknowledged one is " INT64_FORMAT ".",
							   client->client, client->uid, client->first, client->last, highest),
					 errhint("Read the last acknowledged operation with sheet.client_acknowledged(), and send "
							 "the ones after it.")));
	}
	return nclients > 0 && acknowledged == nclients;
}

/* ---- expired rows ---- */

static bool
clients_is_expired(StorageScan *scan, const void *oldest)
{
	return storage_int64(scan, CLIENT_AT) < *(const TimestampTz *) oldest;
}

/* Deletes expired rows; examines at most *most rows that match the keys. */
static void
clients_sweep_range(const StorageKey *keys, int nkeys, TimestampTz oldest, int *most)
{
	if (*most > 0 && storage_delete_some(STORAGE_CLIENT, keys, nkeys, clients_is_expired, &oldest, most) > 0)
		CommandCounterIncrement();
}

/* The rows of the sheet from (uid, client) on. */
static void
clients_sweep_from(int64 sheet_id, int64 uid, int64 client, TimestampTz oldest, int *most)
{
	StorageKey keys[3];

	clients_keys(keys, sheet_id, uid, BTGreaterEqualStrategyNumber, client);
	clients_sweep_range(keys, 3, oldest, most);
	keys[1].strategy = BTGreaterStrategyNumber;
	clients_sweep_range(keys, 2, oldest, most);
}

/* The account of the sheet's first or last row; 0 if there is none. */
static int64
clients_account_at(int64 sheet_id, ScanDirection direction)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageScan scan;
	int64 uid = 0;

	if (storage_scan_first(&scan, STORAGE_CLIENT, snapshot, sheet_id, direction))
		uid = storage_int64(&scan, CLIENT_UID);
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return uid;
}

static void
clients_sweep(int64 sheet_id, const JournalClient *client, TimestampTz oldest)
{
	StorageKey all = storage_key_int64(CLIENT_SHEET_ID, BTEqualStrategyNumber, sheet_id);
	int most = CLIENTS_SWEEP;
	int64 first, last;

	clients_sweep_from(sheet_id, client->uid, client->client, oldest, &most);
	clients_sweep_range(&all, 1, oldest, &most);
	first = clients_account_at(sheet_id, ForwardScanDirection);
	last = clients_account_at(sheet_id, BackwardScanDirection);
	most = CLIENTS_SWEEP;
	clients_sweep_from(sheet_id, (int64) pg_prng_uint64_range(&pg_global_prng_state, (uint64) first, (uint64) last),
					   (int64) (pg_prng_uint64(&pg_global_prng_state) >> 11), oldest, &most);
}

/* ---- storing ---- */

void
clients_store(int64 sheet_id, const JournalClient *clients, int nclients)
{
	TimestampTz now = nclients > 0 ? GetCurrentTimestamp() : 0;

	for (int i = 0; i < nclients; i++)
	{
		Datum values[STORAGE_MAX_COLUMNS] = {
			[CLIENT_SHEET_ID - 1] = Int64GetDatum(sheet_id),
			[CLIENT_UID - 1] = Int64GetDatum(clients[i].uid),
			[CLIENT_CLIENT - 1] = Int64GetDatum(clients[i].client),
			[CLIENT_ACKNOWLEDGED - 1] = Int64GetDatum(clients[i].last),
			[CLIENT_AT - 1] = TimestampTzGetDatum(now),
		};
		ItemPointerData tid;

		if (clients_find(sheet_id, clients[i].uid, clients[i].client, &tid) > 0)
			storage_update(STORAGE_CLIENT, &tid, values, NULL);
		else
		{
			clients_sweep(sheet_id, &clients[i], now - (TimestampTz) CLIENTS_RETENTION_DAYS * USECS_PER_DAY);
			storage_insert(STORAGE_CLIENT, values, NULL);
		}
		CommandCounterIncrement();
	}
	if (nclients > 0)
		STOP_POINT("clients-stored");
}
