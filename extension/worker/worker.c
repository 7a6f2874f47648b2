/*
 * worker.c - writes checkpoints of the sheets of one database, and checks them, until nothing more is due there; see
 * worker.h.
 */
#include "postgres.h"

#include "access/xact.h"
#include "support/ckptqueue.h"
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
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "worker/worker.h"

#define WORKER_SHEETS	   1000	   /* that are looked at in one transaction of a search */
#define WORKER_LOCK_MS	   400	   /* a lock is waited for at most so long, or for less than half of deadlock_timeout */
#define WORKER_RETRY_MS	   5000	   /* after a first failure, and twice as long after each next one */
#define WORKER_RETRY_MOST  3600000 /* ms */
#define WORKER_RETRY_STEPS 10

static int worker_slot = -1;
static CkptEnd worker_end = CKPT_END_FAILED;
static char worker_database[NAMEDATALEN];
static MemoryContext worker_context = NULL;

/* ---- beginning and end ---- */

static void
worker_leave(int code, Datum arg)
{
	ckptqueue_leave(worker_slot, worker_end);
}

static void
worker_set(const char *name, const char *value)
{
	SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
}

/* What the database or the role sets for its sessions is not meant for us. */
static void
worker_settings(void)
{
	char lock_timeout[16];

	snprintf(lock_timeout, sizeof(lock_timeout), "%d", Max(Min(DeadlockTimeout / 2 - 1, WORKER_LOCK_MS), 1));
	worker_set("lock_timeout", lock_timeout);
	worker_set("statement_timeout", "0");
	worker_set("idle_in_transaction_session_timeout", "0");
	worker_set("default_transaction_isolation", "read committed");
	worker_set("default_transaction_read_only", "off");
	worker_set("search_path", "");
	worker_set("application_name", "pg_sheet worker");
}

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

/* For messages that are written when no catalog can be read. */
static void
worker_note_database(void)
{
	worker_begin();
	strlcpy(worker_database, get_database_name(MyDatabaseId), sizeof(worker_database));
	worker_commit();
}

/* May have been dropped since we looked last: then nothing is left to do. */
static bool
worker_has_extension(void)
{
	bool there;

	worker_begin();
	there = OidIsValid(get_extension_oid("pg_sheet", true));
	worker_commit();
	if (!there)
		ckptqueue_discard(MyDatabaseId);
	return there;
}

/* ---- one sheet ---- */

static void
worker_log(const CkptItem *item, TimestampTz began, TimestampTz locked_at)
{
	TimestampTz now = GetCurrentTimestamp();

	ckptqueue_count_lock(now - locked_at);
	ereport(DEBUG1,
			(errmsg_internal("pg_sheet: checkpoint of sheet " INT64_FORMAT " (%s) took %.1f ms, %.1f ms under its lock",
							 item->sheet_id, ckpt_cause_name(item->cause), (now - began) / 1000.0,
							 (now - locked_at) / 1000.0)));
}

/* In a transaction of its own, which it commits. */
static void
worker_write(const CkptItem *item)
{
	JournalVersionCall call = {item->sheet_id, item->seq, item->cause, ckptqueue_interval};
	TimestampTz began = GetCurrentTimestamp(), due = 0, locked_at = 0;
	JournalVersion result;

	worker_begin();
	result = journal_save_version(&call, &due, &locked_at);
	worker_commit();
	if (result == JOURNAL_VERSION_EARLY)
	{
		ckptqueue_retry(worker_slot, item, due, item->failures);
		return;
	}
	if (result == JOURNAL_VERSION_MADE)
		worker_log(item, began, locked_at);
	ckptqueue_settle(worker_slot, item, item->seq);
}

/* Briefly, in a transaction of its own. What is logged as repaired is committed. */
static void
worker_check(const CkptItem *item)
{
	FsckCall call = {.sheet_id = item->sheet_id, .repair = true, .clients = true};
	FsckSummary summary;
	const char *why = item->check == CKPT_CHECK_CRASH ? "opened after a crash of the server"
													  : "taken over from a gateway that did not release it";

	worker_begin();
	MemoryContextSwitchTo(worker_context);
	fsck_summarize(&call, &summary);
	worker_commit();
	ckptqueue_count_check(summary.findings > 0);
	if (summary.findings == 0)
		ereport(DEBUG1, (errmsg_internal("pg_sheet: sheet " INT64_FORMAT " in database \"%s\", %s, is clean",
										 item->sheet_id, worker_database, why)));
	else
		ereport(LOG, (errmsg("pg_sheet: sheet " INT64_FORMAT " in database \"%s\", %s: findings: %d, repaired: %d",
							 item->sheet_id, worker_database, why, summary.findings, summary.repaired),
					  errdetail_internal("%s", summary.lines.data)));
	ckptqueue_settle_check(worker_slot, item);
}

/* A check is repeated only when the sheet was busy: what ends it by an error would do so again. */
static void
worker_check_failed(const CkptItem *item, const ErrorData *error)
{
	ereport(LOG, (errcode(error->sqlerrcode),
				  errmsg("pg_sheet: sheet " INT64_FORMAT " in database \"%s\" could not be checked: %s", item->sheet_id,
						 worker_database, error->message),
				  error->detail == NULL ? 0 : errdetail_internal("%s", error->detail),
				  errhint("Check it with sheet.fsck(" INT64_FORMAT ").", item->sheet_id)));
	ckptqueue_settle_check(worker_slot, item);
}

