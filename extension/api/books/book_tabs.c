/*
 * book_tabs.c - SQL functions on the tabs of books: listing, adding, moving, changing and copying them.
 *
 * All changes of tabs lock the row of the book first (books_require), so that names are unique, the number of tabs is
 * bounded, and places are 1, 2, 3, ... from left to right after each insertion. A tab belongs to the owner of its book.
 */
#include "postgres.h"

#include "api/books/books.h"
#include "api/functions/functions.h"
#include "api/tabs/tabs.h"
#include "catalog/pg_type.h"
#include "journal/follow/follow.h"
#include "permission/catalog.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_tabs);
PG_FUNCTION_INFO_V1(sheet_tab);
PG_FUNCTION_INFO_V1(sheet_add_tab);
PG_FUNCTION_INFO_V1(sheet_move_tab);
PG_FUNCTION_INFO_V1(sheet_change_tab);
PG_FUNCTION_INFO_V1(sheet_duplicate_tab);
PG_FUNCTION_INFO_V1(sheet_duplicate_book);

/* The tabs of the book $1 that the account $2 sees, or all if $3. OFFSET 0 as in list_page (api/functions/list.c).
 * There is no LIMIT: the planner might hope to find the first row soon without an index. */
#define TABS_FROM                                                                                                      \
	"FROM (SELECT * FROM sheet.book_tab WHERE book_id = $1) t, LATERAL "                                               \
	"(SELECT l.name, l.role, l.trashed_at FROM sheet.listed l WHERE NOT $3 AND l.uid = $2 AND l.sheet_id = "           \
	"t.sheet_id UNION ALL SELECT s.name, 'owner', s.trashed_at FROM sheet.sheet s WHERE $3 AND s.sheet_id = "          \
	"t.sheet_id OFFSET 0) s "

static CatalogQuery tabs_list = {"SELECT t.sheet_id, s.name, t.place, t.colour, t.hidden, s.role, "
								 "s.trashed_at IS NOT NULL " TABS_FROM "ORDER BY t.place, t.sheet_id",
								 {INT8OID, INT8OID, BOOLOID}};
static CatalogQuery tabs_find = {"SELECT min(t.sheet_id) " TABS_FROM
								 "WHERE s.trashed_at IS NULL AND sheet.tab_key(s.name) = sheet.tab_key($4)",
								 {INT8OID, INT8OID, BOOLOID, TEXTOID}};
static CatalogQuery tabs_to_copy = {"SELECT t.sheet_id, s.name " TABS_FROM
									"WHERE s.trashed_at IS NULL ORDER BY t.place, t.sheet_id",
									{INT8OID, INT8OID, BOOLOID}};
static CatalogQuery tabs_count = {"SELECT count(*) FROM sheet.book_tab WHERE book_id = $1", {INT8OID}};
/* Behind all others. */
static CatalogQuery tabs_insert = {
	"INSERT INTO sheet.book_tab (sheet_id, book_id, place) SELECT $1, $2, coalesce(max(place), 0) + 1 "
	"FROM sheet.book_tab WHERE book_id = $2 "
	"ON CONFLICT (sheet_id) DO UPDATE SET book_id = excluded.book_id, place = excluded.place",
	{INT8OID, INT8OID}};
static CatalogQuery tabs_take_out = {"DELETE FROM sheet.book_tab WHERE sheet_id = $1", {INT8OID}};
/* Puts the tab $2 before the tab $3, null: behind all others. */
static CatalogQuery tabs_place = {
	"UPDATE sheet.book_tab t SET place = o.place FROM (SELECT b.sheet_id, row_number() OVER (ORDER BY "
	"CASE WHEN b.sheet_id <> $2 THEN b.place ELSE (SELECT n.place FROM sheet.book_tab n WHERE n.sheet_id = $3) END "
	"NULLS LAST, b.sheet_id <> $2, b.sheet_id) AS place FROM sheet.book_tab b WHERE b.book_id = $1) o "
	"WHERE t.book_id = $1 AND t.sheet_id = o.sheet_id AND t.place <> o.place",
	{INT8OID, INT8OID, INT8OID}};
