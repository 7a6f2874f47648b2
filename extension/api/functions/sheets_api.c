/* sheets_api.c - SQL functions that make, describe, share, trash and purge sheets. */
#include "postgres.h"

#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "journal/follow/follow.h"
#include "journal/journal.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_create);
PG_FUNCTION_INFO_V1(sheet_info);
PG_FUNCTION_INFO_V1(sheet_rename);
PG_FUNCTION_INFO_V1(sheet_trash);
PG_FUNCTION_INFO_V1(sheet_recover);
PG_FUNCTION_INFO_V1(sheet_purge);
PG_FUNCTION_INFO_V1(sheet_share);
PG_FUNCTION_INFO_V1(sheet_unshare);
PG_FUNCTION_INFO_V1(sheet_share_link);
PG_FUNCTION_INFO_V1(sheet_members);
PG_FUNCTION_INFO_V1(sheet_open_link);

#define SHEET_NAME_MAX	255
#define SHEET_KEY_CHARS 22 /* of six bits */

static CatalogQuery sheets_insert = {"INSERT INTO sheet.sheet (sheet_id, name, owner, link_role, init_rows, init_cols) "
									 "VALUES (sheet.next_sheet_id(), $1, $2, $3, $4, $5) RETURNING sheet_id",
									 5,
									 {TEXTOID, INT8OID, TEXTOID, INT4OID, INT4OID}};
static CatalogQuery sheets_insert_owner = {
	"INSERT INTO sheet.member (sheet_id, uid, role) VALUES ($1, $2, 'owner')", 2, {INT8OID, INT8OID}};
static CatalogQuery sheets_account = {"SELECT 1 FROM sheet.account WHERE uid = $1", 1, {INT8OID}};
static CatalogQuery sheets_info = {
	"SELECT s.sheet_id, s.name, s.owner, o.name, s.trashed_at IS NOT NULL, s.link_role, $2::text, s.created_at, "
	"sheet.last_edit(s.sheet_id, s.created_at) "
	"FROM sheet.sheet s LEFT JOIN sheet.account o ON o.uid = s.owner WHERE s.sheet_id = $1",
	2,
	{INT8OID, TEXTOID}};
static CatalogQuery sheets_exists = {"SELECT 1 FROM sheet.sheet WHERE sheet_id = $1", 1, {INT8OID}};
static CatalogQuery sheets_rename = {"UPDATE sheet.sheet SET name = $2 WHERE sheet_id = $1", 2, {INT8OID, TEXTOID}};
static CatalogQuery sheets_trash = {
	"UPDATE sheet.sheet SET trashed_at = coalesce(trashed_at, now()) WHERE sheet_id = $1", 1, {INT8OID}};
static CatalogQuery sheets_recover = {"UPDATE sheet.sheet SET trashed_at = NULL WHERE sheet_id = $1", 1, {INT8OID}};
static CatalogQuery sheets_delete = {"DELETE FROM sheet.sheet WHERE sheet_id = $1", 1, {INT8OID}};
/* Before they go with the sheet; an upload that is just ending is waited for. */
static CatalogQuery sheets_delete_files = {
	"WITH gone AS (DELETE FROM sheet.file WHERE sheet_id = $1 RETURNING uid, size) INSERT INTO sheet.file_use "
	"SELECT uid, -sum(size) FROM gone WHERE uid IS NOT NULL AND size IS NOT NULL GROUP BY uid",
	1,
	{INT8OID}};
static CatalogQuery sheets_link = {"UPDATE sheet.sheet SET link_role = $2, link_digest = sha256(convert_to($3, "
								   "'UTF8')), link_no = link_no + 1 WHERE sheet_id = $1",
								   3,
								   {INT8OID, TEXTOID, TEXTOID}};
/* Writes nothing for who has come by this link before. */
static CatalogQuery sheets_open_link = {
	"INSERT INTO sheet.member (sheet_id, uid, link_no) SELECT s.sheet_id, $2, s.link_no FROM sheet.sheet s "
	"WHERE s.sheet_id = $1 AND s.link_role IS NOT NULL AND (s.link_digest IS NULL OR s.link_digest = "
	"sha256(convert_to($3, 'UTF8'))) AND NOT EXISTS "
	"(SELECT FROM sheet.member m WHERE m.sheet_id = $1 AND m.uid = $2 AND (m.link_no = s.link_no OR m.role = 'owner')) "
	"ON CONFLICT (sheet_id, uid) DO UPDATE SET link_no = excluded.link_no, opened_at = now()",
	3,
	{INT8OID, INT8OID, TEXTOID}};
