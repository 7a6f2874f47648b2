/*
 * locks.c - locks with names, for programs that use SQL: sheet.lock, sheet.unlock, sheet.require_lock, sheet.locks.
 *
 * Each name has two locks in PostgreSQL's lock manager, which brings waiting without polling, deadlock detection,
 * lock_timeout and the release at the end of the session:
 *
 *   OWN  exclusive, held by the owner's session
 *   USE  shared by the transactions that have called require_lock(), until they end
 *
 * A new owner first takes OWN, and then USE for a moment: so transactions that were allowed under the former number
 * have ended before the new number is given out. Numbers come from a sequence, whose WAL is flushed before a number is
 * returned, so no number is given out twice, whatever crashes. Names, numbers and owners are in a table in shared
 * memory. Its entry goes after OWN has been released, or by the next owner; one whose owner does not hold OWN any more
 * (DISCARD ALL, pg_advisory_unlock_all) counts for nothing.
 *
 * Lock order: OWN of all names of a call in their order, then USE likewise, then the table's lock, a leaf.
 *
 * Locks with a lease (lease.c) that a transaction has taken are released if it is rolled back, since that ends the
 * lease.
 */
#include "postgres.h"

#include "api/functions/functions.h"
#include "api/functions/lease.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_lock);
PG_FUNCTION_INFO_V1(sheet_lock_all);
PG_FUNCTION_INFO_V1(sheet_unlock);
PG_FUNCTION_INFO_V1(sheet_require_lock);
PG_FUNCTION_INFO_V1(sheet_locks_read);

#define LOCKS_MAX		  4096 /* names that are locked at a time, in all databases */
#define LOCKS_SESSION_MAX 128  /* of one session */
#define LOCK_NAME_MAX	  123  /* bytes */
#define LEASE_MIN_MS	  1000 /* TCP's timers have seconds */

/* LOCKTAG_ADVISORY's field4; sheets use 0x5348, the coordinator 0x5345 */
#define LOCK_OWN 0x534C
#define LOCK_USE 0x5355

#define ERRCODE_LOCK_NOT_OWNED MAKE_SQLSTATE('S', 'F', '0', '0', '2')

typedef struct NamedLockKey
{
	Oid database;
	char name[LOCK_NAME_MAX + 1]; /* padded with zeros */
} NamedLockKey;

typedef struct NamedLock
{
	NamedLockKey key;
	int64 number;
	int pid;
	Oid role;
	TimestampTz since;
} NamedLock;

typedef struct NamedLocks
{
	LWLock lock;
	int tranche;
} NamedLocks;

static NamedLocks *locks = NULL; /* NULL: not preloaded */
static HTAB *locks_table = NULL;
static int locks_of_session = 0; /* entries of this session, at most */
static bool locks_end_registered = false;

/* ---- shared memory ---- */

Size
locks_shmem_size(void)
{
	return add_size(MAXALIGN(sizeof(NamedLocks)), hash_estimate_size(LOCKS_MAX, sizeof(NamedLock)));
}

void
locks_shmem_startup(void)
{
	HASHCTL info = {.keysize = sizeof(NamedLockKey), .entrysize = sizeof(NamedLock)};
	bool found;

	locks = ShmemInitStruct("pg_sheet named locks", sizeof(NamedLocks), &found);
	locks_table = ShmemInitHash("pg_sheet named locks table", LOCKS_MAX, LOCKS_MAX, &info, HASH_ELEM | HASH_BLOBS);
	if (!found)
	{
		locks->tranche = LWLockNewTrancheId();
		LWLockInitialize(&locks->lock, locks->tranche);
	}
	LWLockRegisterTranche(locks->tranche, "pg_sheet_named_locks");
}

/* ---- names ---- */

static void
require_possible(void)
{
	if (locks == NULL)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("locks with names need shared memory of pg_sheet"),
						errhint("Add pg_sheet to shared_preload_libraries and restart the server.")));
	if (RecoveryInProgress())
		ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION), errmsg("a standby has no locks with names"),
						errhint("Connect to the primary.")));
}

static NamedLockKey
key_of_bytes(const char *name, int len)
{
	NamedLockKey key;

	memset(&key, 0, sizeof(key));
	key.database = MyDatabaseId;
	memcpy(key.name, name, len);
	return key;
}

static NamedLockKey
key_of(const text *name)
{
	int len = VARSIZE_ANY_EXHDR(name);

	if (len == 0 || len > LOCK_NAME_MAX)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a lock's name has 1 to %d bytes", LOCK_NAME_MAX), errdetail("This one has %d.", len)));
	return key_of_bytes(VARDATA_ANY(name), len);
}

