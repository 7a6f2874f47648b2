/*
 * timers.c - the worker of the timer: removes what has expired in its database, soon after its end.
 *
 * The launcher starts it when an entry of sheet.timer is due. It knows the entries of the next minute, from a scan of
 * the table's index, and is told by each transaction that commits a nearer one (timer.c). It sleeps until the first is
 * due, and ends when it knows none: the board (timer_board.h) has the time at which the launcher starts the next one.
 *
 * Entries that are due are served in batches of one kind. A batch is a transaction:
 *
 *   1. lock those of its entries that are in the table and due there. Rows that are locked are skipped, and tried
 * again.
 *   2. run the statement of the kind, which removes those objects that are over by its own comparison, and returns
 * those that are left, each with its end. An end that has come is that of an object in use. Null: there is more to
 *      remove, at once.
 *   3. delete the entries of the objects that are not left, and give the others their next time.
 *
 * An entry is locked before its object is looked at, so an entry that others set for an object that this transaction
 * does not see comes after the deletion. Others lock the object first. In a deadlock it is the worker that gives way:
 * it waits for a lock for less than half of deadlock_timeout.
 *
 * A batch that fails is split in halves until the entry is found that fails. It is logged, and gets a later time in the
 * table: 1 second, doubled with each failure, up to an hour. So it survives a restart and holds up no other.
 *
 * Commits do not wait for the WAL to be flushed. After a crash what was lost is done again.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "compat.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "support/stoppoint.h"
#include "tcop/tcopprot.h"
#include "timer/timer.h"
#include "timer/timer_window.h"
#include "utils/array.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "worker/worker.h"

#define TIMERS_CAPACITY	   262144 /* entries that are known */
#define TIMERS_BATCH	   500
#define TIMERS_LOCK_ERRORS 11  /* more than the halvings of a batch */
#define TIMERS_LOGGED	   20  /* failures in a minute; more are at DEBUG1 */
#define TIMERS_LEAVE_MS	   100 /* until a worker that has made room is started again */
#define TIMERS_MINUTE_US   INT64CONST(60000000)

static TimerWindow *timers_window;
static MemoryContext timers_context; /* of one iteration */
static char *timers_database;
static bool timers_connected = false;

/* ---- the kinds ---- */

/* $1: ids of entries that are due. Returns (id, at) for each object that is left. */
static CatalogQuery timers_statements[TIMER_KINDS] = {
	[TIMER_UPLOAD] = {"SELECT id, at FROM sheet.expire_uploads($1)", {INT8ARRAYOID}},
	[TIMER_REVOKED_TOKENS] = {"SELECT id, at FROM sheet.expire_revoked_tokens($1)", {INT8ARRAYOID}},
	[TIMER_CALENDAR_EDIT] = {"SELECT id, at FROM sheet.expire_calendar_edits($1)", {INT8ARRAYOID}},
	[TIMER_CALENDAR] = {"SELECT id, at FROM sheet.expire_calendars($1)", {INT8ARRAYOID}},
	[TIMER_REMINDER] = {"SELECT id, at FROM sheet.expire_reminders($1)", {INT8ARRAYOID}},
};

/* Returns false when the extension has been dropped, or has no timer yet: its script has not been updated. */
static bool
timers_have_table(void)
{
	Oid namespace;
	bool found;

	if (!worker_has_extension())
		return false;
	worker_begin();
	namespace = get_namespace_oid("sheet", true);
	found = OidIsValid(namespace) && OidIsValid(get_relname_relid("timer", namespace));
	worker_commit();
	if (!found)
		timer_discard(MyDatabaseId);
	return found;
}

/* ---- a scan ---- */

static CatalogQuery timers_repair_query = {"SELECT sheet.repair_timer()"};

/* The last row is the first entry behind the window. */
static CatalogQuery timers_scan_query = {
	"(SELECT kind, id, at FROM sheet.timer WHERE at >= $1 AND at < $2 ORDER BY at LIMIT $3) UNION ALL "
	"(SELECT kind, id, at FROM sheet.timer WHERE at >= greatest($1, $2) ORDER BY at LIMIT 1)",
	{TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID}};