static CatalogQuery sheets_share = {"INSERT INTO sheet.member (sheet_id, uid, role) VALUES ($1, $2, $3) "
									"ON CONFLICT (sheet_id, uid) DO UPDATE SET role = excluded.role, opened_at = "
									"CASE WHEN member.role IS NULL AND member.link_no IS NULL THEN now() "
									"ELSE member.opened_at END",
									3,
									{INT8OID, INT8OID, TEXTOID}};
/* The row stays: those whose edits are in the log have a name there (account_seen). */
static CatalogQuery sheets_unshare = {"UPDATE sheet.member SET role = NULL, link_no = NULL WHERE sheet_id = $1 AND "
									  "uid = $2",
									  2,
									  {INT8OID, INT8OID}};
static CatalogQuery sheets_find_account = {"SELECT a.uid, coalesce(s.owner = a.uid, false)::int::int8 FROM "
										   "sheet.account a, sheet.sheet s WHERE a.name = $2 AND s.sheet_id = $1",
										   2,
										   {INT8OID, TEXTOID}};
static CatalogQuery sheets_members = {
	"SELECT m.uid, a.name, m.role FROM (SELECT m.uid, "
	"sheet.member_role(m.role, m.link_no, s.link_role, s.link_digest, s.link_no) AS role "
	"FROM sheet.member m JOIN sheet.sheet s USING (sheet_id) WHERE m.sheet_id = $1 AND "
	"(m.role IS NOT NULL OR m.link_no IS NOT NULL)) m JOIN sheet.account a USING (uid) WHERE m.role IS NOT NULL "
	"ORDER BY 2",
	1,
	{INT8OID}};

static void
sheets_check_shared_role(const char *role)
{
	if (strcmp(role, "viewer") != 0 && strcmp(role, "commenter") != 0 && strcmp(role, "editor") != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" cannot be shared", role),
						errhint("The roles are viewer, commenter and editor.")));
}

static int32
sheets_size(FunctionCallInfo fcinfo, int arg, const char *what, int32 otherwise, int32 max)
{
	int32 size = PG_ARGISNULL(arg) ? otherwise : PG_GETARG_INT32(arg);

	if (size < 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a sheet has at least one %s", what)));
	if (size > max)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("a sheet has at most %d %ss", max, what)));
	return size;
}

/* Only superusers make sheets that belong to nobody: others could not open what they have made. */
static int64
sheets_new_owner(int64 as_uid)
{
	int64 uid = permission_uid(as_uid);
	Datum value = Int64GetDatum(uid);

	if (uid == 0 && !superuser())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						errmsg("the role \"%s\" has no account to own a sheet", GetUserNameFromId(GetUserId(), false)),
						errhint("A superuser can link it to one with sheet.link_account().")));
	if (uid != 0 && catalog_execute(&sheets_account, &value, NULL) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("account " INT64_FORMAT " does not exist", uid)));
	return uid;
}

/* create(name, rows, cols, link_role, as_uid) */
Datum
sheet_create(PG_FUNCTION_ARGS)
{
	CatalogScope scope;
	char *name = catalog_arg_string(fcinfo, 0, "sheet name");
	int32 rows = sheets_size(fcinfo, 1, "row", 100, SHEET_MAX_ROWS);
	int32 cols = sheets_size(fcinfo, 2, "column", 26, SHEET_MAX_COLS);
	int64 uid = sheets_new_owner(catalog_arg_int64(fcinfo, 4, 0));
	Datum values[5] = {CStringGetTextDatum(name), Int64GetDatum(uid), (Datum) 0, Int32GetDatum(rows),
					   Int32GetDatum(cols)};
	bool nulls[5] = {false, uid == 0, PG_ARGISNULL(3), false, false};
	int64 sheet_id;
	bool isnull;

	catalog_check_name("sheet name", name, SHEET_NAME_MAX);
	if (!nulls[2])
	{
		values[2] = PG_GETARG_DATUM(3);
		sheets_check_shared_role(text_to_cstring(PG_GETARG_TEXT_PP(3)));
	}
	catalog_begin(&scope);
	catalog_run(&sheets_insert, values, nulls, false);
	sheet_id = catalog_int64(1, &isnull);
	if (uid != 0)
	{
		Datum owner[2] = {Int64GetDatum(sheet_id), Int64GetDatum(uid)};

		catalog_run(&sheets_insert_owner, owner, NULL, false);
	}
	catalog_end(&scope);
	journal_create(sheet_id, (uint64) uid, (uint32) rows, (uint32) cols);
	PG_RETURN_INT64(sheet_id);
}