static int
compare_keys(const void *a, const void *b)
{
	return strcmp(((const NamedLockKey *) a)->name, ((const NamedLockKey *) b)->name);
}

static uint64
hash_of(const NamedLockKey *key)
{
	return hash_bytes_extended((const unsigned char *) key->name, strlen(key->name), 0);
}

static LOCKTAG
tag_of(const NamedLockKey *key, uint16 which)
{
	uint64 hash = hash_of(key);
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (hash >> 32), (uint32) hash, which);
	return tag;
}

/* ---- the table ---- */

static bool
entry_read(const NamedLockKey *key, NamedLock *entry)
{
	NamedLock *found;

	LWLockAcquire(&locks->lock, LW_SHARED);
	found = hash_search(locks_table, key, HASH_FIND, NULL);
	if (found != NULL)
		*entry = *found;
	LWLockRelease(&locks->lock);
	return found != NULL;
}

/* Removes the entry if it is still this session's. */
static void
entry_remove(const NamedLockKey *key)
{
	NamedLock *found;

	LWLockAcquire(&locks->lock, LW_EXCLUSIVE);
	found = hash_search(locks_table, key, HASH_FIND, NULL);
	if (found != NULL && found->pid == MyProcPid)
	{
		(void) hash_search(locks_table, key, HASH_REMOVE, NULL);
		locks_of_session--;
	}
	LWLockRelease(&locks->lock);
}

/* At the end of the session, before the lock manager releases its locks. */
static void
locks_end_session(int code, Datum arg)
{
	HASH_SEQ_STATUS scan;
	NamedLock *entry;

	if (locks_of_session == 0)
		return;
	LWLockAcquire(&locks->lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, locks_table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		if (entry->pid == MyProcPid)
			(void) hash_search(locks_table, &entry->key, HASH_REMOVE, NULL);
	LWLockRelease(&locks->lock);
	locks_of_session = 0;
}

/* Whoever had the entry before does not hold the lock any more. */
static void
entry_write(const NamedLockKey *key, int64 number)
{
	NamedLock *entry;
	bool found;

	if (!locks_end_registered)
	{
		before_shmem_exit(locks_end_session, (Datum) 0);
		locks_end_registered = true;
	}
	LWLockAcquire(&locks->lock, LW_EXCLUSIVE);
	entry = hash_search(locks_table, key, HASH_ENTER_NULL, &found);
	if (entry != NULL)
	{
		if (!found || entry->pid != MyProcPid)
			locks_of_session++;
		entry->number = number;
		entry->pid = MyProcPid;
		entry->role = GetSessionUserId();
		entry->since = GetCurrentTimestamp();
	}
	LWLockRelease(&locks->lock);
	if (entry == NULL)
		ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
						errmsg("too many locks with names are held: %d", LOCKS_MAX)));
}

/* ---- taking ---- */

static CatalogQuery next_number = {"SELECT nextval('sheet.lock_number_seq')"};

static int64
number_new(void)
{
	int64 number = 0;

	(void) catalog_find_int64(&next_number, NULL, false, &number);
	/* A sequence writes WAL once for 32 numbers, and the commit that would flush it may be asynchronous. */
	if (!XLogRecPtrIsInvalid(XactLastRecEnd))
		XLogFlush(XactLastRecEnd);
	return number;
}

typedef struct Taking
{
	NamedLockKey key;
	int64 number; /* 0: not known yet */
	bool own;	  /* OWN was taken once more by this call */
	bool use;	  /* USE is held for the moment */
	bool is_new;  /* the session did not hold OWN before */
} Taking;

static void
take(const Taking *taking, uint16 which, bool nowait, bool *taken, bool *is_new)
{
	LOCKTAG tag = tag_of(&taking->key, which);
	LockAcquireResult result = LockAcquire(&tag, ExclusiveLock, true, nowait);

	if (result == LOCKACQUIRE_NOT_AVAIL)
	{
		NamedLock entry;
		bool found = entry_read(&taking->key, &entry);

		ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
						errmsg("lock \"%s\" is held by another session", taking->key.name),
						found ? errdetail("The session has process ID %d.", entry.pid) : 0));
	}
	*taken = true;
	if (is_new != NULL)
		*is_new = result == LOCKACQUIRE_OK;
}

static void
give_back(Taking *taking, int count)
{
	for (int i = 0; i < count; i++)
	{
		LOCKTAG own = tag_of(&taking[i].key, LOCK_OWN), use = tag_of(&taking[i].key, LOCK_USE);

		if (taking[i].use)
			LockRelease(&use, ExclusiveLock, true);
		if (taking[i].own)
			LockRelease(&own, ExclusiveLock, true);
		if (taking[i].own && taking[i].is_new)
			entry_remove(&taking[i].key);
	}
}

