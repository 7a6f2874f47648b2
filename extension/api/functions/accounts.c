/* accounts.c - SQL functions on accounts: gateways make and read them, superusers link them to SQL roles. */
#include "postgres.h"

#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "journal/follow/follow.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "support/person_name.h"
#include "api/functions/functions.h"
#include "journal/store/history.h"
#include "mb/pg_wchar.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include <unicode/uspoof.h>

PG_FUNCTION_INFO_V1(sheet_account_create);
PG_FUNCTION_INFO_V1(sheet_account_find);
PG_FUNCTION_INFO_V1(sheet_account_get);
PG_FUNCTION_INFO_V1(sheet_account_seen);
PG_FUNCTION_INFO_V1(sheet_account_rename);
PG_FUNCTION_INFO_V1(sheet_account_set_password);
PG_FUNCTION_INFO_V1(sheet_account_revoke_tokens);
PG_FUNCTION_INFO_V1(sheet_account_revoke_token);
PG_FUNCTION_INFO_V1(sheet_account_token_revoked);
PG_FUNCTION_INFO_V1(sheet_link_account);

#define ACCOUNT_EMAIL_MAX	254
#define ACCOUNT_NAME_MAX	100
#define ACCOUNT_SEEN_EDITS	1000 /* of the log's end */
#define ACCOUNT_REVOKED_MAX 1000 /* tokens that were not removed yet */

static CatalogQuery account_insert = {
	"INSERT INTO sheet.account (name, email, password_hash, skeleton) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING "
	"RETURNING uid",
	{TEXTOID, TEXTOID, TEXTOID, TEXTOID}};
static CatalogQuery account_by_name = {
	"SELECT uid, name, password_hash, token_generation FROM sheet.account WHERE name = $1", {TEXTOID}};
static CatalogQuery account_by_uid = {"SELECT uid, name, token_generation FROM sheet.account WHERE uid = $1",
									  {INT8OID}};
static CatalogQuery account_of_link = {"SELECT -link_id, label || '" GUEST_LINK_SUFFIX "', generation "
									   "FROM sheet.link WHERE link_id = -$1 AND " LINK_IS_VALID,
									   {INT8OID}};
static CatalogQuery account_seen_link = {"SELECT label || '" GUEST_LINK_SUFFIX
										 "' FROM sheet.link WHERE link_id = -$1 AND sheet_id = $2",
										 {INT8OID, INT8OID}};
/* Cheap lookups come first. */
static CatalogQuery account_seen = {"SELECT name FROM sheet.account a WHERE uid = $1 AND "
									"(EXISTS (SELECT FROM sheet.member m WHERE m.sheet_id = $2 AND m.uid = $1) "
									"OR EXISTS (SELECT FROM sheet.client c WHERE c.sheet_id = $2 AND c.uid = $1) "
									"OR EXISTS (SELECT FROM sheet.log_edits($2) e WHERE e.uid = $1 AND e.seq > $3))",
									{INT8OID, INT8OID, INT8OID}};
static CatalogQuery account_name_taken = {"SELECT 1 FROM sheet.account WHERE name = $2 AND uid <> $1",
										  {INT8OID, TEXTOID}};
static CatalogQuery account_skeleton_taken = {"SELECT 1 FROM sheet.account WHERE skeleton = $2 AND uid <> $1",
											  {INT8OID, TEXTOID}};
static CatalogQuery account_update_name = {"UPDATE sheet.account SET name = $2, skeleton = $3 WHERE uid = $1",
										   {INT8OID, TEXTOID, TEXTOID}};
static CatalogQuery account_update_password = {
	"UPDATE sheet.account SET password_hash = $2, token_generation = token_generation + 1 WHERE uid = $1 "
	"RETURNING token_generation::int8",
	{INT8OID, TEXTOID}};
static CatalogQuery account_update_generation = {
	"UPDATE sheet.account SET token_generation = token_generation + 1 WHERE uid = $1 RETURNING token_generation::int8",
	{INT8OID}};
static CatalogQuery account_update_role = {"UPDATE sheet.account SET db_role = $2 WHERE name = $1", {TEXTOID, NAMEOID}};
static CatalogQuery account_of_role = {"SELECT name FROM sheet.account WHERE db_role = $2 AND name <> $1",
									   {TEXTOID, NAMEOID}};
static CatalogQuery token_insert = {"INSERT INTO sheet.revoked_token "
									"SELECT uid, $2, pg_catalog.to_timestamp($3::float8) FROM sheet.account "
									"WHERE uid = $1 ON CONFLICT DO NOTHING",
									{INT8OID, INT8OID, INT8OID}};
