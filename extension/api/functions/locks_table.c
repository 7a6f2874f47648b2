/*
 * locks_table.c - names that are locked, their numbers and their owners, in shared memory.
 *
 * The table has room for LOCKS_MAX names. Nobody may take it from the others: LOCKS_RESERVED names are for superusers
 * and gateways, and any other role holds at most as many of the rest as are still free. So the first role gets half of
 * them, the next one half of what is left, and a role that holds none finds room until 12 others hold all they may.
 *
 * An entry is removed after its lock was released, by the next owner, or at the end of the session. One whose session
 * has released the lock in another way (DISCARD ALL, pg_advisory_unlock_all) stays until the session needs room.
 *
 * NamedLocks.lock protects both hash tables. It is a leaf: no other lock is taken while it is held, and no error is
 * raised. The hash tables never grow beyond LOCKS_MAX entries (HASH_FIXED_SIZE), which sizes the copies of readers.
 */
#include "postgres.h"

#include "api/functions/functions.h"
#include "api/functions/locks_table.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

#define LOCKS_MAX	   4096 /* names that are locked at a time, in all databases */
#define LOCKS_RESERVED 512	/* of them, for superusers and gateways */

/* How many names a role holds. There is an entry if it holds one at least. */
typedef struct NamedLocksRole
{
	Oid role;
	int count;
} NamedLocksRole;

typedef struct NamedLocks
{
	LWLock lock;
	int tranche;
	int count; /* entries of the table of names */
} NamedLocks;

static NamedLocks *locks = NULL; /* NULL: not preloaded */
static HTAB *locks_names = NULL;
static HTAB *locks_roles = NULL;
static int locks_of_session = 0; /* entries of this session, at most */
static bool locks_end_registered = false;

/* ---- shared memory ---- */

Size
locks_shmem_size(void)
{
	Size size = MAXALIGN(sizeof(NamedLocks));

	size = add_size(size, hash_estimate_size(LOCKS_MAX, sizeof(NamedLock)));
	return add_size(size, hash_estimate_size(LOCKS_MAX, sizeof(NamedLocksRole)));
}

