/*
 * fsck_api.c - sheet.fsck, which returns findings as rows, sheet.fsck_all, which commits after each sheet, and the view
 * sheet.fsck_progress.
 *
 * A sheet that is repaired stays locked until the transaction ends. So the function, which is one transaction, repairs
 * no more sheets than a transaction's share of the lock table. The procedure repairs any number. Neither holds a lock
 * on a sheet without findings once that is checked.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "journal/fsck/fsck.h"
#include "compat.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "pgstat.h"
#include "storage/lock.h"
#include "tcop/pquery.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(sheet_fsck);
PG_FUNCTION_INFO_V1(sheet_fsck_all);
PG_FUNCTION_INFO_V1(sheet_fsck_progress);

static const char *const fsck_severity_names[] = {"info", "warning", "error"};

static void
fsck_require_superuser(void)
{
	if (!superuser())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("only superusers may check all sheets"),
						errhint("Give the id of a sheet that you own: sheet.fsck(42).")));
}

/* ---- progress ---- */

/*
 * The progress of a check of all sheets is in the backend's status, where PostgreSQL has that of its pg_stat_progress
 * views, under a command that is not one of PostgreSQL's. An error that ends the check also ends the command.
 */
#define FSCK_COMMAND ((ProgressCommandType) 0x5348)

/* The columns of the view after pid and database. */
typedef enum FsckProgress
{
	FSCK_PROGRESS_FULL,
	FSCK_PROGRESS_REPAIR,
	FSCK_PROGRESS_TOTAL,
	FSCK_PROGRESS_DONE,
	FSCK_PROGRESS_SHEET,
	FSCK_PROGRESS_FINDINGS,
	FSCK_PROGRESS_REPAIRED,
	FSCK_PROGRESS_COLUMNS
} FsckProgress;

/* Begins a check of the sheets after call->sheet_id. */
static void
fsck_progress_begin(const FsckCall *call)
{
	pgstat_progress_start_command(FSCK_COMMAND, InvalidOid);
	pgstat_progress_update_param(FSCK_PROGRESS_FULL, call->full);
	pgstat_progress_update_param(FSCK_PROGRESS_REPAIR, call->repair);
	pgstat_progress_update_param(FSCK_PROGRESS_TOTAL, fsck_count_sheets(call->sheet_id));
}

/* Moves the call to the next sheet. Returns false, and ends the check, when there is none. */
static bool
fsck_progress_next(FsckCall *call)
{
	if (!fsck_next_sheet(&call->sheet_id))
	{
		pgstat_progress_end_command();
		return false;
	}
	pgstat_progress_update_param(FSCK_PROGRESS_SHEET, call->sheet_id);
	return true;
}

