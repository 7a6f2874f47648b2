/*
 * tab_references.c - formulas that refer to a tab by its name (Other!A1) follow structure edits and renamings of the
 * tab, in all tabs of its book. docs/design/books.md explains the rules and the locks.
 *
 * Only tabs that have a row of sheet.referring are looked at. Before anything is read or changed, the book's reference
 * lock is taken in share mode, and their sheet locks with the tab's own. A tab that gets its first reference takes the
 * reference lock in exclusive mode, so until the change is committed no tab gets one unseen.
 */
#include "postgres.h"

#include "journal/journal.h"
#include "journal/store/tab_store.h"
#include "journal/write/base.h"
#include "journal/write/edit_life.h"
#include "journal/write/formulas.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define REFERENCE_LOCK_CLASS 0x5352 /* LOCKTAG_ADVISORY's field4; sheets use 0x5348 */

/* ---- locks ---- */

void
tab_references_lock_tag(int64 book_id, LOCKTAG *tag)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) ((uint64) book_id >> 32), (uint32) book_id, REFERENCE_LOCK_CLASS);
}

static bool
references_lock_book(int64 book_id, LOCKMODE mode, bool nowait)
{
	LOCKTAG tag;

	tab_references_lock_tag(book_id, &tag);
	return LockAcquire(&tag, mode, false, nowait) != LOCKACQUIRE_NOT_AVAIL;
}

static void
references_release_book(int64 book_id)
{
	LOCKTAG tag;

	tab_references_lock_tag(book_id, &tag);
	(void) LockRelease(&tag, ShareLock, false);
}

/* All of them, or none. Returns 0, or the sheet that another transaction holds. */
static int64
references_try_sheets(const int64 *ids, int n)
{
	for (int i = 0; i < n; i++)
		if (!writer_try_lock_sheet(ids[i]))
		{
			int64 held = ids[i];

			while (i-- > 0)
				writer_release_lock(ids[i]);
			return held;
		}
	return 0;
}

/* The tabs of the book that must be locked, and `own` (0: none), by their ids. */
static int64 *
references_list(int64 book_id, int64 own, TabReferences *tabs, int *count)
{
	int64 *ids;
	int n = 0;

	tabs->tabs = tab_store_referring(book_id, &tabs->ntabs);
	ids = palloc(sizeof(int64) * (tabs->ntabs + 1));
	for (int i = 0; i < tabs->ntabs; i++)
	{
		if (own != 0 && own <= tabs->tabs[i])
		{
			if (own < tabs->tabs[i])
				ids[n++] = own;
			own = 0;
		}
		ids[n++] = tabs->tabs[i];
	}
	if (own != 0)
		ids[n++] = own;
	*count = n;
	return ids;
}

/* The locks of a change of a tab. */
typedef struct ReferencesLocks
{
	int64 book_id;
	int64 own;	/* the tab; 0: only those that refer to it */
	int64 *ids; /* of the sheets */
	int n;
} ReferencesLocks;

/* Takes all locks, or none. Waits for no sheet lock, and for the reference lock unless nowait. Returns 0, the sheet
 * that another transaction holds, or for the reference lock the book's id, negative. */
static int64
references_try(ReferencesLocks *locks, bool nowait, TabReferences *tabs)
{
	int64 held;

	if (!references_lock_book(locks->book_id, ShareLock, nowait))
		return -locks->book_id;
	locks->ids = references_list(locks->book_id, locks->own, tabs, &locks->n);
	held = references_try_sheets(locks->ids, locks->n);
	if (held != 0)
		references_release_book(locks->book_id);
	return held;
}

/* Waits for sheet locks, in the order of the ids, and tries again. Then the transaction has all locks, or none. */
static int64
references_await(ReferencesLocks *locks, const int64 *ids, int n, TabReferences *tabs)
{
	int64 held;

	for (int i = 0; i < n; i++)
		writer_lock_sheet(ids[i]);
	held = references_try(locks, true, tabs);
	for (int i = 0; i < n; i++)
		writer_release_lock(ids[i]);
	return held < 0 ? references_try(locks, false, tabs) : held;
}

#define REFERENCES_TRIES 10

/* While it waits for a lock it has taken no other, so that nobody waits who edits the other tabs. After some tries it
 * waits for all sheets: busy tabs do not keep it waiting for ever. */
