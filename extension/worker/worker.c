/*
 * worker.c - background workers that make versions, so that opening a sheet reads one version and a short segment, and
 * that check sheets after a crash (journal/store/recheck.c).
 *
 * One launcher per server starts after recovery, so a standby has none before it is promoted. It is connected to no
 * database and sleeps until its latch is set: by whoever adds an item to the queue (workqueue.c), by PostgreSQL when a
 * worker starts or ends, by SIGHUP. For each database with a due item it starts a worker, WORKER_MAX at most. A worker
 * serves its database until nothing more is due there, and ends. So no process stays connected to an idle database.
 *
 *   Searches: at the launcher's start (after a crash or a promotion), when the queue was full, and when a setting has
 *   changed, every database is searched for long segments. A search is an item of the queue.
 *
 *   DROP DATABASE, CREATE DATABASE ... TEMPLATE and others that need a database for themselves lock it and wait five
 *   seconds for it to be empty. While workers run, the launcher checks four times a second whether somebody has locked
 *   their databases, and terminates them.
 *
 *   DROP EXTENSION waits for the version that is being written, as for any transaction. A worker waits for a lock for
 *   less than half of deadlock_timeout, so in a deadlock it is always the worker that gives way.
 *
 *   An error in one item is logged, the item is retried with increasing delays, and the next one is served. The items
 *   of a worker that dies stay queued. A worker that is killed restarts the server, as any backend, and the queue is
 *   lost; the search after the restart makes up for it. Sheets that were to be checked are queued when they are opened.
 *
 * Two workers in one database, as after a restart of the launcher, do no harm: each version and each repair is made
 * under the sheet lock, where the second finds nothing to do.
 *
 * Lock order of a worker: as for a writer (docs/design/journal.md). It takes one sheet's lock in a transaction.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "compat.h"
#include "journal/fsck/fsck.h"
#include "journal/journal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "support/workqueue.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "worker/worker.h"

#define WORKER_MAX			3
#define WORKER_SHEETS		1000 /* are searched in one transaction */
#define WORKER_LOCK_MS		400	 /* limit of a wait for a lock; also less than half of deadlock_timeout */
#define WORKER_RETRY_MS		5000 /* after a first failure; doubled after each next one ... */
#define WORKER_RETRY_MAX_MS WORKQUEUE_DELAY_MAX_MS /* ... up to this */
#define WORKER_RETRY_STEPS	10

#define LAUNCHER_RESTART_SECONDS 5
#define LAUNCHER_WATCH_MS		 250   /* between two checks whether a worker's database is locked */
#define LAUNCHER_WAIT_MS		 1000  /* after the end of a worker, and for a database that is locked */
#define LAUNCHER_FAILED_MS		 60000 /* after a worker that could not connect */

/* ---- the launcher ---- */

/* The launcher's workers. Of one that does not exist the handle is NULL and the database InvalidOid. */
static BackgroundWorkerHandle *launcher_handles[WORKER_MAX];
static Oid launcher_databases[WORKER_MAX];

static BackgroundWorker
worker_definition(const char *name, const char *function)
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
	BackgroundWorker launcher = worker_definition("pg_sheet launcher", "sheet_launcher_main");

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

/* Queues a search of each database that accepts connections and is not a template. */
static void
launcher_add_searches(void)
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

		if (row->datallowconn && !row->datistemplate)
			workqueue_add_search(row->oid);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	workqueue_count(WORK_RESCANS, 1);
}

/* Returns false if the database does not exist, or its DROP DATABASE was interrupted (datconnlimit -2). Workers also
 * serve databases that do not allow connections. */
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

