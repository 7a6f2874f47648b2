/* am_check.c - sheet.am_check(): every page and record of a table that uses the access method sheetlog. */
#include "postgres.h"

#include "compat.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "am/directory/am_verify.h"
#include "miscadmin.h"
#include "am/handler/sheetlog.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(sheet_am_check);

/* Rows (block, offset, what). */
static void
am_check_report(void *arg, BlockNumber block, OffsetNumber offset, const char *what)
{
	ReturnSetInfo *rsinfo = arg;
	Datum values[3] = {Int64GetDatum(block), Int32GetDatum(offset), CStringGetTextDatum(what)};
	bool nulls[3] = {false, offset == InvalidOffsetNumber, false};

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* VACUUM is kept out, which moves what is looked at; writers are not. */
Datum
sheet_am_check(PG_FUNCTION_ARGS)
{
	Oid relid = PG_GETARG_OID(0);
	LOCKMODE mode = RecoveryInProgress() ? AccessShareLock : ShareUpdateExclusiveLock;
	Relation rel;

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation with OID %u does not exist", relid)));
	if (!compat_is_table_owner(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, get_rel_name(relid));
	InitMaterializedSRF(fcinfo, 0);
	rel = table_open(relid, mode);
	if (!sheetlog_is(rel))
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("table \"%s\" does not use access method \"sheetlog\"", RelationGetRelationName(rel)),
						errhint("Tables of access method heap are checked by extension amcheck.")));
	am_verify(rel, am_check_report, fcinfo->resultinfo);
	table_close(rel, mode);
	return (Datum) 0;
}
