/*
 * gateway.c - SQL functions of gateways: the coordinator, ownership, batches of edits, following, holders of sheets.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "compat.h"
#include "funcapi.h"
#include "journal/follow/follow.h"
#include "journal/journal.h"
#include "journal/write/formulas.h"
#include "journal/write/writer.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/sinvaladt.h"
#include "utils/array.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/guc.h"

PG_FUNCTION_INFO_V1(sheet_coordinator_acquire);
PG_FUNCTION_INFO_V1(sheet_coordinator_holder);
PG_FUNCTION_INFO_V1(sheet_claim);
PG_FUNCTION_INFO_V1(sheet_release);
PG_FUNCTION_INFO_V1(sheet_reset_epochs);
PG_FUNCTION_INFO_V1(sheet_client_acknowledged);
PG_FUNCTION_INFO_V1(sheet_follow);
PG_FUNCTION_INFO_V1(sheet_tail);
PG_FUNCTION_INFO_V1(sheet_holders);
PG_FUNCTION_INFO_V1(sheet_apply);

#define COORDINATOR_LOCK   0x5345 /* LOCKTAG_ADVISORY's field4; sheets use 0x5348 */
#define FOLLOW_TIMEOUT_MAX 600000 /* ms */
#define TAIL_MAX_BYTES	   (512 * 1024 * 1024)
#define HOLDERS_MAX		   100000 /* sheets of a call */
#define HOLDERS_COLUMNS	   5
#define HOLDER_MAX		   300	 /* characters of a gateway's name */
#define APPLY_MAX_CLIENTS  65536 /* a batch has no more edits */

/* ---- the coordinator ---- */

static CatalogQuery coordinator_epoch = {
	"SELECT setval('sheet.coordinator_epoch_seq', greatest(nextval('sheet.coordinator_epoch_seq'), "
	"coalesce((SELECT max(epoch) FROM sheet.ownership), 0) + 1))"};
static CatalogQuery coordinator_store = {
	"INSERT INTO sheet.coordinator (holder, epoch, pid) VALUES ($1, $2, pg_backend_pid()) "
	"ON CONFLICT (one) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch, pid = excluded.pid",
	{TEXTOID, INT8OID}};
static CatalogQuery coordinator_read = {"SELECT holder FROM sheet.coordinator"};

/* coordinator_acquire(holder): the end of the session releases the lock. NULL: another session holds it. */
Datum
sheet_coordinator_acquire(PG_FUNCTION_ARGS)
{
	LOCKTAG tag;
	CatalogScope scope;
	NullableDatum args[2] = {fcinfo->args[0]};
	int64 epoch;

	permission_require_gateway();
	catalog_check_text(fcinfo, 0, "holder", HOLDER_MAX);
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, COORDINATOR_LOCK);
	switch (LockAcquire(&tag, ExclusiveLock, true, true))
	{
		case LOCKACQUIRE_NOT_AVAIL:
			PG_RETURN_NULL();
		case LOCKACQUIRE_ALREADY_HELD: /* a session holds it once */
			LockRelease(&tag, ExclusiveLock, true);
			break;
		default:
			break;
	}
	catalog_begin(&scope);
	catalog_run(&coordinator_epoch, NULL, false);
	epoch = catalog_int64(1, 0);
	args[1] = CATALOG_INT64(epoch);
	catalog_run(&coordinator_store, args, false);
	catalog_end(&scope);
	PG_RETURN_INT64(epoch);
}

Datum
sheet_coordinator_holder(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	return catalog_return_text(fcinfo, &coordinator_read, NULL, true);
}

/* ---- ownership ---- */

/* claim(sheet_id, epoch, holder, nowait) */
Datum
sheet_claim(PG_FUNCTION_ARGS)
{
	int64 last_seq;

	permission_require_gateway();
	catalog_require_args(fcinfo);
	catalog_check_text(fcinfo, 2, "holder", HOLDER_MAX);
	if (!journal_claim(PG_GETARG_INT64(0), PG_GETARG_INT64(1), text_to_cstring(PG_GETARG_TEXT_PP(2)), PG_GETARG_BOOL(3),
					   &last_seq))
		PG_RETURN_NULL();
	PG_RETURN_INT64(last_seq);
}

/* release(sheet_id, epoch). The commit is asynchronous: if it is lost, the sheet is only checked once more. */
Datum
sheet_release(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	catalog_require_args(fcinfo);
	(void) set_config_option("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	PG_RETURN_BOOL(journal_release(PG_GETARG_INT64(0), PG_GETARG_INT64(1)));
}

/* reset_epochs() */
Datum
sheet_reset_epochs(PG_FUNCTION_ARGS)
{
	if (!superuser())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("only a superuser may reset epochs")));
	journal_reset_epochs();
	PG_RETURN_VOID();
}

/* ---- edits ---- */

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

/* first_seq, last_seq, at, duplicate, missed, held */
#define APPLY_COLUMNS 6

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
		if (numbers[i] == 0 || numbers[i + 1] <= 0 || numbers[i + 2] <= 0 || numbers[i + 3] < numbers[i + 2])
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

	memset(nulls, result.held != 0, sizeof(nulls));
	values[0] = Int64GetDatum(result.first_seq);
	values[1] = Int64GetDatum(result.last_seq);
	values[2] = TimestampTzGetDatum(result.at);
	values[3] = BoolGetDatum(result.duplicate);
	values[4] = PointerGetDatum(result.missed);
	nulls[4] |= result.missed == NULL;
	values[5] = Int64GetDatum(result.held);
	nulls[5] = result.held == 0;
	return catalog_return_row(fcinfo, values, nulls);
}