static CatalogQuery token_delete_all = {"DELETE FROM sheet.revoked_token WHERE uid = $1", {INT8OID}};
static CatalogQuery token_count = {"SELECT pg_catalog.count(*) FROM sheet.revoked_token WHERE uid = $1", {INT8OID}};
/* The first one to expire has the timer remove those that have expired (sheet.expire_revoked_tokens). */
static CatalogQuery token_timer = {
	"INSERT INTO sheet.timer (kind, id, at) SELECT 'revoked tokens', $1, pg_catalog.min(expires_at) + interval '1 day' "
	"FROM sheet.revoked_token WHERE uid = $1 HAVING pg_catalog.count(*) > 0 ON CONFLICT (kind, id) DO UPDATE "
	"SET at = LEAST(timer.at, excluded.at), failures = 0",
	{INT8OID}};
/* By a clock of a gateway, which may be behind this one, a token may expire up to a day later. */
static CatalogQuery token_find = {"SELECT token_id FROM sheet.revoked_token WHERE uid = $1 AND token_id = $2 "
								  "AND expires_at >= pg_catalog.now() - interval '1 day'",
								  {INT8OID, INT8OID}};

/* ---- names that look alike ---- */

/* Made once for the session. */
static const USpoofChecker *
account_spoof_checker(void)
{
	static USpoofChecker *checker = NULL;
	UErrorCode status = U_ZERO_ERROR;

	if (checker == NULL)
		checker = uspoof_open(&status);
	if (U_FAILURE(status))
		ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR), errmsg("ICU cannot compare names: %s", u_errorName(status)),
						errhint("It needs its data of confusable characters.")));
	return checker;
}

/* PostgreSQL normalizes text only in databases whose encoding is UTF-8. */
static char *
account_compatible_form(const char *name)
{
	Datum value = CStringGetTextDatum(name);

	if (GetDatabaseEncoding() == PG_UTF8)
		value = DirectFunctionCall2(unicode_normalize_func, value, CStringGetTextDatum("NFKC"));
	return TextDatumGetCString(value);
}

/*
 * Names that look alike have the same skeleton (Unicode Technical Standard 39, section 4), which ICU computes from the
 * compatibility form (NFKC), so that full-width letters are covered. The table of confusable characters grows with
 * Unicode: a name that was stored by an older ICU keeps its older skeleton.
 */
static char *
account_skeleton(const char *name)
{
	const USpoofChecker *checker = account_spoof_checker();
	UErrorCode status = U_ZERO_ERROR;
	char *plain = account_compatible_form(name);
	int32 len = (int32) strlen(plain), room = 4 * len + 64, needed;
	char *skeleton = palloc(room + 1);

	needed = uspoof_getSkeletonUTF8(checker, 0, plain, len, skeleton, room, &status);
	if (status == U_BUFFER_OVERFLOW_ERROR)
	{
		status = U_ZERO_ERROR;
		skeleton = repalloc(skeleton, needed + 1);
		needed = uspoof_getSkeletonUTF8(checker, 0, plain, len, skeleton, needed, &status);
	}
	if (U_FAILURE(status))
		ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR),
						errmsg("ICU cannot compare the name \"%s\": %s", name, u_errorName(status))));
	skeleton[needed] = '\0';
	return skeleton;
}

/* ---- arguments ---- */

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

/* Names that are shown for guests end like this. No account may have such a name, nor one that looks like it. */
static void
account_refuse_guests_name(const char *name, const char *skeleton)
{
	static const char *const suffixes[] = {GUEST_SUFFIX, GUEST_LINK_SUFFIX};

	for (int i = 0; i < lengthof(suffixes); i++)
	{
		const char *suffix = account_skeleton(suffixes[i] + 1); /* without the blank */
		size_t len = strlen(skeleton), suffix_len = strlen(suffix);

		if (len >= suffix_len && strcmp(skeleton + len - suffix_len, suffix) == 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("the account name must not end with \"%s\"", suffixes[i] + 1),
							errdetail("The names of those who have no account are shown so.")));
	}
}

/* Returns the name's skeleton. Raises 23505 if another account than uid (0: any) has this name or one that looks alike.
 */
static char *
account_require_free(int64 uid, const char *name)
{
	char *skeleton = account_skeleton(name);
	NullableDatum args[] = {CATALOG_INT64(uid), CATALOG_TEXT(name)};

	account_refuse_guests_name(name, skeleton);
	if (catalog_execute(&account_name_taken, args) > 0)
		account_name_error(name);
	args[1] = CATALOG_TEXT(skeleton);
	if (catalog_execute(&account_skeleton_taken, args) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("the account name \"%s\" looks like one that is taken", name),
				 errdetail("Some of its characters can be mistaken for others."), errhint("Choose another name.")));
	return skeleton;
}

static void
account_missing_error(int64 uid)
{
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("account " INT64_FORMAT " does not exist", uid)));
}

/* ---- functions ---- */

/* account_create(name, email, password_hash) */
Datum
sheet_account_create(PG_FUNCTION_ARGS)
{
	char *name = account_arg_name(fcinfo, 0);
	NullableDatum args[4] = {CATALOG_TEXT(name), fcinfo->args[1], fcinfo->args[2]};
	int64 uid;

	permission_require_gateway();
	account_check_name(name);
	catalog_check_text(fcinfo, 1, "e-mail address", ACCOUNT_EMAIL_MAX);
	args[3] = CATALOG_TEXT(account_require_free(0, name));
	if (!catalog_find_int64(&account_insert, args, false, &uid))
		account_name_error(name);
	PG_RETURN_INT64(uid);
}