/* Releases OWN once. */
static void
give_back_one(const NamedLockKey *key)
{
	LOCKTAG own = tag_of(key, LOCK_OWN);

	LockRelease(&own, ExclusiveLock, true);
	if (!compat_lock_held_by_me(&own, ExclusiveLock))
		entry_remove(key);
}

static void
take_all(Taking *taking, int count, bool nowait)
{
	int64 number = 0;

	for (int i = 0; i < count; i++)
		take(&taking[i], LOCK_OWN, nowait, &taking[i].own, &taking[i].is_new);
	for (int i = 0; i < count; i++)
	{
		NamedLock entry;

		if (taking[i].is_new)
			take(&taking[i], LOCK_USE, nowait, &taking[i].use, NULL);
		else if (entry_read(&taking[i].key, &entry))
			taking[i].number = entry.number;
	}
	for (int i = 0; i < count; i++)
	{
		LOCKTAG use = tag_of(&taking[i].key, LOCK_USE);

		if (!taking[i].is_new)
			continue;
		if (locks_of_session >= LOCKS_SESSION_MAX)
			ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
							errmsg("a session holds at most %d locks with names", LOCKS_SESSION_MAX)));
		if (number == 0)
			number = number_new();
		taking[i].number = number;
		entry_write(&taking[i].key, number);
		LockRelease(&use, ExclusiveLock, true);
		taking[i].use = false;
	}
}

/* ---- leases ---- */

static void
give_back_leased(const char *name)
{
	NamedLockKey key = key_of_bytes(name, strlen(name));

	give_back_one(&key);
}

/* Does the session hold a name? Not each entry of it tells. */
static bool
session_holds_any(void)
{
	HASH_SEQ_STATUS scan;
	NamedLock *entry;
	bool holds = false;

	LWLockAcquire(&locks->lock, LW_SHARED);
	hash_seq_init(&scan, locks_table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		if (entry->pid == MyProcPid && entry->key.database == MyDatabaseId)
		{
			LOCKTAG own = tag_of(&entry->key, LOCK_OWN);

			holds = holds || compat_lock_held_by_me(&own, ExclusiveLock);
		}
	LWLockRelease(&locks->lock);
	return holds;
}

/* ---- arguments, and the functions ---- */

/* All of them or none; keys are sorted, each once. wait_ms: -1 as lock_timeout says. lease_ms: -1 none. */
static void
lock_keys(Taking *taking, int count, int wait_ms, int lease_ms)
{
	int nest;
	char text[16];

	require_possible();
	if (lease_ms >= 0)
		lease_begin(lease_ms, give_back_leased);
	nest = NewGUCNestLevel();
	if (wait_ms > 0)
	{
		snprintf(text, sizeof(text), "%d", wait_ms);
		(void) set_config_option("lock_timeout", text, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	}
	PG_TRY();
	{
		take_all(taking, count, wait_ms == 0);
	}
	PG_CATCH();
	{
		give_back(taking, count);
		PG_RE_THROW();
	}
	PG_END_TRY();
	AtEOXact_GUC(true, nest);
	for (int i = 0; lease_ms >= 0 && i < count; i++)
		lease_took(taking[i].key.name);
}

/* A time in ms; -1: null. */
static int
arg_time(FunctionCallInfo fcinfo, int arg, int least, const char *problem)
{
	const Interval *time;
	double ms;

	if (PG_ARGISNULL(arg))
		return -1;
	time = PG_GETARG_INTERVAL_P(arg);
	ms = (double) time->time / 1000 + ((double) time->day + 30.0 * time->month) * 86400000;
	if (ms < least || ms > INT_MAX)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", problem)));
	return (int) ms == 0 && ms > 0 ? 1 : (int) ms;
}

static void
lock_with_args(FunctionCallInfo fcinfo, Taking *taking, int count)
{
	lock_keys(taking, count, arg_time(fcinfo, 1, 0, "the time to wait is from 0 to 24 days"),
			  arg_time(fcinfo, 2, LEASE_MIN_MS, "a lease is from 1 second to 24 days"));
}

/* lock(name, wait, lease) */
Datum
sheet_lock(PG_FUNCTION_ARGS)
{
	Taking taking = {0};

	catalog_require_arg(fcinfo, 0, "name");
	taking.key = key_of(PG_GETARG_TEXT_PP(0));
	lock_with_args(fcinfo, &taking, 1);
	PG_RETURN_INT64(taking.number);
}

/* lock(names[], wait, lease): the numbers in the order of the names */
Datum
sheet_lock_all(PG_FUNCTION_ARGS)
{
	Datum *names, *numbers;
	bool *nulls;
	int count, used = 0;
	Taking *taking;

	catalog_require_arg(fcinfo, 0, "names");
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), TEXTOID, -1, false, TYPALIGN_INT, &names, &nulls, &count);
	if (count > LOCKS_SESSION_MAX)
		ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
						errmsg("a session holds at most %d locks with names", LOCKS_SESSION_MAX)));
	taking = palloc0(sizeof(Taking) * (count + 1));
	numbers = palloc(sizeof(Datum) * (count + 1));
	for (int i = 0; i < count; i++)
	{
		if (nulls[i])
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("a lock's name must not be null")));
		taking[i].key = key_of(DatumGetTextPP(names[i]));
	}
	qsort(taking, count, sizeof(Taking), compare_keys);
	for (int i = 0; i < count; i++)
		if (used == 0 || compare_keys(&taking[used - 1], &taking[i]) != 0)
			taking[used++] = taking[i];
	lock_with_args(fcinfo, taking, used);
	for (int i = 0; i < count; i++)
	{
		NamedLockKey key = key_of(DatumGetTextPP(names[i]));
		const Taking *found = bsearch(&key, taking, used, sizeof(Taking), compare_keys);

		numbers[i] = Int64GetDatum(found->number);
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(numbers, count, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/* unlock(name) */
Datum
sheet_unlock(PG_FUNCTION_ARGS)
{
	NamedLockKey key;
	LOCKTAG own;

	catalog_require_arg(fcinfo, 0, "name");
	require_possible();
	key = key_of(PG_GETARG_TEXT_PP(0));
	own = tag_of(&key, LOCK_OWN);
	if (!compat_lock_held_by_me(&own, ExclusiveLock))
		ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_OWNED), errmsg("this session does not hold lock \"%s\"", key.name),
						errhint("Only the session that has locked a name unlocks it.")));
	lease_gave_back(key.name);
	give_back_one(&key);
	if (lease_is_on() && !session_holds_any())
		lease_end();
	PG_RETURN_VOID();
}

