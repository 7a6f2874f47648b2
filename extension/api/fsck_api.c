/*
 * fsck_api.c - sheet.fsck: permission, one sheet or all of them, findings as rows.
 *
 * Findings go straight into the result, whose memory outlives the SPI connection.
 */
#include "postgres.h"

#include "catalog.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fsck.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "permission.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(sheet_fsck);

static const char *const fsck_severity_names[] = {"info", "warning", "error"};

static void
fsck_put_row(void *arg, int64 sheet_id, FsckSeverity severity, const char *what, const char *place, bool repaired)
{
	ReturnSetInfo *result = arg;
	MemoryContext old = MemoryContextSwitchTo(result->econtext->ecxt_per_query_memory);
	Datum values[5] = {Int64GetDatum(sheet_id), CStringGetTextDatum(fsck_severity_names[severity]),
					   CStringGetTextDatum(what), CStringGetTextDatum(place), BoolGetDatum(repaired)};
	bool nulls[5] = {sheet_id == 0, false, false, place[0] == '\0', false};

	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	MemoryContextSwitchTo(old);
}

static const char all_sheets_sql[] = "SELECT sheet_id FROM sheet.sheet ORDER BY 1";
static const char gone_sheets_sql[] = "SELECT DISTINCT sheet_id FROM sheet.client c "
									  "WHERE NOT EXISTS (SELECT FROM sheet.sheet s WHERE s.sheet_id = c.sheet_id) "
									  "ORDER BY 1";

/* The ids that a query gives, in a palloc'ed array of the context. */
static int64 *
fsck_read_ids(const char *sql, MemoryContext context, uint64 *count)
{
	int64 *ids;

	if (SPI_execute(sql, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "fsck: cannot read the ids of sheets");
	*count = SPI_processed;
	ids = MemoryContextAlloc(context, sizeof(int64) * Max(*count, 1));
	for (uint64 i = 0; i < *count; i++)
	{
		bool is_null;

		ids[i] = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &is_null));
	}
	return ids;
}

static int
fsck_gone_sheets(bool repair, MemoryContext context, ReturnSetInfo *result)
{
	uint64 count;
	int64 *sheets = fsck_read_ids(gone_sheets_sql, context, &count);
	int findings = 0;

	for (uint64 i = 0; i < count; i++)
		findings += fsck_clients_without_sheet(sheets[i], repair, fsck_put_row, result);
	return findings;
}

/* sheet.fsck(sheet_id bigint, full boolean, repair boolean) */
Datum
sheet_fsck(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	bool full = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);
	bool repair = PG_ARGISNULL(2) || PG_GETARG_BOOL(2);
	CatalogScope scope;
	int64 one = PG_ARGISNULL(0) ? 0 : PG_GETARG_INT64(0);
	int64 *sheets = &one;
	uint64 count = 1;
	int findings = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (!PG_ARGISNULL(0))
		permission_require(one, 0, ROLE_OWNER, true);
	else if (!superuser())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("only superusers may check all sheets"),
						errhint("Give the id of a sheet that you own: sheet.fsck(42).")));

	/* Permission has been checked; the queries must find no operator or function that the caller has made. */
	catalog_begin(&scope);
	if (PG_ARGISNULL(0))
		sheets = fsck_read_ids(all_sheets_sql, scope.caller, &count);
	for (uint64 i = 0; i < count; i++)
	{
		findings += fsck_sheet(sheets[i], full, repair, fsck_put_row, result);
		findings += fsck_clients(sheets[i], repair, fsck_put_row, result);
	}
	if (PG_ARGISNULL(0))
		findings += fsck_gone_sheets(repair, scope.caller, result);
	catalog_end(&scope);

	if (findings == 0)
		fsck_put_row(result, one, FSCK_INFO, "clean", "", false);
	return (Datum) 0;
}
