/*
 * log_tip.c - see log_tip.h. A table in shared memory with one place for each hash of (index, key): the last one that
 * is told of has it.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "compat.h"
#include "am/page/log_tip.h"
#include "miscadmin.h"
#include "storage/shmem.h"
#include "storage/spin.h"

#define LOG_TIPS 4096

/* An index that is built again has a new file. Files in two tablespaces may have the same number. */
typedef struct LogTipKey
{
	int64 key;
	Oid database;
	Oid relfilenode; /* InvalidOid: the place is free */
	Oid index;		 /* compared only: the hash is of what stands before it */
} LogTipKey;

typedef struct LogTip
{
	slock_t lock;
	BlockNumber block;
	LogTipKey key;
	int64 position;
	int64 top; /* the highest position of a row */
} LogTip;

static LogTip *log_tips = NULL;

Size
log_tip_shmem_size(void)
{
	return MAXALIGN(mul_size(sizeof(LogTip), LOG_TIPS));
}

void
log_tip_shmem_startup(void)
{
	bool found;

	log_tips = ShmemInitStruct("pg_sheet tips", log_tip_shmem_size(), &found);
	if (found)
		return;
	memset(log_tips, 0, log_tip_shmem_size());
	for (int i = 0; i < LOG_TIPS; i++)
		SpinLockInit(&log_tips[i].lock);
}

/* The key's place; NULL when nothing is remembered. Files of temporary tables have numbers of their own. */
static LogTip *
log_tip_lock(Relation index, int64 key, LogTipKey *tip_key)
{
	LogTip *tip;

	if (log_tips == NULL || RelationUsesLocalBuffers(index))
		return NULL;
	*tip_key = (LogTipKey){key, MyDatabaseId, compat_relfilenode(index), RelationGetRelid(index)};
	tip = &log_tips[hash_bytes((const unsigned char *) tip_key, offsetof(LogTipKey, index)) % LOG_TIPS];
	SpinLockAcquire(&tip->lock);
	return tip;
}

static inline bool
log_tip_is(const LogTip *tip, const LogTipKey *key)
{
	return tip->key.key == key->key && tip->key.relfilenode == key->relfilenode && tip->key.index == key->index &&
		   tip->key.database == key->database;
}

bool
log_tip_covers(Relation index, int64 key, int64 position, BlockNumber block)
{
	LogTipKey tip_key;
	LogTip *tip = log_tip_lock(index, key, &tip_key);
	bool covers;

	if (tip == NULL)
		return false;
	covers = log_tip_is(tip, &tip_key) && tip->block == block && tip->position <= position;
	if (covers)
		tip->top = Max(tip->top, position);
	SpinLockRelease(&tip->lock);
	return covers;
}

bool
log_tip_take(Relation index, int64 key, int64 *top)
{
	LogTipKey tip_key;
	LogTip *tip = log_tip_lock(index, key, &tip_key);
	bool known;

	if (tip == NULL)
		return false;
	known = log_tip_is(tip, &tip_key);
	if (known)
	{
		*top = tip->top;
		tip->key.relfilenode = InvalidOid;
	}
	SpinLockRelease(&tip->lock);
	return known;
}

void
log_tip_set(Relation index, int64 key, int64 position, BlockNumber block, int64 top)
{
	LogTipKey tip_key;
	LogTip *tip = log_tip_lock(index, key, &tip_key);

	if (tip == NULL)
		return;
	tip->key = tip_key;
	tip->position = position;
	tip->block = block;
	tip->top = top;
	SpinLockRelease(&tip->lock);
}

/* relfilenode: InvalidOid for all of the database. */
static void
log_tip_forget(Oid database, Oid relfilenode)
{
	for (int i = 0; log_tips != NULL && i < LOG_TIPS; i++)
	{
		LogTip *tip = &log_tips[i];

		SpinLockAcquire(&tip->lock);
		if (tip->key.database == database && (tip->key.relfilenode == relfilenode || !OidIsValid(relfilenode)))
			tip->key.relfilenode = InvalidOid;
		SpinLockRelease(&tip->lock);
	}
}

void
log_tip_forget_index(Relation index)
{
	log_tip_forget(MyDatabaseId, compat_relfilenode(index));
}

void
log_tip_forget_database(Oid database)
{
	log_tip_forget(database, InvalidOid);
}