static CatalogQuery tabs_change = {
	"UPDATE sheet.book_tab SET colour = CASE WHEN $2 IS NULL THEN colour WHEN $2 = '' THEN NULL ELSE lower($2) END, "
	"hidden = coalesce($3, hidden) WHERE sheet_id = $1",
	{INT8OID, TEXTOID, BOOLOID}};
static CatalogQuery tabs_other_visible = {
	"SELECT count(*) FROM (SELECT sheet_id FROM sheet.book_tab WHERE book_id = $1 AND sheet_id <> $2 AND NOT hidden) t "
	"WHERE EXISTS (SELECT FROM sheet.sheet s WHERE s.sheet_id = t.sheet_id AND s.trashed_at IS NULL OFFSET 0)",
	{INT8OID, INT8OID}};
static CatalogQuery tabs_owner = {"SELECT coalesce(owner, 0) FROM sheet.sheet WHERE sheet_id = $1", {INT8OID}};
static CatalogQuery tabs_name = {"SELECT name FROM sheet.sheet WHERE sheet_id = $1", {INT8OID}};
/* The looks of the tab $2 as those of the tab $1. */
static CatalogQuery tabs_copy_looks = {
	"UPDATE sheet.book_tab t SET colour = f.colour, hidden = f.hidden FROM sheet.book_tab f "
	"WHERE f.sheet_id = $1 AND t.sheet_id = $2",
	{INT8OID, INT8OID}};
static CatalogQuery tabs_copy_colour = {"UPDATE sheet.book_tab t SET colour = f.colour FROM sheet.book_tab f "
										"WHERE f.sheet_id = $1 AND t.sheet_id = $2",
										{INT8OID, INT8OID}};
/* The copy of a tab in its own book has the tab's exceptions, so that it gives nobody more rights. */
static CatalogQuery tabs_copy_roles = {
	"UPDATE sheet.member m SET role = f.role FROM sheet.member f, sheet.book_tab t, sheet.book_member b "
	"WHERE f.sheet_id = $1 AND m.sheet_id = $2 AND m.uid = f.uid AND t.sheet_id = $2 AND b.book_id = t.book_id "
	"AND b.uid = f.uid AND b.role <> 'owner' AND m.role IS DISTINCT FROM f.role",
	{INT8OID, INT8OID}};
static CatalogQuery tabs_colour = {"SELECT 1::int8 WHERE $1 ~* '^#[0-9a-f]{6}$'", {TEXTOID}};

/* ---- reading ---- */

/* The arguments of TABS_FROM. */
static void
tabs_args(const Book *book, NullableDatum args[3])
{
	args[0] = CATALOG_INT64(book->book_id);
	args[1] = CATALOG_INT64(book->uid);
	args[2] = CATALOG_DATUM(BoolGetDatum(book->all));
}

/* tabs(book_id, as_uid) */
Datum
sheet_tabs(PG_FUNCTION_ARGS)
{
	Book book = books_find(books_arg(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0));
	NullableDatum args[3];
	int64 found;

	tabs_args(&book, args);
	if (book.role == ROLE_NONE && !catalog_find_int64(&tabs_list, args, true, &found))
		books_deny(&book, ROLE_VIEWER);
	return catalog_return_rows(fcinfo, &tabs_list, args, true);
}

/* tab(book_id, name, as_uid) */
Datum
sheet_tab(PG_FUNCTION_ARGS)
{
	Book book = books_find(books_arg(fcinfo, 0), catalog_arg_int64(fcinfo, 2, 0));
	NullableDatum args[4];
	int64 sheet_id = 0;

	tabs_args(&book, args);
	args[3] = CATALOG_TEXT(catalog_arg_string(fcinfo, 1, "name"));
	(void) catalog_find_int64(&tabs_find, args, true, &sheet_id);
	if (sheet_id == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(sheet_id);
}

/* The book of an argument that may be null. 0 is no book. */
static int64
tabs_arg_book(FunctionCallInfo fcinfo, int arg, int64 otherwise)
{
	int64 book_id = catalog_arg_int64(fcinfo, arg, otherwise);

	if (!PG_ARGISNULL(arg) && book_id == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("book 0 does not exist")));
	return book_id;
}

