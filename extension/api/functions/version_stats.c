/*
 * version_stats.c - what the background workers have done, for sheet.version_stats.
 */
#include "postgres.h"

#include "support/ckptqueue.h"
#include "fmgr.h"
#include "funcapi.h"

PG_FUNCTION_INFO_V1(sheet_version_stats);

#define VERSION_STATS_COLUMNS 12

/* One row; no row without shared memory. */
Datum
sheet_version_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum values[VERSION_STATS_COLUMNS];
	bool nulls[VERSION_STATS_COLUMNS] = {0};
	CkptStats stats;
	int n = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (!ckptqueue_stats(&stats))
		return (Datum) 0;
	for (int i = 0; i < CKPT_CAUSES; i++)
		values[n++] = Int64GetDatum(stats.made[i]);
	values[n++] = Int64GetDatum(stats.failures);
	values[n++] = Int64GetDatum(stats.rescans);
	values[n++] = Int64GetDatum(stats.replayed);
	values[n++] = Float8GetDatum(stats.longest_lock / 1000.0);
	values[n++] = Int64GetDatum(stats.checked);
	values[n++] = Int64GetDatum(stats.damaged);
	values[n++] = Int32GetDatum(stats.queued);
	values[n++] = Int32GetDatum(stats.workers);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}
