/*
 * tokens.c - SQL functions on access tokens, by which programs act as an account.
 *
 * A token is "pgs_" and 32 random bytes in base64url. Only its SHA-256 is stored: nobody can guess the token, so the
 * digest needs no salt, and finds the row by an index. What a scope permits is decided by the gateways.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "journal/follow/follow.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_create_token);
PG_FUNCTION_INFO_V1(sheet_tokens);
PG_FUNCTION_INFO_V1(sheet_revoke_token);
PG_FUNCTION_INFO_V1(sheet_token_find);
PG_FUNCTION_INFO_V1(sheet_token_used);

#define TOKEN_PREFIX	"pgs_"
#define TOKEN_BYTES		32
#define TOKEN_LABEL_MAX 100
#define TOKENS_MAX		100 /* of an account */

/* In the order in which they are stored and shown. */
static const char *const token_scopes[] = {"read", "edit", "upload", "admin"};

/* Creations of the same account follow each other, so that the bound is exact. */
static CatalogQuery tokens_account = {"SELECT uid FROM sheet.account WHERE uid = $1 FOR NO KEY UPDATE", {INT8OID}};
/* Those that have ended stay in the list for a while, so that their owner sees why a program is refused. */
static CatalogQuery tokens_delete_expired = {
	"DELETE FROM sheet.access_token WHERE uid = $1 AND expires_at < now() - interval '30 days'", {INT8OID}};
static CatalogQuery tokens_count = {"SELECT count(*) FROM sheet.access_token WHERE uid = $1", {INT8OID}};
static CatalogQuery tokens_insert = {"INSERT INTO sheet.access_token (uid, digest, label, scopes, expires_at) VALUES "
									 "($1, $2, $3, $4, $5)",
									 {INT8OID, BYTEAOID, TEXTOID, TEXTARRAYOID, TIMESTAMPTZOID}};
static CatalogQuery tokens_list = {"SELECT token_id, label, scopes, created_at, expires_at, last_used "
								   "FROM sheet.access_token WHERE uid = $1 ORDER BY token_id",
								   {INT8OID}};
static CatalogQuery tokens_delete = {
	"DELETE FROM sheet.access_token WHERE token_id = $1 AND (uid = $2 OR $2 IS NULL) RETURNING uid",
	{INT8OID, INT8OID}};
static CatalogQuery tokens_find = {"SELECT t.token_id, t.uid, a.name, t.scopes, t.expires_at, coalesce(t.last_used >= "
								   "date_trunc('hour', now()), false) "
								   "FROM sheet.access_token t JOIN sheet.account a USING (uid) WHERE t.digest = $1 "
								   "AND (t.expires_at IS NULL OR t.expires_at > now())",
								   {BYTEAOID}};
static CatalogQuery tokens_use = {
	"UPDATE sheet.access_token SET last_used = date_trunc('hour', now()) WHERE token_id = (SELECT token_id "
	"FROM sheet.access_token WHERE token_id = $1 AND (last_used IS NULL OR last_used < date_trunc('hour', now())) "
	"FOR NO KEY UPDATE SKIP LOCKED) RETURNING token_id",
	{INT8OID}};

/* ---- arguments ---- */

/* The account whose tokens they are. Guests, who act by a link, have none. */
static int64
token_account(FunctionCallInfo fcinfo, int arg)
{
	int64 uid = permission_uid(catalog_arg_int64(fcinfo, arg, 0));

	if (uid <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("only an account has access tokens"),
				 errhint("A superuser can link the role to an account with sheet.link_account(), or name it as_uid.")));
	return uid;
}

/* The scopes in their order, each once. */
static Datum
token_arg_scopes(FunctionCallInfo fcinfo, int arg)
{
	Datum *names, scopes[lengthof(token_scopes)];
	bool *nulls, wanted[lengthof(token_scopes)] = {false};
	int count, n = 0;

	catalog_require_arg(fcinfo, arg, "scopes");
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(arg), TEXTOID, -1, false, TYPALIGN_INT, &names, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		char *name = nulls[i] ? "" : TextDatumGetCString(names[i]);
		int scope = 0;

		while (scope < lengthof(token_scopes) && strcmp(token_scopes[scope], name) != 0)
			scope++;
		if (scope == lengthof(token_scopes))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is not a scope", name),
							errhint("The scopes are read, edit, upload and admin.")));
		wanted[scope] = true;
	}
	for (int scope = 0; scope < lengthof(token_scopes); scope++)
	{
		if (wanted[scope])
			scopes[n++] = CStringGetTextDatum(token_scopes[scope]);
	}
	if (n == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("an access token has at least one scope"),
						errhint("The scopes are read, edit, upload and admin.")));
	return PointerGetDatum(construct_array(scopes, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/* infinity is no end. */
static NullableDatum
token_end(NullableDatum expires)
{
	if (!expires.isnull && TIMESTAMP_IS_NOEND(DatumGetTimestampTz(expires.value)))
		return CATALOG_NULL;
	if (!expires.isnull && DatumGetTimestampTz(expires.value) <= GetCurrentTimestamp())
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the access token would have ended already"),
						errdetail("Its end is %s.", timestamptz_to_str(DatumGetTimestampTz(expires.value)))));
	return expires;
}

