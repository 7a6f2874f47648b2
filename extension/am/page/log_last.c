/*
 * log_last.c - the cached last entry of a directory's keys; see log_last.h. A table in shared memory with one slot for
 * each hash of (index, key): the last one that was set has it.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "compat.h"
#include "am/page/log_last.h"
#include "miscadmin.h"
#include "storage/shmem.h"
#include "storage/spin.h"

#define LOG_LAST_ENTRIES 4096

/* An index that is built again has a new file. Files in two tablespaces may have the same number. */
typedef struct LogLastKey
{
	int64 key;
	Oid database;
	Oid relfilenode; /* InvalidOid: the slot is free */
	Oid index;		 /* compared only: the hash is of what stands before it */
} LogLastKey;

typedef struct LogLast
{
	slock_t lock;
	BlockNumber block;
	LogLastKey key;
	int64 position;
	int64 max_position; /* the highest position of a row */
} LogLast;

static LogLast *log_last_entries = NULL;

Size
log_last_shmem_size(void)
{
	return MAXALIGN(mul_size(sizeof(LogLast), LOG_LAST_ENTRIES));
}

void
log_last_shmem_startup(void)
{
	bool found;

	log_last_entries = ShmemInitStruct("pg_sheet last entries", log_last_shmem_size(), &found);
	if (found)
		return;
	memset(log_last_entries, 0, log_last_shmem_size());
	for (int i = 0; i < LOG_LAST_ENTRIES; i++)
		SpinLockInit(&log_last_entries[i].lock);
}

/* Locks the key's slot; NULL if nothing is cached. Files of temporary tables have numbers of their own. */
static LogLast *
log_last_lock(Relation index, int64 key, LogLastKey *last_key)
{
	LogLast *last;

	if (log_last_entries == NULL || RelationUsesLocalBuffers(index))
		return NULL;
	*last_key = (LogLastKey){key, MyDatabaseId, compat_relfilenode(index), RelationGetRelid(index)};
	last =
		&log_last_entries[hash_bytes((const unsigned char *) last_key, offsetof(LogLastKey, index)) % LOG_LAST_ENTRIES];
	SpinLockAcquire(&last->lock);
	return last;
}

static inline bool
log_last_is(const LogLast *last, const LogLastKey *key)
{
	return last->key.key == key->key && last->key.relfilenode == key->relfilenode && last->key.index == key->index &&
		   last->key.database == key->database;
}

bool
log_last_covers(Relation index, int64 key, int64 position, BlockNumber block)
{
	LogLastKey last_key;
	LogLast *last = log_last_lock(index, key, &last_key);
	bool covers;

	if (last == NULL)
		return false;
	covers = log_last_is(last, &last_key) && last->block == block && last->position <= position;
	if (covers)
		last->max_position = Max(last->max_position, position);
	SpinLockRelease(&last->lock);
	return covers;
}

bool
log_last_take(Relation index, int64 key, int64 *max_position)
{
	LogLastKey last_key;
	LogLast *last = log_last_lock(index, key, &last_key);
	bool known;

	if (last == NULL)
		return false;
	known = log_last_is(last, &last_key);
	if (known)
	{
		*max_position = last->max_position;
		last->key.relfilenode = InvalidOid;
	}
	SpinLockRelease(&last->lock);
	return known;
}

void
log_last_set(Relation index, int64 key, int64 position, BlockNumber block, int64 max_position)
{
	LogLastKey last_key;
	LogLast *last = log_last_lock(index, key, &last_key);

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
log_last_forget(Oid database, Oid relfilenode)
{
	for (int i = 0; log_last_entries != NULL && i < LOG_LAST_ENTRIES; i++)
	{
		LogLast *last = &log_last_entries[i];

		SpinLockAcquire(&last->lock);
		if (last->key.database == database && (last->key.relfilenode == relfilenode || !OidIsValid(relfilenode)))
			last->key.relfilenode = InvalidOid;
		SpinLockRelease(&last->lock);
	}
}

void
log_last_forget_index(Relation index)
{
	log_last_forget(MyDatabaseId, compat_relfilenode(index));
}

void
log_last_forget_database(Oid database)
{
	log_last_forget(database, InvalidOid);
}
