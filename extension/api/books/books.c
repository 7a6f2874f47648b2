/*
 * books.c - SQL functions on books: sets of sheets, which are the tabs of the book. See docs/design/books.md.
 *
 * The role of an account on a book is that of its row in sheet.book_member. It decides what the account may do to the
 * book. What it may do to a sheet is decided by sheet.member alone, as for any sheet: sharing a book writes there.
 */
#include "postgres.h"

#include "api/books/books.h"
#include "api/functions/functions.h"
#include "api/tabs/tabs.h"
#include "catalog/pg_type.h"
#include "journal/follow/follow.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_create_book);
PG_FUNCTION_INFO_V1(sheet_book_info);
PG_FUNCTION_INFO_V1(sheet_account_books);
PG_FUNCTION_INFO_V1(sheet_rename_book);
PG_FUNCTION_INFO_V1(sheet_trash_book);
PG_FUNCTION_INFO_V1(sheet_recover_book);
PG_FUNCTION_INFO_V1(sheet_purge_book);

#define BOOKS_MAX_ROWS 1000

static CatalogQuery books_insert = {"INSERT INTO sheet.book (name, owner) VALUES ($1, $2) RETURNING book_id",
									{TEXTOID, INT8OID}};
static CatalogQuery books_insert_owner = {"INSERT INTO sheet.book_member (book_id, uid, role) VALUES ($1, $2, 'owner')",
										  {INT8OID, INT8OID}};
static CatalogQuery books_row = {
	"SELECT coalesce(b.owner, 0), (b.trashed_at IS NOT NULL)::int::int8, m.role FROM sheet.book b "
	"LEFT JOIN sheet.book_member m ON m.book_id = b.book_id AND m.uid = $2 WHERE b.book_id = $1",
	{INT8OID, INT8OID}};
static CatalogQuery books_tab_ids = {"SELECT sheet_id FROM sheet.book_tab WHERE book_id = $1 ORDER BY sheet_id",
									 {INT8OID}};
static CatalogQuery books_info = {
	"SELECT b.book_id, CASE WHEN $2 IS NOT NULL THEN b.name END, b.owner, o.name, $2, b.trashed_at IS NOT NULL, "
	"b.created_at FROM sheet.book b LEFT JOIN sheet.account o ON o.uid = b.owner WHERE b.book_id = $1",
	{INT8OID, TEXTOID}};
static CatalogQuery books_any_tab = {
	"SELECT count(*) FROM (SELECT sheet_id FROM sheet.book_tab WHERE book_id = $1) t WHERE EXISTS "
	"(SELECT FROM sheet.listed s WHERE s.uid = $2 AND s.sheet_id = t.sheet_id OFFSET 0)",
	{INT8OID, INT8OID}};
/* OFFSET 0 as in list_page (api/functions/list.c). */
static CatalogQuery books_page = {
	"SELECT m.book_id, b.name, b.owner, b.role, b.trashed, b.created_at "
	"FROM (SELECT m.book_id, m.role FROM sheet.book_member m WHERE m.uid = $1 AND m.book_id < $3 "
	"ORDER BY m.book_id DESC LIMIT $2) m LEFT JOIN LATERAL "
	"(SELECT b.name, (SELECT a.name FROM sheet.account a WHERE a.uid = b.owner) AS owner, m.role, "
	"b.trashed_at IS NOT NULL AS trashed, b.created_at FROM sheet.book b "
	"WHERE b.book_id = m.book_id AND (b.trashed_at IS NULL OR m.role = 'owner') OFFSET 0) b ON true "
	"ORDER BY m.book_id DESC",
	{INT8OID, INT8OID, INT8OID}};
static CatalogQuery books_rename = {"UPDATE sheet.book SET name = $2 WHERE book_id = $1", {INT8OID, TEXTOID}};
static CatalogQuery books_trash = {"UPDATE sheet.book SET trashed_at = clock_timestamp() WHERE book_id = $1",
								   {INT8OID}};
static CatalogQuery books_recover = {"UPDATE sheet.book SET trashed_at = NULL WHERE book_id = $1", {INT8OID}};
/* The tabs that came into the trash with the book have its time. */
static CatalogQuery books_same_time = {"UPDATE sheet.sheet s SET trashed_at = b.trashed_at FROM sheet.book b "
									   "WHERE b.book_id = $1 AND s.sheet_id = $2",
									   {INT8OID, INT8OID}};
static CatalogQuery books_live_tabs = {
	"SELECT t.sheet_id FROM sheet.book_tab t WHERE t.book_id = $1 AND EXISTS (SELECT FROM sheet.sheet s "
	"WHERE s.sheet_id = t.sheet_id AND s.trashed_at IS NULL OFFSET 0) ORDER BY t.sheet_id",
	{INT8OID}};