/* Starts a worker in the database, or makes it wait. Discards the work of a database that cannot be connected to. */
static void
launcher_start(int slot, Oid database)
{
	static bool no_room_told = false;
	BackgroundWorker worker = worker_definition("pg_sheet worker", "sheet_worker_main");
	bool locked;

	if (!launcher_may_connect(database))
	{
		workqueue_discard(database);
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
	workqueue_put_off(database, LAUNCHER_WAIT_MS);
	if (locked)
		ereport(DEBUG1, (errmsg_internal("pg_sheet: no worker in database %u: it is locked", database)));
	else
	{
		ereport(no_room_told ? DEBUG1 : LOG,
				(errmsg("pg_sheet: automatic versions wait, because no background worker can be started"),
				 errhint("Increase max_worker_processes, and restart the server.")));
		no_room_told = true;
	}
}

/* Forgets workers that have ended, and terminates those whose database somebody has locked. */
static void
launcher_watch(int slot)
{
	pid_t pid;

	if (GetBackgroundWorkerPid(launcher_handles[slot], &pid) == BGWH_STOPPED)
	{
		workqueue_put_off(launcher_databases[slot], LAUNCHER_WAIT_MS);
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

/* Starts every worker that can be started. Returns how many ms to sleep, or -1: until the latch is set. */
static long
launcher_iterate(void)
{
	int running = 0;
	TimestampTz next = 0;
	long sleep = -1;

	if (workqueue_take_request())
		launcher_add_searches();
	for (int slot = 0; slot < WORKER_MAX; slot++)
		if (launcher_handles[slot] != NULL)
			launcher_watch(slot);
	for (int slot = 0; slot < WORKER_MAX; slot++)
	{
		Oid database;

		while (launcher_handles[slot] == NULL &&
			   OidIsValid(database = workqueue_due_database(launcher_databases, WORKER_MAX, &next)))
			launcher_start(slot, database);
		running += launcher_handles[slot] != NULL;
	}
	workqueue_set_workers(running);
	if (next != 0)
		sleep = Max(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next), 1);
	if (running > 0)
		sleep = sleep < 0 ? LAUNCHER_WATCH_MS : Min(sleep, LAUNCHER_WATCH_MS);
	return sleep;
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

/* ---- a worker: transactions ---- */

static char worker_database[NAMEDATALEN];	/* "": not connected yet */
static MemoryContext worker_context = NULL; /* of one item */

static void
worker_begin(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
}

static void
worker_commit(void)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(true);
}

/* Returns false, and discards the database's items, once the extension has been dropped. */
static bool
worker_has_extension(void)
{
	bool found;

	worker_begin();
	found = OidIsValid(get_extension_oid("pg_sheet", true));
	worker_commit();
	if (!found)
		workqueue_discard(MyDatabaseId);
	return found;
}

/* ---- a worker: one item ---- */

/* Makes a version in a transaction of its own. */
static void
worker_make_version(const WorkItem *item)
{
	JournalVersionCall call = {item->sheet_id, item->seq, item->cause, workqueue_interval};
	TimestampTz began = GetCurrentTimestamp(), due = 0, locked_at = 0;
	JournalVersion result;

	worker_begin();
	result = journal_save_version(&call, &due, &locked_at);
	worker_commit();
	if (result == JOURNAL_VERSION_EARLY)
	{
		workqueue_retry(item, due, item->failures);
		return;
	}
	if (result == JOURNAL_VERSION_MADE)
	{
		TimestampTz now = GetCurrentTimestamp();

		workqueue_count(WORK_LONGEST_LOCK, now - locked_at);
		ereport(DEBUG1, (errmsg_internal("pg_sheet: version of sheet " INT64_FORMAT
										 " (%s) took %.1f ms, %.1f ms under its lock",
										 item->sheet_id, version_cause_name(item->cause), (now - began) / 1000.0,
										 (now - locked_at) / 1000.0)));
	}
	workqueue_settle(item);
}

/* Checks a sheet briefly in a transaction of its own. Repairs are logged after the commit. */
static void
worker_check(const WorkItem *item)
{
	FsckCall call = {.sheet_id = item->sheet_id, .repair = true, .clients = true};
	FsckSummary summary;
	const char *cause = item->check == CHECK_AFTER_CRASH ? "opened after a crash of the server"
														 : "taken over from a gateway that did not release it";

	worker_begin();
	MemoryContextSwitchTo(worker_context);
	fsck_summarize(&call, &summary);
	worker_commit();
	workqueue_count(WORK_CHECKED, 1);
	workqueue_count(WORK_DAMAGED, summary.findings > 0);
	if (summary.findings == 0)
		ereport(DEBUG1, (errmsg_internal("pg_sheet: sheet " INT64_FORMAT " in database \"%s\", %s, is clean",
										 item->sheet_id, worker_database, cause)));
	else
		ereport(LOG, (errmsg("pg_sheet: sheet " INT64_FORMAT " in database \"%s\", %s: findings: %d, repaired: %d",
							 item->sheet_id, worker_database, cause, summary.findings, summary.repaired),
					  errdetail_internal("%s", summary.lines.data)));
	workqueue_settle(item);
}

static void worker_serve_queue(bool may_search);
static void worker_serve(const WorkItem *item);

/* Finds the next sheet after *after with a long segment. Looks at WORKER_SHEETS sheets, in one transaction. Returns
 * false when there are no more sheets; item->seq is 0 when none was found. */
static bool
worker_find_long(int64 *after, WorkItem *item)
{
	bool more = true;

	*item = (WorkItem){.database = MyDatabaseId, .cause = VERSION_BY_LENGTH};
	worker_begin();
	for (int i = 0; i < WORKER_SHEETS && item->seq == 0 && (more = fsck_next_sheet(after)); i++)
		item->seq = journal_long_segment(*after, workqueue_edits, (int64) workqueue_kilobytes * 1024);
	worker_commit();
	item->sheet_id = *after;
	return more;
}

/* Makes a version of every sheet with a long segment. Serves the other items of the queue in between. */
static void
worker_search(const WorkItem *search)
{
	int64 after = PG_INT64_MIN;
	WorkItem item;

	while (worker_has_extension() && worker_find_long(&after, &item))
	{
		if (item.seq != 0)
			worker_serve(&item);
		worker_serve_queue(false);
	}
	workqueue_settle(search);
}

/* Logs the current error and retries the item later. A busy sheet is not an error. A check is not retried after other
 * errors, since it would fail again. */
static void
worker_fail(const WorkItem *item, const char *what)
{
	uint32 failures = Min(item->failures + 1, WORKER_RETRY_STEPS);
	int64 delay = Min((int64) WORKER_RETRY_MS << (failures - 1), WORKER_RETRY_MAX_MS);
	bool check = item->check != CHECK_NONE;
	ErrorData *error;

	MemoryContextSwitchTo(worker_context);
	error = CopyErrorData();
	HOLD_INTERRUPTS();
	AbortOutOfAnyTransaction();
	FlushErrorState();
	RESUME_INTERRUPTS();
	if (error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE || error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED)
	{
		check = false;
		ereport(DEBUG1, (errmsg_internal("pg_sheet: %s in database \"%s\" is put off: %s", what, worker_database,
										 error->message)));
	}
	else
	{
		if (!check)
			workqueue_count(WORK_FAILURES, 1);
		ereport(LOG, (errcode(error->sqlerrcode),
					  errmsg("pg_sheet: %s in database \"%s\" failed: %s", what, worker_database, error->message),
					  error->detail == NULL ? 0 : errdetail_internal("%s", error->detail),
					  check ? errhint("Check it with sheet.fsck(" INT64_FORMAT ").", item->sheet_id)
							: errhint("It is retried in %d seconds.", (int) (delay / 1000))));
	}
	if (check)
		workqueue_settle(item);
	else
		workqueue_retry(item, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), delay), failures);
}

