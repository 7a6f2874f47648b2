/* sheets.c - SQL functions that make, describe, share, trash and purge sheets. */
#include "postgres.h"

#include "api/functions/functions.h"
#include "api/tabs/tabs.h"
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
PG_FUNCTION_INFO_V1(sheet_access);
PG_FUNCTION_INFO_V1(sheet_open_link);
PG_FUNCTION_INFO_V1(sheet_open_link_digest);

#define ACCESS_MAX_ROWS 1000

static CatalogQuery sheets_insert = {"INSERT INTO sheet.sheet (sheet_id, name, owner, link_role, init_rows, init_cols) "
									 "VALUES (sheet.next_sheet_id(), $1, $2, $3, $4, $5) RETURNING sheet_id",
									 {TEXTOID, INT8OID, TEXTOID, INT4OID, INT4OID}};
static CatalogQuery sheets_insert_owner = {"INSERT INTO sheet.member (sheet_id, uid, role) VALUES ($1, $2, 'owner')",
										   {INT8OID, INT8OID}};
static CatalogQuery sheets_account = {"SELECT 1 FROM sheet.account WHERE uid = $1", {INT8OID}};
static CatalogQuery sheets_info = {
	"SELECT s.sheet_id, s.name, s.owner, o.name, s.trashed_at IS NOT NULL, s.link_role, $2::text, s.created_at, "
	"sheet.last_edit(s.sheet_id, s.created_at), (SELECT t.book_id FROM sheet.book_tab t WHERE t.sheet_id = s.sheet_id) "
	"FROM sheet.sheet s LEFT JOIN sheet.account o ON o.uid = s.owner WHERE s.sheet_id = $1",
	{INT8OID, TEXTOID}};