/* ---- adding ---- */

/* 54000 if the book is full. Exact if the caller holds the book's row. */
static void
tabs_check_room(int64 book_id)
{
	CatalogScope scope;
	int64 count;

	catalog_begin(&scope);
	catalog_run_latest(&tabs_count, &CATALOG_INT64(book_id));
	count = catalog_int64(1, 0);
	catalog_end(&scope);
	if (count >= BOOK_MAX_TABS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("book " INT64_FORMAT " has %d tabs, which is the maximum", book_id, BOOK_MAX_TABS),
						errdetail("Tabs that are in the trash count, too."),
						errhint("Purge those that are not needed, or begin another book.")));
}

/* The tab before which another one is put; 0: behind all others. */
static int64
tabs_arg_before(FunctionCallInfo fcinfo, int arg, int64 book_id)
{
	int64 before = catalog_arg_int64(fcinfo, arg, 0);

	if (!PG_ARGISNULL(arg) && tabs_book_of(before) != book_id)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("sheet " INT64_FORMAT " is not a tab of book " INT64_FORMAT, before, book_id)));
	return before;
}

static void
tabs_put_before(int64 book_id, int64 sheet_id, int64 before)
{
	NullableDatum args[] = {CATALOG_INT64(book_id), CATALOG_INT64(sheet_id),
							before != 0 ? CATALOG_INT64(before) : CATALOG_NULL};

	if (before != sheet_id)
		catalog_execute(&tabs_place, args);
}

/* Puts a sheet that is in the book from (0: in none) into another one, behind its tabs. */
static void
tabs_enter(int64 sheet_id, int64 from, int64 to)
{
	catalog_execute(&tabs_insert, (NullableDatum[]){CATALOG_INT64(sheet_id), CATALOG_INT64(to)});
	follow_register_book(sheet_id);
	book_members_apply(sheet_id, from, to);
}

/* add_tab(book_id, name, before, rows, cols, as_uid) */
Datum
sheet_add_tab(PG_FUNCTION_ARGS)
{
	int64 book_id = books_arg(fcinfo, 0), before, sheet_id;
	SheetMaking sheet = {.name = catalog_arg_string(fcinfo, 1, "sheet name")};
	Book book;

	catalog_check_name("sheet name", sheet.name, SHEET_NAME_MAX);
	sheet.rows = sheets_arg_rows(fcinfo, 3);
	sheet.cols = sheets_arg_cols(fcinfo, 4);
	book = books_require(book_id, catalog_arg_int64(fcinfo, 5, 0), ROLE_EDITOR, false);
	before = tabs_arg_before(fcinfo, 2, book_id);
	tabs_check_room(book_id);
	tabs_check_name(book_id, 0, sheet.name);
	sheet.owner = book.owner;
	sheet.author = book.uid;
	sheet_id = sheets_make(&sheet);
	tabs_enter(sheet_id, 0, book_id);
	if (before != 0)
		tabs_put_before(book_id, sheet_id, before);
	PG_RETURN_INT64(sheet_id);
}

/* ---- moving and changing ---- */

/* The name is that which the sheet has now: its row is locked. */
static char *
tabs_present_name(int64 sheet_id)
{
	CatalogScope scope;
	char *name = NULL;

	catalog_begin(&scope);
	if (catalog_run_latest(&tabs_name, &CATALOG_INT64(sheet_id)) > 0)
		name = catalog_string(&scope, 1);
	catalog_end(&scope);
	if (name == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	return name;
}

/* The owner of a sheet may give it to a book of the same owner only: he would lose it otherwise. */
static void
tabs_check_owner(int64 sheet_id, const Book *book)
{
	int64 owner = 0;

	(void) catalog_find_int64(&tabs_owner, &CATALOG_INT64(sheet_id), false, &owner);
	if (owner != book->owner)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("sheet " INT64_FORMAT " and book " INT64_FORMAT " have different owners", sheet_id,
							   book->book_id),
						errdetail("A tab belongs to the owner of its book."),
						errhint("Put a copy into the book with sheet.duplicate_tab().")));
}

