/* log_api.c - sheet.log_edits: the edits of the log by a plain call. Queries mostly get the scan of edits_plan.c
 * instead. */
#include "postgres.h"

#include "api/logscan/edits_read.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(sheet_log_edits);

static void
log_put_edit(ReturnSetInfo *rsinfo, EditsReader *reader)
{
	Datum values[EDITS_COLUMNS];
	bool nulls[EDITS_COLUMNS];

	edits_begin_row(reader);
	for (int i = 0; i < EDITS_COLUMNS; i++)
		values[i] = edits_value(reader, i + 1, &nulls[i]);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* log_edits(sheet_id), or log_edits() of all sheets that are listed */
Datum
sheet_log_edits(PG_FUNCTION_ARGS)
{
	EditsQuery query;
	EditsCounters counters = {0};
	EditsReader *reader;

	edits_query_init(&query);
	query.listed = PG_NARGS() == 0;
	if (!query.listed)
		query.sheet_id = PG_GETARG_INT64(0);
	query.need = EDITS_NEED_CONTENTS;
	query.snapshot = GetActiveSnapshot();
	InitMaterializedSRF(fcinfo, 0);
	reader = edits_begin(&query, &counters);
	while (edits_next(reader))
		log_put_edit((ReturnSetInfo *) fcinfo->resultinfo, reader);
	edits_end(reader);
	return (Datum) 0;
}