static CatalogQuery sheets_exists = {"SELECT sheet_id FROM sheet.sheet WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery sheets_name = {"SELECT name FROM sheet.sheet WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery sheets_rename = {"UPDATE sheet.sheet SET name = $2 WHERE sheet_id = $1", {INT8OID, TEXTOID}};
static CatalogQuery sheets_trash_row = {
	"UPDATE sheet.sheet SET trashed_at = coalesce(trashed_at, now()) WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery sheets_recover_row = {"UPDATE sheet.sheet SET trashed_at = NULL WHERE sheet_id = $1", {INT8OID}};
/* Inserts of members and files first lock the sheet's row with FOR KEY SHARE. So nobody inserts any after the row is
 * deleted. */
static CatalogQuery sheets_delete = {"DELETE FROM sheet.sheet WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery sheets_delete_tab = {"DELETE FROM sheet.book_tab WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery sheets_delete_members = {"DELETE FROM sheet.member WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery sheets_link = {
	"UPDATE sheet.sheet SET link_role = $2, link_digest = $3, link_no = link_no + 1 WHERE "
	"sheet_id = $1",
	{INT8OID, TEXTOID, BYTEAOID}};
/* Writes nothing if the account has opened the sheet by this link before. */
static CatalogQuery sheets_open_link = {
	"INSERT INTO sheet.member (sheet_id, uid, link_no) SELECT s.sheet_id, $2, s.link_no FROM sheet.sheet s "
	"WHERE s.sheet_id = $1 AND s.link_role IS NOT NULL AND (s.link_digest IS NULL OR s.link_digest = $3) "
	"AND NOT EXISTS "
	"(SELECT FROM sheet.member m WHERE m.sheet_id = $1 AND m.uid = $2 AND (m.link_no = s.link_no OR m.role = 'owner')) "
	"FOR KEY SHARE OF s ON CONFLICT (sheet_id, uid) DO UPDATE SET link_no = excluded.link_no, opened_at = now()",
	{INT8OID, INT8OID, BYTEAOID}};
static CatalogQuery sheets_share = {"INSERT INTO sheet.member (sheet_id, uid, role) "
									"SELECT s.sheet_id, $2, $3 FROM sheet.sheet s WHERE s.sheet_id = $1 FOR KEY SHARE "
									"ON CONFLICT (sheet_id, uid) DO UPDATE SET role = excluded.role, opened_at = "
									"CASE WHEN member.role IS NULL AND member.link_no IS NULL THEN now() "
									"ELSE member.opened_at END",
									{INT8OID, INT8OID, TEXTOID}};
/* The row remains, so that the names of authors of edits can be shown (account_seen). */
static CatalogQuery sheets_unshare = {"UPDATE sheet.member SET role = NULL, link_no = NULL WHERE sheet_id = $1 AND "
									  "uid = $2",
									  {INT8OID, INT8OID}};
static CatalogQuery sheets_find_account = {"SELECT a.uid, coalesce(s.owner = a.uid, false)::int::int8 FROM "
										   "sheet.account a, sheet.sheet s WHERE a.name = $2 AND s.sheet_id = $1",
										   {INT8OID, TEXTOID}};
static CatalogQuery sheets_members = {
	"SELECT m.uid, a.name, m.role FROM (SELECT m.uid, "
	"sheet.member_role(m.role, m.link_no, s.link_role, s.link_digest, s.link_no) AS role "
	"FROM sheet.member m JOIN sheet.sheet s USING (sheet_id) WHERE m.sheet_id = $1 AND "
	"(m.role IS NOT NULL OR m.link_no IS NOT NULL)) m JOIN sheet.account a USING (uid) WHERE m.role IS NOT NULL "
	"ORDER BY 2",
	{INT8OID}};

static CatalogQuery sheets_access = {
	"SELECT m.uid, a.name, m.role, m.role IS NOT NULL AND m.role IS DISTINCT FROM m.own_role FROM (SELECT m.uid, "
	"m.role AS own_role, sheet.member_role(m.role, m.link_no, s.link_role, s.link_digest, s.link_no) AS role "
	"FROM (SELECT * FROM sheet.member WHERE sheet_id = $1 AND uid > $3 ORDER BY uid LIMIT $2) m "
	"JOIN sheet.sheet s USING (sheet_id)) m LEFT JOIN LATERAL "
	"(SELECT a.name FROM sheet.account a WHERE a.uid = m.uid OFFSET 0) a ON true ORDER BY m.uid",
	{INT8OID, INT8OID, INT8OID}};
static CatalogQuery sheets_delete_links = {"DELETE FROM sheet.link WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery sheets_forget_calendar = {"SELECT sheet.forget_calendar($1)", {INT8OID}};
static CatalogQuery sheets_delete_webhooks = {"DELETE FROM sheet.webhook WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery sheets_delete_labels = {"DELETE FROM sheet.version_label WHERE sheet_id = $1", {INT8OID}};

/* In this order: sheet.put_values() locks the row of sheet.computed. The deletion waits for a call that has it, and a
 * later call finds no row, and stores nothing. */
static CatalogQuery sheets_delete_computed = {"DELETE FROM sheet.computed WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery sheets_delete_values = {"DELETE FROM sheet.value WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery sheets_delete_sources = {"DELETE FROM sheet.value_source WHERE sheet_id = $1", {INT8OID}};

void
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

int32
sheets_arg_rows(FunctionCallInfo fcinfo, int arg)
{
	return sheets_size(fcinfo, arg, "row", 100, SHEET_MAX_ROWS);
}

int32
sheets_arg_cols(FunctionCallInfo fcinfo, int arg)
{
	return sheets_size(fcinfo, arg, "column", 26, SHEET_MAX_COLS);
}

int64
sheets_new_owner(int64 as_uid)
{
	int64 uid = permission_uid(as_uid);

	permission_refuse_guest(uid);
	if (uid == 0 && !superuser())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						errmsg("the role \"%s\" has no account to own a sheet", GetUserNameFromId(GetUserId(), false)),
						errhint("A superuser can link it to one with sheet.link_account().")));
	if (uid != 0 && catalog_execute(&sheets_account, &CATALOG_INT64(uid)) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("account " INT64_FORMAT " does not exist", uid)));
	return uid;
}

int64
sheets_make(const SheetMaking *sheet)
{
	CatalogScope scope;
	NullableDatum owner = sheet->owner != 0 ? CATALOG_INT64(sheet->owner) : CATALOG_NULL;
	NullableDatum args[] = {CATALOG_TEXT(sheet->name), owner,
							sheet->link_role != NULL ? CATALOG_TEXT(sheet->link_role) : CATALOG_NULL,
							CATALOG_DATUM(Int32GetDatum(sheet->rows)), CATALOG_DATUM(Int32GetDatum(sheet->cols))};
	int64 sheet_id;

	catalog_begin(&scope);
	catalog_run(&sheets_insert, args, false);
	sheet_id = catalog_int64(1, 0);
	args[0] = CATALOG_INT64(sheet_id);
	if (sheet->owner != 0)
		catalog_run(&sheets_insert_owner, args, false);
	catalog_end(&scope);
	journal_create(sheet_id, (uint64) sheet->author, (uint32) sheet->rows, (uint32) sheet->cols);
	return sheet_id;
}

/* create(name, rows, cols, link_role, as_uid) */
Datum
sheet_create(PG_FUNCTION_ARGS)
{
	SheetMaking sheet = {.name = catalog_arg_string(fcinfo, 0, "sheet name")};

	sheet.rows = sheets_arg_rows(fcinfo, 1);
	sheet.cols = sheets_arg_cols(fcinfo, 2);
	sheet.owner = sheet.author = sheets_new_owner(catalog_arg_int64(fcinfo, 4, 0));
	catalog_check_name("sheet name", sheet.name, SHEET_NAME_MAX);
	if (!PG_ARGISNULL(3))
	{
		sheet.link_role = text_to_cstring(PG_GETARG_TEXT_PP(3));
		sheets_check_shared_role(sheet.link_role);
	}
	PG_RETURN_INT64(sheets_make(&sheet));
}

/* info(sheet_id, as_uid). With as_uid, that is for gateways, the role is null if the account may not see the sheet.
 * Without it, that is an error. */
Datum
sheet_info(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 1, 0);
	NullableDatum args[2] = {fcinfo->args[0], CATALOG_NULL};

	if (catalog_find_int64(&sheets_exists, args, true, &sheet_id))
	{
		SheetRole role = permission_role(sheet_id, as_uid);

		if (as_uid == 0)
			permission_require(sheet_id, 0, ROLE_VIEWER, true);
		if (role != ROLE_NONE)
			args[1] = CATALOG_TEXT(permission_role_name(role));
	}
	return catalog_return_rows(fcinfo, &sheets_info, args, true);
}

/* ---- changes of the sheet's own row ---- */

/* lock: takes the sheet lock, for a change that decides whether the sheet can be edited. Another transaction may have
 * purged the sheet since permission was checked. */
static void
sheets_change(int64 sheet_id, CatalogQuery *query, const NullableDatum *args, bool lock)
{
	if (lock)
		journal_lock_sheet(sheet_id);
	if (catalog_execute(query, args) == 0 && query != &sheets_unshare)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	if (lock)
		journal_forget(sheet_id);
	follow_register_status(sheet_id);
}

/* The new name of a sheet, and its book (0: none), whose row is locked. */
typedef struct Renaming
{
	int64 sheet_id, book_id;
	char *name;
} Renaming;

static void
sheets_rename_row(void *arg)
{
	const Renaming *renaming = arg;

	tabs_lock_sheet(renaming->sheet_id, renaming->book_id);
	tabs_check_name(renaming->book_id, renaming->sheet_id, renaming->name);
	sheets_change(renaming->sheet_id, &sheets_rename,
				  (NullableDatum[]){CATALOG_INT64(renaming->sheet_id), CATALOG_TEXT(renaming->name)}, false);
}

/* rename(sheet_id, name, as_uid) */
Datum
sheet_rename(PG_FUNCTION_ARGS)
{
	Renaming renaming = {catalog_arg_sheet(fcinfo, 0), 0, catalog_arg_string(fcinfo, 1, "sheet name")};
	int64 uid;

	catalog_check_name("sheet name", renaming.name, SHEET_NAME_MAX);
	uid = permission_require(renaming.sheet_id, catalog_arg_int64(fcinfo, 2, 0), ROLE_EDITOR, false);
	renaming.book_id = tabs_lock_book(renaming.sheet_id);
	if (renaming.book_id != 0)
		journal_rename_tab(renaming.sheet_id, renaming.book_id, renaming.name, (uint64) uid, sheets_rename_row,
						   &renaming);
	else
		sheets_rename_row(&renaming);
	PG_RETURN_VOID();
}

void
sheets_trash(int64 sheet_id)
{
	sheets_change(sheet_id, &sheets_trash_row, &CATALOG_INT64(sheet_id), true);
}

void
sheets_recover(int64 sheet_id)
{
	sheets_change(sheet_id, &sheets_recover_row, &CATALOG_INT64(sheet_id), true);
}

void
sheets_purge(int64 sheet_id)
{
	NullableDatum args[] = {CATALOG_INT64(sheet_id)};
	CatalogScope scope;

	journal_lock_sheet(sheet_id);
	journal_purge(sheet_id);
	sheets_change(sheet_id, &sheets_delete, args, true);
	catalog_begin(&scope);
	catalog_run_latest(&sheets_delete_tab, args);
	catalog_run_latest(&sheets_delete_members, args);
	catalog_run_latest(&sheets_delete_labels, args);
	catalog_run_latest(&sheets_delete_links, args);
	catalog_run_latest(&sheets_delete_webhooks, args);
	catalog_run_latest(&sheets_delete_computed, args);
	catalog_run_latest(&sheets_delete_values, args);
	catalog_run_latest(&sheets_delete_sources, args);
	catalog_run(&sheets_forget_calendar, args, false);
	files_delete_all(sheet_id);
	catalog_end(&scope);
}

/* trash(sheet_id, as_uid) */
Datum
sheet_trash(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);

	permission_require(sheet_id, catalog_arg_int64(fcinfo, 1, 0), ROLE_OWNER, true);
	(void) tabs_lock_book(sheet_id);
	sheets_trash(sheet_id);
	PG_RETURN_VOID();
}

/* recover(sheet_id, as_uid): the names of tabs in the trash are free, and another tab may have taken this one's. */
Datum
sheet_recover(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), book_id;
	char *name;

	permission_require(sheet_id, catalog_arg_int64(fcinfo, 1, 0), ROLE_OWNER, true);
	book_id = tabs_lock_book(sheet_id);
	journal_lock_sheet(sheet_id);
	tabs_lock_sheet(sheet_id, book_id);
	tabs_require_live_book(book_id, sheet_id);
	name = catalog_find_string(&sheets_name, &CATALOG_INT64(sheet_id), false);
	if (name != NULL)
		tabs_check_name(book_id, sheet_id, name);
	sheets_recover(sheet_id);
	PG_RETURN_VOID();
}

