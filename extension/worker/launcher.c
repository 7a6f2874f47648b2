/*
 * launcher.c - starts background workers in the databases that have something for them to do.
 *
 * One launcher per server starts after recovery, so a standby has none before it is promoted. It is connected to no
 * database and sleeps until its latch is set: by whoever adds an item to the queue (workqueue.c) or an entry to the
 * timer (timer.c), by PostgreSQL when a worker starts or ends, by SIGHUP. For each database with a due item it starts a
 * worker (worker.c), WORKER_MAX at most, and for each with a due entry of the timer a worker of the timer (timers.c),
 * TIMER_WORKER_MAX at most. A worker serves its database until nothing more is due there, and ends. So no process stays
 * connected to an idle database. The launcher itself removes pastes that have ended (paste.c).
 *
 *   Searches: at the launcher's start (after a crash or a promotion), when the queue was full, and when a setting has
 *   changed, every database is searched for long segments. A search is an item of the queue. At the launcher's start
 *   the timer of every database is read, too.
 *
 *   DROP DATABASE, CREATE DATABASE ... TEMPLATE and others that need a database for themselves lock it and wait five
 *   seconds for it to be empty. While workers run, the launcher checks four times a second whether somebody has locked
 *   their databases, and terminates them. While there are workers of the timer alone, which mostly sleep, it checks
 *   every two seconds; DROP DATABASE wakes it (databases.c).
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "compat.h"
#include "miscadmin.h"
#include "paste/paste.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "support/workqueue.h"
#include "tcop/tcopprot.h"
#include "timer/timer.h"
#include "utils/guc.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "worker/worker.h"

#define WORKER_MAX		 3
#define TIMER_WORKER_MAX 2
#define LAUNCHER_SLOTS	 (WORKER_MAX + TIMER_WORKER_MAX)

#define LAUNCHER_RESTART_SECONDS 5
#define LAUNCHER_WATCH_MS		 250  /* between two checks whether a worker's database is locked */
#define LAUNCHER_WATCH_TIMER_MS	 2000 /* the same, if there are workers of the timer alone */
#define LAUNCHER_WAIT_MS		 1000 /* after the end of a worker, and for a database that is locked */
#define LAUNCHER_CLOCK_MS		 5000 /* the longest sleep while there are timers, so that a step of the clock is seen */

/* The workers: those of the queue, then those of the timer. Of one that does not exist the handle is NULL and the
 * database InvalidOid. */
static BackgroundWorkerHandle *launcher_handles[LAUNCHER_SLOTS];
static Oid launcher_databases[LAUNCHER_SLOTS];

static bool
launcher_is_timer(int slot)
{
	return slot >= WORKER_MAX;
}

static BackgroundWorker
launcher_definition(const char *name, const char *function)
{
	BackgroundWorker worker = {.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
							   .bgw_start_time = BgWorkerStart_RecoveryFinished,
							   .bgw_library_name = "pg_sheet"};

	strlcpy(worker.bgw_name, name, sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, name, sizeof(worker.bgw_type));
	strlcpy(worker.bgw_function_name, function, sizeof(worker.bgw_function_name));
	return worker;
}

void
worker_register(void)
{
	BackgroundWorker launcher = launcher_definition("pg_sheet launcher", "sheet_launcher_main");

	launcher.bgw_restart_time = LAUNCHER_RESTART_SECONDS;
	if (!IsBinaryUpgrade)
		RegisterBackgroundWorker(&launcher);
}

