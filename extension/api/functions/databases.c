/*
 * databases.c - what shared memory knows of a database goes with it.
 *
 * Cached sheets, tips of directories, sheets that wait for a version, and events are kept under the number of their
 * database. Another database may get this number (CREATE DATABASE ... OID, or when the counter has gone round), and
 * has, when both are copies of one template, the same numbers of files and the same ids of sheets: nothing would tell
 * it from the old one. So all of this is forgotten at the end of the transaction that drops a database. By then DROP
 * DATABASE has seen to it that nobody is there, and its lock keeps everybody out. An error that follows leaves a
 * database that can only be dropped again, and what is gone was memory.
 *
 * A standby, which drops databases without asking us, has nothing to forget: in recovery there are no writers, and
 * reads use private memory, so that nothing is kept under the number of a database before it is promoted.
 */
#include "postgres.h"

#include "access/xact.h"
#include "cache/cache.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "support/ckptqueue.h"
#include "api/functions/databases.h"
#include "journal/follow/follow.h"
#include "am/page/log_last.h"

static object_access_hook_type databases_next_hook = NULL;
static Oid databases_dropped = InvalidOid; /* by this transaction, which can drop one at most */
static bool databases_registered = false;

/* The queue comes last: who takes cells out of the cache may put their sheet there. */
static void
databases_forget(Oid database)
{
	if (cache_enabled())
		cache_forget_database(database);
	log_last_forget_database(database);
	ckptqueue_discard(database);
}

static void
databases_xact_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT && OidIsValid(databases_dropped))
		databases_forget(databases_dropped);
	databases_dropped = InvalidOid;
}

/* The hook comes before it is certain that the database can be dropped, and while others may still be there. */
static void
databases_note_drop(Oid database)
{
	if (!databases_registered)
		RegisterXactCallback(databases_xact_callback, NULL);
	databases_registered = true;
	databases_dropped = database;
}

static void
databases_object_access(ObjectAccessType access, Oid catalog, Oid object, int sub_object, void *arg)
{
	if (databases_next_hook != NULL)
		databases_next_hook(access, catalog, object, sub_object, arg);
	if (catalog != DatabaseRelationId)
		return;
	if (access == OAT_DROP)
		databases_note_drop(object);
	else if (access == OAT_POST_CREATE || access == OAT_POST_ALTER)
		follow_publish_database(object);
}

void
databases_init(void)
{
	databases_next_hook = object_access_hook;
	object_access_hook = databases_object_access;
}
