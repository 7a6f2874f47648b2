/*
 * caldav.c - SQL functions caldav_...(): who may read or change a calendar as calendar objects. What they do is in
 * sql/install/81-caldav.sql, and runs as the owner of the tables; docs/design/caldav.md has the whole.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_caldav_calendar);
PG_FUNCTION_INFO_V1(sheet_caldav_name);
PG_FUNCTION_INFO_V1(sheet_caldav_list);
PG_FUNCTION_INFO_V1(sheet_caldav_get);
PG_FUNCTION_INFO_V1(sheet_caldav_query);
PG_FUNCTION_INFO_V1(sheet_caldav_changes);
PG_FUNCTION_INFO_V1(sheet_caldav_put);
PG_FUNCTION_INFO_V1(sheet_caldav_delete);
PG_FUNCTION_INFO_V1(sheet_choose_calendar);
PG_FUNCTION_INFO_V1(sheet_caldav_find);
PG_FUNCTION_INFO_V1(sheet_caldav_busy);
PG_FUNCTION_INFO_V1(sheet_caldav_email);

static CatalogQuery caldav_calendar = {"SELECT s.sheet_id, s.name, sheet.role_of(s.sheet_id, $2), "
									   "sheet.calendar_zone(s.sheet_id), sheet.calendar_token(s.sheet_id), "
									   "(SELECT c.colour FROM sheet.calendar_choice c WHERE c.uid = $2 AND c.sheet_id "
									   "= $1) "
									   "FROM sheet.sheet s WHERE s.sheet_id = $1",
									   {INT8OID, INT8OID}};
static CatalogQuery caldav_name = {
	"SELECT o.name FROM sheet.calendar_object o WHERE o.sheet_id = $1 AND o.task_uid = $2 AND NOT o.gone",
	{INT8OID, TEXTOID}};
static CatalogQuery caldav_list = {
	"SELECT o.name, sheet.object_etag(o.change_no) FROM sheet.calendar_object o WHERE o.sheet_id = $1 AND NOT o.gone",
	{INT8OID}};
static CatalogQuery caldav_get = {
	"SELECT * FROM sheet.read_objects($1, $2)", {INT8OID, TEXTARRAYOID}, .by_values = true};
static CatalogQuery caldav_query = {"SELECT b.name, b.etag, NULL::text FROM sheet.objects_between($1, $2, $3) b",
									{INT8OID, TIMESTAMPTZOID, TIMESTAMPTZOID}};
static CatalogQuery caldav_expand = {"SELECT * FROM sheet.expand_objects($1, $2, $3)",
									 {INT8OID, TIMESTAMPTZOID, TIMESTAMPTZOID}};
static CatalogQuery caldav_changes = {"SELECT * FROM sheet.changes_since($1, $2)", {INT8OID, INT8OID}};
static CatalogQuery caldav_put = {
	"SELECT p.etag, p.created::integer::bigint FROM sheet.put_object($1, $2, $3, $4, $5, $6, $7) p",
	{INT8OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, BOOLOID}};
static CatalogQuery caldav_delete = {"SELECT sheet.delete_object($1, $2, $3, $4)",
									 {INT8OID, TEXTOID, TEXTOID, INT8OID}};
static CatalogQuery caldav_busy = {"SELECT sheet.read_free_busy($1, $2, $3)",
								   {INT8OID, TIMESTAMPTZOID, TIMESTAMPTZOID}};
static CatalogQuery caldav_email = {"SELECT a.email FROM sheet.account a WHERE a.uid = $1 AND a.email <> ''",
									{INT8OID}};
static CatalogQuery caldav_choose = {"SELECT sheet.put_choice($1, $2, $3, $4)", {INT8OID, INT8OID, TEXTOID, TEXTOID}};
static CatalogQuery caldav_find = {"SELECT c.sheet_id FROM sheet.calendar_choice c WHERE c.uid = $2 AND c.address = $1",
								   {TEXTOID, INT8OID}};
static CatalogQuery caldav_is_calendar = {"SELECT s.sheet_id FROM sheet.sheet s WHERE s.sheet_id = $1 AND s.calendar",
										  {INT8OID}};

/* The sheet of argument 0, a calendar on which the account has the role. */
static void
caldav_require(FunctionCallInfo fcinfo, int uid_arg, SheetRole role)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), found;

	permission_require(sheet_id, catalog_arg_int64(fcinfo, uid_arg, 0), role, false);
	if (!catalog_find_int64(&caldav_is_calendar, fcinfo->args, true, &found))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("sheet " INT64_FORMAT " is not a calendar", sheet_id),
				 errhint("sheet.set_calendar() makes it one.")));
}

/* The account of the argument as the parameter of a function that runs as the owner. Null: superusers without one. */
static NullableDatum
caldav_uid(FunctionCallInfo fcinfo, int arg)
{
	int64 uid = permission_uid(catalog_arg_int64(fcinfo, arg, 0));

	return uid != 0 ? CATALOG_INT64(uid) : CATALOG_NULL;
}

/* caldav_calendar(sheet_id, as_uid) */
Datum
sheet_caldav_calendar(PG_FUNCTION_ARGS)
{
	NullableDatum args[2];

	caldav_require(fcinfo, 1, ROLE_VIEWER);
	args[0] = fcinfo->args[0];
	args[1] = caldav_uid(fcinfo, 1);
	return catalog_return_rows(fcinfo, &caldav_calendar, args, true);
}

/* caldav_name(sheet_id, task_uid, as_uid) */
Datum
sheet_caldav_name(PG_FUNCTION_ARGS)
{
	caldav_require(fcinfo, 2, ROLE_VIEWER);
	catalog_require_arg(fcinfo, 1, "UID");
	return catalog_return_text(fcinfo, &caldav_name, fcinfo->args, true);
}

