/* accounts_api.c - SQL functions on accounts: made and read by gateways, linked to SQL roles by superusers. */
#include "postgres.h"

#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "journal/follow/follow.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "common/person_name.h"
#include "journal/store/history.h"
#include "permission/skeleton.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(sheet_account_create);
PG_FUNCTION_INFO_V1(sheet_account_find);
PG_FUNCTION_INFO_V1(sheet_account_get);
PG_FUNCTION_INFO_V1(sheet_account_seen);
PG_FUNCTION_INFO_V1(sheet_account_rename);
PG_FUNCTION_INFO_V1(sheet_account_set_password);
PG_FUNCTION_INFO_V1(sheet_account_revoke_tokens);
PG_FUNCTION_INFO_V1(sheet_link_account);

#define ACCOUNT_NAME_MAX   100
#define ACCOUNT_SEEN_EDITS 1000 /* of the log's end */

static CatalogQuery account_insert = {
	"INSERT INTO sheet.account (name, email, password_hash, skeleton) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING "
	"RETURNING uid",
	4,
	{TEXTOID, TEXTOID, TEXTOID, TEXTOID}};
static CatalogQuery account_by_name = {
	"SELECT uid, name, password_hash, token_generation FROM sheet.account WHERE name = $1", 1, {TEXTOID}};
static CatalogQuery account_by_uid = {
	"SELECT uid, name, token_generation FROM sheet.account WHERE uid = $1", 1, {INT8OID}};
/* What is quick to look up stands first. */
static CatalogQuery account_seen = {"SELECT name FROM sheet.account a WHERE uid = $1 AND "
									"(EXISTS (SELECT FROM sheet.member m WHERE m.sheet_id = $2 AND m.uid = $1) "
									"OR EXISTS (SELECT FROM sheet.client c WHERE c.sheet_id = $2 AND c.uid = $1) "
									"OR EXISTS (SELECT FROM sheet.log_edits($2) e WHERE e.uid = $1 AND e.seq > $3))",
									3,
									{INT8OID, INT8OID, INT8OID}};
static CatalogQuery account_name_taken = {
	"SELECT 1 FROM sheet.account WHERE name = $2 AND uid <> $1", 2, {INT8OID, TEXTOID}};
static CatalogQuery account_skeleton_taken = {
	"SELECT 1 FROM sheet.account WHERE skeleton = $2 AND uid <> $1", 2, {INT8OID, TEXTOID}};
static CatalogQuery account_update_name = {
	"UPDATE sheet.account SET name = $2, skeleton = $3 WHERE uid = $1", 3, {INT8OID, TEXTOID, TEXTOID}};
static CatalogQuery account_update_password = {
	"UPDATE sheet.account SET password_hash = $2, token_generation = token_generation + 1 WHERE uid = $1 "
	"RETURNING token_generation::int8",
	2,
	{INT8OID, TEXTOID}};
static CatalogQuery account_update_generation = {
	"UPDATE sheet.account SET token_generation = token_generation + 1 WHERE uid = $1 RETURNING token_generation::int8",
	1,
	{INT8OID}};
static CatalogQuery account_update_role = {
	"UPDATE sheet.account SET db_role = $2::pg_catalog.regrole WHERE name = $1", 2, {TEXTOID, OIDOID}};
/* The name in the form in which names are stored and looked up. */
static char *
account_arg_name(FunctionCallInfo fcinfo, int arg)
{
	return catalog_normal_name(catalog_arg_string(fcinfo, arg, "account name"));
}

static void
account_check_name(const char *name)
{
	uint32 character;
	const char *problem;

	catalog_check_name("account name", name, ACCOUNT_NAME_MAX);
	problem = person_name_problem(name, strlen(name), &character);
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the account name must not contain %s", problem),
				 errdetail("It contains U+%04X.", character)));
}

static void
account_name_error(const char *name)
{
	ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION), errmsg("the account name \"%s\" is taken", name)));
}

/* The name is not another account's, and does not look like one. uid: whose it is to be; 0: of a new one. */
static void
account_require_free(int64 uid, const char *name, const char *skeleton)
{
	Datum values[2] = {Int64GetDatum(uid), CStringGetTextDatum(name)};

	if (catalog_execute(&account_name_taken, values, NULL) > 0)
		account_name_error(name);
	values[1] = CStringGetTextDatum(skeleton);
	if (catalog_execute(&account_skeleton_taken, values, NULL) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("the account name \"%s\" looks like one that is taken", name),
				 errdetail("Some of its characters can be mistaken for others."), errhint("Choose another name.")));
}