/* The last of 43 characters has four bits. */
static char *
token_make(void)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char bytes[TOKEN_BYTES];
	StringInfoData token;
	uint32 bits = 0;
	int nbits = 0;

	if (!pg_strong_random(bytes, sizeof(bytes)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random token")));
	initStringInfo(&token);
	appendStringInfoString(&token, TOKEN_PREFIX);
	for (int i = 0; i < TOKEN_BYTES; i++)
	{
		bits = bits << 8 | bytes[i];
		for (nbits += 8; nbits >= 6; nbits -= 6)
			appendStringInfoChar(&token, alphabet[bits >> (nbits - 6) & 63]);
	}
	appendStringInfoChar(&token, alphabet[bits << (6 - nbits) & 63]);
	return token.data;
}

/* ---- functions ---- */

/* create_token(label, scopes, expires, as_uid) */
Datum
sheet_create_token(PG_FUNCTION_ARGS)
{
	char *label = catalog_arg_string(fcinfo, 0, "label"), *token;
	NullableDatum args[5] = {CATALOG_INT64(token_account(fcinfo, 3))};
	CatalogScope scope;

	catalog_check_name("label", label, TOKEN_LABEL_MAX);
	args[2] = CATALOG_TEXT(label);
	args[3] = CATALOG_DATUM(token_arg_scopes(fcinfo, 1));
	args[4] = fcinfo->args[2];
	args[4] = token_end(args[4]);
	token = token_make();
	args[1] = CATALOG_DIGEST(CStringGetTextDatum(token));
	catalog_begin(&scope);
	if (catalog_run(&tokens_account, args, false) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("account " INT64_FORMAT " does not exist", DatumGetInt64(args[0].value))));
	catalog_run(&tokens_delete_expired, args, false);
	catalog_run(&tokens_count, args, false);
	if (catalog_int64(1, 0) >= TOKENS_MAX)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("the account has %d access tokens, which is the maximum", TOKENS_MAX),
						errhint("Revoke one with sheet.revoke_token().")));
	catalog_run(&tokens_insert, args, false);
	catalog_end(&scope);
	PG_RETURN_TEXT_P(cstring_to_text(token));
}

/* tokens(as_uid) */
Datum
sheet_tokens(PG_FUNCTION_ARGS)
{
	return catalog_return_rows(fcinfo, &tokens_list, &CATALOG_INT64(token_account(fcinfo, 0)), true);
}

/* revoke_token(token_id, as_uid) */
Datum
sheet_revoke_token(PG_FUNCTION_ARGS)
{
	bool any = superuser() && PG_ARGISNULL(1);
	NullableDatum args[2] = {fcinfo->args[0], any ? CATALOG_NULL : CATALOG_INT64(token_account(fcinfo, 1))};
	int64 uid;

	catalog_require_arg(fcinfo, 0, "token id");
	if (!catalog_find_int64(&tokens_delete, args, false, &uid))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("access token " INT64_FORMAT " does not exist", PG_GETARG_INT64(0))));
	follow_register_account(uid);
	PG_RETURN_VOID();
}

/* token_find(digest) */
Datum
sheet_token_find(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	return catalog_return_rows(fcinfo, &tokens_find, fcinfo->args, RecoveryInProgress());
}

/* token_used(token_id) */
Datum
sheet_token_used(PG_FUNCTION_ARGS)
{
	int64 token_id;

	permission_require_gateway();
	if (RecoveryInProgress() || XactReadOnly)
		PG_RETURN_BOOL(false);
	PG_RETURN_BOOL(catalog_find_int64(&tokens_use, fcinfo->args, false, &token_id));
}