/* info(sheet_id, as_uid): gateways learn of sheets that the account may not see, with a null role; others do not */
Datum
sheet_info(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 1, 0);
	Datum values[2] = {Int64GetDatum(sheet_id), (Datum) 0};
	bool nulls[2] = {false, true};

	if (catalog_execute(&sheets_exists, values, NULL) > 0)
	{
		SheetRole role = permission_role(sheet_id, as_uid);

		if (as_uid == 0)
			permission_require(sheet_id, 0, ROLE_VIEWER, true);
		nulls[1] = role == ROLE_NONE;
		if (!nulls[1])
			values[1] = CStringGetTextDatum(permission_role_name(role));
	}
	return catalog_return_rows(fcinfo, &sheets_info, values, nulls, false);
}

/* ---- changes of the sheet's own row ---- */

/* Runs the change under the sheet lock when it decides whether the sheet can be edited. Somebody else may have purged
 * the sheet since permission was checked. */
static void
sheets_change(int64 sheet_id, CatalogQuery *query, const Datum *values, const bool *nulls, bool lock)
{
	if (lock)
		journal_lock_sheet(sheet_id);
	if (catalog_execute(query, values, nulls) == 0 && query != &sheets_unshare)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	if (lock)
		journal_forget(sheet_id);
	follow_register_status(sheet_id);
}

/* rename(sheet_id, name, as_uid) */
Datum
sheet_rename(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	char *name = catalog_arg_string(fcinfo, 1, "sheet name");
	Datum values[2] = {Int64GetDatum(sheet_id), CStringGetTextDatum(name)};

	catalog_check_name("sheet name", name, SHEET_NAME_MAX);
	permission_require(sheet_id, catalog_arg_int64(fcinfo, 2, 0), ROLE_EDITOR, false);
	sheets_change(sheet_id, &sheets_rename, values, NULL, false);
	PG_RETURN_VOID();
}

static Datum
sheets_owner_change(FunctionCallInfo fcinfo, CatalogQuery *query)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	Datum value = Int64GetDatum(sheet_id);

	permission_require(sheet_id, catalog_arg_int64(fcinfo, 1, 0), ROLE_OWNER, true);
	sheets_change(sheet_id, query, &value, NULL, true);
	PG_RETURN_VOID();
}

/* trash(sheet_id, as_uid) */
Datum
sheet_trash(PG_FUNCTION_ARGS)
{
	return sheets_owner_change(fcinfo, &sheets_trash);
}

/* recover(sheet_id, as_uid) */
Datum
sheet_recover(PG_FUNCTION_ARGS)
{
	return sheets_owner_change(fcinfo, &sheets_recover);
}

/* purge(sheet_id, as_uid): members go by their foreign key */
Datum
sheet_purge(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	Datum value = Int64GetDatum(sheet_id);

	permission_require(sheet_id, catalog_arg_int64(fcinfo, 1, 0), ROLE_OWNER, true);
	journal_lock_sheet(sheet_id);
	journal_purge(sheet_id);
	catalog_execute(&sheets_delete_files, &value, NULL);
	sheets_change(sheet_id, &sheets_delete, &value, NULL, true);
	PG_RETURN_VOID();
}

/* ---- sharing ---- */

static int64
sheets_account_uid(int64 sheet_id, const char *account)
{
	CatalogScope scope;
	Datum values[2] = {Int64GetDatum(sheet_id), CStringGetTextDatum(account)};
	int64 uid;
	bool isnull;

	catalog_begin(&scope);
	if (catalog_run(&sheets_find_account, values, NULL, false) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("account \"%s\" does not exist", account)));
	uid = catalog_int64(1, &isnull);
	if (catalog_int64(2, &isnull) == 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is the owner of the sheet", account),
						errdetail("An owner's role cannot be changed or taken away.")));
	catalog_end(&scope);
	return uid;
}

