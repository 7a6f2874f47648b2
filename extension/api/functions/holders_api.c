/*
 * holders_api.c - sheet.holders(): which transactions hold sheets.
 *
 * A transaction holds a sheet from its first edit to its end, by the sheet lock (journal/writer.c). A gateway that
 * could not get a sheet asks here, for all such sheets at once and without waiting, who holds them and whether they are
 * free.
 */
#include "postgres.h"

#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/sinvaladt.h"
#include "utils/array.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "journal/write/writer.h"

PG_FUNCTION_INFO_V1(sheet_holders);

#define HOLDERS_MAX		100000 /* sheets asked for at once */
#define HOLDERS_COLUMNS 5

static CatalogQuery holders_account = {"SELECT name FROM sheet.account WHERE db_role = $1", 1, {OIDOID}};

/* The account as which the role acts, or the role itself when there is none. */
static char *
holders_name(Oid role)
{
	CatalogScope scope;
	Datum value = ObjectIdGetDatum(role);
	char *name = NULL;

	catalog_begin(&scope);
	if (catalog_run(&holders_account, &value, NULL, true) > 0)
		name = catalog_string(&scope, 1);
	catalog_end(&scope);
	return name != NULL ? name : GetUserNameFromId(role, true);
}

/* One row: the sheet and its holder. Columns stay null when the holder has ended meanwhile. */
static void
holders_put(ReturnSetInfo *rsinfo, int64 sheet_id, VirtualTransactionId holder)
{
	PGPROC *proc = holder.backendId != InvalidBackendId ? BackendIdGetProc(holder.backendId) : NULL;
	PgBackendStatus *status = proc != NULL ? pgstat_fetch_stat_beentry(holder.backendId) : NULL;
	Oid role = proc != NULL ? proc->roleId : InvalidOid;
	char *name = OidIsValid(role) ? holders_name(role) : NULL;
	Datum values[HOLDERS_COLUMNS];
	bool nulls[HOLDERS_COLUMNS] = {false, true, true, false, true};

	values[0] = Int64GetDatum(sheet_id);
	values[3] =
		PointerGetDatum(cstring_to_text(psprintf("%d/%u", holder.backendId, (unsigned) holder.localTransactionId)));
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
		writer_lock_tag(sheets[i], &tag);
		/* Sheet locks are exclusive: there is one holder at most, and it is not this transaction. */
		holders = GetLockConflicts(&tag, ExclusiveLock, &count);
		if (count > 0)
			holders_put((ReturnSetInfo *) fcinfo->resultinfo, sheets[i], holders[0]);
		pfree(holders);
	}
	return (Datum) 0;
}