static int64
references_lock(int64 book_id, int64 own, bool nowait, TabReferences *tabs)
{
	ReferencesLocks locks = {.book_id = book_id, .own = own};
	int64 held = references_try(&locks, nowait, tabs);
	char *name;

	for (int tries = 0; held != 0 && !nowait; tries++)
	{
		int64 one = held;

		held = tries < REFERENCES_TRIES ? references_await(&locks, &one, 1, tabs)
										: references_await(&locks, locks.ids, locks.n, tabs);
	}
	if (held != 0 || tabs->ntabs == 0)
		return held;
	name = tab_store_name(tabs->sheet_id);
	if (name != NULL)
		tab_name_init(&tabs->name, name);
	else
		tabs->ntabs = 0; /* it has been purged */
	return 0;
}

int64
tab_references_lock(int64 sheet_id, bool nowait, TabReferences *tabs)
{
	int64 book_id = tab_store_book(sheet_id);

	*tabs = (TabReferences){.sheet_id = sheet_id};
	if (book_id != 0)
		return references_lock(book_id, sheet_id, nowait, tabs);
	return nowait && !writer_try_lock_sheet(sheet_id) ? sheet_id : 0;
}

void
tab_references_mark(int64 sheet_id, bool nowait)
{
	int64 book_id;

	if (tab_store_refers(sheet_id))
		return;
	book_id = tab_store_book(sheet_id);
	if (book_id != 0 && !references_lock_book(book_id, ExclusiveLock, nowait))
		ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
						errmsg("sheet " INT64_FORMAT " cannot store its first reference to another tab now", sheet_id),
						errdetail("Another transaction changes rows, columns or the name of a tab of its book."),
						errhint("Try again.")));
	tab_store_mark(sheet_id);
}

/* ---- rewriting ---- */

#define REFERENCES_BATCH 4096

static bool
references_is_name(const void *arg, const char *name, size_t len)
{
	return tab_name_is(arg, name, len);
}

/* Appends the edits that rewrite the formulas of one sheet. Returns their number. */
static uint32
references_rewrite(WriterSheet *ws, const AppendCall *call, uint64 uid, const FormulaChange *change,
				   const LineChange *changes, uint32 nchanges, AppendResult *result)
{
	Formulas formulas;
	Edit *edits;
	uint32 n;

	formulas_begin(ws, change, changes, nchanges, &formulas);
	edits = palloc(sizeof(Edit) * Min(REFERENCES_BATCH, formulas.count));
	while ((n = formulas_next(&formulas, uid, edits, REFERENCES_BATCH)) > 0)
		edit_life_append_part(ws, call, edits, n, result);
	return (uint32) formulas.count;
}

/* The same for the tabs except `own`. To each of them it is an edit like others: of no gateway, without an epoch. */
static uint32
references_rewrite_tabs(const TabReferences *tabs, int64 own, uint64 uid, const FormulaChange *change,
						const LineChange *changes, uint32 nchanges)
{
	const AppendCall call = {.nedits = 0};
	uint32 count = 0;

	for (int i = 0; i < tabs->ntabs; i++)
	{
		AppendResult result = {0};
		WriterSheet *ws;

		CHECK_FOR_INTERRUPTS();
		if (tabs->tabs[i] == own)
			continue;
		ws = writer_open(tabs->tabs[i]);
		if (!ws->meta.exists || ws->meta.segment_id == 0) /* purged, or damaged: sheet.fsck() says how */
			continue;
		(void) base_find_tiles(ws, NULL, 0, NULL); /* the extent and the maps */
		count += references_rewrite(ws, &call, uid, change, changes, nchanges, &result);
	}
	return count;
}

uint32
tab_references_follow(TabReferences *tabs, WriterSheet *ws, const AppendCall *call, uint64 uid,
					  const LineChange *changes, uint32 n, AppendResult *result)
{
	FormulaChange change = {.own = true};
	uint32 count;

	if (tabs != NULL && tabs->ntabs > 0)
	{
		change.is_name = references_is_name;
		change.name_arg = &tabs->name;
	}
	count = references_rewrite(ws, call, uid, &change, changes, n, result);
	change.own = false;
	if (change.is_name != NULL)
		count += references_rewrite_tabs(tabs, ws->sheet_id, uid, &change, changes, n);
	return count;
}

void
journal_rename_tab(int64 sheet_id, int64 book_id, const char *name, uint64 uid, void (*change_name)(void *arg),
				   void *arg)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet references", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	TabReferences tabs = {.sheet_id = sheet_id};
	FormulaChange change = {.is_name = references_is_name, .name_arg = &tabs.name};
	char *quoted = palloc(2 * strlen(name) + 3);

	(void) references_lock(book_id, 0, false, &tabs);
	change_name(arg);
	if (tabs.ntabs > 0 && strcmp(tabs.name.name, name) != 0)
	{
		formula_quote_name(name, quoted);
		change.new_name = quoted;
		(void) references_rewrite_tabs(&tabs, 0, uid, &change, NULL, 0);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