/* share(sheet_id, account, role, as_uid) */
Datum
sheet_share(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	char *account = catalog_normal_name(catalog_arg_string(fcinfo, 1, "account name"));
	char *role = catalog_arg_string(fcinfo, 2, "role");
	Datum values[3] = {Int64GetDatum(sheet_id), (Datum) 0, CStringGetTextDatum(role)};

	sheets_check_shared_role(role);
	permission_require(sheet_id, catalog_arg_int64(fcinfo, 3, 0), ROLE_OWNER, false);
	values[1] = Int64GetDatum(sheets_account_uid(sheet_id, account));
	sheets_change(sheet_id, &sheets_share, values, NULL, false);
	PG_RETURN_VOID();
}

/* unshare(sheet_id, account, as_uid) */
Datum
sheet_unshare(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	char *account = catalog_normal_name(catalog_arg_string(fcinfo, 1, "account name"));
	Datum values[2] = {Int64GetDatum(sheet_id), (Datum) 0};

	permission_require(sheet_id, catalog_arg_int64(fcinfo, 2, 0), ROLE_OWNER, false);
	values[1] = Int64GetDatum(sheets_account_uid(sheet_id, account));
	sheets_change(sheet_id, &sheets_unshare, values, NULL, false);
	PG_RETURN_VOID();
}

/* 128 random bits in the alphabet of addresses (RFC 4648, base64url). */
static char *
sheets_random_key(void)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char bytes[SHEET_KEY_CHARS];
	char *key = palloc(SHEET_KEY_CHARS + 1);

	if (!pg_strong_random(bytes, sizeof(bytes)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random key")));
	for (int i = 0; i < SHEET_KEY_CHARS; i++)
		key[i] = alphabet[bytes[i] & 63];
	key[SHEET_KEY_CHARS] = '\0';
	return key;
}

/* share_link(sheet_id, role, as_uid): NULL ends the link. Members by an older link lose their role by its number. */
Datum
sheet_share_link(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	Datum values[3] = {Int64GetDatum(sheet_id), PG_GETARG_DATUM(1), (Datum) 0};
	bool nulls[3] = {false, PG_ARGISNULL(1), PG_ARGISNULL(1)};

	if (!nulls[1])
	{
		sheets_check_shared_role(text_to_cstring(PG_GETARG_TEXT_PP(1)));
		values[2] = CStringGetTextDatum(sheets_random_key());
	}
	permission_require(sheet_id, catalog_arg_int64(fcinfo, 2, 0), ROLE_OWNER, false);
	sheets_change(sheet_id, &sheets_link, values, nulls, false);
	if (nulls[2])
		PG_RETURN_NULL();
	PG_RETURN_DATUM(values[2]);
}

/*
 * open_link(sheet_id, key, as_uid). Whoever has a role already keeps it, with whatever key. Gateways hear of it when
 * the account had one: its sessions are looked at again; a newcomer has none.
 */
Datum
sheet_open_link(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 2, 0);
	int64 uid = permission_uid(as_uid);
	Datum values[3] = {Int64GetDatum(sheet_id), Int64GetDatum(uid), PG_GETARG_DATUM(1)};
	bool nulls[3] = {false, false, PG_ARGISNULL(1)};
	SheetRole before = permission_role(sheet_id, as_uid);

	if (uid != 0 && catalog_execute(&sheets_open_link, values, nulls) > 0 && before != ROLE_NONE)
		follow_register_account(uid);
	PG_RETURN_TEXT_P(cstring_to_text(permission_role_name(permission_require_now(sheet_id, as_uid, ROLE_VIEWER))));
}

/* members(sheet_id, as_uid) */
Datum
sheet_members(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	Datum value = Int64GetDatum(sheet_id);

	permission_require(sheet_id, catalog_arg_int64(fcinfo, 1, 0), ROLE_VIEWER, true);
	return catalog_return_rows(fcinfo, &sheets_members, &value, NULL, true);
}
