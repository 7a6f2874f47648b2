/*
 * clients.c - which operations of protocol v2 have landed.
 *
 * A client numbers its operations, and its gateway sends them in that order; so the highest number that has landed says
 * it all. It is noted in the transaction that has the edits, under the sheet lock: an operation that comes again, by
 * whatever way and however late, is found. Operations whose edits changed nothing are noted as well, since they would
 * not change nothing any more when somebody else has edited the cell meanwhile.
 *
 * A row is kept for CLIENTS_RETENTION_DAYS after the client's last operation. Each new client looks for older ones
 * among a few rows of its sheet: those behind its own place, and those behind a random one. Clients are random numbers,
 * so the first finds what an account leaves behind that brings new clients again and again, and the second what
 * accounts leave that came once. Where there are few rows, all are looked at. So a newcomer costs the same in any
 * sheet, and the rows that are too old stay a fraction of the others.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "journal/follow/clients.h"
#include "common/pg_prng.h"
#include "journal/store/remove.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define CLIENTS_LOOK 16 /* rows at each of two places */

/* The client's highest operation, 0 when it is not known; *tid then is its row. */
static int64
clients_find(int64 sheet_id, int64 uid, int64 client, ItemPointer tid)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageKey keys[3] = {{CLIENT_SHEET_ID, BTEqualStrategyNumber, false, sheet_id},
						  {CLIENT_UID, BTEqualStrategyNumber, false, uid},
						  {CLIENT_CLIENT, BTEqualStrategyNumber, false, client}};
	StorageScan scan;
	int64 landed = 0;

	storage_scan_begin(&scan, STORAGE_CLIENT, snapshot, keys, 3);
	if (storage_scan_next(&scan, ForwardScanDirection))
	{
		landed = storage_int64(&scan, CLIENT_LANDED);
		*tid = scan.slot->tts_tid;
	}
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return landed;
}

int64
journal_landed(int64 sheet_id, int64 uid, int64 client)
{
	ItemPointerData unused;

	return clients_find(sheet_id, uid, client, &unused);
}

ClientsState
clients_check(int64 sheet_id, const JournalClient *clients, int nclients)
{
	int landed = 0;

	/* Who reads first and becomes a writer then would wait for a REINDEX that waits for readers. */
	if (nclients > 0)
		table_close(storage_open(STORAGE_CLIENT, RowExclusiveLock), NoLock);
	for (int i = 0; i < nclients; i++)
	{
		const JournalClient *client = &clients[i];
		int64 highest = journal_landed(sheet_id, client->uid, client->client);

		if (highest >= client->last)
			landed++;
		if ((highest >= client->first && highest < client->last) || (landed > 0 && landed <= i))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("some of the operations of this batch have landed already"),
							errdetail("Client " INT64_FORMAT " of account " INT64_FORMAT " sends " INT64_FORMAT
									  " to " INT64_FORMAT "; " INT64_FORMAT " has landed.",
									  client->client, client->uid, client->first, client->last, highest),
							errhint("Read what has landed with sheet.client_acknowledged(), and send the others.")));
	}
	return nclients > 0 && landed == nclients ? CLIENTS_LANDED : CLIENTS_NEW;
}

static bool
clients_is_old(StorageScan *scan, const void *arg)
{
	return storage_int64(scan, CLIENT_AT) < *(const TimestampTz *) arg;
}

/* Deletes rows that are too old; looks at *most rows within the keys. */
static void
clients_sweep_range(const StorageKey *keys, int nkeys, TimestampTz oldest, int *most)
{
	if (*most > 0 && remove_some_rows(STORAGE_CLIENT, keys, nkeys, clients_is_old, &oldest, most) > 0)
		CommandCounterIncrement();
}

/* The same from a place in the sheet on. */
static void
clients_sweep(int64 sheet_id, int64 uid, int64 client, TimestampTz oldest, int *most)
{
	StorageKey same[3] = {{CLIENT_SHEET_ID, BTEqualStrategyNumber, false, sheet_id},
						  {CLIENT_UID, BTEqualStrategyNumber, false, uid},
						  {CLIENT_CLIENT, BTGreaterEqualStrategyNumber, false, client}};
	StorageKey next[2] = {{CLIENT_SHEET_ID, BTEqualStrategyNumber, false, sheet_id},
						  {CLIENT_UID, BTGreaterStrategyNumber, false, uid}};

	clients_sweep_range(same, lengthof(same), oldest, most);
	clients_sweep_range(next, lengthof(next), oldest, most);
}

/* The account of the sheet's first or last row; 0 when there is none. */
static int64
clients_account_at(int64 sheet_id, ScanDirection direction)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageKey key = {CLIENT_SHEET_ID, BTEqualStrategyNumber, false, sheet_id};
	StorageScan scan;
	int64 uid = 0;

	storage_scan_begin(&scan, STORAGE_CLIENT, snapshot, &key, 1);
	if (storage_scan_next(&scan, direction))
		uid = storage_int64(&scan, CLIENT_UID);
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return uid;
}

static void
clients_sweep_for(int64 sheet_id, const JournalClient *newcomer, TimestampTz oldest)
{
	StorageKey all = {CLIENT_SHEET_ID, BTEqualStrategyNumber, false, sheet_id};
	int most = CLIENTS_LOOK;
	int64 first, last;

	clients_sweep(sheet_id, newcomer->uid, newcomer->client, oldest, &most);
	clients_sweep_range(&all, 1, oldest, &most);
	first = clients_account_at(sheet_id, ForwardScanDirection);
	last = clients_account_at(sheet_id, BackwardScanDirection);
	most = CLIENTS_LOOK;
	clients_sweep(sheet_id, (int64) pg_prng_uint64_range(&pg_global_prng_state, (uint64) first, (uint64) last),
				  (int64) (pg_prng_uint64(&pg_global_prng_state) >> 11), oldest, &most);
}

void
clients_store(int64 sheet_id, const JournalClient *clients, int nclients)
{
	TimestampTz now, oldest;
	Relation rel;

	if (nclients == 0)
		return;
	now = GetCurrentTimestamp();
	oldest = now - (TimestampTz) CLIENTS_RETENTION_DAYS * USECS_PER_DAY;
	rel = storage_open(STORAGE_CLIENT, RowExclusiveLock);
	for (int i = 0; i < nclients; i++)
	{
		Datum values[STORAGE_MAX_COLUMNS] = {0};
		bool nulls[STORAGE_MAX_COLUMNS] = {0};
		ItemPointerData tid;
		bool known = clients_find(sheet_id, clients[i].uid, clients[i].client, &tid) > 0;

		values[CLIENT_SHEET_ID - 1] = Int64GetDatum(sheet_id);
		values[CLIENT_UID - 1] = Int64GetDatum(clients[i].uid);
		values[CLIENT_CLIENT - 1] = Int64GetDatum(clients[i].client);
		values[CLIENT_LANDED - 1] = Int64GetDatum(clients[i].last);
		values[CLIENT_AT - 1] = TimestampTzGetDatum(now);
		if (known)
			storage_update(STORAGE_CLIENT, rel, &tid, values, nulls);
		else
		{
			clients_sweep_for(sheet_id, &clients[i], oldest);
			storage_insert(STORAGE_CLIENT, rel, values, nulls);
		}
		CommandCounterIncrement();
	}
	STOP_POINT("clients-stored");
	table_close(rel, NoLock);
}
