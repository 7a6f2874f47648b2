/*
 * usernames.h - names of accounts, beside edits and versions that tell their numbers.
 */
#ifndef USERNAMES_H
#define USERNAMES_H

#include "postgres.h"
#include "utils/snapshot.h"

typedef struct Usernames
{
	Snapshot snapshot; /* must outlive it */
	MemoryContext context;
	struct UsernameKept *kept; /* those that were asked for last, one for each hash; NULL: nobody has asked */
} Usernames;

/* Everything is in the current memory context. */
extern void usernames_init(Usernames *names, Snapshot snapshot);
/* The account's name, valid until the next call; NULL for the system (uid 0) and for accounts that are gone. */
extern text *usernames_get(Usernames *names, int64 uid);

/* The account of this name; false when there is none. */
extern bool usernames_find(text *name, int64 *uid);

#endif