/* The error is logged, and the sheet is tried again, later with each time. One that is just busy is no error. */
static void
worker_failed(const CkptItem *item)
{
	const char *what = item->check != CKPT_CHECK_NONE ? "check" : "checkpoint";
	uint32 failures = Min(item->failures + 1, WORKER_RETRY_STEPS);
	int64 delay = Min((int64) WORKER_RETRY_MS << (failures - 1), WORKER_RETRY_MOST);
	ErrorData *error;

	MemoryContextSwitchTo(worker_context);
	error = CopyErrorData();
	HOLD_INTERRUPTS();
	AbortOutOfAnyTransaction();
	FlushErrorState();
	RESUME_INTERRUPTS();
	if (error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE || error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED)
		ereport(DEBUG1, (errmsg_internal("pg_sheet: sheet " INT64_FORMAT " is busy, its %s is put off: %s",
										 item->sheet_id, what, error->message)));
	else if (item->check != CKPT_CHECK_NONE)
	{
		worker_check_failed(item, error);
		return;
	}
	else
	{
		ckptqueue_count_failure();
		ereport(LOG, (errcode(error->sqlerrcode),
					  errmsg("pg_sheet: no checkpoint of sheet " INT64_FORMAT " in database \"%s\": %s", item->sheet_id,
							 worker_database, error->message),
					  error->detail == NULL ? 0 : errdetail_internal("%s", error->detail),
					  errhint("It is tried again in %d seconds.", (int) (delay / 1000))));
	}
	ckptqueue_retry(worker_slot, item, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), delay), failures);
}

static void
worker_serve(const CkptItem *item)
{
	bool check = item->check != CKPT_CHECK_NONE;
	char activity[64];

	snprintf(activity, sizeof(activity), "%s of sheet " INT64_FORMAT, check ? "check" : "checkpoint", item->sheet_id);
	pgstat_report_activity(STATE_RUNNING, activity);
	PG_TRY();
	{
		if (check)
			worker_check(item);
		else
			worker_write(item);
	}
	PG_CATCH();
	{
		worker_failed(item);
	}
	PG_END_TRY();
	MemoryContextReset(worker_context);
	MemoryContextSwitchTo(worker_context);
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* Between two sheets. */
static void
worker_pause(void)
{
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

static void
worker_serve_queue(void)
{
	CkptItem item;

	while (worker_has_extension() && ckptqueue_take(worker_slot, &item))
	{
		worker_serve(&item);
		worker_pause();
	}
}

/* ---- searching ---- */

static bool
worker_log_is_long(int64 sheet_id, CkptItem *item)
{
	int64 last_seq;
	bool is_long = journal_log_is_long(sheet_id, ckptqueue_edits, (int64) ckptqueue_kilobytes * 1024, &last_seq);

	*item = (CkptItem){.database = MyDatabaseId, .sheet_id = sheet_id, .seq = last_seq, .cause = CKPT_BY_LOG};
	return is_long;
}

/* The next sheets after *after whose log is long, into items; false when there are no more sheets. */
static bool
worker_search_some(int64 *after, CkptItem *items, int *count)
{
	int64 *ids;
	int nids;

	*count = 0;
	worker_begin();
	ids = journal_list_sheets(*after, WORKER_SHEETS, &nids);
	for (int i = 0; i < nids; i++)
	{
		*count += worker_log_is_long(ids[i], &items[*count]);
		*after = ids[i];
	}
	worker_commit();
	return nids > 0;
}

/* Writes checkpoints of all sheets whose log is longer than it should be. What others ask for meanwhile does not wait
 * for the end. An error here ends the worker. */
static void
worker_search(void)
{
	CkptItem *items = MemoryContextAlloc(TopMemoryContext, sizeof(CkptItem) * WORKER_SHEETS);
	int64 after = PG_INT64_MIN;
	int count;

	pgstat_report_activity(STATE_RUNNING, "search for long logs");
	while (worker_search_some(&after, items, &count))
	{
		for (int i = 0; i < count; i++)
		{
			worker_serve(&items[i]);
			worker_pause();
		}
		MemoryContextReset(worker_context);
		worker_pause();
		worker_serve_queue();
		pgstat_report_activity(STATE_RUNNING, "search for long logs");
	}
	pfree(items);
}

void
sheet_worker_main(Datum arg)
{
	Oid database;
	bool rescan;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	worker_slot = ckptqueue_enter(DatumGetInt32(arg), &database, &rescan);
	if (worker_slot < 0)
		proc_exit(0);
	before_shmem_exit(worker_leave, (Datum) 0);
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	worker_settings();
	worker_context = AllocSetContextCreate(TopMemoryContext, "pg_sheet worker", ALLOCSET_DEFAULT_SIZES);
	worker_note_database();
	worker_end = CKPT_END_LEFT;
	if (rescan && worker_has_extension())
		worker_search();
	worker_serve_queue();
	worker_end = CKPT_END_FINISHED;
	proc_exit(0);
}
