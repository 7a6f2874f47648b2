/*
 * locks_table.h - names that are locked, their numbers and their owners, in shared memory; see locks_table.c. Whether
 * an owner holds its lock is known to PostgreSQL's lock manager only (locks.c).
 */
#ifndef LOCKS_TABLE_H
#define LOCKS_TABLE_H

#include "postgres.h"
#include "datatype/timestamp.h"

#define LOCKS_SESSION_MAX 128 /* names of one session */
#define LOCK_NAME_MAX	  123 /* bytes */

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
	Oid role; /* of the session */
	TimestampTz since;
	int64 turn; /* ms of the monotonic clock: the end of the last turn of those that give a wrong number */
} NamedLock;

/* Whether this session holds the lock of a name. */
typedef bool (*LocksHolds)(const NamedLockKey *key);

/* Returns whether there is shared memory for locks with names. */
extern bool locks_table_exists(void);
/* Copies the entry. Returns false if there is none. */
extern bool locks_table_read(const NamedLockKey *key, NamedLock *entry);
/* Copies the entries of this database, of one session or of all (0). Palloced. */
extern NamedLock *locks_table_read_all(int pid, int *count);

/*
 * Makes this session the owner of the name. Caller must hold the lock of the name, so that a former owner does not.
 * 53400: the session, its role or the server has too many names. Names that holds() denies do not count.
 */
extern void locks_table_write(const NamedLockKey *key, int64 number, LocksHolds holds);
/*
 * Sessions that give a wrong number for this owner of the name wait in turns of `ms` each. Returns the time in ms until
 * the caller's turn ends, most_ms at most.
 */
extern int locks_table_turn(const NamedLock *entry, int ms, int most_ms);
/* Removes the entry if it is still this session's. */
extern void locks_table_remove(const NamedLockKey *key);

#endif
