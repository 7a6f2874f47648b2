/* usernames.h - names of accounts by uid, for scans of edits and versions. */
#ifndef USERNAMES_H
#define USERNAMES_H

#include "postgres.h"
#include "utils/snapshot.h"

typedef struct Usernames
{
	Snapshot snapshot; /* must outlive this */
	MemoryContext context;
	struct UsernameEntry *entries; /* a direct-mapped cache; NULL: empty */
} Usernames;

/* Allocates in the current memory context. */
extern void usernames_init(Usernames *names, Snapshot snapshot);
/* The account's name, of guests that of their link, valid until the next call; NULL for the system (uid 0) and for
 * accounts and links that are gone. */
extern text *usernames_get(Usernames *names, int64 uid);

/* Whether guests may have the name, that is the label of links, of which several may have the same. */
extern bool usernames_is_of_links(text *name);
/* The account of this name. Returns false if there is none. */
extern bool usernames_find(text *name, int64 *uid);

#endif
