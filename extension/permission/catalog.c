/*
 * catalog.c - SQL on the extension's own tables with the rights of their owner, and arguments of SQL functions.
 *
 * The functions of the API run with the rights of their caller, so that GetUserId() is the caller also inside views,
 * SECURITY DEFINER functions of others and index expressions. Only the part between catalog_begin() and catalog_end()
 * runs as the owner of the tables, with a search_path in which the caller cannot have created anything.
 */
#include "permission/catalog.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "common/string.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "support/person_name.h"
#include "support/tab_name.h"
#include "common/utf8.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static Oid
catalog_owner(void)
{
	Oid namespace = get_namespace_oid("sheet", true);
	Oid relid = OidIsValid(namespace) ? get_relname_relid("sheet", namespace) : InvalidOid;
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid owner;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation \"sheet.sheet\" does not exist"),
						errhint("Install the extension with CREATE EXTENSION pg_sheet.")));
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

void
catalog_begin(CatalogScope *scope)
{
	Oid owner = catalog_owner();

	scope->caller = CurrentMemoryContext;
	GetUserIdAndSecContext(&scope->user, &scope->security);
	SetUserIdAndSecContext(owner, scope->security | SECURITY_LOCAL_USERID_CHANGE);
	scope->guc_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
							 false);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
}

void
catalog_end(CatalogScope *scope)
{
	SPI_finish();
	AtEOXact_GUC(false, scope->guc_level);
	SetUserIdAndSecContext(scope->user, scope->security);
}

typedef struct CatalogArgs
{
	Datum values[CATALOG_MAX_ARGS];
	char nulls[CATALOG_MAX_ARGS];
} CatalogArgs;

/* Makes the plan in the first call. */
static void
catalog_prepare(CatalogQuery *query, const NullableDatum *args, CatalogArgs *to)
{
	int nargs = 0;

	for (; OidIsValid(query->types[nargs]); nargs++)
	{
		to->values[nargs] = args[nargs].value;
		to->nulls[nargs] = args[nargs].isnull ? 'n' : ' ';
	}
	if (query->plan == NULL)
	{
		SPIPlanPtr plan =
			SPI_prepare_cursor(query->sql, nargs, query->types, query->by_values ? CURSOR_OPT_CUSTOM_PLAN : 0);

		if (plan == NULL)
			elog(ERROR, "cannot prepare \"%s\": %s", query->sql, SPI_result_code_string(SPI_result));
		SPI_keepplan(plan);
		query->plan = plan;
	}
}

static uint64
catalog_processed(const CatalogQuery *query, int status)
{
	if (status < 0)
		elog(ERROR, "cannot run \"%s\": %s", query->sql, SPI_result_code_string(status));
	return SPI_processed;
}

uint64
catalog_run(CatalogQuery *query, const NullableDatum *args, bool read_only)
{
	CatalogArgs to;

	catalog_prepare(query, args, &to);
	return catalog_processed(query, SPI_execute_plan(query->plan, to.values, to.nulls, read_only, 0));
}

uint64
catalog_run_latest(CatalogQuery *query, const NullableDatum *args)
{
	Snapshot own = IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : InvalidSnapshot;
	CatalogArgs to;

	catalog_prepare(query, args, &to);
	return catalog_processed(
		query, SPI_execute_snapshot(query->plan, to.values, to.nulls, GetLatestSnapshot(), own, false, true, 0));
}

int64
catalog_int64(int column, int64 otherwise)
{
	bool isnull;
	Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, &isnull);

	return isnull ? otherwise : DatumGetInt64(value);
}

char *
catalog_string(CatalogScope *scope, int column)
{
	char *value = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column);

	return value == NULL ? NULL : MemoryContextStrdup(scope->caller, value);
}

uint64
catalog_execute(CatalogQuery *query, const NullableDatum *args)
{
	CatalogScope scope;
	uint64 rows;

	catalog_begin(&scope);
	rows = catalog_run(query, args, false);
	catalog_end(&scope);
	return rows;
}

bool
catalog_find_int64(CatalogQuery *query, const NullableDatum *args, bool read_only, int64 *value)
{
	CatalogScope scope;
	bool found;

	catalog_begin(&scope);
	found = catalog_run(query, args, read_only) > 0;
	if (found)
		*value = catalog_int64(1, 0);
	catalog_end(&scope);
	return found;
}

char *
catalog_find_string(CatalogQuery *query, const NullableDatum *args, bool read_only)
{
	CatalogScope scope;
	char *value = NULL;

	catalog_begin(&scope);
	if (catalog_run(query, args, read_only) > 0)
		value = catalog_string(&scope, 1);
	catalog_end(&scope);
	return value;
}

