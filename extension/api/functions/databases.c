/*
 * databases.c - removes what shared memory has of a database when the database is dropped.
 *
 * Cached sheets, last entries of directories, the work queue and events are kept under the number of their database.
 * Another database may get this number (CREATE DATABASE ... OID, or after a wraparound of the counter). If both are
 * copies of one template, they have the same file numbers and sheet ids, and nothing would distinguish the new one from
 * the old one. So all of this is removed at the end of the transaction that drops a database. By then DROP DATABASE has
 * made sure that nobody is connected, and its lock keeps everybody out. An error after that leaves a database that can
 * only be dropped again, and only memory is lost.
 *
 * A database that is created may be a copy of one whose timer has entries, and one that is altered may have been a
 * template, whose timer is not read when the server starts. So its timer is read.
 *
 * A standby drops databases in recovery, without this hook, and has nothing to remove: in recovery there are no writers
 * and reads use private memory, so nothing is kept under the number of a database before the promotion.
 */
#include "postgres.h"

#include "access/xact.h"
#include "am/page/am_last.h"
#include "api/functions/databases.h"
#include "cache/cache.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "journal/follow/follow.h"
#include "support/workqueue.h"
#include "timer/timer.h"

static object_access_hook_type databases_next_hook = NULL;
static Oid databases_dropped = InvalidOid; /* by this transaction, which can drop one at most */
static Oid databases_looked = InvalidOid;  /* created or altered by this transaction: the last one */

/* The queue comes last, since removing sheets from the cache may add to it. */
static void
databases_xact_callback(XactEvent event, void *arg)
{
	Oid database = databases_dropped;

	if (event == XACT_EVENT_COMMIT && OidIsValid(databases_looked))
	{
		timer_look(databases_looked);
		workqueue_wake();
	}
	if (event != XACT_EVENT_PRE_COMMIT)
		databases_looked = InvalidOid;
	databases_dropped = InvalidOid;
	if (event != XACT_EVENT_PRE_COMMIT || !OidIsValid(database))
		return;
	if (cache_enabled())
		cache_forget_database(database);
	am_last_forget_database(database);
	timer_discard(database);
	workqueue_discard(database);
}

/* At OAT_DROP the database may still turn out to be in use, so it is only remembered. It is locked, and the launcher
 * ends the workers in it. */
static void
databases_object_access(ObjectAccessType access, Oid catalog, Oid object, int sub_object, void *arg)
{
	if (databases_next_hook != NULL)
		databases_next_hook(access, catalog, object, sub_object, arg);
	if (catalog != DatabaseRelationId)
		return;
	if (access == OAT_DROP)
	{
		databases_dropped = object;
		workqueue_wake();
	}
	if (access == OAT_POST_CREATE || access == OAT_POST_ALTER)
	{
		databases_looked = object;
		follow_publish_database(object);
	}
}

void
databases_init(void)
{
	databases_next_hook = object_access_hook;
	object_access_hook = databases_object_access;
	RegisterXactCallback(databases_xact_callback, NULL);
}