/* purge(sheet_id, as_uid) */
Datum
sheet_purge(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);

	permission_require(sheet_id, catalog_arg_int64(fcinfo, 1, 0), ROLE_OWNER, true);
	(void) tabs_lock_book(sheet_id);
	sheets_purge(sheet_id);
	PG_RETURN_VOID();
}

/* ---- sharing ---- */

/* The account's uid; an error for the owner. */
static int64
sheets_account_uid(int64 sheet_id, const char *account)
{
	CatalogScope scope;
	NullableDatum args[] = {CATALOG_INT64(sheet_id), CATALOG_TEXT(account)};
	int64 uid;

	catalog_begin(&scope);
	if (catalog_run(&sheets_find_account, args, false) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("account \"%s\" does not exist", account)));
	uid = catalog_int64(1, 0);
	if (catalog_int64(2, 0) == 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is the owner of the sheet", account),
						errdetail("An owner's role cannot be changed or taken away.")));
	catalog_end(&scope);
	return uid;
}

/* Runs a change of the role of account argument 1 on sheet argument 0. role NULL: the query has no such parameter. */
static Datum
sheets_change_member(FunctionCallInfo fcinfo, CatalogQuery *query, const char *role, int64 as_uid)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	char *account = catalog_normal_name(catalog_arg_string(fcinfo, 1, "account name"));
	NullableDatum args[3] = {CATALOG_INT64(sheet_id), CATALOG_NULL, role != NULL ? CATALOG_TEXT(role) : CATALOG_NULL};

	if (role != NULL)
		sheets_check_shared_role(role);
	permission_require(sheet_id, as_uid, ROLE_OWNER, false);
	args[1] = CATALOG_INT64(sheets_account_uid(sheet_id, account));
	sheets_change(sheet_id, query, args, false);
	tabs_register_change(tabs_book_of(sheet_id)); /* the account sees another tab, or one less */
	PG_RETURN_VOID();
}

