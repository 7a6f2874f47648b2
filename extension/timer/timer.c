/*
 * timer.c - entries of the timer: the table sheet.timer, and what transactions tell the timer's workers of it.
 *
 * A trigger on the table notes each row that is inserted or changed, whoever does it: timer_set(), an SQL function, a
 * restore. When the transaction has committed and is visible, the notes go to the board in shared memory. Those of a
 * subtransaction that is rolled back are dropped. A note is a hint: the worker reads the table before it acts.
 *
 * A transaction that has set a timer cannot be prepared: nothing would tell the timer when it commits.
 *
 * Lock: one LWLock for the board. It is a leaf. Under it there are searches of arrays, and no allocation or error.
 */
#include "postgres.h"

#include "timer/timer.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "support/workqueue.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_timer_changed);
PG_FUNCTION_INFO_V1(sheet_timer_stats);

typedef struct TimerShared
{
	LWLock lock;
	int tranche;
	pg_atomic_uint32 launcher; /* number of the launcher */
	pg_atomic_uint32 crowded;
	pg_atomic_uint64 counters[TIMER_COUNTERS];
	TimerBoard board;
} TimerShared;

static TimerShared *timer_shared = NULL;

/* As stored in sheet.timer.kind. */
static const char *const timer_kind_names[TIMER_KINDS] = {
	[TIMER_UPLOAD] = "upload",
	[TIMER_REVOKED_TOKENS] = "revoked tokens",
	[TIMER_CALENDAR_EDIT] = "calendar edit",
	[TIMER_CALENDAR] = "calendar",
	[TIMER_REMINDER] = "reminder",
};

const char *
timer_kind_name(TimerKind kind)
{
	return timer_kind_names[kind];
}

TimerKind
timer_kind_find(const char *name)
{
	TimerKind kind = 0;

	while (kind < TIMER_KINDS && strcmp(timer_kind_names[kind], name) != 0)
		kind++;
	return kind;
}

/* ---- start-up ---- */

Size
timer_shmem_size(void)
{
	return MAXALIGN(sizeof(TimerShared));
}

void
timer_shmem_startup(void)
{
	bool found;

	timer_shared = ShmemInitStruct("pg_sheet timer", timer_shmem_size(), &found);
	if (!found)
	{
		memset(timer_shared, 0, sizeof(TimerShared));
		timer_shared->tranche = LWLockNewTrancheId();
		LWLockInitialize(&timer_shared->lock, timer_shared->tranche);
		pg_atomic_init_u32(&timer_shared->launcher, 0);
		pg_atomic_init_u32(&timer_shared->crowded, 0);
		for (int i = 0; i < TIMER_COUNTERS; i++)
			pg_atomic_init_u64(&timer_shared->counters[i], 0);
	}
	LWLockRegisterTranche(timer_shared->tranche, "pg_sheet_timer");
}

/* ---- notes of the transaction ---- */

#define TIMER_NOTES_MAX TIMER_TOLD /* of a transaction; the board has no room for more */

typedef struct TimerNote
{
	TimerEntry entry;
	SubTransactionId subxact;
	struct TimerNote *next;
} TimerNote;

static TimerNote *timer_notes = NULL; /* the last one first, so that those of the current subtransaction come first */
static int timer_note_count = 0;
static TimerEntry timer_rest = {.at = DT_NOEND}; /* the first end of those beyond TIMER_NOTES_MAX */

static void
timer_note(const TimerEntry *entry)
{
	TimerNote *note;

	if (timer_shared == NULL)
		return;
	if (timer_note_count == TIMER_NOTES_MAX)
	{
		if (entry->at < timer_rest.at)
			timer_rest = *entry;
		return;
	}
	note = MemoryContextAlloc(TopTransactionContext, sizeof(TimerNote));
	*note = (TimerNote){*entry, GetCurrentSubTransactionId(), timer_notes};
	timer_notes = note;
	timer_note_count++;
}

static void
timer_forget_notes(void)
{
	timer_notes = NULL;
	timer_note_count = 0;
	timer_rest.at = DT_NOEND;
}

static void
timer_tell(void)
{
	TimestampTz now = GetCurrentTimestamp();
	bool launcher = false, worker = false;
	TimerDatabase *db;

	LWLockAcquire(&timer_shared->lock, LW_EXCLUSIVE);
	for (TimerNote *note = timer_notes; note != NULL; note = note->next)
	{
		TimerWake wake = timer_board_tell(&timer_shared->board, MyDatabaseId, &note->entry, now);

		launcher |= wake == TIMER_WAKE_LAUNCHER;
		worker |= wake == TIMER_WAKE_WORKER;
	}
	if (timer_rest.at != DT_NOEND && (db = timer_board_find(&timer_shared->board, MyDatabaseId)) != NULL)
	{
		timer_board_lower_horizon(&timer_shared->board, MyDatabaseId, timer_rest.at);
		worker |= db->worker != NULL;
		launcher |= db->worker == NULL;
	}
	if (worker && (db = timer_board_find(&timer_shared->board, MyDatabaseId)) != NULL && db->worker != NULL)
		SetLatch(&db->worker->procLatch);
	LWLockRelease(&timer_shared->lock);
	if (launcher)
		workqueue_wake();
}

