/*
 * database_drop.c - what shared memory knows of a database ends with it.
 *
 * Sheets are known by their database's number and by that of the log's file, and both can come again: CREATE DATABASE
 * takes a number (OID = ...), and copies of one template have files of the same numbers. What was known of the sheets
 * of a dropped database would be shown as those of the next one, and its log be continued. It is forgotten when nobody
 * can be connected any more, and nobody can connect yet: before the transaction commits.
 */
#include "postgres.h"

#include "access/xact.h"
#include "cache.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "database_drop.h"
#include "log_tip.h"

static object_access_hook_type database_next_hook = NULL;
static Oid database_dropped = InvalidOid; /* by this transaction: DROP DATABASE has one of its own */

/* Others may be connected yet: the statement ends them afterwards, or fails. */
static void
database_object_access(ObjectAccessType access, Oid catalog, Oid object, int sub_object, void *arg)
{
	if (database_next_hook != NULL)
		database_next_hook(access, catalog, object, sub_object, arg);
	if (access == OAT_DROP && catalog == DatabaseRelationId)
		database_dropped = object;
}

static void
database_xact_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT && OidIsValid(database_dropped))
	{
		if (cache_enabled())
			cache_forget_database(database_dropped);
		log_tip_forget_database(database_dropped);
	}
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		database_dropped = InvalidOid;
}

void
database_drop_init(void)
{
	database_next_hook = object_access_hook;
	object_access_hook = database_object_access;
	RegisterXactCallback(database_xact_callback, NULL);
}