static CatalogQuery books_trashed_tabs = {
	"SELECT t.sheet_id FROM sheet.book b, sheet.book_tab t WHERE b.book_id = $1 AND t.book_id = $1 AND EXISTS "
	"(SELECT FROM sheet.sheet s WHERE s.sheet_id = t.sheet_id AND s.trashed_at = b.trashed_at OFFSET 0) "
	"ORDER BY t.sheet_id",
	{INT8OID}};
static CatalogQuery books_delete = {"DELETE FROM sheet.book WHERE book_id = $1", {INT8OID}};
static CatalogQuery books_delete_members = {"DELETE FROM sheet.book_member WHERE book_id = $1", {INT8OID}};

/* ---- who may do what ---- */

int64
books_arg(FunctionCallInfo fcinfo, int arg)
{
	catalog_require_arg(fcinfo, arg, "book id");
	return PG_GETARG_INT64(arg);
}

static SheetRole
books_role_of(const char *name)
{
	for (SheetRole role = ROLE_VIEWER; name != NULL && role <= ROLE_OWNER; role++)
		if (strcmp(name, permission_role_name(role)) == 0)
			return role;
	return ROLE_NONE;
}

/* latest: by the latest snapshot, otherwise by the active one. */
static Book
books_read(int64 book_id, int64 as_uid, bool latest)
{
	Book book = {.book_id = book_id, .all = as_uid == 0 && superuser(), .uid = permission_uid(as_uid)};
	NullableDatum args[] = {CATALOG_INT64(book_id), CATALOG_INT64(book.uid)};
	CatalogScope scope;

	permission_refuse_guest(book.uid);
	catalog_begin(&scope);
	if ((latest ? catalog_run_latest(&books_row, args) : catalog_run(&books_row, args, true)) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("book " INT64_FORMAT " does not exist", book_id)));
	book.owner = catalog_int64(1, 0);
	book.trashed = catalog_int64(2, 0) == 1;
	book.role = books_role_of(catalog_string(&scope, 3));
	catalog_end(&scope);
	if (book.all || (book.uid != 0 && book.uid == book.owner))
		book.role = ROLE_OWNER;
	return book;
}

void
books_deny(const Book *book, SheetRole needed)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied for book " INT64_FORMAT, book->book_id),
			 errdetail("It needs the role \"%s\"; yours is \"%s\".", permission_role_name(needed),
					   permission_role_name(book->role)),
			 errhint("The owner of the book can share it with sheet.share_book().")));
}

Book
books_find(int64 book_id, int64 as_uid)
{
	return books_read(book_id, as_uid, false);
}

Book
books_check(int64 book_id, int64 as_uid, SheetRole needed, bool allow_trashed)
{
	Book book = books_read(book_id, as_uid, true);

	if (book.role < needed)
		books_deny(&book, needed);
	if (book.trashed && !allow_trashed)
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'T', '0', '0', '1')),
						errmsg("book " INT64_FORMAT " is in the trash", book_id),
						errhint("Its owner can bring it back with sheet.recover_book().")));
	return book;
}

/* An account without the role does not make others wait. What a transaction before has changed is read again. */
Book
books_require(int64 book_id, int64 as_uid, SheetRole needed, bool allow_trashed)
{
	(void) books_check(book_id, as_uid, needed, allow_trashed);
	(void) tabs_lock(book_id);
	return books_check(book_id, as_uid, needed, allow_trashed);
}

static int64 *
books_list(CatalogQuery *query, int64 book_id, int *count)
{
	CatalogScope scope;
	int64 *ids;
	bool isnull;

	catalog_begin(&scope);
	*count = (int) catalog_run_latest(query, &CATALOG_INT64(book_id));
	ids = MemoryContextAlloc(scope.caller, sizeof(int64) * Max(*count, 1));
	for (int i = 0; i < *count; i++)
		ids[i] = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull));
	catalog_end(&scope);
	return ids;
}

int64 *
books_tabs(int64 book_id, int *count)
{
	return books_list(&books_tab_ids, book_id, count);
}

/* ---- making and reading ---- */

int64
books_make(const char *name, int64 owner)
{
	NullableDatum args[] = {CATALOG_TEXT(name), owner != 0 ? CATALOG_INT64(owner) : CATALOG_NULL};
	CatalogScope scope;
	int64 book_id;

	catalog_begin(&scope);
	catalog_run(&books_insert, args, false);
	book_id = catalog_int64(1, 0);
	args[0] = CATALOG_INT64(book_id);
	if (owner != 0)
		catalog_run(&books_insert_owner, args, false);
	catalog_end(&scope);
	return book_id;
}

