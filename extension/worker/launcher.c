/*
 * launcher.c - starts a worker in each database that has sheets to write checkpoints of; see worker.h.
 *
 * What it knows of its workers, and which databases are still to be searched, is in its own memory: a launcher that
 * ends by an error is started again and begins with a search of all databases.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "support/ckptqueue.h"
#include "compat.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "worker/worker.h"

#define LAUNCHER_RESTART_SECONDS 5
#define LAUNCHER_WATCH_MS		 250   /* between looks whether a worker is in the way */
#define LAUNCHER_WAIT_MS		 1000  /* until a database that is locked is tried again, or a start that was refused */
#define LAUNCHER_FAILED_MS		 60000 /* after a worker that could not even begin */
#define LAUNCHER_SEARCH_TRIES	 10

typedef struct LauncherWorker
{
	BackgroundWorkerHandle *handle; /* NULL: none in this slot */
	Oid database;
	bool rescan;
	int tries;
} LauncherWorker;

/* A database that is to be searched for long logs. */
typedef struct LauncherSearch
{
	Oid database;
	int tries; /* that have failed */
	TimestampTz due;
} LauncherSearch;

static LauncherWorker workers[CKPTQUEUE_WORKERS];
static LauncherSearch *searches = NULL;
static int nsearches = 0;

void
worker_register(void)
{
	BackgroundWorker worker = {.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
							   .bgw_start_time = BgWorkerStart_RecoveryFinished,
							   .bgw_restart_time = LAUNCHER_RESTART_SECONDS,
							   .bgw_name = "pg_sheet launcher",
							   .bgw_type = "pg_sheet launcher",
							   .bgw_library_name = "pg_sheet",
							   .bgw_function_name = "sheet_launcher_main"};

	if (!IsBinaryUpgrade)
		RegisterBackgroundWorker(&worker);
}

/* ---- databases ---- */

/* Does somebody want the database for himself? */
static bool
launcher_is_locked(Oid database)
{
	LOCKTAG tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
	/* What a session takes that is about to connect. */
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	(void) LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

static bool
launcher_may_connect(Oid database)
{
	HeapTuple tuple;
	bool may;

	StartTransactionCommand();
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
	may = HeapTupleIsValid(tuple) && ((Form_pg_database) GETSTRUCT(tuple))->datallowconn;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	CommitTransactionCommand();
	return may;
}

static void
launcher_add_search(Oid database, int tries, TimestampTz due)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	Size size = sizeof(LauncherSearch) * (nsearches + 1);

	searches = searches == NULL ? palloc(size) : repalloc(searches, size);
	searches[nsearches++] = (LauncherSearch){database, tries, due};
	MemoryContextSwitchTo(old);
}

/* All databases that people can connect to. Templates have no sheets that anybody edits. */
static void
launcher_plan_searches(void)
{
	Relation rel;
	TableScanDesc scan;
	HeapTuple tuple;

	nsearches = 0;
	StartTransactionCommand();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database row = (Form_pg_database) GETSTRUCT(tuple);

		if (row->datallowconn && !row->datistemplate)
			launcher_add_search(row->oid, 0, 0);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
}

/* ---- workers ---- */

static bool
launcher_start(Oid database, bool rescan, int tries)
{
	BackgroundWorker worker = {.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
							   .bgw_start_time = BgWorkerStart_RecoveryFinished,
							   .bgw_restart_time = BGW_NEVER_RESTART,
							   .bgw_name = "pg_sheet worker",
							   .bgw_type = "pg_sheet worker",
							   .bgw_library_name = "pg_sheet",
							   .bgw_function_name = "sheet_worker_main",
							   .bgw_notify_pid = MyProcPid};
	int32 ticket;
	int slot = ckptqueue_assign(database, rescan, &ticket);
	MemoryContext old;

	if (slot < 0)
		return false;
	workers[slot] = (LauncherWorker){NULL, database, rescan, tries};
	worker.bgw_main_arg = Int32GetDatum(ticket);
	old = MemoryContextSwitchTo(TopMemoryContext);
	if (!RegisterDynamicBackgroundWorker(&worker, &workers[slot].handle))
		workers[slot].handle = NULL;
	MemoryContextSwitchTo(old);
	if (workers[slot].handle != NULL)
		return true;
	(void) ckptqueue_release(slot);
	ereport(DEBUG1, (errmsg_internal("no background worker is free for pg_sheet: max_worker_processes is reached")));
	return false;
}

/* Its worker has ended. What it has left in the queue is due again by itself; a search is repeated. */
static void
launcher_reap(int slot)
{
	LauncherWorker *worker = &workers[slot];
	CkptEnd end = ckptqueue_release(slot);
	bool wait = end == CKPT_END_LEFT || launcher_is_locked(worker->database);
	TimestampTz later =
		TimestampTzPlusMilliseconds(GetCurrentTimestamp(), wait ? LAUNCHER_WAIT_MS : LAUNCHER_FAILED_MS);

	pfree(worker->handle);
	worker->handle = NULL;
	if (end == CKPT_END_FINISHED)
		return;
	ckptqueue_put_off(worker->database, later);
	if (worker->rescan && worker->tries + 1 < LAUNCHER_SEARCH_TRIES)
		launcher_add_search(worker->database, worker->tries + 1, later);
}