/* client_acknowledged(sheet_id, uid, client) */
Datum
sheet_client_acknowledged(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	catalog_require_args(fcinfo);
	PG_RETURN_INT64(journal_acknowledged(PG_GETARG_INT64(0), PG_GETARG_INT64(1), PG_GETARG_INT64(2)));
}

/* ---- following ---- */

static Datum
follow_int64_array(const int64 *values, int count)
{
	Datum *datums = palloc(sizeof(Datum) * Max(count, 1));

	for (int i = 0; i < count; i++)
		datums[i] = Int64GetDatum(values[i]);
	return PointerGetDatum(construct_array(datums, count, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/* follow(origin, cursor, timeout_ms) */
Datum
sheet_follow(PG_FUNCTION_ARGS)
{
	FollowAnswer *answer = palloc0(sizeof(FollowAnswer));
	int64 origin = PG_ARGISNULL(0) ? 0 : PG_GETARG_INT64(0);
	int timeout_ms = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT32(2);
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
	if (PG_ARGISNULL(1))
		cursor = follow_head();
	else
		cursor = follow_next(origin, (uint64) PG_GETARG_INT64(1), timeout_ms, answer);

	values[0] = Int64GetDatum((int64) cursor);
	values[1] = BoolGetDatum(answer->lost);
	values[2] = follow_int64_array(answer->sheet_ids, answer->count);
	values[3] = follow_int64_array(answer->seqs, answer->count);
	return catalog_return_row(fcinfo, values, nulls);
}

/* tail(sheet_id, since, max_bytes) */
Datum
sheet_tail(PG_FUNCTION_ARGS)
{
	int64 last_seq;
	bytea *batches;
	Datum values[2];
	bool nulls[2] = {0};

	permission_require_gateway();
	catalog_require_args(fcinfo);
	if (PG_GETARG_INT32(2) < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("max_bytes must not be negative")));
	batches = journal_tail(PG_GETARG_INT64(0), PG_GETARG_INT64(1), Min(PG_GETARG_INT32(2), TAIL_MAX_BYTES), &last_seq);
	values[0] = Int64GetDatum(last_seq);
	values[1] = PointerGetDatum(batches);
	nulls[1] = batches == NULL;
	return catalog_return_row(fcinfo, values, nulls);
}

/* ---- holders ---- */

/*
 * A transaction holds a sheet from its first edit to its end, by the sheet lock (journal/write/writer.c). A gateway
 * that could not get a sheet asks, for all such sheets at once and without waiting, which transactions hold them. A
 * negative id is that of a book, whose reference lock is held (journal/write/tab_references.c).
 */
static CatalogQuery holders_account = {"SELECT name FROM sheet.account WHERE db_role = $1", {NAMEOID}};

/* The account as which the role acts, or the role itself if there is none. */
static char *
holders_name(Oid role)
{
	char *role_name = GetUserNameFromId(role, true);
	char *name = role_name == NULL ? NULL : catalog_find_string(&holders_account, &CATALOG_NAME(role_name), true);

	return name != NULL ? name : role_name;
}

/* One row: the sheet and its holder. Columns are null if the holder has ended meanwhile. */
static void
holders_put(ReturnSetInfo *rsinfo, int64 sheet_id, VirtualTransactionId holder)
{
	int backend = compat_vxid_backend(holder);
	PGPROC *proc = backend != COMPAT_NO_BACKEND ? compat_backend_process(backend) : NULL;
	PgBackendStatus *status = proc != NULL ? compat_backend_report(backend) : NULL;
	Oid role = proc != NULL ? proc->roleId : InvalidOid;
	char *name = OidIsValid(role) ? holders_name(role) : NULL;
	Datum values[HOLDERS_COLUMNS];
	bool nulls[HOLDERS_COLUMNS] = {false, true, true, false, true};

	values[0] = Int64GetDatum(sheet_id);
	values[3] = PointerGetDatum(cstring_to_text(psprintf("%d/%u", backend, (unsigned) holder.localTransactionId)));
	if (name != NULL)
	{
		values[1] = CStringGetTextDatum(name);
		nulls[1] = false;
	}
	if (status != NULL && status->st_procpid == proc->pid)
	{
		values[2] = CStringGetTextDatum(status->st_appname);
		values[4] = TimestampTzGetDatum(status->st_xact_start_timestamp);
		nulls[2] = false;
		nulls[4] = status->st_xact_start_timestamp == 0;
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* holders(sheet_ids) */
Datum
sheet_holders(PG_FUNCTION_ARGS)
{
	ArrayType *array = PG_GETARG_ARRAYTYPE_P(0);
	int n = ARR_NDIM(array) == 0 ? 0 : ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const int64 *sheets = (const int64 *) ARR_DATA_PTR(array);

	permission_require_gateway();
	if (ARR_NDIM(array) > 1 || array_contains_nulls(array) || n > HOLDERS_MAX)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("sheet_ids must be a list of up to %d sheet ids", HOLDERS_MAX)));
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < n; i++)
	{
		LOCKTAG tag;
		VirtualTransactionId *holders;
		int count;

		CHECK_FOR_INTERRUPTS();
		if (sheets[i] < 0)
			tab_references_lock_tag(-sheets[i], &tag);
		else
			writer_lock_tag(sheets[i], &tag);
		/* Sheet locks are exclusive: there is at most one holder, and it is not this transaction. Several may share a
		 * reference lock, for which somebody waits in exclusive mode: then one of them says enough. */
		holders = GetLockConflicts(&tag, ExclusiveLock, &count);
		if (count > 0)
			holders_put((ReturnSetInfo *) fcinfo->resultinfo, sheets[i], holders[0]);
		pfree(holders);
	}
	return (Datum) 0;
}
