/*
 * clients.c - which operations of protocol v2 have landed.
 *
 * A client numbers its operations, and its gateway sends them in that order; so the highest number that has landed says
 * it all. It is noted in the transaction that has the edits, under the sheet lock: an operation that comes again, by
 * whatever way and however late, is found. Operations whose edits changed nothing are noted as well, since they would
 * not change nothing any more when somebody else has edited the cell meanwhile.
 *
 * A row is kept for CLIENTS_RETENTION_DAYS after the client's last operation; older ones of the sheet go when a new
 * client comes.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "clients.h"
#include "remove.h"
#include "stoppoint.h"
#include "storage.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

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
							errhint("Read what has landed with sheet.client_landed(), and send the others.")));
	}
	return nclients > 0 && landed == nclients ? CLIENTS_LANDED : CLIENTS_NEW;
}

static bool
clients_is_old(StorageScan *scan, const void *arg)
{
	return storage_int64(scan, CLIENT_AT) < *(const TimestampTz *) arg;
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
			(void) remove_rows(STORAGE_CLIENT, sheet_id, clients_is_old, &oldest);
			storage_insert(STORAGE_CLIENT, rel, values, nulls);
		}
		CommandCounterIncrement();
	}
	STOP_POINT("clients-stored");
	table_close(rel, NoLock);
}