/* caldav_list(sheet_id, as_uid) */
Datum
sheet_caldav_list(PG_FUNCTION_ARGS)
{
	caldav_require(fcinfo, 1, ROLE_VIEWER);
	return catalog_return_rows(fcinfo, &caldav_list, fcinfo->args, true);
}

/* caldav_get(sheet_id, names, as_uid) */
Datum
sheet_caldav_get(PG_FUNCTION_ARGS)
{
	caldav_require(fcinfo, 2, ROLE_VIEWER);
	return catalog_return_rows(fcinfo, &caldav_get, fcinfo->args, true);
}

/* caldav_query(sheet_id, from, to, expand, as_uid) */
Datum
sheet_caldav_query(PG_FUNCTION_ARGS)
{
	caldav_require(fcinfo, 4, ROLE_VIEWER);
	catalog_require_arg(fcinfo, 1, "beginning");
	catalog_require_arg(fcinfo, 2, "end");
	catalog_require_arg(fcinfo, 3, "expand");
	return catalog_return_rows(fcinfo, PG_GETARG_BOOL(3) ? &caldav_expand : &caldav_query, fcinfo->args, true);
}

/* caldav_changes(sheet_id, since, as_uid) */
Datum
sheet_caldav_changes(PG_FUNCTION_ARGS)
{
	caldav_require(fcinfo, 2, ROLE_VIEWER);
	return catalog_return_rows(fcinfo, &caldav_changes, fcinfo->args, true);
}

/* Returns false if the account may only answer and the object changes anything else. */
static bool
caldav_write(FunctionCallInfo fcinfo, bool answers_only, Datum values[2])
{
	NullableDatum args[7];
	CatalogScope scope;
	char *etag;
	int64 created;

	caldav_require(fcinfo, 5, answers_only ? ROLE_VIEWER : ROLE_EDITOR);
	for (int arg = 0; arg < 5; arg++)
		args[arg] = fcinfo->args[arg];
	args[5] = caldav_uid(fcinfo, 5);
	args[6] = CATALOG_DATUM(BoolGetDatum(answers_only));
	catalog_begin(&scope);
	(void) catalog_run(&caldav_put, args, false);
	etag = catalog_string(&scope, 1);
	created = catalog_int64(2, -1);
	catalog_end(&scope);
	values[0] = CStringGetTextDatum(etag != NULL ? etag : "");
	values[1] = BoolGetDatum(created > 0);
	return created >= 0;
}

/* Programs take . and .. in an address for the calendar or what is above it, and a name with a slash for several names.
 */
static void
caldav_check_name(const char *name)
{
	catalog_check_name("name of the object", name, 255);
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/') != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the name of the object must not be . or .., and must not contain a slash")));
}

/* caldav_put(sheet_id, name, data, if_match, if_none_match, as_uid) */
Datum
sheet_caldav_put(PG_FUNCTION_ARGS)
{
	bool answers_only = permission_role(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 5, 0)) < ROLE_EDITOR;
	Datum values[2];
	bool nulls[2] = {false, false};

	catalog_require_arg(fcinfo, 2, "data");
	caldav_check_name(catalog_arg_string(fcinfo, 1, "name"));
	if (!caldav_write(fcinfo, answers_only, values))
		(void) caldav_write(fcinfo, false, values);
	return catalog_return_row(fcinfo, values, nulls);
}

/* caldav_delete(sheet_id, name, if_match, as_uid) */
Datum
sheet_caldav_delete(PG_FUNCTION_ARGS)
{
	NullableDatum args[4];

	caldav_require(fcinfo, 3, ROLE_EDITOR);
	catalog_require_arg(fcinfo, 1, "name");
	args[0] = fcinfo->args[0];
	args[1] = fcinfo->args[1];
	args[2] = fcinfo->args[2];
	args[3] = caldav_uid(fcinfo, 3);
	catalog_execute(&caldav_delete, args);
	PG_RETURN_VOID();
}

/* choose_calendar(sheet_id, colour, address, as_uid) */
Datum
sheet_choose_calendar(PG_FUNCTION_ARGS)
{
	NullableDatum args[] = {fcinfo->args[0], caldav_uid(fcinfo, 3), fcinfo->args[1], fcinfo->args[2]};

	caldav_require(fcinfo, 3, ROLE_VIEWER);
	if (args[1].isnull)
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the current role acts as no account"),
						errhint("Name the account by its uid.")));
	catalog_execute(&caldav_choose, args);
	PG_RETURN_VOID();
}

/* caldav_find(address, as_uid) */
Datum
sheet_caldav_find(PG_FUNCTION_ARGS)
{
	NullableDatum args[] = {fcinfo->args[0], caldav_uid(fcinfo, 1)};
	int64 sheet_id;

	catalog_require_arg(fcinfo, 0, "address");
	if (!catalog_find_int64(&caldav_find, args, true, &sheet_id))
		PG_RETURN_NULL();
	PG_RETURN_INT64(sheet_id);
}

/* caldav_busy(sheet_id, from, to, as_uid) */
Datum
sheet_caldav_busy(PG_FUNCTION_ARGS)
{
	caldav_require(fcinfo, 3, ROLE_VIEWER);
	catalog_require_arg(fcinfo, 1, "beginning");
	catalog_require_arg(fcinfo, 2, "end");
	return catalog_return_text(fcinfo, &caldav_busy, fcinfo->args, true);
}

/* caldav_email(as_uid) */
Datum
sheet_caldav_email(PG_FUNCTION_ARGS)
{
	NullableDatum args[] = {caldav_uid(fcinfo, 0)};

	return catalog_return_text(fcinfo, &caldav_email, args, true);
}