Datum
catalog_return_text(FunctionCallInfo fcinfo, CatalogQuery *query, const NullableDatum *args, bool read_only)
{
	char *value = catalog_find_string(query, args, read_only);

	if (value == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(value));
}

/* The row type of the function, found once for each call site. */
static TupleDesc
catalog_result_desc(FunctionCallInfo fcinfo)
{
	if (fcinfo->flinfo->fn_extra == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		TupleDesc desc;

		if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		fcinfo->flinfo->fn_extra = BlessTupleDesc(desc);
		MemoryContextSwitchTo(old);
	}
	return fcinfo->flinfo->fn_extra;
}

Datum
catalog_return_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	return HeapTupleGetDatum(heap_form_tuple(catalog_result_desc(fcinfo), values, nulls));
}

Datum
catalog_return_rows(FunctionCallInfo fcinfo, CatalogQuery *query, const NullableDatum *args, bool read_only)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	CatalogScope scope;
	uint64 rows;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	catalog_begin(&scope);
	rows = catalog_run(query, args, read_only);
	for (uint64 i = 0; i < rows; i++)
		tuplestore_puttuple(rsinfo->setResult, SPI_tuptable->vals[i]);
	catalog_end(&scope);
	return (Datum) 0;
}

/* ---- arguments ---- */

int64
catalog_sheet(NullableDatum arg)
{
	if (arg.isnull)
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the sheet id must not be null")));
	return DatumGetInt64(arg.value);
}

int64
catalog_arg_sheet(FunctionCallInfo fcinfo, int arg)
{
	return catalog_sheet(fcinfo->args[arg]);
}

int64
catalog_arg_int64(FunctionCallInfo fcinfo, int arg, int64 otherwise)
{
	return PG_ARGISNULL(arg) ? otherwise : PG_GETARG_INT64(arg);
}

void
catalog_require_arg(FunctionCallInfo fcinfo, int arg, const char *what)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the %s must not be null", what)));
}

/* Parameters that are results come last. */
void
catalog_require_args(FunctionCallInfo fcinfo)
{
	for (int arg = 0; arg < PG_NARGS(); arg++)
	{
		HeapTuple tuple;
		Oid *types;
		char **names, *modes;

		if (!PG_ARGISNULL(arg))
			continue;
		tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);
		(void) get_func_arg_info(tuple, &types, &names, &modes);
		for (char *at = names[arg]; (at = strchr(at, '_')) != NULL;)
			*at = ' ';
		catalog_require_arg(fcinfo, arg, names[arg]);
	}
}

int32
catalog_arg_page(FunctionCallInfo fcinfo, int arg, int32 max, const char *what)
{
	int32 rows = PG_ARGISNULL(arg) ? max : PG_GETARG_INT32(arg);

	if (rows < 1 || rows > max)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a page has 1 to %d %s", max, what)));
	return rows;
}

char *
catalog_arg_string(FunctionCallInfo fcinfo, int arg, const char *what)
{
	catalog_require_arg(fcinfo, arg, what);
	return text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

char *
catalog_normal_name(char *name)
{
	return tab_name_normal(name);
}

/* C0, DEL, and C1 (in UTF-8: C2 80 to C2 9F). */
static bool
catalog_has_control(const char *name)
{
	for (const unsigned char *p = (const unsigned char *) name; *p != 0; p++)
		if (*p < 0x20 || *p == 0x7F || (*p == 0xC2 && p[1] >= 0x80 && p[1] <= 0x9F))
			return true;
	return false;
}

void
catalog_check_name(const char *what, const char *name, int max)
{
	size_t chars;
	uint32 character;
	const char *problem;

	if (!utf8_check(name, strlen(name), &chars))
		ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE), errmsg("the %s is not valid UTF-8", what)));
	if (chars < 1 || chars > max)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the %s must have 1 to %d characters", what, max), errdetail("It has %zu.", chars)));
	if (catalog_has_control(name))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the %s must not contain control characters", what)));
	problem = name_direction_problem(name, strlen(name), &character);
	if (problem != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the %s must not contain %s", what, problem),
						errdetail("It contains U+%04X.", character)));
	if (name_is_blank(name, strlen(name)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the %s must have a visible character", what)));
}

void
catalog_check_text(FunctionCallInfo fcinfo, int arg, const char *what, int max)
{
	char *value = PG_ARGISNULL(arg) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(arg));

	if (value[0] != '\0')
		catalog_check_name(what, value, max);
}
