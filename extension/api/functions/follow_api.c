/*
 * follow_api.c - the SQL function by which gateways wait for changes of sheets; see follow.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "journal/follow/follow.h"
#include "funcapi.h"
#include "permission/permission.h"
#include "utils/array.h"
#include "utils/builtins.h"

#define FOLLOW_TIMEOUT_MAX 600000 /* ms */

PG_FUNCTION_INFO_V1(sheet_follow);

static Datum
follow_int64_array(const int64 *values, int count)
{
	Datum *datums = palloc(sizeof(Datum) * Max(count, 1));

	for (int i = 0; i < count; i++)
		datums[i] = Int64GetDatum(values[i]);
	return PointerGetDatum(construct_array(datums, count, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/*
 * sheet.follow(origin bigint, cursor bigint, timeout_ms int)
 *   returns (cursor bigint, lost bool, sheet_ids bigint[], seqs bigint[])
 */
Datum
sheet_follow(PG_FUNCTION_ARGS)
{
	FollowAnswer *answer = palloc0(sizeof(FollowAnswer));
	int64 origin = PG_ARGISNULL(0) ? 0 : PG_GETARG_INT64(0);
	int timeout_ms = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT32(2);
	TupleDesc desc;
	Datum values[4];
	bool nulls[4] = {false, false, false, false};
	uint64 cursor;

	permission_require_gateway();
	if (!follow_possible())
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("sheets cannot be followed: pg_sheet has no shared memory"),
						errhint("Add pg_sheet to shared_preload_libraries and restart the server.")));
	if (timeout_ms < 0 || timeout_ms > FOLLOW_TIMEOUT_MAX)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("timeout must be between 0 and %d milliseconds", FOLLOW_TIMEOUT_MAX)));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	if (PG_ARGISNULL(1))
		cursor = follow_head();
	else
		cursor = follow_next(origin, (uint64) PG_GETARG_INT64(1), timeout_ms, answer);

	values[0] = Int64GetDatum((int64) cursor);
	values[1] = BoolGetDatum(answer->lost);
	values[2] = follow_int64_array(answer->sheet_ids, answer->count);
	values[3] = follow_int64_array(answer->seqs, answer->count);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
