/*
 * book_members.c - SQL functions that share books.
 *
 * The role is written into the row of sheet.member of each tab, so that nothing but that row is read when a sheet is
 * used. A tab whose row has another role than the book gave before is an exception, and keeps it. No row, and a row
 * without a role, are the same here: none.
 */
#include "postgres.h"

#include "api/books/books.h"
#include "api/functions/functions.h"
#include "catalog/pg_type.h"
#include "journal/follow/follow.h"
#include "permission/catalog.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_share_book);
PG_FUNCTION_INFO_V1(sheet_unshare_book);
PG_FUNCTION_INFO_V1(sheet_book_members);

/* The rows of sheets are locked, and the time changes, as by sheets_share (api/functions/sheets.c). */
#define MEMBER_OPENED                                                                                                  \
	"opened_at = CASE WHEN member.role IS NULL AND member.link_no IS NULL THEN now() ELSE member.opened_at END"

static CatalogQuery book_account = {"SELECT uid FROM sheet.account WHERE name = $1", {TEXTOID}};
static CatalogQuery book_role = {"SELECT role FROM sheet.book_member WHERE book_id = $1 AND uid = $2",
								 {INT8OID, INT8OID}};
static CatalogQuery book_set_role = {"INSERT INTO sheet.book_member (book_id, uid, role) VALUES ($1, $2, $3) "
									 "ON CONFLICT (book_id, uid) DO UPDATE SET role = excluded.role",
									 {INT8OID, INT8OID, TEXTOID}};
static CatalogQuery book_delete_role = {"DELETE FROM sheet.book_member WHERE book_id = $1 AND uid = $2",
										{INT8OID, INT8OID}};
/* $4: the role before */
static CatalogQuery book_share_tabs = {
	"INSERT INTO sheet.member (sheet_id, uid, role) SELECT s.sheet_id, $2, $3 "
	"FROM (SELECT sheet_id FROM sheet.book_tab WHERE book_id = $1 OFFSET 0) t JOIN sheet.sheet s USING (sheet_id) "
	"WHERE s.owner IS DISTINCT FROM $2 ORDER BY s.sheet_id FOR KEY SHARE OF s "
	"ON CONFLICT (sheet_id, uid) DO UPDATE SET role = excluded.role, " MEMBER_OPENED
	" WHERE member.role IS NOT DISTINCT FROM $4",
	{INT8OID, INT8OID, TEXTOID, TEXTOID}};
/* IS NOT DISTINCT FROM keeps the planner from the index of the account's list, whose every entry it would read. */
static CatalogQuery book_unshare_tabs = {
	"UPDATE sheet.member SET role = NULL, link_no = NULL WHERE uid = $2 AND role IS NOT DISTINCT FROM $3 AND "
	"sheet_id = ANY (ARRAY("
	"SELECT sheet_id FROM sheet.book_tab WHERE book_id = $1))",
	{INT8OID, INT8OID, TEXTOID}};
static CatalogQuery book_list_members = {
	"SELECT m.uid, a.name, m.role FROM sheet.book_member m JOIN LATERAL (SELECT a.name FROM sheet.account a "
	"WHERE a.uid = m.uid OFFSET 0) a ON true WHERE m.book_id = $1 AND m.uid > $3 ORDER BY m.uid LIMIT $2",
	{INT8OID, INT8OID, INT8OID}};

/* The sheet $1 leaves the book $2 and enters the book $3. */
static CatalogQuery book_enter = {
	"INSERT INTO sheet.member (sheet_id, uid, role) SELECT s.sheet_id, n.uid, n.role "
	"FROM sheet.book_member n, sheet.sheet s WHERE n.book_id = $3 AND n.role <> 'owner' AND s.sheet_id = $1 "
	"ORDER BY n.uid FOR KEY SHARE OF s "
	"ON CONFLICT (sheet_id, uid) DO UPDATE SET role = excluded.role, " MEMBER_OPENED
	" WHERE member.role IS NOT DISTINCT FROM "
	"(SELECT o.role FROM sheet.book_member o WHERE o.book_id = $2 AND o.uid = member.uid)",
	{INT8OID, INT8OID, INT8OID}};
