/* accounts_api.c - SQL functions on accounts: made and read by gateways, linked to SQL roles by superusers. */
#include "postgres.h"

#include "catalog.h"
#include "catalog/pg_type.h"
#include "follow.h"
#include "miscadmin.h"
#include "permission.h"
#include "person_name.h"
#include "replay_find.h"
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
PG_FUNCTION_INFO_V1(sheet_account_sheets);
PG_FUNCTION_INFO_V1(sheet_link_account);

#define ACCOUNT_NAME_MAX   100
#define ACCOUNT_SEEN_EDITS 100000 /* of the log's end, which are looked through in milliseconds */

static CatalogQuery account_insert = {
	"INSERT INTO sheet.account (name, email, password_hash) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING "
	"RETURNING uid",
	3,
	{TEXTOID, TEXTOID, TEXTOID}};
static CatalogQuery account_by_name = {
	"SELECT uid, name, password_hash, token_generation FROM sheet.account WHERE name = $1", 1, {TEXTOID}};
static CatalogQuery account_by_uid = {
	"SELECT uid, name, token_generation FROM sheet.account WHERE uid = $1", 1, {INT8OID}};
/* What is quick to look up stands first. */
static CatalogQuery account_seen = {
	"SELECT name FROM sheet.account a WHERE uid = $1 AND "
	"(EXISTS (SELECT FROM sheet.sheet s WHERE s.sheet_id = $2 AND s.owner = a.uid) "
	"OR EXISTS (SELECT FROM sheet.member m WHERE m.sheet_id = $2 AND m.uid = a.uid) "
	"OR EXISTS (SELECT FROM sheet.client c WHERE c.sheet_id = $2 AND c.uid = a.uid) "
	"OR EXISTS (SELECT FROM sheet.checkpoint c WHERE c.sheet_id = $2 AND c.uid = a.uid) "
	"OR EXISTS (SELECT FROM sheet.log_edits($2) e WHERE e.uid = $1 AND e.seq > $3))",
	3,
	{INT8OID, INT8OID, INT8OID}};
static CatalogQuery account_name_taken = {
	"SELECT 1 FROM sheet.account WHERE name = $2 AND uid <> $1", 2, {INT8OID, TEXTOID}};
static CatalogQuery account_update_name = {"UPDATE sheet.account SET name = $2 WHERE uid = $1", 2, {INT8OID, TEXTOID}};
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
/* What is in the trash is shown to its owner only. */
static CatalogQuery account_list_sheets = {
	"SELECT s.sheet_id, s.name, o.name, CASE WHEN s.owner = $1 THEN 'owner' ELSE m.role END, s.trashed_at IS NOT NULL, "
	"(SELECT count(*)::int FROM sheet.checkpoint c WHERE c.sheet_id = s.sheet_id), sheet.extent_cols(s.sheet_id), "
	"s.created_at, sheet.last_edit(s.sheet_id, s.created_at) AS updated "
	"FROM sheet.sheet s LEFT JOIN sheet.member m ON m.sheet_id = s.sheet_id AND m.uid = $1 "
	"LEFT JOIN sheet.account o ON o.uid = s.owner "
	"WHERE s.sheet_id IN (SELECT sheet_id FROM sheet.sheet WHERE owner = $1 UNION ALL "
	"SELECT sheet_id FROM sheet.member WHERE uid = $1) AND (s.trashed_at IS NULL OR s.owner = $1) "
	"ORDER BY updated DESC, s.sheet_id DESC",
	1,
	{INT8OID}};

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
	char *name = account_arg_name(fcinfo, 0);
	Datum values[3] = {CStringGetTextDatum(name), PG_GETARG_DATUM(1), PG_GETARG_DATUM(2)};
	bool nulls[3] = {false, PG_ARGISNULL(1), PG_ARGISNULL(2)};
	int64 uid;
	bool isnull;

	permission_require_gateway();
	account_check_name(name);
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
	ReplayLast last;

	permission_require_gateway();
	replay_last(sheet_id, GetActiveSnapshot(), &last);
	values[2] = Int64GetDatum(last.last_seq - ACCOUNT_SEEN_EDITS);
	return catalog_return_text(fcinfo, &account_seen, values, true);
}

/* account_rename(uid, name) */
Datum
sheet_account_rename(PG_FUNCTION_ARGS)
{
	int64 uid = PG_GETARG_INT64(0);
	char *name = account_arg_name(fcinfo, 1);
	Datum values[2] = {Int64GetDatum(uid), CStringGetTextDatum(name)};

	permission_require_gateway();
	account_check_name(name);
	if (catalog_execute(&account_name_taken, values, NULL) > 0)
		account_name_error(name);
	if (catalog_execute(&account_update_name, values, NULL) == 0)
		account_missing_error(uid);
	follow_note_account(uid);
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
	follow_note_account(DatumGetInt64(values[0]));
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

/* account_sheets(uid): gateways, and everybody for the own account */
Datum
sheet_account_sheets(PG_FUNCTION_ARGS)
{
	Datum uid = PG_GETARG_DATUM(0);

	if (permission_uid(0) != PG_GETARG_INT64(0))
		permission_require_gateway();
	return catalog_return_rows(fcinfo, &account_list_sheets, &uid, NULL, false);
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