/* ---- checking ---- */

/* The entry's owner holds OWN. The answer is certain while the caller holds USE. */
static bool
entry_is_held(const NamedLock *entry)
{
	LOCKTAG own = tag_of(&entry->key, LOCK_OWN);

	if (entry->pid == MyProcPid)
		return compat_lock_held_by_me(&own, ExclusiveLock);
	if (LockAcquire(&own, ShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&own, ShareLock, false);
	return false;
}

/* require_lock(name, number) */
Datum
sheet_require_lock(PG_FUNCTION_ARGS)
{
	NamedLockKey key;
	NamedLock entry;
	LOCKTAG use;
	int64 number;
	bool held;

	catalog_require_arg(fcinfo, 0, "name");
	catalog_require_arg(fcinfo, 1, "number");
	require_possible();
	key = key_of(PG_GETARG_TEXT_PP(0));
	number = PG_GETARG_INT64(1);
	use = tag_of(&key, LOCK_USE);
	(void) LockAcquire(&use, ShareLock, false, false);
	held = entry_read(&key, &entry) && entry_is_held(&entry);
	if (!held || entry.number != number)
		ereport(
			ERROR,
			(errcode(ERRCODE_LOCK_NOT_OWNED), errmsg("lock \"%s\" is not held under the given number", key.name),
			 held ? errdetail("It is held under number %lld, not %lld.", (long long) entry.number, (long long) number)
				  : errdetail("Nobody holds it."),
			 errhint("The lock has passed on since the number was given out. Lock the name again.")));
	PG_RETURN_VOID();
}

#define LOCKS_COLUMNS 7

/* locks_read(): the entries of this database, also those whose owner does not hold the lock any more */
Datum
sheet_locks_read(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	NamedLock *copies = palloc(sizeof(NamedLock) * LOCKS_MAX);
	HASH_SEQ_STATUS scan;
	NamedLock *entry;
	int count = 0;

	require_possible();
	InitMaterializedSRF(fcinfo, 0);
	LWLockAcquire(&locks->lock, LW_SHARED);
	hash_seq_init(&scan, locks_table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		if (entry->key.database == MyDatabaseId)
			copies[count++] = *entry;
	LWLockRelease(&locks->lock);
	for (int i = 0; i < count; i++)
	{
		uint64 hash = hash_of(&copies[i].key);
		Datum values[LOCKS_COLUMNS] = {CStringGetTextDatum(copies[i].key.name),
									   Int64GetDatum(copies[i].number),
									   Int32GetDatum(copies[i].pid),
									   ObjectIdGetDatum(copies[i].role),
									   TimestampTzGetDatum(copies[i].since),
									   ObjectIdGetDatum((Oid) (hash >> 32)),
									   ObjectIdGetDatum((Oid) (hash & 0xFFFFFFFF))};
		bool nulls[LOCKS_COLUMNS] = {false};

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