/* Reaps those that have ended, and ends those that are in somebody's way. Returns how many there are. */
static int
launcher_watch(void)
{
	int running = 0;

	for (int i = 0; i < CKPTQUEUE_WORKERS; i++)
	{
		LauncherWorker *worker = &workers[i];
		pid_t pid;

		if (worker->handle == NULL)
			continue;
		if (GetBackgroundWorkerPid(worker->handle, &pid) == BGWH_STOPPED)
		{
			launcher_reap(i);
			continue;
		}
		running++;
		if (launcher_is_locked(worker->database))
		{
			ereport(DEBUG1,
					(errmsg_internal("pg_sheet worker leaves database %u to whoever has locked it", worker->database)));
			TerminateBackgroundWorker(worker->handle);
		}
	}
	return running;
}

/* ---- the loop ---- */

static bool
launcher_has_worker(Oid database)
{
	for (int i = 0; i < CKPTQUEUE_WORKERS; i++)
		if (workers[i].handle != NULL && workers[i].database == database)
			return true;
	return false;
}

/* A database that is to be searched now. One that has a worker waits for its end, which wakes us. */
static Oid
launcher_due_search(TimestampTz now, TimestampTz *next)
{
	for (int i = 0; i < nsearches; i++)
	{
		if (launcher_has_worker(searches[i].database))
			continue;
		if (searches[i].due <= now)
			return searches[i].database;
		*next = *next == 0 ? searches[i].due : Min(*next, searches[i].due);
	}
	return InvalidOid;
}

/* Takes the database out of those that are to be searched. */
static bool
launcher_take_search(Oid database, LauncherSearch *search)
{
	for (int i = 0; i < nsearches; i++)
	{
		if (searches[i].database != database)
			continue;
		*search = searches[i];
		searches[i] = searches[--nsearches];
		return true;
	}
	return false;
}

/* Starts a worker if there is work for one and it can be done now. False: *next is when to look again (0: never). */
static bool
launcher_start_next(TimestampTz *next)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz later = TimestampTzPlusMilliseconds(now, LAUNCHER_WAIT_MS);
	Oid database = ckptqueue_due_database(now, next);
	LauncherSearch search = {0};
	bool rescan;

	if (!OidIsValid(database))
		database = launcher_due_search(now, next);
	if (!OidIsValid(database))
		return false;
	rescan = launcher_take_search(database, &search);
	if (!launcher_may_connect(database))
		ckptqueue_discard(database);
	else if (launcher_is_locked(database) || !launcher_start(database, rescan, search.tries))
	{
		ckptqueue_put_off(database, later);
		if (rescan)
			launcher_add_search(database, search.tries, later);
	}
	return true;
}

static int
launcher_free_slots(int running)
{
	return CKPTQUEUE_WORKERS - running;
}

/* Starts what can be started. Returns for how many milliseconds to sleep, -1: until somebody wakes us. */
static long
launcher_turn(void)
{
	int running;
	TimestampTz next = 0;
	long sleep = -1;

	running = launcher_watch();
	if (ckptqueue_take_rescan())
		launcher_plan_searches();
	while (launcher_free_slots(running) > 0 && launcher_start_next(&next))
		running = launcher_watch();
	if (next != 0)
		sleep = Max(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next), 1);
	if (running > 0)
		sleep = sleep < 0 ? LAUNCHER_WATCH_MS : Min(sleep, LAUNCHER_WATCH_MS);
	return sleep;
}

/* A lower limit may make logs long that were not, a shorter interval makes sheets due. */
static void
launcher_reload(void)
{
	int edits = ckptqueue_edits, kilobytes = ckptqueue_kilobytes, interval = ckptqueue_interval;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	if (ckptqueue_edits != edits || ckptqueue_kilobytes != kilobytes || ckptqueue_interval != interval)
		ckptqueue_ask_rescan();
}

void
sheet_launcher_main(Datum arg)
{
	uint32 wait_event = compat_wait_event("PgSheetLauncher");

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	SetConfigOption("application_name", "pg_sheet launcher", PGC_USERSET, PGC_S_SESSION);
	ckptqueue_attach_launcher();
	while (!ShutdownRequestPending)
	{
		long sleep;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
			launcher_reload();
		sleep = launcher_turn();
		pgstat_report_activity(STATE_IDLE, NULL);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (sleep < 0 ? 0 : WL_TIMEOUT), sleep, wait_event);
	}
	/* Not 0: the postmaster starts us again unless it is ending itself. */
	proc_exit(1);
}