static void
worker_serve(const WorkItem *item)
{
	bool search = item->sheet_id == WORKQUEUE_SEARCH;
	char what[64];

	if (search)
		strlcpy(what, "search for long segments", sizeof(what));
	else
		snprintf(what, sizeof(what), "%s of sheet " INT64_FORMAT, item->check != CHECK_NONE ? "check" : "version",
				 item->sheet_id);
	pgstat_report_activity(STATE_RUNNING, what);
	PG_TRY();
	{
		if (search)
			worker_search(item);
		else if (item->check != CHECK_NONE)
			worker_check(item);
		else
			worker_make_version(item);
	}
	PG_CATCH();
	{
		worker_fail(item, what);
	}
	PG_END_TRY();
	MemoryContextReset(worker_context);
	MemoryContextSwitchTo(worker_context);
	pgstat_report_activity(STATE_IDLE, NULL);
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

static void
worker_serve_queue(bool may_search)
{
	WorkItem item;

	while (worker_has_extension() && workqueue_take(&item, may_search))
		worker_serve(&item);
}

/* ---- a worker: beginning and end ---- */

/* A database in which no worker can start is not tried again at once. */
static void
worker_exit(int code, Datum arg)
{
	if (worker_database[0] == '\0')
		workqueue_put_off(DatumGetObjectId(arg), LAUNCHER_FAILED_MS);
}

/* Overrides what the database or the role sets for its sessions. */
static void
worker_settings(void)
{
	char lock_timeout[16];
	const char *const settings[][2] = {{"lock_timeout", lock_timeout},
									   {"statement_timeout", "0"},
									   {"idle_in_transaction_session_timeout", "0"},
									   {"default_transaction_isolation", "read committed"},
									   {"default_transaction_read_only", "off"},
									   {"search_path", ""},
									   {"application_name", "pg_sheet worker"}};

	snprintf(lock_timeout, sizeof(lock_timeout), "%d", Max(Min(DeadlockTimeout / 2 - 1, WORKER_LOCK_MS), 1));
	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
}

void
sheet_worker_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	before_shmem_exit(worker_exit, arg);
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(arg), InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	worker_settings();
	worker_context = AllocSetContextCreate(TopMemoryContext, "pg_sheet worker", ALLOCSET_DEFAULT_SIZES);
	worker_begin();
	strlcpy(worker_database, get_database_name(MyDatabaseId), sizeof(worker_database));
	worker_commit();
	worker_serve_queue(true);
	proc_exit(0);
}
