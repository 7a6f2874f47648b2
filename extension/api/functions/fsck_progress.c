/*
 * fsck_progress.c - how far checks of all sheets have come.
 *
 * The numbers are where PostgreSQL keeps those of its own pg_stat_progress views: in the backend's status, under a
 * command that is none of PostgreSQL's. An error that ends the check ends the command, too.
 */
#include "postgres.h"

#include "compat.h"
#include "api/functions/fsck_progress.h"
#include "funcapi.h"
#include "pgstat.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"

PG_FUNCTION_INFO_V1(sheet_fsck_progress);

#define FSCK_COMMAND ((ProgressCommandType) 0x5348)

/* The order of the view's columns, behind pid and database. */
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

static int64 progress_done;

void
fsck_progress_begin(const FsckCall *call)
{
	static const int params[] = {FSCK_PROGRESS_FULL, FSCK_PROGRESS_REPAIR, FSCK_PROGRESS_TOTAL};
	int64 values[] = {call->full, call->repair, fsck_count_sheets(call->sheet_id)};

	progress_done = 0;
	pgstat_progress_start_command(FSCK_COMMAND, InvalidOid);
	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

bool
fsck_progress_next(FsckCall *call)
{
	bool found = fsck_next_sheet(&call->sheet_id);

	if (found)
		pgstat_progress_update_param(FSCK_PROGRESS_SHEET, call->sheet_id);
	return found;
}

void
fsck_progress_add(int64 findings, int64 repaired)
{
	static const int params[] = {FSCK_PROGRESS_DONE, FSCK_PROGRESS_FINDINGS, FSCK_PROGRESS_REPAIRED};
	int64 values[] = {++progress_done, findings, repaired};

	pgstat_progress_update_multi_param(lengthof(params), params, values);
}

void
fsck_progress_end(void)
{
	pgstat_progress_end_command();
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