/* Reads a row of SPI_tuptable. Returns false for a kind that this version of the library does not know. */
static bool
timers_read_entry(uint64 row, TimerEntry *entry)
{
	HeapTuple tuple = SPI_tuptable->vals[row];
	TupleDesc desc = SPI_tuptable->tupdesc;
	bool isnull;

	entry->kind = timer_kind_find(TextDatumGetCString(SPI_getbinval(tuple, desc, 1, &isnull)));
	entry->id = DatumGetInt64(SPI_getbinval(tuple, desc, 2, &isnull));
	entry->at = DatumGetTimestampTz(SPI_getbinval(tuple, desc, 3, &isnull));
	return entry->kind != TIMER_KINDS;
}

/* Adds the entries from `from` to `end`, at most `limit`. Returns the first end of those that were not added. */
static TimestampTz
timers_read_table(TimestampTz from, TimestampTz end, int64 limit)
{
	NullableDatum args[] = {CATALOG_DATUM(TimestampTzGetDatum(from)), CATALOG_DATUM(TimestampTzGetDatum(end)),
							CATALOG_INT64(limit)};
	TimestampTz horizon = DT_NOEND;
	CatalogScope scope;
	uint64 rows;

	worker_begin();
	catalog_begin(&scope);
	rows = catalog_run(&timers_scan_query, args, true);
	for (uint64 i = 0; i < rows; i++)
	{
		TimerDue due = {0};
		bool known = timers_read_entry(i, &due.entry);

		due.due = due.entry.at;
		if (due.entry.at >= end || (known && !timer_window_add(timers_window, &due)) || i + 1 == limit)
		{
			horizon = due.entry.at;
			break;
		}
	}
	catalog_end(&scope);
	worker_commit();
	return horizon;
}

