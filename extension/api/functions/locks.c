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
 * have ended before the new number is given out. Names, numbers and owners are in a table in shared memory
 * (locks_table.c). Its entry goes after OWN has been released, or by the next owner; one whose owner does not hold OWN
 * any more (DISCARD ALL, pg_advisory_unlock_all) counts for nothing.
 *
 * A number is the permission to hold USE, and so to keep the next owner waiting. Any role that was given it may pass it
 * to require_lock(), for example a service that stores what the owner sends. So nobody may read or guess the numbers of
 * others. The upper bits come from a sequence, whose WAL is flushed before a number is returned, so numbers grow,
 * whatever crashes. The NUMBER_RANDOM_BITS lower ones are random. A number is compared before any lock is taken, and a
 * wrong one costs a role that could not read the right one WRONG_NUMBER_MS, which no timeout and no signal shortens.
 * Those whose upper bits are right may be guesses, so they take turns: many sessions guess no faster than one, up to
 * the number that TURNS_MS is enough for.
 *
 * Lock order: OWN of all names of a call in their order, then USE likewise, then the table's lock, a leaf.
 *
 * Locks with a lease (lease.c) that a transaction has taken are released if it is rolled back, since that ends the
 * lease.
 */
#include "postgres.h"

#include "api/functions/lease.h"
#include "api/functions/locks_table.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

PG_FUNCTION_INFO_V1(sheet_lock);
PG_FUNCTION_INFO_V1(sheet_lock_all);
PG_FUNCTION_INFO_V1(sheet_unlock);
PG_FUNCTION_INFO_V1(sheet_require_lock);
PG_FUNCTION_INFO_V1(sheet_locks_read);

#define LEASE_MIN_MS	   1000 /* TCP's timers have seconds */
#define NUMBER_RANDOM_BITS 24
#define WRONG_NUMBER_MS	   20
#define TURNS_MS		   2000 /* nobody waits longer, since it cannot be ended */

/* LOCKTAG_ADVISORY's field4; sheets use 0x5348, the coordinator 0x5345 */
#define LOCK_OWN 0x534C
#define LOCK_USE 0x5355

#define ERRCODE_LOCK_NOT_OWNED MAKE_SQLSTATE('S', 'F', '0', '0', '2')

/* ---- names ---- */

