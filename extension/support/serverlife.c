/*
 * serverlife.c - how the server's previous life ended, and which sheets were opened in this one.
 *
 * A life is as long as shared memory: it begins when the server starts, or after a crash of one of its processes. At
 * that time PostgreSQL's control file still has the state of the life before. Every state but "shut down" is a crash.
 *
 * Opened sheets are remembered as hashes of their ids, each at a place that the hash determines. There is no lock: a
 * reader that gets an old hash does some work once more.
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "support/serverlife.h"
#include "storage/shmem.h"

#define SERVER_LIFE_SHEETS 65536

typedef struct ServerLife
{
	bool after_crash;
	pg_atomic_uint64 first_fxid; /* this life has written no sheet with a lower id; 0: not known yet */
	pg_atomic_uint64 sheets[SERVER_LIFE_SHEETS];
} ServerLife;

static ServerLife *server_life = NULL;

Size
server_life_shmem_size(void)
{
	return MAXALIGN(sizeof(ServerLife));
}

static bool
server_life_find_crash(void)
{
	bool good;
	ControlFileData *control = get_controlfile(DataDir, &good);
	bool crash = !good || control->state != DB_SHUTDOWNED;

	pfree(control);
	return crash;
}

void
server_life_shmem_startup(void)
{
	bool found;

	server_life = ShmemInitStruct("pg_sheet server life", server_life_shmem_size(), &found);
	if (found)
		return;
	server_life->after_crash = server_life_find_crash();
	pg_atomic_init_u64(&server_life->first_fxid, 0);
	for (int i = 0; i < SERVER_LIFE_SHEETS; i++)
		pg_atomic_init_u64(&server_life->sheets[i], 0);
}

bool
server_life_is_after_crash(void)
{
	return server_life != NULL && server_life->after_crash;
}

bool
server_life_has_written(uint64 fxid)
{
	uint64 first = 0, next = U64FromFullTransactionId(ReadNextFullTransactionId());

	if (pg_atomic_compare_exchange_u64(&server_life->first_fxid, &first, next))
		first = next;
	return fxid >= first;
}

static uint64
server_life_hash(int64 sheet_id)
{
	uint64 id[] = {MyDatabaseId, (uint64) sheet_id};

	return hash_bytes_extended((const unsigned char *) id, sizeof(id), 0);
}

void
server_life_remember(int64 sheet_id)
{
	uint64 hash = server_life_hash(sheet_id);

	pg_atomic_write_u64(&server_life->sheets[hash % SERVER_LIFE_SHEETS], hash);
}

bool
server_life_remembers(int64 sheet_id)
{
	uint64 hash = server_life_hash(sheet_id);

	return pg_atomic_read_u64(&server_life->sheets[hash % SERVER_LIFE_SHEETS]) == hash;
}