void
locks_shmem_startup(void)
{
	HASHCTL names = {.keysize = sizeof(NamedLockKey), .entrysize = sizeof(NamedLock)};
	HASHCTL roles = {.keysize = sizeof(Oid), .entrysize = sizeof(NamedLocksRole)};
	bool found;

	locks = ShmemInitStruct("pg_sheet named locks", sizeof(NamedLocks), &found);
	locks_names = ShmemInitHash("pg_sheet named locks table", LOCKS_MAX, LOCKS_MAX, &names,
								HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
	locks_roles = ShmemInitHash("pg_sheet named locks roles", LOCKS_MAX, LOCKS_MAX, &roles,
								HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
	if (!found)
	{
		locks->tranche = LWLockNewTrancheId();
		LWLockInitialize(&locks->lock, locks->tranche);
		locks->count = 0;
	}
	LWLockRegisterTranche(locks->tranche, "pg_sheet_named_locks");
}

bool
locks_table_exists(void)
{
	return locks != NULL;
}

/* ---- reading ---- */

bool
locks_table_read(const NamedLockKey *key, NamedLock *entry)
{
	NamedLock *found;

	LWLockAcquire(&locks->lock, LW_SHARED);
	found = hash_search(locks_names, key, HASH_FIND, NULL);
	if (found != NULL)
		*entry = *found;
	LWLockRelease(&locks->lock);
	return found != NULL;
}

NamedLock *
locks_table_read_all(int pid, int *count)
{
	NamedLock *copies = palloc(sizeof(NamedLock) * LOCKS_MAX);
	HASH_SEQ_STATUS scan;
	NamedLock *entry;
	int n = 0;

	LWLockAcquire(&locks->lock, LW_SHARED);
	hash_seq_init(&scan, locks_names);
	while ((entry = hash_seq_search(&scan)) != NULL)
		if (entry->key.database == MyDatabaseId && (pid == 0 || entry->pid == pid) && n < LOCKS_MAX)
			copies[n++] = *entry;
	LWLockRelease(&locks->lock);
	*count = n;
	return copies;
}

/* ---- entries; callers hold the lock in exclusive mode ---- */

static int
locks_count_of(Oid role)
{
	const NamedLocksRole *found = hash_search(locks_roles, &role, HASH_FIND, NULL);

	return found == NULL ? 0 : found->count;
}

/* A role with an entry has a name, so there is room for each. */
static void
locks_count_add(Oid role, int n)
{
	bool found;
	NamedLocksRole *counted = hash_search(locks_roles, &role, n > 0 ? HASH_ENTER_NULL : HASH_FIND, &found);

	if (counted == NULL)
		return;
	counted->count = found ? counted->count + n : n;
	if (counted->count <= 0)
		(void) hash_search(locks_roles, &role, HASH_REMOVE, NULL);
}

static void
locks_unlink(const NamedLock *entry)
{
	NamedLockKey key = entry->key;

	locks_count_add(entry->role, -1);
	(void) hash_search(locks_names, &key, HASH_REMOVE, NULL);
	locks->count--;
}

/* ---- removing ---- */

void
locks_table_remove(const NamedLockKey *key)
{
	NamedLock *found;

	LWLockAcquire(&locks->lock, LW_EXCLUSIVE);
	found = hash_search(locks_names, key, HASH_FIND, NULL);
	if (found != NULL && found->pid == MyProcPid)
	{
		locks_unlink(found);
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
	hash_seq_init(&scan, locks_names);
	while ((entry = hash_seq_search(&scan)) != NULL)
		if (entry->pid == MyProcPid)
			locks_unlink(entry);
	LWLockRelease(&locks->lock);
	locks_of_session = 0;
}

/* Removes the entries of this session whose locks were released in another way, and counts the others. */
static void
locks_forget_released(LocksHolds holds)
{
	int count, kept = 0;
	NamedLock *entries = locks_table_read_all(MyProcPid, &count);

	for (int i = 0; i < count; i++)
	{
		if (holds(&entries[i].key))
			kept++;
		else
			locks_table_remove(&entries[i].key);
	}
	locks_of_session = kept;
	pfree(entries);
}

/* ---- writing ---- */

static int64
locks_now_ms(void)
{
	instr_time now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MILLISEC(now);
}

int
locks_table_turn(const NamedLock *entry, int ms, int most_ms)
{
	int64 now = locks_now_ms(), end = now + ms;
	NamedLock *found;

	LWLockAcquire(&locks->lock, LW_EXCLUSIVE);
	found = hash_search(locks_names, &entry->key, HASH_FIND, NULL);
	if (found != NULL && found->number == entry->number)
		end = found->turn = Min(Max(found->turn, now) + ms, now + most_ms);
	LWLockRelease(&locks->lock);
	return (int) (end - now);
}

typedef enum LocksRefusal
{
	LOCKS_TAKEN,
	LOCKS_ROLE_IS_FULL,
	LOCKS_ARE_FULL
} LocksRefusal;

/* Whether the role may have one more entry. Caller must hold the lock. */
static LocksRefusal
locks_refuse(Oid role, bool privileged)
{
	int free = LOCKS_MAX - locks->count - (privileged ? 0 : LOCKS_RESERVED);

	if (free <= 0)
		return LOCKS_ARE_FULL;
	return privileged || locks_count_of(role) < free ? LOCKS_TAKEN : LOCKS_ROLE_IS_FULL;
}

/* Enters or replaces the entry. *own: it was this session's. */
static LocksRefusal
locks_enter(const NamedLockKey *key, int64 number, Oid role, bool privileged, bool *own)
{
	NamedLock *entry = hash_search(locks_names, key, HASH_FIND, NULL);
	LocksRefusal refusal;

	*own = entry != NULL && entry->pid == MyProcPid;
	if (entry != NULL && !*own)
	{
		locks_unlink(entry);
		entry = NULL;
	}
	if (entry == NULL)
	{
		refusal = locks_refuse(role, privileged);
		if (refusal != LOCKS_TAKEN)
			return refusal;
		entry = hash_search(locks_names, key, HASH_ENTER_NULL, NULL);
		if (entry == NULL)
			return LOCKS_ARE_FULL;
		locks->count++;
	}
	else
		locks_count_add(entry->role, -1);
	locks_count_add(role, 1);
	entry->number = number;
	entry->pid = MyProcPid;
	entry->role = role;
	entry->since = GetCurrentTimestamp();
	entry->turn = 0;
	return LOCKS_TAKEN;
}

void
locks_table_write(const NamedLockKey *key, int64 number, LocksHolds holds)
{
	Oid role = GetSessionUserId();
	bool privileged = permission_is_gateway_role(role), own;
	LocksRefusal refusal;

	if (!locks_end_registered)
	{
		before_shmem_exit(locks_end_session, (Datum) 0);
		locks_end_registered = true;
	}
	if (locks_of_session >= LOCKS_SESSION_MAX)
		locks_forget_released(holds);
	if (locks_of_session >= LOCKS_SESSION_MAX)
		ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
						errmsg("a session holds at most %d locks with names", LOCKS_SESSION_MAX)));
	LWLockAcquire(&locks->lock, LW_EXCLUSIVE);
	refusal = locks_enter(key, number, role, privileged, &own);
	LWLockRelease(&locks->lock);
	if (refusal == LOCKS_TAKEN)
		locks_of_session += own ? 0 : 1;
	else if (refusal == LOCKS_ROLE_IS_FULL)
		ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
						errmsg("role \"%s\" holds too many locks with names", GetUserNameFromId(role, false)),
						errdetail("A role holds at most as many as are still free for it and others."),
						errhint("Unlock names that are not needed.")));
	else
		ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
						errmsg("too many locks with names are held: %d",
							   privileged ? LOCKS_MAX : LOCKS_MAX - LOCKS_RESERVED)));
}