static void
require_possible(void)
{
	if (!locks_table_exists())
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
	NamedLockKey key;

	if (len == 0 || len > LOCK_NAME_MAX)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a lock's name has 1 to %d bytes", LOCK_NAME_MAX), errdetail("This one has %d.", len)));
	key = key_of_bytes(VARDATA_ANY(name), len);
	catalog_check_name("lock's name", key.name, LOCK_NAME_MAX);
	return key;
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

/* Whether this session holds OWN. */
static bool
session_holds(const NamedLockKey *key)
{
	LOCKTAG own = tag_of(key, LOCK_OWN);

	return compat_lock_held_by_me(&own, ExclusiveLock);
}

/* ---- taking ---- */

static CatalogQuery next_number = {"SELECT nextval('sheet.lock_number_seq')"};

static int64
number_new(void)
{
	int64 number = 0;
	uint32 random;

	(void) catalog_find_int64(&next_number, NULL, false, &number);
	/* A sequence writes WAL once for 32 numbers, and the commit that would flush it may be asynchronous. */
	if (!XLogRecPtrIsInvalid(XactLastRecEnd))
		XLogFlush(XactLastRecEnd);
	if (!pg_strong_random(&random, sizeof(random)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random number")));
	return number << NUMBER_RANDOM_BITS | (random >> (32 - NUMBER_RANDOM_BITS));
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
		bool found = locks_table_read(&taking->key, &entry);

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
			locks_table_remove(&taking[i].key);
	}
}

/* Releases OWN once. */
static void
give_back_one(const NamedLockKey *key)
{
	LOCKTAG own = tag_of(key, LOCK_OWN);

	LockRelease(&own, ExclusiveLock, true);
	if (!session_holds(key))
		locks_table_remove(key);
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
		else if (locks_table_read(&taking[i].key, &entry))
			taking[i].number = entry.number;
	}
	for (int i = 0; i < count; i++)
	{
		LOCKTAG use = tag_of(&taking[i].key, LOCK_USE);

		if (!taking[i].is_new)
			continue;
		if (number == 0)
			number = number_new();
		taking[i].number = number;
		locks_table_write(&taking[i].key, number, session_holds);
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
	int count;
	NamedLock *entries = locks_table_read_all(MyProcPid, &count);
	bool holds = false;

	for (int i = 0; i < count && !holds; i++)
		holds = session_holds(&entries[i].key);
	pfree(entries);
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

	catalog_require_arg(fcinfo, 0, "name");
	require_possible();
	key = key_of(PG_GETARG_TEXT_PP(0));
	if (!session_holds(&key))
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
		return session_holds(&entry->key);
	if (LockAcquire(&own, ShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&own, ShareLock, false);
	return false;
}

/* Whether the caller may read the number: its session is the owner, or it has the rights of the owner's role. */
static bool
entry_shows_number(const NamedLock *entry)
{
	return entry->pid == MyProcPid || has_privs_of_role(GetUserId(), entry->role);
}

/*
 * Delays the caller, so that numbers cannot be guessed. Interrupts are held: a cancelled wait would tell a wrong number
 * sooner. Caller must hold no lock of the name.
 */
static void
wait_after_wrong_number(const NamedLock *entry, int64 number)
{
	bool guess = number >> NUMBER_RANDOM_BITS == entry->number >> NUMBER_RANDOM_BITS;
	int ms = guess ? locks_table_turn(entry, WRONG_NUMBER_MS, TURNS_MS) : WRONG_NUMBER_MS;
	instr_time since, now;
	long left = ms;

	HOLD_INTERRUPTS();
	INSTR_TIME_SET_CURRENT(since);
	while (left > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, left, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, since);
		left = ms - (long) INSTR_TIME_GET_MILLISEC(now);
	}
	SetLatch(MyLatch); /* what has set it meanwhile was not looked at */
	RESUME_INTERRUPTS();
}

/* SF002 unless the name is locked under this number. */
static void
check_number(const NamedLockKey *key, int64 number)
{
	NamedLock entry;
	bool found = locks_table_read(key, &entry), same = found && entry.number == number, shows;

	if (same && entry_is_held(&entry))
		return;
	shows = found && entry_shows_number(&entry);
	if (found && !same && !shows)
		wait_after_wrong_number(&entry, number);
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_OWNED), errmsg("lock \"%s\" is not held under the given number", key->name),
			 !found || same ? errdetail("Nobody holds it.")
			 : shows		? errdetail("It was last locked under number %lld, not %lld.", (long long) entry.number,
										(long long) number)
							: errdetail("It was last locked under another number."),
			 errhint("The lock has passed on since the number was given out. Lock the name again.")));
}

/* require_lock(name, number): checks before USE is taken, and whether the lock has passed on meanwhile. */
Datum
sheet_require_lock(PG_FUNCTION_ARGS)
{
	NamedLockKey key;
	LOCKTAG use;

	catalog_require_arg(fcinfo, 0, "name");
	catalog_require_arg(fcinfo, 1, "number");
	require_possible();
	key = key_of(PG_GETARG_TEXT_PP(0));
	check_number(&key, PG_GETARG_INT64(1));
	use = tag_of(&key, LOCK_USE);
	(void) LockAcquire(&use, ShareLock, false, false);
	check_number(&key, PG_GETARG_INT64(1));
	PG_RETURN_VOID();
}

#define LOCKS_COLUMNS 7

/* locks_read(): the entries of this database, also those whose owner does not hold the lock any more */
Datum
sheet_locks_read(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	NamedLock *entries;
	int count;

	require_possible();
	InitMaterializedSRF(fcinfo, 0);
	entries = locks_table_read_all(0, &count);
	for (int i = 0; i < count; i++)
	{
		uint64 hash = hash_of(&entries[i].key);
		Datum values[LOCKS_COLUMNS] = {CStringGetTextDatum(entries[i].key.name),
									   Int64GetDatum(entries[i].number),
									   Int32GetDatum(entries[i].pid),
									   ObjectIdGetDatum(entries[i].role),
									   TimestampTzGetDatum(entries[i].since),
									   ObjectIdGetDatum((Oid) (hash >> 32)),
									   ObjectIdGetDatum((Oid) (hash & 0xFFFFFFFF))};
		bool nulls[LOCKS_COLUMNS] = {false, !entry_shows_number(&entries[i])};

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
