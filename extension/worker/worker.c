/*
 * worker.c - background workers that make versions, so that opening a sheet reads one version and a short segment, and
 * that check sheets after a crash (journal/store/recheck.c).
 *
 * The launcher (launcher.c) starts a worker for a database with a due item of the queue. The worker serves the items of
 * its database until nothing more is due there, and ends. A search of the database for long segments is an item, too.
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

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "journal/fsck/fsck.h"
#include "journal/journal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "support/workqueue.h"
#include "tcop/tcopprot.h"
#include "timer/timer.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "worker/worker.h"

#define WORKER_SHEETS		1000 /* are searched in one transaction */
#define WORKER_LOCK_MS		400	 /* limit of a wait for a lock; also less than half of deadlock_timeout */
#define WORKER_RETRY_MS		5000 /* after a first failure; doubled after each next one ... */
#define WORKER_RETRY_MAX_MS WORKQUEUE_DELAY_MAX_MS /* ... up to this */
#define WORKER_RETRY_STEPS	10

/* ---- transactions ---- */

static char worker_database[NAMEDATALEN];	/* "": not connected yet */
static MemoryContext worker_context = NULL; /* of one item */

void
worker_begin(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
}

void
worker_commit(void)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(true);
}

ErrorData *
worker_abort(MemoryContext context)
{
	ErrorData *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	HOLD_INTERRUPTS();
	AbortOutOfAnyTransaction();
	FlushErrorState();
	RESUME_INTERRUPTS();
	return error;
}

/* Returns false, and discards what is to be done in the database, once the extension has been dropped. */
bool
worker_has_extension(void)
{
	bool found;

	worker_begin();
	found = OidIsValid(get_extension_oid("pg_sheet", true));
	worker_commit();
	if (!found)
	{
		workqueue_discard(MyDatabaseId);
		timer_discard(MyDatabaseId);
	}
	return found;
}

/* ---- one item ---- */

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
	ErrorData *error = worker_abort(worker_context);

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

/* ---- beginning and end ---- */

/* A database in which no worker can start is not tried again at once. */
static void
worker_exit(int code, Datum arg)
{
	if (worker_database[0] == '\0')
		workqueue_put_off(DatumGetObjectId(arg), WORKER_FAILED_MS);
}

void
worker_settings(const char *name)
{
	char lock_timeout[16];
	const char *const settings[][2] = {{"lock_timeout", lock_timeout},
									   {"statement_timeout", "0"},
									   {"idle_in_transaction_session_timeout", "0"},
									   {"default_transaction_isolation", "read committed"},
									   {"default_transaction_read_only", "off"},
									   {"search_path", ""},
									   {"application_name", name}};

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
	worker_settings("pg_sheet worker");
	worker_context = AllocSetContextCreate(TopMemoryContext, "pg_sheet worker", ALLOCSET_DEFAULT_SIZES);
	worker_begin();
	strlcpy(worker_database, get_database_name(MyDatabaseId), sizeof(worker_database));
	worker_commit();
	worker_serve_queue(true);
	proc_exit(0);
}