static void
timer_xact_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_PREPARE && timer_notes != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot PREPARE a transaction that has set a timer"),
				 errhint("Use COMMIT instead of PREPARE TRANSACTION.")));
	if (event == XACT_EVENT_COMMIT && timer_notes != NULL)
		timer_tell();
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		timer_forget_notes();
}

static void
timer_subxact_callback(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		for (; timer_notes != NULL && timer_notes->subxact >= mine; timer_note_count--)
			timer_notes = timer_notes->next;
	}
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
	{
		for (TimerNote *note = timer_notes; note != NULL && note->subxact >= mine; note = note->next)
			note->subxact = parent;
	}
}

void
timer_init(void)
{
	RegisterXactCallback(timer_xact_callback, NULL);
	RegisterSubXactCallback(timer_subxact_callback, NULL);
}

/* ---- the table ---- */

/* The columns of sheet.timer. */
enum
{
	TIMER_COLUMN_KIND = 1,
	TIMER_COLUMN_ID,
	TIMER_COLUMN_AT
};

/* timer_changed(): the trigger, after INSERT and UPDATE of each row */
Datum
sheet_timer_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	TimerEntry entry;
	HeapTuple row;
	TupleDesc desc;
	char *kind;
	bool isnull;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
		TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
						errmsg("sheet.timer_changed() is a trigger for rows that are inserted or updated")));
	row = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple;
	desc = RelationGetDescr(trigger->tg_relation);
	kind = TextDatumGetCString(heap_getattr(row, TIMER_COLUMN_KIND, desc, &isnull));
	entry.kind = timer_kind_find(kind);
	if (entry.kind == TIMER_KINDS)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the timer has no kind \"%s\"", kind)));
	entry.id = DatumGetInt64(heap_getattr(row, TIMER_COLUMN_ID, desc, &isnull));
	entry.at = DatumGetTimestampTz(heap_getattr(row, TIMER_COLUMN_AT, desc, &isnull));
	timer_note(&entry);
	return PointerGetDatum(NULL);
}

static CatalogQuery timer_set_query = {
	"INSERT INTO sheet.timer (kind, id, at) VALUES ($1, $2, $3) ON CONFLICT (kind, id) DO UPDATE SET at = excluded.at, "
	"failures = 0",
	{TEXTOID, INT8OID, TIMESTAMPTZOID}};
static CatalogQuery timer_remove_query = {"DELETE FROM sheet.timer WHERE kind = $1 AND id = $2", {TEXTOID, INT8OID}};

void
timer_set(TimerKind kind, int64 id, TimestampTz at)
{
	NullableDatum args[] = {CATALOG_TEXT(timer_kind_name(kind)), CATALOG_INT64(id),
							CATALOG_DATUM(TimestampTzGetDatum(at))};

	catalog_execute(&timer_set_query, args);
}

void
timer_remove(TimerKind kind, int64 id)
{
	NullableDatum args[] = {CATALOG_TEXT(timer_kind_name(kind)), CATALOG_INT64(id)};

	catalog_execute(&timer_remove_query, args);
}

/* ---- counters ---- */

void
timer_count(TimerCounter counter, int64 n)
{
	pg_atomic_uint64 *count = &timer_shared->counters[counter];
	uint64 most;

	if (counter != TIMER_LATE)
	{
		pg_atomic_fetch_add_u64(count, n);
		return;
	}
	most = pg_atomic_read_u64(count);
	while (n > 0 && most < (uint64) n && !pg_atomic_compare_exchange_u64(count, &most, (uint64) n))
		continue;
}

/* timer_stats_read(): one row; no row without shared memory. */
Datum
sheet_timer_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum values[TIMER_COUNTERS + 2];
	bool nulls[lengthof(values)] = {0};
	int workers = 0, told;

	InitMaterializedSRF(fcinfo, 0);
	if (timer_shared == NULL)
		return (Datum) 0;
	for (int i = 0; i < TIMER_COUNTERS; i++)
		values[i] = Int64GetDatum((int64) pg_atomic_read_u64(&timer_shared->counters[i]));
	values[TIMER_LATE] = Float8GetDatum(pg_atomic_read_u64(&timer_shared->counters[TIMER_LATE]) / 1000.0); /* ms */
	LWLockAcquire(&timer_shared->lock, LW_SHARED);
	told = timer_shared->board.told_count;
	for (int i = 0; i < timer_shared->board.databases; i++)
		workers += timer_shared->board.database[i].worker != NULL;
	LWLockRelease(&timer_shared->lock);
	values[TIMER_COUNTERS] = Int32GetDatum(told);
	values[TIMER_COUNTERS + 1] = Int32GetDatum(workers);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}

/* ---- the launcher ---- */