/* share(sheet_id, account, role, as_uid) */
Datum
sheet_share(PG_FUNCTION_ARGS)
{
	return sheets_change_member(fcinfo, &sheets_share, catalog_arg_string(fcinfo, 2, "role"),
								catalog_arg_int64(fcinfo, 3, 0));
}

/* unshare(sheet_id, account, as_uid) */
Datum
sheet_unshare(PG_FUNCTION_ARGS)
{
	return sheets_change_member(fcinfo, &sheets_unshare, NULL, catalog_arg_int64(fcinfo, 2, 0));
}

/* share_link(sheet_id, role, as_uid): NULL ends the link. Members by an older link lose its role, since their link_no
 * is not the sheet's any more. */
Datum
sheet_share_link(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	NullableDatum args[3] = {fcinfo->args[0], fcinfo->args[1], CATALOG_NULL}, key = CATALOG_NULL;

	if (!PG_ARGISNULL(1))
	{
		sheets_check_shared_role(text_to_cstring(PG_GETARG_TEXT_PP(1)));
		key = CATALOG_TEXT(links_random_key());
		args[2] = CATALOG_DIGEST(key.value);
	}
	permission_require(sheet_id, catalog_arg_int64(fcinfo, 2, 0), ROLE_OWNER, false);
	sheets_change(sheet_id, &sheets_link, args, false);
	if (key.isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(key.value);
}

/*
 * open_link(sheet_id, key, as_uid); digest: of the key. An account that has a role already keeps it, whatever the key
 * is. Only a change of the role of such an account is published to gateways: a newcomer has no sessions.
 */
static Datum
sheets_open_by_digest(FunctionCallInfo fcinfo, NullableDatum digest)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 2, 0);
	int64 uid = permission_uid(as_uid);
	NullableDatum args[] = {fcinfo->args[0], CATALOG_INT64(uid), digest};
	SheetRole before;

	permission_refuse_guest(uid);
	before = permission_role(sheet_id, as_uid);
	if (uid != 0 && catalog_execute(&sheets_open_link, args) > 0 && before != ROLE_NONE)
		follow_register_account(uid);
	PG_RETURN_TEXT_P(cstring_to_text(permission_role_name(permission_require_now(sheet_id, as_uid, ROLE_VIEWER))));
}