/* Adds entries that are missing, once in the life of the process. Failing, it leaves this to a later process. */
static void
timers_repair(void)
{
	static bool repaired = false;
	CatalogScope scope;

	if (repaired)
		return;
	repaired = true;
	PG_TRY();
	{
		worker_begin();
		catalog_begin(&scope);
		catalog_run(&timers_repair_query, NULL, false);
		catalog_end(&scope);
		worker_commit();
	}
	PG_CATCH();
	{
		ErrorData *error = worker_abort(timers_context);

		ereport(DEBUG1, (errmsg_internal("pg_sheet: the timer's missing entries were not added: %s", error->message)));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(timers_context);
	CHECK_FOR_INTERRUPTS();
}

/* The horizon is raised before the snapshot is taken, so an entry is in the snapshot or told. An error ends the
 * process, and the next one reads the whole table. */
static void
timers_scan(void)
{
	TimestampTz now = GetCurrentTimestamp(), from = timer_scan_begin();
	bool all;
	int limit = timer_window_scanned(timers_window, now, &all);

	if (from == DT_NOBEGIN)
		timers_repair();
	timer_count(TIMER_SCANS, 1);
	timer_lower_horizon(timers_read_table(all ? DT_NOBEGIN : from, now + TIMER_WINDOW_US, limit));
}

/* ---- a batch ---- */

static CatalogQuery timers_lock_query = {
	"WITH mine AS MATERIALIZED (SELECT id FROM sheet.timer WHERE kind = $1 AND id = ANY ($2) AND at <= $3 "
	"FOR UPDATE SKIP LOCKED) "
	"SELECT t.id, m.id IS NOT NULL, CASE WHEN t.failures = 0 THEN t.at END FROM sheet.timer t "
	"LEFT JOIN mine m ON m.id = t.id WHERE t.kind = $1 AND t.id = ANY ($2) AND t.at <= $3",
	{TEXTOID, INT8ARRAYOID, TIMESTAMPTZOID}};
static CatalogQuery timers_delete_query = {
	"DELETE FROM sheet.timer WHERE kind = $1 AND id = ANY ($2) AND id <> ALL ($3)",
	{TEXTOID, INT8ARRAYOID, INT8ARRAYOID}};
/* $2 are ids and $3 their ends. */
static CatalogQuery timers_later_query = {
	"UPDATE sheet.timer t SET at = CASE WHEN n.at IS NULL THEN $4 WHEN n.at > $4 THEN n.at "
	"ELSE $4 + least(power(2, least(t.failures, 12)), 3600) * interval '1 second' END, "
	"failures = CASE WHEN n.at <= $4 THEN t.failures + 1 ELSE 0 END "
	"FROM unnest($2, $3) n(id, at) WHERE t.kind = $1 AND t.id = n.id",
	{TEXTOID, INT8ARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZOID}};

/* Ids and ends, for arrays. */
typedef struct TimersSet
{
	int count;
	Datum ids[TIMERS_BATCH];
	Datum ats[TIMERS_BATCH];
	bool nulls[TIMERS_BATCH];
} TimersSet;

static NullableDatum
timers_ids(TimersSet *set)
{
	return CATALOG_DATUM(PointerGetDatum(construct_array(set->ids, set->count, INT8OID, 8, true, TYPALIGN_DOUBLE)));
}

static NullableDatum
timers_ats(TimersSet *set)
{
	int lower = 1;

	return CATALOG_DATUM(PointerGetDatum(
		construct_md_array(set->ats, set->nulls, 1, &set->count, &lower, TIMESTAMPTZOID, 8, true, TYPALIGN_DOUBLE)));
}

/* An entry whose row is locked, or could not be changed, is tried again by this worker. */
static void
timers_try_later(const TimerDue *due)
{
	TimerDue later = *due;

	later.due = GetCurrentTimestamp() + timer_retry_delay(later.tries++);
	if (!timer_window_add(timers_window, &later))
		timer_lower_horizon(due->entry.at);
}

static bool
timers_contain(const TimersSet *set, int64 id)
{
	for (int i = 0; i < set->count; i++)
		if (DatumGetInt64(set->ids[i]) == id)
			return true;
	return false;
}

/* Locks the entries. *first is the first end of those that have not failed before. */
static void
timers_lock(const TimerDue *dues, int count, NullableDatum *args, TimersSet *mine, TimersSet *locked,
			TimestampTz *first)
{
	TimersSet *wanted = palloc(sizeof(TimersSet));
	uint64 rows;

	wanted->count = count;
	for (int i = 0; i < count; i++)
		wanted->ids[i] = Int64GetDatum(dues[i].entry.id);
	args[1] = timers_ids(wanted);
	rows = catalog_run(&timers_lock_query, args, false);
	for (uint64 i = 0; i < rows; i++)
	{
		HeapTuple tuple = SPI_tuptable->vals[i];
		bool isnull;
		Datum id = SPI_getbinval(tuple, SPI_tuptable->tupdesc, 1, &isnull);
		TimersSet *set = DatumGetBool(SPI_getbinval(tuple, SPI_tuptable->tupdesc, 2, &isnull)) ? mine : locked;
		Datum at = SPI_getbinval(tuple, SPI_tuptable->tupdesc, 3, &isnull);

		set->ids[set->count++] = id;
		if (set == mine && !isnull)
			*first = Min(*first, DatumGetTimestampTz(at));
	}
}

/* Runs the statement of the kind. Collects the objects that are left. */
static void
timers_expire(TimerKind kind, NullableDatum ids, TimersSet *left)
{
	uint64 rows = catalog_run(&timers_statements[kind], &ids, false);

	for (uint64 i = 0; i < rows && left->count < TIMERS_BATCH; i++)
	{
		HeapTuple tuple = SPI_tuptable->vals[i];
		bool isnull;

		left->ids[left->count] = SPI_getbinval(tuple, SPI_tuptable->tupdesc, 1, &isnull);
		left->ats[left->count] = SPI_getbinval(tuple, SPI_tuptable->tupdesc, 2, &left->nulls[left->count]);
		left->count++;
	}
}

/* Serves entries of one kind in a transaction. */
static void
timers_run(TimerKind kind, const TimerDue *dues, int count)
{
	TimersSet *mine = palloc0(sizeof(TimersSet)), *locked = palloc0(sizeof(TimersSet));
	TimersSet *left = palloc0(sizeof(TimersSet));
	TimestampTz now = GetCurrentTimestamp(), first = DT_NOEND;
	NullableDatum args[4];
	CatalogScope scope;

	/* They were due when they were taken, also if the clock has stepped back since. */
	for (int i = 0; i < count; i++)
		now = Max(now, dues[i].entry.at);

	worker_begin();
	catalog_begin(&scope);
	args[0] = CATALOG_TEXT(timer_kind_name(kind));
	args[2] = CATALOG_DATUM(TimestampTzGetDatum(now));
	timers_lock(dues, count, args, mine, locked, &first);
	STOP_POINT("timer-locked");
	if (mine->count > 0)
	{
		args[1] = timers_ids(mine);
		timers_expire(kind, args[1], left);
		args[2] = timers_ids(left);
		catalog_run(&timers_delete_query, args, false);
	}
	if (left->count > 0)
	{
		args[1] = args[2];
		args[2] = timers_ats(left);
		args[3] = CATALOG_DATUM(TimestampTzGetDatum(now));
		catalog_run(&timers_later_query, args, false);
	}
	catalog_end(&scope);
	worker_commit();
	for (int i = 0; i < count && locked->count > 0; i++)
		if (timers_contain(locked, dues[i].entry.id))
			timers_try_later(&dues[i]);
	timer_count(TIMER_SERVED, mine->count - left->count);
	if (mine->count > 0 && first != DT_NOEND)
		timer_count(TIMER_LATE, GetCurrentTimestamp() - Max(first, PgStartTime));
}

/* ---- failures ---- */

static void
timers_log_failure(TimerKind kind, int64 id, const ErrorData *error)
{
	static TimestampTz minute = DT_NOBEGIN;
	static int logged = 0;
	TimestampTz now = GetCurrentTimestamp();

	if (now >= minute + TIMERS_MINUTE_US || now < minute)
	{
		minute = now;
		logged = 0;
	}
	ereport(
		logged++ < TIMERS_LOGGED ? LOG : DEBUG1,
		(errcode(error->sqlerrcode),
		 errmsg(
			 "pg_sheet: the timer could not remove what has expired in database \"%s\" (kind \"%s\", id " INT64_FORMAT
			 "): %s",
			 timers_database, timer_kind_name(kind), id, error->message),
		 error->detail == NULL ? 0 : errdetail_internal("%s", error->detail),
		 errhint("It is retried with increasing delays, up to an hour.")));
}

static bool
timers_is_lock_error(const ErrorData *error)
{
	return error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE || error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED;
}

/* Gives an entry that has failed a later time in the table or, if that fails too, in this process. */
static void
timers_fail(const TimerDue *due, const ErrorData *error)
{
	static TimersSet failed;
	CatalogScope scope;

	if (!timers_is_lock_error(error))
	{
		timer_count(TIMER_FAILURES, 1);
		timers_log_failure(due->entry.kind, due->entry.id, error);
	}
	PG_TRY();
	{
		NullableDatum args[4];

		worker_begin();
		catalog_begin(&scope);
		failed.count = 1;
		failed.ids[0] = Int64GetDatum(due->entry.id);
		failed.ats[0] = TimestampTzGetDatum(DT_NOBEGIN);
		args[0] = CATALOG_TEXT(timer_kind_name(due->entry.kind));
		args[1] = timers_ids(&failed);
		args[2] = timers_ats(&failed);
		args[3] = CATALOG_DATUM(TimestampTzGetDatum(GetCurrentTimestamp()));
		catalog_run(&timers_later_query, args, false);
		catalog_end(&scope);
		worker_commit();
	}
	PG_CATCH();
	{
		(void) worker_abort(timers_context);
		timers_try_later(due);
	}
	PG_END_TRY();
}

/* Serves entries of one kind. If an entry fails, the others are served without it. *lock_errors: so far, of which each
 * takes the time of a wait. If there are many, a table is locked. */
static void
timers_serve_kind(TimerKind kind, const TimerDue *dues, int count, int *lock_errors)
{
	ErrorData *volatile error = NULL;

	PG_TRY();
	{
		timers_run(kind, dues, count);
	}
	PG_CATCH();
	{
		error = worker_abort(timers_context);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(timers_context);
	CHECK_FOR_INTERRUPTS();
	if (error == NULL || !timers_have_table())
		return;
	MemoryContextSwitchTo(timers_context);
	if (timers_is_lock_error(error) && ++*lock_errors > TIMERS_LOCK_ERRORS)
	{
		for (int i = 0; i < count; i++)
			timers_try_later(&dues[i]);
	}
	else if (count == 1)
		timers_fail(dues, error);
	else
	{
		timers_serve_kind(kind, dues, count / 2, lock_errors);
		timers_serve_kind(kind, dues + count / 2, count - count / 2, lock_errors);
	}
}

/* Serves the entries that are due, TIMERS_BATCH at most. */
static void
timers_serve(void)
{
	TimerDue *dues = palloc(sizeof(TimerDue) * TIMERS_BATCH), *some = palloc(sizeof(TimerDue) * TIMERS_BATCH);
	int count = timer_window_take(timers_window, GetCurrentTimestamp(), dues, TIMERS_BATCH);

	for (TimerKind kind = 0; kind < TIMER_KINDS; kind++)
	{
		int of_kind = 0, lock_errors = 0;

		for (int i = 0; i < count; i++)
			if (dues[i].entry.kind == kind)
				some[of_kind++] = dues[i];
		if (of_kind > 0)
			timers_serve_kind(kind, some, of_kind, &lock_errors);
	}
}

/* ---- the process ---- */

/* Adds what was told. If the window is full, everything is forgotten and read again. Returns false if the worker has to
 * end. */
static bool
timers_receive(TimestampTz *horizon, bool *crowded)
{
	static TimerEntry entries[TIMER_TOLD];
	int count = timer_take(entries, TIMER_TOLD, horizon, crowded);

	for (int i = 0; i < count; i++)
	{
		TimerDue due = {entries[i], entries[i].at, 0};

		if (entries[i].at >= *horizon || timer_window_add(timers_window, &due))
			continue;
		timer_window_clear(timers_window);
		timer_lower_horizon(DT_NOBEGIN);
		*horizon = DT_NOBEGIN;
		break;
	}
	return count >= 0;
}

static void
timers_sleep(TimestampTz horizon, TimestampTz until)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = compat_wait_event("PgSheetTimer");
	if (!timer_sleep(horizon, until))
		return;
	pgstat_report_activity(STATE_IDLE, NULL);
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 timer_sleep_ms(until, GetCurrentTimestamp()), wait_event);
	timer_count(TIMER_WAKES, 1);
	pgstat_report_activity(STATE_RUNNING, "timer");
}