/* create_book(name, as_uid) */
Datum
sheet_create_book(PG_FUNCTION_ARGS)
{
	char *name = catalog_arg_string(fcinfo, 0, "book name");
	int64 owner = sheets_new_owner(catalog_arg_int64(fcinfo, 1, 0));

	catalog_check_name("book name", name, SHEET_NAME_MAX);
	PG_RETURN_INT64(books_make(name, owner));
}

/* book_info(book_id, as_uid): an account that may see single tabs has no role, and does not learn the name. */
Datum
sheet_book_info(PG_FUNCTION_ARGS)
{
	Book book = books_find(books_arg(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0));
	NullableDatum args[] = {CATALOG_INT64(book.book_id), CATALOG_NULL}, tab[] = {args[0], CATALOG_INT64(book.uid)};
	int64 count = 0;

	if (book.role != ROLE_NONE && (!book.trashed || book.role == ROLE_OWNER))
		args[1] = CATALOG_TEXT(permission_role_name(book.role));
	else if (!catalog_find_int64(&books_any_tab, tab, true, &count) || count == 0)
	{
		book.role = ROLE_NONE; /* in the trash nobody but the owner has one */
		books_deny(&book, ROLE_VIEWER);
	}
	return catalog_return_rows(fcinfo, &books_info, args, true);
}

/* account_books(uid, max_rows, after): gateways, and everybody for the own account */
Datum
sheet_account_books(PG_FUNCTION_ARGS)
{
	int64 uid = catalog_arg_int64(fcinfo, 0, 0);
	NullableDatum args[3] = {CATALOG_INT64(uid)};

	if (permission_uid(0) != uid)
		permission_require_gateway();
	args[1] = CATALOG_INT64(catalog_arg_page(fcinfo, 1, BOOKS_MAX_ROWS, "books"));
	args[2] = CATALOG_INT64(catalog_arg_int64(fcinfo, 2, PG_INT64_MAX));
	return catalog_return_rows(fcinfo, &books_page, args, true);
}

/* ---- changes of the book as a whole ---- */

/* rename_book(book_id, name, as_uid) */
Datum
sheet_rename_book(PG_FUNCTION_ARGS)
{
	int64 book_id = books_arg(fcinfo, 0);
	char *name = catalog_arg_string(fcinfo, 1, "book name");

	catalog_check_name("book name", name, SHEET_NAME_MAX);
	(void) books_require(book_id, catalog_arg_int64(fcinfo, 2, 0), ROLE_EDITOR, false);
	catalog_execute(&books_rename, (NullableDatum[]){CATALOG_INT64(book_id), CATALOG_TEXT(name)});
	PG_RETURN_VOID();
}

/* trash_book(book_id, as_uid): tabs that are in the trash already stay there when the book comes back. */
Datum
sheet_trash_book(PG_FUNCTION_ARGS)
{
	Book book = books_require(books_arg(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0), ROLE_OWNER, true);
	int64 *tabs;
	int count;

	if (book.trashed)
		PG_RETURN_VOID();
	tabs = books_list(&books_live_tabs, book.book_id, &count);
	catalog_execute(&books_trash, &CATALOG_INT64(book.book_id));
	for (int i = 0; i < count; i++)
	{
		sheets_trash(tabs[i]);
		catalog_execute(&books_same_time, (NullableDatum[]){CATALOG_INT64(book.book_id), CATALOG_INT64(tabs[i])});
	}
	PG_RETURN_VOID();
}

/* recover_book(book_id, as_uid) */
Datum
sheet_recover_book(PG_FUNCTION_ARGS)
{
	Book book = books_require(books_arg(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0), ROLE_OWNER, true);
	int64 *tabs;
	int count;

	if (!book.trashed)
		PG_RETURN_VOID();
	tabs = books_list(&books_trashed_tabs, book.book_id, &count);
	for (int i = 0; i < count; i++)
		sheets_recover(tabs[i]);
	catalog_execute(&books_recover, &CATALOG_INT64(book.book_id));
	PG_RETURN_VOID();
}

/* purge_book(book_id, as_uid) */
Datum
sheet_purge_book(PG_FUNCTION_ARGS)
{
	Book book = books_require(books_arg(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0), ROLE_OWNER, true);
	NullableDatum args[] = {CATALOG_INT64(book.book_id)};
	CatalogScope scope;
	int count;
	int64 *tabs = books_tabs(book.book_id, &count);

	for (int i = 0; i < count; i++)
		sheets_purge(tabs[i]);
	catalog_begin(&scope);
	catalog_run_latest(&books_delete, args);
	catalog_run_latest(&books_delete_members, args);
	catalog_end(&scope);
	PG_RETURN_VOID();
}
