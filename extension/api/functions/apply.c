/* apply.c - sheet.apply(): appends a batch of edits to a sheet. */
#include "postgres.h"

#include "permission/catalog.h"
#include "fmgr.h"
#include "journal/journal.h"
#include "permission/permission.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(sheet_apply);

/* The arguments, in their order. */
typedef enum ApplyArgument
{
	APPLY_SHEET_ID,
	APPLY_EDITS,
	APPLY_KNOWN_SEQ,
	APPLY_EPOCH,
	APPLY_ORIGIN,
	APPLY_BATCH_NO,
	APPLY_CLIENTS,
	APPLY_NOWAIT,
	APPLY_ARGUMENTS
} ApplyArgument;

/* first_seq, last_seq, at, duplicate, missed */
#define APPLY_COLUMNS 5

#define APPLY_MAX_CLIENTS 65536 /* a batch has no more edits */

/* clients: uid, client, first and last operation of each client whose operations are in the batch. */
static void
apply_read_clients(ArrayType *array, JournalApply *call)
{
	int n = ARR_NDIM(array) == 0 ? 0 : ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const int64 *numbers = (const int64 *) ARR_DATA_PTR(array);

	if (ARR_NDIM(array) > 1 || array_contains_nulls(array) || n % 4 != 0 || n > 4 * APPLY_MAX_CLIENTS)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("clients must be up to %d groups of uid, client, first and last operation",
							   APPLY_MAX_CLIENTS)));
	for (int i = 0; i < n; i += 4)
	{
		if (numbers[i] <= 0 || numbers[i + 1] <= 0 || numbers[i + 2] <= 0 || numbers[i + 3] < numbers[i + 2])
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a client's operations are malformed"),
							errdetail("In group %d.", i / 4 + 1)));
	}
	call->clients = (const JournalClient *) numbers;
	call->nclients = n / 4;
}

/* apply(sheet_id, edits, known_seq, epoch, origin, batch_no, clients, nowait) */
Datum
sheet_apply(PG_FUNCTION_ARGS)
{
	const NullableDatum *args = fcinfo->args;
	Datum values[APPLY_COLUMNS];
	bool nulls[APPLY_COLUMNS];
	JournalApply call = {0};
	JournalApplied result;
	bytea *edits;

	permission_require_gateway();
	call.sheet_id = catalog_arg_sheet(fcinfo, APPLY_SHEET_ID);
	catalog_require_arg(fcinfo, APPLY_EDITS, "edits");
	edits = DatumGetByteaPP(args[APPLY_EDITS].value);
	call.edits = VARDATA_ANY(edits);
	call.edits_len = VARSIZE_ANY_EXHDR(edits);
	call.known_seq = catalog_arg_int64(fcinfo, APPLY_KNOWN_SEQ, -1);
	call.epoch = catalog_arg_int64(fcinfo, APPLY_EPOCH, 0);
	call.origin = catalog_arg_int64(fcinfo, APPLY_ORIGIN, 0);
	call.batch_no = catalog_arg_int64(fcinfo, APPLY_BATCH_NO, 0);
	if (!args[APPLY_CLIENTS].isnull)
		apply_read_clients(DatumGetArrayTypeP(args[APPLY_CLIENTS].value), &call);
	call.nowait = !args[APPLY_NOWAIT].isnull && DatumGetBool(args[APPLY_NOWAIT].value);
	journal_apply(&call, &result);

	memset(nulls, result.held, sizeof(nulls));
	values[0] = Int64GetDatum(result.first_seq);
	values[1] = Int64GetDatum(result.last_seq);
	values[2] = TimestampTzGetDatum(result.at);
	values[3] = BoolGetDatum(result.duplicate);
	values[4] = PointerGetDatum(result.missed);
	nulls[4] |= result.missed == NULL;
	return catalog_return_row(fcinfo, values, nulls);
}
