/*
 * am_last.c - the cached last entry of a directory's keys; see am_last.h. A table in shared memory with one slot for
 * each hash of (index, key): the last one that was set has it.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "compat.h"
#include "am/page/am_last.h"
#include "miscadmin.h"
#include "storage/shmem.h"
#include "storage/spin.h"

#define AM_LAST_ENTRIES 4096

/* An index that is built again has a new file. Files in two tablespaces may have the same number. */
typedef struct AmLastKey
{
	int64 key;
	Oid database;
	Oid relfilenode; /* InvalidOid: the slot is free */
	Oid index;		 /* compared only: the hash is of what stands before it */
} AmLastKey;

typedef struct AmLast
{
	slock_t lock;
	BlockNumber block;
	AmLastKey key;
	int64 position;
	int64 max_position; /* the highest position of a row */
} AmLast;

static AmLast *am_last_entries = NULL;

Size
am_last_shmem_size(void)
{
	return MAXALIGN(mul_size(sizeof(AmLast), AM_LAST_ENTRIES));
}

void
am_last_shmem_startup(void)
{
	bool found;

	am_last_entries = ShmemInitStruct("pg_sheet last entries", am_last_shmem_size(), &found);
	if (found)
		return;
	memset(am_last_entries, 0, am_last_shmem_size());
	for (int i = 0; i < AM_LAST_ENTRIES; i++)
		SpinLockInit(&am_last_entries[i].lock);
}

/* Locks the key's slot; NULL if nothing is cached. Files of temporary tables have numbers of their own. */
static AmLast *
am_last_lock(Relation index, int64 key, AmLastKey *last_key)
{
	AmLast *last;

	if (am_last_entries == NULL || RelationUsesLocalBuffers(index))
		return NULL;
	*last_key = (AmLastKey){key, MyDatabaseId, compat_relfilenode(index), RelationGetRelid(index)};
	last = &am_last_entries[hash_bytes((const unsigned char *) last_key, offsetof(AmLastKey, index)) % AM_LAST_ENTRIES];
	SpinLockAcquire(&last->lock);
	return last;
}

static inline bool
am_last_is(const AmLast *last, const AmLastKey *key)
{
	return last->key.key == key->key && last->key.relfilenode == key->relfilenode && last->key.index == key->index &&
		   last->key.database == key->database;
}

bool
am_last_covers(Relation index, int64 key, int64 position, BlockNumber block)
{
	AmLastKey last_key;
	AmLast *last = am_last_lock(index, key, &last_key);
	bool covers;

	if (last == NULL)
		return false;
	covers = am_last_is(last, &last_key) && last->block == block && last->position <= position;
	if (covers)
		last->max_position = Max(last->max_position, position);
	SpinLockRelease(&last->lock);
	return covers;
}

bool
am_last_take(Relation index, int64 key, int64 *max_position)
{
	AmLastKey last_key;
	AmLast *last = am_last_lock(index, key, &last_key);
	bool known;

	if (last == NULL)
		return false;
	known = am_last_is(last, &last_key);
	if (known)
	{
		*max_position = last->max_position;
		last->key.relfilenode = InvalidOid;
	}
	SpinLockRelease(&last->lock);
	return known;
}

void
am_last_set(Relation index, int64 key, int64 position, BlockNumber block, int64 max_position)
{
	AmLastKey last_key;
	AmLast *last = am_last_lock(index, key, &last_key);

	if (last == NULL)
		return;
	last->key = last_key;
	last->position = position;
	last->block = block;
	last->max_position = max_position;
	SpinLockRelease(&last->lock);
}

/* relfilenode: InvalidOid for all of the database. */
static void
am_last_forget(Oid database, Oid relfilenode)
{
	for (int i = 0; am_last_entries != NULL && i < AM_LAST_ENTRIES; i++)
	{
		AmLast *last = &am_last_entries[i];

		SpinLockAcquire(&last->lock);
		if (last->key.database == database && (last->key.relfilenode == relfilenode || !OidIsValid(relfilenode)))
			last->key.relfilenode = InvalidOid;
		SpinLockRelease(&last->lock);
	}
}

void
am_last_forget_index(Relation index)
{
	am_last_forget(MyDatabaseId, compat_relfilenode(index));
}

void
am_last_forget_database(Oid database)
{
	am_last_forget(database, InvalidOid);
}