/* Serves what is due, or scans, or sleeps. Returns false when the worker has to end. */
static bool
timers_iterate(void)
{
	TimestampTz horizon, until;
	bool crowded;
	TimerStep step;

	if (!timers_receive(&horizon, &crowded))
		return false;
	step = timer_window_step(timers_window, horizon, crowded, GetCurrentTimestamp(), &until);
	if (step == TIMER_STEP_LEAVE)
	{
		timer_leave(timer_window_earliest(timers_window), crowded ? TIMERS_LEAVE_MS : 0);
		return false;
	}
	if (step == TIMER_STEP_SLEEP)
	{
		timers_sleep(horizon, until);
		return true;
	}
	if (!timers_have_table())
		return false;
	MemoryContextSwitchTo(timers_context);
	if (step == TIMER_STEP_SCAN)
		timers_scan();
	else
		timers_serve();
	return true;
}

static void
timers_exit(int code, Datum arg)
{
	if (!timers_connected)
		timer_put_off(DatumGetObjectId(arg), WORKER_FAILED_MS);
}

/* The small indexes are used whatever the planner knows of the tables. */
static void
timers_settings(void)
{
	const char *const settings[][2] = {{"synchronous_commit", "off"},
									   {"enable_seqscan", "off"},
									   {"enable_bitmapscan", "off"},
									   {"enable_sort", "off"},
									   {"jit", "off"}};

	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
}

void
sheet_timer_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	before_shmem_exit(timers_exit, arg);
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(arg), InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	timers_connected = true;
	worker_settings("pg_sheet timer");
	timers_settings();
	worker_begin();
	timers_database = MemoryContextStrdup(TopMemoryContext, get_database_name(MyDatabaseId));
	worker_commit();
	if (!timer_attach())
		proc_exit(0);
	MemoryContextSwitchTo(TopMemoryContext);
	timers_window = timer_window_create(TIMERS_CAPACITY, GetCurrentTimestamp());
	timers_context = AllocSetContextCreate(TopMemoryContext, "pg_sheet timer", ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		MemoryContextReset(timers_context);
		MemoryContextSwitchTo(timers_context);
		if (!timers_iterate())
			break;
	}
	proc_exit(0);
}