Datum
sheet_open_link(PG_FUNCTION_ARGS)
{
	return sheets_open_by_digest(fcinfo, PG_ARGISNULL(1) ? CATALOG_NULL : CATALOG_DIGEST(PG_GETARG_DATUM(1)));
}

/* open_link_digest(sheet_id, digest, as_uid) */
Datum
sheet_open_link_digest(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	return sheets_open_by_digest(fcinfo, fcinfo->args[1]);
}

/* members(sheet_id, as_uid) */
Datum
sheet_members(PG_FUNCTION_ARGS)
{
	permission_require(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0), ROLE_VIEWER, true);
	return catalog_return_rows(fcinfo, &sheets_members, fcinfo->args, true);
}

/* access(sheet_id, max_rows, after, as_uid) */
Datum
sheet_access(PG_FUNCTION_ARGS)
{
	NullableDatum args[] = {CATALOG_INT64(catalog_arg_sheet(fcinfo, 0)),
							CATALOG_INT64(catalog_arg_page(fcinfo, 1, ACCESS_MAX_ROWS, "accounts")),
							CATALOG_INT64(catalog_arg_int64(fcinfo, 2, 0))};

	permission_require(DatumGetInt64(args[0].value), catalog_arg_int64(fcinfo, 3, 0), ROLE_VIEWER, true);
	return catalog_return_rows(fcinfo, &sheets_access, args, true);
}