static void
account_missing_error(int64 uid)
{
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("account " INT64_FORMAT " does not exist", uid)));
}

/* account_create(name, email, password_hash) */
Datum
sheet_account_create(PG_FUNCTION_ARGS)
{
	CatalogScope scope;
	char *name = account_arg_name(fcinfo, 0), *skeleton;
	Datum values[4] = {CStringGetTextDatum(name), PG_GETARG_DATUM(1), PG_GETARG_DATUM(2)};
	bool nulls[4] = {false, PG_ARGISNULL(1), PG_ARGISNULL(2), false};
	int64 uid;
	bool isnull;

	permission_require_gateway();
	account_check_name(name);
	skeleton = skeleton_of(name);
	values[3] = CStringGetTextDatum(skeleton);
	account_require_free(0, name, skeleton);
	catalog_begin(&scope);
	if (catalog_run(&account_insert, values, nulls, false) == 0)
		account_name_error(name);
	uid = catalog_int64(1, &isnull);
	catalog_end(&scope);
	PG_RETURN_INT64(uid);
}

Datum
sheet_account_find(PG_FUNCTION_ARGS)
{
	Datum name = CStringGetTextDatum(account_arg_name(fcinfo, 0));

	permission_require_gateway();
	return catalog_return_rows(fcinfo, &account_by_name, &name, NULL, true);
}

Datum
sheet_account_get(PG_FUNCTION_ARGS)
{
	Datum uid = PG_GETARG_DATUM(0);

	permission_require_gateway();
	return catalog_return_rows(fcinfo, &account_by_uid, &uid, NULL, true);
}

/* account_seen(sheet_id, uid) */
Datum
sheet_account_seen(PG_FUNCTION_ARGS)
{
	int64 sheet_id = PG_GETARG_INT64(0);
	Datum values[3] = {PG_GETARG_DATUM(1), PG_GETARG_DATUM(0)};
	HistoryLast last;

	permission_require_gateway();
	history_last_edit(sheet_id, GetActiveSnapshot(), &last);
	values[2] = Int64GetDatum(last.last_seq - ACCOUNT_SEEN_EDITS);
	return catalog_return_text(fcinfo, &account_seen, values, true);
}

/* account_rename(uid, name) */
Datum
sheet_account_rename(PG_FUNCTION_ARGS)
{
	int64 uid = PG_GETARG_INT64(0);
	char *name = account_arg_name(fcinfo, 1), *skeleton;
	Datum values[3] = {Int64GetDatum(uid), CStringGetTextDatum(name)};

	permission_require_gateway();
	account_check_name(name);
	skeleton = skeleton_of(name);
	values[2] = CStringGetTextDatum(skeleton);
	account_require_free(uid, name, skeleton);
	if (catalog_execute(&account_update_name, values, NULL) == 0)
		account_missing_error(uid);
	follow_register_account(uid);
	PG_RETURN_VOID();
}

/* Changes the account (values[0]: uid) by a query that returns the new token generation, of which gateways hear. */
static Datum
account_new_generation(CatalogQuery *query, Datum *values)
{
	CatalogScope scope;
	int64 generation;
	bool isnull;

	permission_require_gateway();
	catalog_begin(&scope);
	if (catalog_run(query, values, NULL, false) == 0)
		account_missing_error(DatumGetInt64(values[0]));
	generation = catalog_int64(1, &isnull);
	catalog_end(&scope);
	follow_register_account(DatumGetInt64(values[0]));
	return Int32GetDatum((int32) generation);
}

/* account_set_password(uid, password_hash) */
Datum
sheet_account_set_password(PG_FUNCTION_ARGS)
{
	Datum values[2] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)};

	return account_new_generation(&account_update_password, values);
}

/* account_revoke_tokens(uid) */
Datum
sheet_account_revoke_tokens(PG_FUNCTION_ARGS)
{
	Datum uid = PG_GETARG_DATUM(0);

	return account_new_generation(&account_update_generation, &uid);
}

/* link_account(name, db_role): NULL ends the link */
Datum
sheet_link_account(PG_FUNCTION_ARGS)
{
	char *name = account_arg_name(fcinfo, 0);
	Datum values[2] = {CStringGetTextDatum(name), (Datum) 0};
	bool nulls[2] = {false, PG_ARGISNULL(1)};

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("only a superuser may link accounts to roles")));
	if (!nulls[1])
		values[1] = ObjectIdGetDatum(get_role_oid(NameStr(*PG_GETARG_NAME(1)), false));
	if (catalog_execute(&account_update_role, values, nulls) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("account \"%s\" does not exist", name)));
	PG_RETURN_VOID();
}