static void
timer_wake_workers(void)
{
	LWLockAcquire(&timer_shared->lock, LW_SHARED);
	for (int i = 0; i < timer_shared->board.databases; i++)
		if (timer_shared->board.database[i].worker != NULL)
			SetLatch(&timer_shared->board.database[i].worker->procLatch);
	LWLockRelease(&timer_shared->lock);
}

void
timer_attach_launcher(void)
{
	pg_atomic_fetch_add_u32(&timer_shared->launcher, 1);
	timer_wake_workers();
}

void
timer_look(Oid database)
{
	if (timer_shared == NULL)
		return;
	LWLockAcquire(&timer_shared->lock, LW_EXCLUSIVE);
	timer_board_look(&timer_shared->board, database);
	LWLockRelease(&timer_shared->lock);
}

Oid
timer_due_database(const Oid *busy, int count, TimestampTz *next)
{
	TimestampTz now = GetCurrentTimestamp();
	Oid database;

	LWLockAcquire(&timer_shared->lock, LW_SHARED);
	database = timer_board_due(&timer_shared->board, busy, count, now, next);
	LWLockRelease(&timer_shared->lock);
	return database;
}

void
timer_put_off(Oid database, int ms)
{
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms);

	LWLockAcquire(&timer_shared->lock, LW_EXCLUSIVE);
	timer_board_put_off(&timer_shared->board, database, until);
	LWLockRelease(&timer_shared->lock);
}

void
timer_discard(Oid database)
{
	if (timer_shared == NULL)
		return;
	LWLockAcquire(&timer_shared->lock, LW_EXCLUSIVE);
	timer_board_discard(&timer_shared->board, database);
	LWLockRelease(&timer_shared->lock);
}

void
timer_set_crowded(bool crowded)
{
	if (pg_atomic_exchange_u32(&timer_shared->crowded, crowded) != crowded && crowded)
		timer_wake_workers();
}

/* ---- a worker ---- */

#define TIMER_DETACH_MS 1000 /* between an error of a worker and its successor */

static uint32 timer_launcher; /* that has started this worker */
static bool timer_attached = false;

/* Of a worker that ends by an error: what it knew has to be read again. */
static void
timer_detach(int code, Datum arg)
{
	if (timer_attached)
		timer_leave(DT_NOBEGIN, TIMER_DETACH_MS);
}

bool
timer_attach(void)
{
	timer_launcher = pg_atomic_read_u32(&timer_shared->launcher);
	before_shmem_exit(timer_detach, (Datum) 0);
	LWLockAcquire(&timer_shared->lock, LW_EXCLUSIVE);
	timer_attached = timer_board_attach(&timer_shared->board, MyDatabaseId, MyProc);
	LWLockRelease(&timer_shared->lock);
	return timer_attached;
}

/* Also ends a worker whose database has been discarded, as by DROP EXTENSION and CREATE EXTENSION. */
int
timer_take(TimerEntry *entries, int max, TimestampTz *horizon, bool *crowded)
{
	TimerDatabase *db;
	int taken = -1;

	*crowded = pg_atomic_read_u32(&timer_shared->crowded) != 0;
	LWLockAcquire(&timer_shared->lock, LW_EXCLUSIVE);
	db = timer_board_find(&timer_shared->board, MyDatabaseId);
	if (db != NULL && db->worker == MyProc && pg_atomic_read_u32(&timer_shared->launcher) == timer_launcher)
	{
		taken = timer_board_take(&timer_shared->board, MyDatabaseId, entries, max);
		*horizon = db->horizon;
	}
	LWLockRelease(&timer_shared->lock);
	return taken;
}

bool
timer_sleep(TimestampTz horizon, TimestampTz until)
{
	bool may;

	LWLockAcquire(&timer_shared->lock, LW_EXCLUSIVE);
	may = timer_board_sleep(&timer_shared->board, MyDatabaseId, horizon, until);
	LWLockRelease(&timer_shared->lock);
	return may;
}

TimestampTz
timer_scan_begin(void)
{
	TimestampTz from;

	LWLockAcquire(&timer_shared->lock, LW_EXCLUSIVE);
	from = timer_board_scan_begin(&timer_shared->board, MyDatabaseId);
	LWLockRelease(&timer_shared->lock);
	return from;
}

void
timer_lower_horizon(TimestampTz horizon)
{
	LWLockAcquire(&timer_shared->lock, LW_EXCLUSIVE);
	timer_board_lower_horizon(&timer_shared->board, MyDatabaseId, horizon);
	LWLockRelease(&timer_shared->lock);
}

void
timer_leave(TimestampTz earliest, int put_off_ms)
{
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), put_off_ms);
	TimerDatabase *db;

	timer_attached = false;
	LWLockAcquire(&timer_shared->lock, LW_EXCLUSIVE);
	db = timer_board_find(&timer_shared->board, MyDatabaseId);
	if (db != NULL && db->worker == MyProc)
	{
		db->not_before = put_off_ms > 0 ? until : DT_NOBEGIN;
		timer_board_leave(&timer_shared->board, MyDatabaseId, earliest);
	}
	LWLockRelease(&timer_shared->lock);
	workqueue_wake(); /* a launcher that has not started this worker does not hear of its end */
}