/* The numbers are those of all sheets so far. */
static void
fsck_progress_add(int64 sheets, int64 findings, int64 repaired)
{
	static const int params[] = {FSCK_PROGRESS_DONE, FSCK_PROGRESS_FINDINGS, FSCK_PROGRESS_REPAIRED};
	int64 values[] = {sheets, findings, repaired};

	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

/* fsck_progress_read() */
Datum
sheet_fsck_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int backends = pgstat_fetch_stat_numbackends();

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 1; i <= backends; i++)
	{
		const PgBackendStatus *status = &compat_backend_status(i)->backendStatus;
		Datum values[2 + FSCK_PROGRESS_COLUMNS] = {Int32GetDatum(status->st_procpid),
												   ObjectIdGetDatum(status->st_databaseid)};
		bool nulls[lengthof(values)] = {0};

		if (status->st_progress_command != FSCK_COMMAND)
			continue;
		for (int column = 0; column < FSCK_PROGRESS_COLUMNS; column++)
			values[2 + column] = column <= FSCK_PROGRESS_REPAIR ? BoolGetDatum(status->st_progress_param[column] != 0)
																: Int64GetDatum(status->st_progress_param[column]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* ---- rows that refer to what does not exist ---- */

/* The tables have no foreign keys (20-catalog.sql). What these findings lack was lost, or was not restored: nothing is
 * repaired. $1 null: of all sheets. */
static CatalogQuery fsck_catalog = {
	"SELECT sheet_id, what, place FROM sheet.fsck_catalog($1)", {INT8OID}, .by_values = true};

/* Returns the number of findings. A finding without a sheet is reported with sheet 0. */
static int
fsck_check_catalog(NullableDatum only_sheet, FsckReportFn report, void *arg)
{
	CatalogScope scope;
	uint64 rows;

	catalog_begin(&scope);
	rows = catalog_run(&fsck_catalog, &only_sheet, true);
	for (uint64 i = 0; i < rows; i++)
	{
		HeapTuple row = SPI_tuptable->vals[i];
		bool isnull;
		int64 sheet_id = DatumGetInt64(SPI_getbinval(row, SPI_tuptable->tupdesc, 1, &isnull));

		report(arg, isnull ? 0 : sheet_id, FSCK_ERROR, SPI_getvalue(row, SPI_tuptable->tupdesc, 2),
			   SPI_getvalue(row, SPI_tuptable->tupdesc, 3), false);
	}
	catalog_end(&scope);
	return (int) rows;
}

/* ---- the timer ---- */

static CatalogQuery fsck_timer = {"SELECT sheet.repair_timer()"};

/* Adds entries of the timer that are missing. Returns their number. */
static int64
fsck_repair_timer(void)
{
	CatalogScope scope;
	int64 added;

	catalog_begin(&scope);
	catalog_run(&fsck_timer, NULL, false);
	added = catalog_int64(1, 0);
	catalog_end(&scope);
	if (added > 0)
		ereport(WARNING, (errmsg("entries of the timer that were missing: " INT64_FORMAT ", all added", added),
						  errhidecontext(true)));
	return added;
}

/* ---- the function ---- */

typedef struct FsckRows
{
	ReturnSetInfo *result;
	int64 checked, findings, repaired;
	int64 last_sheet; /* the last sheet that was repaired */
	int sheets;		  /* number of sheets that were repaired */
} FsckRows;

/* Adds a row to the result, whose memory outlives the check's. */
static void
fsck_put_row(FsckRows *rows, int64 sheet_id, FsckSeverity severity, const char *what, const char *place, bool repaired)
{
	MemoryContext old = MemoryContextSwitchTo(rows->result->econtext->ecxt_per_query_memory);
	Datum values[5] = {Int64GetDatum(sheet_id), CStringGetTextDatum(fsck_severity_names[severity]),
					   CStringGetTextDatum(what), CStringGetTextDatum(place), BoolGetDatum(repaired)};
	bool nulls[5] = {sheet_id == 0, false, false, place[0] == '\0', false};

	tuplestore_putvalues(rows->result->setResult, rows->result->setDesc, values, nulls);
	MemoryContextSwitchTo(old);
}

static void
fsck_found(void *arg, int64 sheet_id, FsckSeverity severity, const char *what, const char *place, bool repaired)
{
	FsckRows *rows = arg;

	rows->findings++;
	rows->repaired += repaired;
	if (repaired && rows->last_sheet != sheet_id)
		rows->sheets++;
	if (repaired)
		rows->last_sheet = sheet_id;
	fsck_put_row(rows, sheet_id, severity, what, place, repaired);
}

static void
fsck_each_sheet(FsckCall *call, FsckRows *rows)
{
	bool repair = call->repair;
	bool left = false;

	call->sheet_id = PG_INT64_MIN;
	fsck_progress_begin(call);
	while (fsck_progress_next(call))
	{
		call->repair = repair && rows->sheets < max_locks_per_xact;
		left |= fsck_sheet(call) > 0 && repair && !call->repair;
		fsck_progress_add(++rows->checked, rows->findings, rows->repaired);
	}
	(void) fsck_check_catalog(CATALOG_NULL, fsck_found, rows);
	if (left)
		fsck_put_row(rows, 0, FSCK_WARNING,
					 psprintf("%d sheets were repaired, others only checked: CALL sheet.fsck_all() repairs all of them",
							  rows->sheets),
					 "", false);
}

/* sheet.fsck(sheet_id bigint, full boolean, repair boolean) */
Datum
sheet_fsck(PG_FUNCTION_ARGS)
{
	FsckRows rows = {.result = (ReturnSetInfo *) fcinfo->resultinfo};
	FsckCall call = {.sheet_id = PG_ARGISNULL(0) ? 0 : PG_GETARG_INT64(0),
					 .full = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1),
					 .repair = PG_ARGISNULL(2) || PG_GETARG_BOOL(2),
					 .clients = true,
					 .report = fsck_found,
					 .arg = &rows};

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
	{
		fsck_require_superuser();
		fsck_each_sheet(&call, &rows);
	}
	else
	{
		permission_require(call.sheet_id, 0, ROLE_OWNER, true);
		(void) fsck_sheet(&call);
		(void) fsck_check_catalog(CATALOG_INT64(call.sheet_id), fsck_found, &rows);
	}
	if (rows.findings == 0)
		fsck_put_row(&rows, PG_ARGISNULL(0) ? 0 : call.sheet_id, FSCK_INFO, "clean", "", false);
	return (Datum) 0;
}

/* ---- the procedure ---- */

typedef struct FsckAll
{
	FsckCall call; /* of the sheet that is being checked */
	int64 sheets, findings, repaired;
} FsckAll;

/* Error context: the call that continues the check with the sheet at which it stopped. */
static void
fsck_error_context(void *arg)
{
	const FsckAll *all = arg;

	if (all->call.sheet_id != PG_INT64_MIN)
		errcontext("check of sheet " INT64_FORMAT ": CALL sheet.fsck_all(after => " INT64_FORMAT ") goes on with it",
				   all->call.sheet_id, all->call.sheet_id - 1);
}

/* Checks one sheet and commits. Repairs are reported only after the commit. */
static void
fsck_check_next(FsckAll *all)
{
	FsckSummary summary;

	EnsurePortalSnapshotExists();
	fsck_summarize(&all->call, &summary);
	SPI_commit();
	if (summary.findings > 0)
		ereport(WARNING, (errmsg("sheet " INT64_FORMAT ": findings: %d, repaired: %d", all->call.sheet_id,
								 summary.findings, summary.repaired),
						  errdetail_internal("%s", summary.lines.data), errhidecontext(true)));
	pfree(summary.lines.data);
	all->sheets++;
	all->findings += summary.findings;
	all->repaired += summary.repaired;
	fsck_progress_add(all->sheets, all->findings, all->repaired);
}

static void
fsck_warn(void *arg, int64 sheet_id, FsckSeverity severity, const char *what, const char *place, bool repaired)
{
	if (sheet_id == 0)
		ereport(WARNING, (errmsg("%s: %s", place, what), errhidecontext(true)));
	else
		ereport(WARNING, (errmsg("sheet " INT64_FORMAT ": %s: %s", sheet_id, place, what), errhidecontext(true)));
}

/* sheet.fsck_all(full boolean, repair boolean, after bigint) */
Datum
sheet_fsck_all(PG_FUNCTION_ARGS)
{
	FsckAll all = {.call = {.sheet_id = PG_ARGISNULL(2) ? PG_INT64_MIN : PG_GETARG_INT64(2),
							.full = !PG_ARGISNULL(0) && PG_GETARG_BOOL(0),
							.repair = PG_ARGISNULL(1) || PG_GETARG_BOOL(1),
							.clients = true}};
	ErrorContextCallback context = {error_context_stack, fsck_error_context, &all};

	fsck_require_superuser();
	if (castNode(CallContext, fcinfo->context)->atomic)
		ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
						errmsg("sheet.fsck_all() cannot run inside a transaction block"),
						errdetail("It commits after each sheet.")));
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	fsck_progress_begin(&all.call);
	error_context_stack = &context;
	while (fsck_progress_next(&all.call))
		fsck_check_next(&all);
	error_context_stack = context.previous;
	EnsurePortalSnapshotExists();
	all.findings += fsck_check_catalog(CATALOG_NULL, fsck_warn, NULL);
	if (all.call.repair)
	{
		int64 added = fsck_repair_timer();

		all.findings += added;
		all.repaired += added;
	}
	ereport(NOTICE, (errmsg("checked sheets: " INT64_FORMAT ", findings: " INT64_FORMAT ", repaired: " INT64_FORMAT,
							all.sheets, all.findings, all.repaired)));
	SPI_finish();
	return (Datum) 0;
}