/* Takes the sheet out of the book from (0: in none), and puts it into another one (0: into none). */
static void
tabs_move(int64 sheet_id, int64 from, int64 to, int64 as_uid, FunctionCallInfo fcinfo)
{
	int64 before;
	Book book;

	/* the locks of both books, in the order of their ids */
	if (from != 0 && from < to)
		(void) tabs_lock(from);
	if (to != 0)
		book = books_require(to, as_uid, ROLE_EDITOR, false);
	if (from > to)
		(void) tabs_lock(from);
	tabs_lock_sheet(sheet_id, from);
	permission_require(sheet_id, as_uid, ROLE_OWNER, false);
	if (to == 0)
	{
		catalog_execute(&tabs_take_out, &CATALOG_INT64(sheet_id));
		book_members_apply(sheet_id, from, 0);
		return;
	}
	before = tabs_arg_before(fcinfo, 2, to);
	tabs_check_owner(sheet_id, &book);
	tabs_check_room(to);
	tabs_check_name(to, sheet_id, tabs_present_name(sheet_id));
	tabs_enter(sheet_id, from, to);
	if (before != 0)
		tabs_put_before(to, sheet_id, before);
}

/* move_tab(sheet_id, book_id, before, as_uid) */
Datum
sheet_move_tab(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), to = tabs_arg_book(fcinfo, 1, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 3, 0), from;

	if (to == 0 && !PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a place before a tab needs a book")));
	from = tabs_book_of(sheet_id);
	permission_require(sheet_id, as_uid, from == to ? ROLE_VIEWER : ROLE_OWNER, false);
	if (from != to)
		tabs_move(sheet_id, from, to, as_uid, fcinfo);
	else if (to != 0)
	{
		(void) books_require(to, as_uid, ROLE_EDITOR, false);
		tabs_lock_sheet(sheet_id, to);
		tabs_put_before(to, sheet_id, tabs_arg_before(fcinfo, 2, to));
		follow_register_status(sheet_id);
	}
	PG_RETURN_VOID();
}

/* Raises an error for a tab that cannot be hidden, since no other one would be seen. */
static void
tabs_check_hiding(int64 book_id, int64 sheet_id)
{
	NullableDatum args[] = {CATALOG_INT64(book_id), CATALOG_INT64(sheet_id)};
	CatalogScope scope;
	int64 others;

	catalog_begin(&scope);
	catalog_run_latest(&tabs_other_visible, args);
	others = catalog_int64(1, 0);
	catalog_end(&scope);
	if (others == 0)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the last visible tab of a book cannot be hidden")));
}

/* change_tab(sheet_id, colour, hidden, as_uid): changes what is not null */
Datum
sheet_change_tab(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), as_uid = catalog_arg_int64(fcinfo, 3, 0), book_id, found;
	char *colour = PG_ARGISNULL(1) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(1));

	if (colour[0] != '\0' && !catalog_find_int64(&tabs_colour, &fcinfo->args[1], true, &found))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is not a colour", colour),
						errhint("A colour has the form #rrggbb; an empty one means none.")));
	permission_require(sheet_id, as_uid, ROLE_VIEWER, false);
	book_id = tabs_book_of(sheet_id);
	if (book_id == 0)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("sheet " INT64_FORMAT " is not a tab of a book", sheet_id)));
	(void) books_require(book_id, as_uid, ROLE_EDITOR, false);
	tabs_lock_sheet(sheet_id, book_id);
	if (!PG_ARGISNULL(2) && PG_GETARG_BOOL(2))
		tabs_check_hiding(book_id, sheet_id);
	catalog_execute(&tabs_change, fcinfo->args);
	follow_register_status(sheet_id);
	PG_RETURN_VOID();
}

/* ---- copying ---- */