/* account_find(name) */
Datum
sheet_account_find(PG_FUNCTION_ARGS)
{
	NullableDatum name = CATALOG_TEXT(account_arg_name(fcinfo, 0));

	permission_require_gateway();
	return catalog_return_rows(fcinfo, &account_by_name, &name, true);
}

/* account_get(uid) */
Datum
sheet_account_get(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	return catalog_return_rows(fcinfo, permission_is_guest(PG_GETARG_INT64(0)) ? &account_of_link : &account_by_uid,
							   fcinfo->args, true);
}

/* account_seen(sheet_id, uid) */
Datum
sheet_account_seen(PG_FUNCTION_ARGS)
{
	NullableDatum args[3] = {fcinfo->args[1], fcinfo->args[0]};
	HistoryLast last;

	permission_require_gateway();
	catalog_require_args(fcinfo);
	if (permission_is_guest(PG_GETARG_INT64(1)))
		return catalog_return_text(fcinfo, &account_seen_link, args, true);
	history_last_edit(PG_GETARG_INT64(0), GetActiveSnapshot(), &last);
	args[2] = CATALOG_INT64(last.last_seq - ACCOUNT_SEEN_EDITS);
	return catalog_return_text(fcinfo, &account_seen, args, true);
}

/* account_rename(uid, name) */
Datum
sheet_account_rename(PG_FUNCTION_ARGS)
{
	int64 uid = PG_GETARG_INT64(0);
	char *name = account_arg_name(fcinfo, 1);
	NullableDatum args[3] = {fcinfo->args[0], CATALOG_TEXT(name)};

	permission_require_gateway();
	account_check_name(name);
	args[2] = CATALOG_TEXT(account_require_free(uid, name));
	if (catalog_execute(&account_update_name, args) == 0)
		account_missing_error(uid);
	follow_register_account(uid);
	PG_RETURN_VOID();
}

/* Runs a change of account args[0] that returns its new token generation, and publishes it to gateways. */
static Datum
account_new_generation(CatalogQuery *query, const NullableDatum *args)
{
	int64 uid = DatumGetInt64(args[0].value), generation;

	permission_require_gateway();
	if (!catalog_find_int64(query, args, false, &generation))
		account_missing_error(uid);
	follow_register_account(uid);
	return Int32GetDatum((int32) generation);
}

/* account_set_password(uid, password_hash) */
Datum
sheet_account_set_password(PG_FUNCTION_ARGS)
{
	return account_new_generation(&account_update_password, fcinfo->args);
}

/* account_revoke_tokens(uid) */
Datum
sheet_account_revoke_tokens(PG_FUNCTION_ARGS)
{
	return account_new_generation(&account_update_generation, fcinfo->args);
}

/* account_revoke_token(uid, token_id, expires_at). The rows of an account are bounded. */
Datum
sheet_account_revoke_token(PG_FUNCTION_ARGS)
{
	int64 count = 0, generation;

	permission_require_gateway();
	catalog_execute(&token_insert, fcinfo->args);
	if (catalog_find_int64(&token_count, fcinfo->args, false, &count) && count > ACCOUNT_REVOKED_MAX &&
		catalog_find_int64(&account_update_generation, fcinfo->args, false, &generation))
		catalog_execute(&token_delete_all, fcinfo->args);
	catalog_execute(&token_timer, fcinfo->args);
	follow_register_account(PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

/* account_token_revoked(uid, token_id) */
Datum
sheet_account_token_revoked(PG_FUNCTION_ARGS)
{
	int64 found;

	permission_require_gateway();
	PG_RETURN_BOOL(catalog_find_int64(&token_find, fcinfo->args, true, &found));
}

/* link_account(name, db_role): NULL ends the link */
Datum
sheet_link_account(PG_FUNCTION_ARGS)
{
	char *name = account_arg_name(fcinfo, 0);
	NullableDatum args[2] = {CATALOG_TEXT(name), CATALOG_NULL};
	char *other = NULL;

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("only a superuser may link accounts to roles")));
	if (!PG_ARGISNULL(1))
	{
		(void) get_role_oid(NameStr(*PG_GETARG_NAME(1)), false);
		args[1] = fcinfo->args[1];
		other = catalog_find_string(&account_of_role, args, true);
	}
	if (other != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("role \"%s\" is linked to account \"%s\"", NameStr(*PG_GETARG_NAME(1)), other),
				 errhint("End that link first: SELECT sheet.link_account(%s, NULL).", quote_literal_cstr(other))));
	if (catalog_execute(&account_update_role, args) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("account \"%s\" does not exist", name)));
	PG_RETURN_VOID();
}
