/*
 * tabs.c - what the book of a sheet demands of changes of the sheet: names of tabs are unique in their book.
 *
 * The row of the book serialises all changes of its tabs. Locks are taken in this order: rows of books by their ids,
 * the sheet lock, the row of the sheet. Which book a sheet is in is read before the book is locked, and compared after
 * the sheet's row is locked, too: a sheet changes its book under both locks.
 *
 * Names are compared with the latest snapshot, whatever the isolation level of the transaction is.
 */
#include "postgres.h"

#include "access/xact.h"
#include "api/tabs/tabs.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "journal/follow/follow.h"
#include "permission/catalog.h"
#include "support/tab_name.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_tab_key);

static CatalogQuery tabs_book = {"SELECT book_id FROM sheet.book_tab WHERE sheet_id = $1", {INT8OID}};
/* An update, so that in REPEATABLE READ and SERIALIZABLE a transaction fails that has not seen another one's change. */
static CatalogQuery tabs_book_row = {"UPDATE sheet.book SET changes = changes + 1 WHERE book_id = $1", {INT8OID}};
static CatalogQuery tabs_of_book = {"SELECT sheet_id FROM sheet.book_tab WHERE book_id = $1", {INT8OID}};
static CatalogQuery tabs_sheet_row = {"SELECT sheet_id FROM sheet.sheet WHERE sheet_id = $1 FOR NO KEY UPDATE",
									  {INT8OID}};
/* Without LIMIT: the planner might hope to find the first row soon without an index. */
static CatalogQuery tabs_same_name = {
	"SELECT min(s.name) FROM sheet.book_tab t, LATERAL (SELECT s.name FROM sheet.sheet s WHERE s.sheet_id = t.sheet_id "
	"AND s.trashed_at IS NULL OFFSET 0) s WHERE t.book_id = $1 AND t.sheet_id <> $2 "
	"AND sheet.tab_key(s.name) = sheet.tab_key($3)",
	{INT8OID, INT8OID, TEXTOID}};
static CatalogQuery tabs_trashed = {"SELECT 1::int8 FROM sheet.book WHERE book_id = $1 AND trashed_at IS NOT NULL",
									{INT8OID}};

/* ---- names ---- */

/* tab_key(name) */
Datum
sheet_tab_key(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(tab_name_key(text_to_cstring(PG_GETARG_TEXT_PP(0)))));
}

void
tabs_check_name(int64 book_id, int64 sheet_id, const char *name)
{
	NullableDatum args[] = {CATALOG_INT64(book_id), CATALOG_INT64(sheet_id), CATALOG_TEXT(name)};
	CatalogScope scope;
	char *same;

	if (book_id == 0)
		return;
	catalog_begin(&scope);
	catalog_run_latest(&tabs_same_name, args);
	same = catalog_string(&scope, 1);
	catalog_end(&scope);
	if (same != NULL)
		ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION), errmsg("the name \"%s\" is taken in this book", name),
						errdetail("Names of tabs that are not in the trash differ in more than case."),
						errhint("Choose another name.")));
}

/* ---- locks ---- */

int64
tabs_book_of(int64 sheet_id)
{
	CatalogScope scope;
	int64 book_id = 0;

	catalog_begin(&scope);
	if (catalog_run_latest(&tabs_book, &CATALOG_INT64(sheet_id)) > 0)
		book_id = catalog_int64(1, 0);
	catalog_end(&scope);
	return book_id;
}

void
tabs_register_change(int64 book_id)
{
	CatalogScope scope;
	uint64 count;
	bool isnull;

	if (book_id == 0)
		return;
	catalog_begin(&scope);
	count = catalog_run_latest(&tabs_of_book, &CATALOG_INT64(book_id));
	for (uint64 i = 0; i < count; i++)
		follow_register_book(DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull)));
	catalog_end(&scope);
}

bool
tabs_lock(int64 book_id)
{
	if (catalog_execute(&tabs_book_row, &CATALOG_INT64(book_id)) > 0)
	{
		tabs_register_change(book_id);
		return true;
	}
	if (IsolationUsesXactSnapshot())
		ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
						errmsg("could not serialize access due to concurrent update"),
						errdetail("Book " INT64_FORMAT " is newer than this transaction's snapshot, or gone.", book_id),
						errhint("The transaction might succeed if retried.")));
	return false;
}

int64
tabs_lock_book(int64 sheet_id)
{
	int64 book_id = tabs_book_of(sheet_id);

	if (book_id != 0)
		(void) tabs_lock(book_id);
	return book_id;
}

void
tabs_lock_sheet(int64 sheet_id, int64 book_id)
{
	if (catalog_execute(&tabs_sheet_row, &CATALOG_INT64(sheet_id)) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	if (tabs_book_of(sheet_id) != book_id)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("sheet " INT64_FORMAT " has been moved to another book", sheet_id), errhint("Try again.")));
}

void
tabs_require_live_book(int64 book_id, int64 sheet_id)
{
	CatalogScope scope;
	bool trashed;

	if (book_id == 0)
		return;
	catalog_begin(&scope);
	trashed = catalog_run_latest(&tabs_trashed, &CATALOG_INT64(book_id)) > 0;
	catalog_end(&scope);
	if (trashed)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the book of sheet " INT64_FORMAT " is in the trash", sheet_id),
						errhint("Its owner can bring back book " INT64_FORMAT " with sheet.recover_book().", book_id)));
}