/* duplicate_tab(sheet_id, name, book_id, as_uid): into the book, or the sheet's own one, where it is the next tab. */
Datum
sheet_duplicate_tab(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), as_uid = catalog_arg_int64(fcinfo, 3, 0), from, to, copy;
	char *name = catalog_arg_string(fcinfo, 1, "sheet name");
	NullableDatum args[2];
	Book book;

	catalog_check_name("sheet name", name, SHEET_NAME_MAX);
	permission_refuse_guest(permission_uid(as_uid));
	permission_require(sheet_id, as_uid, ROLE_VIEWER, false);
	from = tabs_book_of(sheet_id);
	to = tabs_arg_book(fcinfo, 2, from);
	if (to == 0)
	{
		int64 owner = sheets_new_owner(as_uid);

		PG_RETURN_INT64(book_copy_sheet(sheet_id, name, owner, owner));
	}
	/* The copy may take long. Permission and name are checked before it, and again under the lock, since others may
	 * change the book meanwhile. */
	book = books_check(to, as_uid, ROLE_EDITOR, false);
	tabs_check_room(to);
	tabs_check_name(to, 0, name);
	copy = book_copy_sheet(sheet_id, name, book.owner, book.uid);
	(void) books_require(to, as_uid, ROLE_EDITOR, false);
	tabs_check_room(to);
	tabs_check_name(to, 0, name);
	tabs_enter(copy, 0, to);
	args[0] = CATALOG_INT64(sheet_id);
	args[1] = CATALOG_INT64(copy);
	catalog_execute(&tabs_copy_colour, args);
	if (from == to && tabs_book_of(sheet_id) == to)
	{
		catalog_execute(&tabs_copy_roles, args);
		/* before its original, then the original before it */
		tabs_put_before(to, copy, sheet_id);
		tabs_put_before(to, sheet_id, copy);
	}
	PG_RETURN_INT64(copy);
}

/* A tab that is copied. */
typedef struct TabToCopy
{
	int64 sheet_id;
	char *name;
} TabToCopy;

static TabToCopy *
tabs_read_to_copy(const Book *book, uint64 *count)
{
	NullableDatum args[3];
	CatalogScope scope;
	TabToCopy *tabs;
	bool isnull;

	tabs_args(book, args);
	catalog_begin(&scope);
	*count = catalog_run_latest(&tabs_to_copy, args);
	tabs = MemoryContextAlloc(scope.caller, sizeof(TabToCopy) * Max(*count, 1));
	for (uint64 i = 0; i < *count; i++)
	{
		HeapTuple row = SPI_tuptable->vals[i];

		tabs[i].sheet_id = DatumGetInt64(SPI_getbinval(row, SPI_tuptable->tupdesc, 1, &isnull));
		tabs[i].name = MemoryContextStrdup(scope.caller, SPI_getvalue(row, SPI_tuptable->tupdesc, 2));
	}
	catalog_end(&scope);
	return tabs;
}

/* duplicate_book(book_id, name, as_uid): the tabs that the caller sees, in a book of his own. */
Datum
sheet_duplicate_book(PG_FUNCTION_ARGS)
{
	char *name = catalog_arg_string(fcinfo, 1, "book name");
	int64 as_uid = catalog_arg_int64(fcinfo, 2, 0), owner, copy;
	Book book = books_check(books_arg(fcinfo, 0), as_uid, ROLE_VIEWER, false);
	uint64 count;
	TabToCopy *tabs;

	catalog_check_name("book name", name, SHEET_NAME_MAX);
	owner = sheets_new_owner(as_uid);
	copy = books_make(name, owner);
	tabs = tabs_read_to_copy(&book, &count);
	for (uint64 i = 0; i < count; i++)
	{
		int64 sheet_id = book_copy_sheet(tabs[i].sheet_id, tabs[i].name, owner, owner);

		tabs_enter(sheet_id, 0, copy);
		catalog_execute(&tabs_copy_looks, (NullableDatum[]){CATALOG_INT64(tabs[i].sheet_id), CATALOG_INT64(sheet_id)});
	}
	PG_RETURN_INT64(copy);
}
