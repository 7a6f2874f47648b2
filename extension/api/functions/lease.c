/*
 * lease.c - how long a session keeps its locks with names when its client is silent or gone.
 *
 * A session alone can release what it holds in the lock manager. So a lease is a matter of PostgreSQL's settings for
 * the end of such sessions. They are changed as SET does it: a rollback, RESET ALL and DISCARD ALL undo the change. A
 * setting that is shorter already stays. A rollback ends a lease that the transaction has begun, and releases what was
 * taken under it.
 */
#include "postgres.h"

#include "api/functions/lease.h"
#include "access/xact.h"
#include "nodes/pg_list.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"

static const struct LeaseSetting
{
	const char *name;
	const int *value; /* 0: unlimited */
	int share;		  /* of the lease */
	int unit;		  /* in ms */
} settings[] = {
	{"idle_session_timeout", &IdleSessionTimeout, 1, 1},
	{"idle_in_transaction_session_timeout", &IdleInTransactionSessionTimeout, 1, 1},
	{"client_connection_check_interval", &client_connection_check_interval, 3, 1},
	{"tcp_user_timeout", &tcp_user_timeout, 1, 1},
	{"tcp_keepalives_idle", &tcp_keepalives_idle, 3, 1000},
	{"tcp_keepalives_interval", &tcp_keepalives_interval, 3, 1000},
};

typedef struct Lease
{
	bool is_on;
	bool is_set[lengthof(settings)]; /* by a lease */
	int value[lengthof(settings)];
	int former[lengthof(settings)];
} Lease;

static Lease lease, committed;
static List *taken = NIL; /* names, in this transaction */
static void (*release_name)(const char *name);

static void
lease_on_transaction(XactEvent event, void *arg)
{
	ListCell *cell;

	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_PREPARE && event != XACT_EVENT_ABORT)
		return;
	if (event == XACT_EVENT_ABORT)
	{
		foreach (cell, taken)
			release_name(lfirst(cell));
		lease = committed;
	}
	committed = lease;
	taken = NIL; /* it is in the transaction's memory */
}

void
lease_took(const char *name)
{
	MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);

	taken = lappend(taken, pstrdup(name));
	MemoryContextSwitchTo(caller);
}

void
lease_gave_back(const char *name)
{
	ListCell *cell;

	foreach (cell, taken)
		if (strcmp(lfirst(cell), name) == 0)
		{
			taken = foreach_delete_current(taken, cell);
			return;
		}
}

/* Nobody else has set it since. */
static bool
lease_has_set(int i)
{
	return lease.is_set[i] && *settings[i].value == lease.value[i];
}

/* value: NULL for the default. */
static void
lease_set(int i, const char *value)
{
	(void) set_config_option(settings[i].name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SET, true, 0, false);
}

bool
lease_is_on(void)
{
	return lease.is_on;
}

void
lease_begin(int ms, void (*release)(const char *name))
{
	static bool registered = false;
	char text[16];

	if (IsTransactionBlock())
		ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
						errmsg("a lock with a lease cannot be taken in a transaction block"),
						errdetail("A rollback would end the lease."), errhint("Take the lock before BEGIN.")));
	if (!registered)
		RegisterXactCallback(lease_on_transaction, NULL);
	registered = true;
	release_name = release;
	lease.is_on = true;
	for (int i = 0; i < lengthof(settings); i++)
	{
		int value = Max(ms / settings[i].share / settings[i].unit, 1);

		if (*settings[i].value != 0 && *settings[i].value <= value)
			continue;
		if (!lease_has_set(i))
			lease.former[i] = *settings[i].value;
		lease.is_set[i] = true;
		lease.value[i] = value;
		snprintf(text, sizeof(text), "%d", value);
		lease_set(i, text);
	}
}

void
lease_end(void)
{
	char text[16];

	for (int i = 0; i < lengthof(settings); i++)
	{
		const char *by_default = GetConfigOptionResetString(settings[i].name);

		if (!lease_has_set(i))
			continue;
		snprintf(text, sizeof(text), "%d", lease.former[i]);
		lease_set(i, strcmp(text, by_default) == 0 ? NULL : text);
	}
	lease = (Lease){0};
}