/* The role that a link of the sheet itself gives stays. */
static CatalogQuery book_leave = {
	"UPDATE sheet.member m SET role = NULL FROM (SELECT o.uid, o.role FROM sheet.book_member o WHERE o.book_id = $2 "
	"AND o.role <> 'owner' AND NOT EXISTS (SELECT FROM sheet.book_member n WHERE n.book_id = $3 AND n.uid = o.uid "
	"OFFSET 0) OFFSET 0) o WHERE m.sheet_id = $1 AND m.uid = o.uid AND m.role = o.role",
	{INT8OID, INT8OID, INT8OID}};

#define BOOK_MEMBERS_MAX_ROWS 1000

void
book_members_apply(int64 sheet_id, int64 from, int64 to)
{
	NullableDatum args[] = {CATALOG_INT64(sheet_id), CATALOG_INT64(from), CATALOG_INT64(to)};

	catalog_execute(&book_enter, args);
	catalog_execute(&book_leave, args);
	follow_register_status(sheet_id);
}

/* The uid of the account; an error for the book's owner. */
static int64
book_account_uid(const Book *book, char *account)
{
	int64 uid;

	account = catalog_normal_name(account);
	if (!catalog_find_int64(&book_account, &CATALOG_TEXT(account), false, &uid))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("account \"%s\" does not exist", account)));
	if (uid == book->owner)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is the owner of the book", account),
						errdetail("An owner's role cannot be changed or taken away.")));
	return uid;
}

static void
book_publish(int64 book_id)
{
	int count;
	int64 *tabs = books_tabs(book_id, &count);

	for (int i = 0; i < count; i++)
		follow_register_status(tabs[i]);
}

/* share_book(book_id, account, role, as_uid) */
Datum
sheet_share_book(PG_FUNCTION_ARGS)
{
	int64 book_id = books_arg(fcinfo, 0);
	char *account = catalog_arg_string(fcinfo, 1, "account name"), *role = catalog_arg_string(fcinfo, 2, "role");
	NullableDatum args[4] = {CATALOG_INT64(book_id), CATALOG_NULL, CATALOG_TEXT(role), CATALOG_NULL};
	Book book;
	char *before;

	sheets_check_shared_role(role);
	book = books_require(book_id, catalog_arg_int64(fcinfo, 3, 0), ROLE_OWNER, false);
	args[1] = CATALOG_INT64(book_account_uid(&book, account));
	before = catalog_find_string(&book_role, args, false);
	if (before != NULL)
		args[3] = CATALOG_TEXT(before);
	catalog_execute(&book_set_role, args);
	catalog_execute(&book_share_tabs, args);
	book_publish(book_id);
	PG_RETURN_VOID();
}

/* unshare_book(book_id, account, as_uid) */
Datum
sheet_unshare_book(PG_FUNCTION_ARGS)
{
	int64 book_id = books_arg(fcinfo, 0);
	char *account = catalog_arg_string(fcinfo, 1, "account name"), *before;
	Book book = books_require(book_id, catalog_arg_int64(fcinfo, 2, 0), ROLE_OWNER, false);
	NullableDatum args[3] = {CATALOG_INT64(book_id), CATALOG_INT64(book_account_uid(&book, account)), CATALOG_NULL};

	before = catalog_find_string(&book_role, args, false);
	if (before == NULL)
		PG_RETURN_VOID();
	args[2] = CATALOG_TEXT(before);
	catalog_execute(&book_delete_role, args);
	catalog_execute(&book_unshare_tabs, args);
	book_publish(book_id);
	PG_RETURN_VOID();
}

/* book_members(book_id, max_rows, after, as_uid) */
Datum
sheet_book_members(PG_FUNCTION_ARGS)
{
	Book book = books_find(books_arg(fcinfo, 0), catalog_arg_int64(fcinfo, 3, 0));
	NullableDatum args[] = {CATALOG_INT64(book.book_id),
							CATALOG_INT64(catalog_arg_page(fcinfo, 1, BOOK_MEMBERS_MAX_ROWS, "accounts")),
							CATALOG_INT64(catalog_arg_int64(fcinfo, 2, 0))};

	if (book.role < ROLE_VIEWER)
		books_deny(&book, ROLE_VIEWER);
	return catalog_return_rows(fcinfo, &book_list_members, args, true);
}