/* Returns whether some session has locked the database for itself. Tries the lock that connecting sessions take. */
static bool
launcher_is_locked(Oid database)
{
	LOCKTAG tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	(void) LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

/* Queues a search of each database that is not a template, or has its timer read. Workers also serve databases that do
 * not allow connections. ALTER DATABASE has the timer read of what is not a template any more (databases.c). */
static void
launcher_visit_databases(void (*visit)(Oid database))
{
	Relation rel;
	TableScanDesc scan;
	HeapTuple tuple;

	StartTransactionCommand();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database row = (Form_pg_database) GETSTRUCT(tuple);

		if (!row->datistemplate)
			visit(row->oid);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
}

/* Returns false if the database does not exist, or its DROP DATABASE was interrupted (datconnlimit -2). */
static bool
launcher_may_connect(Oid database)
{
	HeapTuple tuple;
	bool may;

	StartTransactionCommand();
	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
	may = HeapTupleIsValid(tuple) && ((Form_pg_database) GETSTRUCT(tuple))->datconnlimit != -2;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	CommitTransactionCommand();
	return may;
}

static void
launcher_put_off(int slot, Oid database)
{
	if (launcher_is_timer(slot))
		timer_put_off(database, LAUNCHER_WAIT_MS);
	else
		workqueue_put_off(database, LAUNCHER_WAIT_MS);
}

/* Starts a worker in the database, or makes it wait. Discards the work of a database that cannot be connected to. */
static void
launcher_start(int slot, Oid database)
{
	static bool no_room_told = false;
	bool timer = launcher_is_timer(slot);
	BackgroundWorker worker = launcher_definition(timer ? "pg_sheet timer" : "pg_sheet worker",
												  timer ? "sheet_timer_main" : "sheet_worker_main");
	bool locked;

	if (!launcher_may_connect(database))
	{
		workqueue_discard(database);
		timer_discard(database);
		return;
	}
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	worker.bgw_main_arg = ObjectIdGetDatum(database);
	locked = launcher_is_locked(database);
	if (!locked && RegisterDynamicBackgroundWorker(&worker, &launcher_handles[slot]))
	{
		launcher_databases[slot] = database;
		no_room_told = false;
		return;
	}
	launcher_handles[slot] = NULL;
	launcher_put_off(slot, database);
	if (locked)
		ereport(DEBUG1, (errmsg_internal("pg_sheet: no worker in database %u: it is locked", database)));
	else
	{
		ereport(no_room_told ? DEBUG1 : LOG,
				(errmsg("pg_sheet: automatic versions and the timer wait, because no background worker can be started"),
				 errhint("Increase max_worker_processes, and restart the server.")));
		no_room_told = true;
	}
}

/* Forgets workers that have ended, and terminates those whose database somebody has locked. A worker of the timer has
 * said itself when the next one is needed. */
static void
launcher_watch(int slot)
{
	pid_t pid;

	if (GetBackgroundWorkerPid(launcher_handles[slot], &pid) == BGWH_STOPPED)
	{
		if (!launcher_is_timer(slot))
			launcher_put_off(slot, launcher_databases[slot]);
		pfree(launcher_handles[slot]);
		launcher_handles[slot] = NULL;
		launcher_databases[slot] = InvalidOid;
	}
	else if (launcher_is_locked(launcher_databases[slot]))
	{
		ereport(DEBUG1, (errmsg_internal("pg_sheet: terminating the worker in database %u, which is locked",
										 launcher_databases[slot])));
		TerminateBackgroundWorker(launcher_handles[slot]);
	}
}

/* Finds a database that needs a worker of the slot's sort. Lowers *next to the time at which one needs it. */
static Oid
launcher_due_database(int slot, TimestampTz *next)
{
	TimestampTz due = 0;
	Oid database;

	if (launcher_is_timer(slot))
		database = timer_due_database(launcher_databases + WORKER_MAX, TIMER_WORKER_MAX, &due);
	else
	{
		database = workqueue_due_database(launcher_databases, WORKER_MAX, &due);
		if (due == 0)
			due = DT_NOEND;
	}
	*next = Min(*next, due);
	return database;
}

/* Has workers of the timer make room if others wait for one. */
static void
launcher_make_room(void)
{
	TimestampTz next = DT_NOEND;
	bool crowded = OidIsValid(launcher_due_database(WORKER_MAX, &next));

	for (int slot = WORKER_MAX; slot < LAUNCHER_SLOTS; slot++)
		crowded &= launcher_handles[slot] != NULL;
	timer_set_crowded(crowded);
}

static long
launcher_sleep_ms(TimestampTz next, long most)
{
	return next == DT_NOEND ? most : Min(most, Max(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next), 1));
}

/* Removes some pastes that have ended, and starts every worker that can be started. Returns how many ms to sleep, or
 * -1: until the latch is set. */
static long
launcher_iterate(void)
{
	int workers = 0, timers = 0;
	TimestampTz next_work = DT_NOEND, next_timer = DT_NOEND;
	long sleep, sweep = paste_sweep();

	if (workqueue_take_request())
	{
		launcher_visit_databases(workqueue_add_search);
		workqueue_count(WORK_RESCANS, 1);
	}
	for (int slot = 0; slot < LAUNCHER_SLOTS; slot++)
		if (launcher_handles[slot] != NULL)
			launcher_watch(slot);
	for (int slot = 0; slot < LAUNCHER_SLOTS; slot++)
	{
		TimestampTz *next = launcher_is_timer(slot) ? &next_timer : &next_work;
		Oid database;

		while (launcher_handles[slot] == NULL && OidIsValid(database = launcher_due_database(slot, next)))
			launcher_start(slot, database);
		workers += !launcher_is_timer(slot) && launcher_handles[slot] != NULL;
		timers += launcher_is_timer(slot) && launcher_handles[slot] != NULL;
	}
	launcher_make_room();
	workqueue_set_workers(workers);
	sleep = launcher_sleep_ms(next_work, LONG_MAX);
	if (next_timer != DT_NOEND)
		sleep = launcher_sleep_ms(next_timer, Min(sleep, LAUNCHER_CLOCK_MS));
	if (workers > 0 || timers > 0)
		sleep = Min(sleep, workers > 0 ? LAUNCHER_WATCH_MS : LAUNCHER_WATCH_TIMER_MS);
	if (sweep >= 0)
		sleep = Min(sleep, sweep);
	return sleep == LONG_MAX ? -1 : sleep;
}

/* A lower limit makes more segments long, and a shorter interval makes sheets due. */
static void
launcher_reload(void)
{
	int edits = workqueue_edits, kilobytes = workqueue_kilobytes, interval = workqueue_interval;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	if (workqueue_edits != edits || workqueue_kilobytes != kilobytes || workqueue_interval != interval)
		workqueue_request_search();
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
	workqueue_attach_launcher();
	timer_attach_launcher();
	launcher_visit_databases(timer_look);
	while (!ShutdownRequestPending)
	{
		long sleep;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
			launcher_reload();
		sleep = launcher_iterate();
		pgstat_report_activity(STATE_IDLE, NULL);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (sleep < 0 ? 0 : WL_TIMEOUT), sleep, wait_event);
	}
	/* After exit code 1 the postmaster starts the launcher again, unless it is shutting down. */
	proc_exit(1);
}
