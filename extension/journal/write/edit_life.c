/*
 * edit_life.c - the life of an edit, from the call to its publication. Each step is a call into one module, in
 * journal/write unless a folder is named:
 *
 *      sheet.set()              api/functions/references.c: references_set()
 *        |    permission_require()  permission/permission.c
 *        |    cells_edit()          api/scan/cells.c
 *        |    journal_edit()
 *      sheet.apply()            api/functions/gateway.c; gateways have checked the authors' roles
 *        |    journal_apply()       with nowait it returns at step 2 if it would have to wait
 *        |
 *        |  1 check     batch_adopt()             batch.c     of journal_edit(): UTF-8, limits
 *        |              batch_decode()            batch.c     of journal_apply(): the same, and the codec
 *        |  2 lock      life_lock()               here        with nowait: tries the sheet lock
 *        |                tab_references_lock()   tab_references.c   of structure edits: their sheet, and the tabs
 *        |              writer_open()             writer.c    that refer to it; the sheet lock, if it is not held;
 *        |                                                    entry pinned; last seq, segment, epoch
 *        |              writer_require_live()     writer.c    refuses a sheet in the trash
 *        |  3 admit     epoch_check()             epoch.c     of sheet.apply(): fencing
 *        |              batch_look_back()         batch.c     what the caller missed; duplicate batch
 *        |              clients_check()           clients.c   (journal/store) operations that are acknowledged already
 *        |
 *        |      structure_begin()               structure.c of inserted, deleted and moved lines: the edits to append
 *        |
 *        |  edit_life_append(), for each batch
 *        |  4 look up   base_find_tiles()         base.c      tiles pinned in the shared grid, or read privately
 *        |      each    staging_lookup()          staging.c   what the cell holds; life_changes_cell(): no-ops end
 *        |              property_write_look_up()  property_write.c   the same for a property
 *        |  5 append    append_edit()             append.c    the edit's bytes, with the previous content
 *        |                writer_begin_change()   writer.c    the first change of the transaction: entry marked
 *        |                edit_write()            edit_codec.c  (common) the format
 *        |  6 stage     structure_change_maps()   structure.c  rows and columns that move
 *        |              staging_add()             staging.c   memory reserved in the shared grid
 *        |              property_write_apply()    property_write.c   properties, rectangles of links
 *        |
 *        |      append_end()                      append.c    a row of log_batch: append_end_row() sets seq and time
 *        |        append_store()                  append.c    the row's columns
 *        |        storage_insert()                storage.c   (journal/store) log_batch and its directory, opened
 *        |          sheetlog_insert_slots()       sheetlog.c  (am/handler) the access method, by table_tuple_insert()
 *        |            am_prepare_row()            am_row.c    (am/page) values into an AmPrepared
 *        |            am_write_rows()             am_write.c  (am/table) rows to the page, each after the page's BASE
 *        |              am_space_tail()           am_space.c  (am/page) the page that takes new rows, locked
 *        |              am_encode_row()           am_row.c    (am/page) a row's bytes
 *        |              am_appended()             am_write.c  the critical section
 *        |              XLogInsert()              PostgreSQL  one WAL record for all rows that go to the page
 *        |          am_directory_insert()         am_directory.c  (am/directory) which page has the row, by
 *        |                                                    storage_insert_index_entries() and index_insert():
 *        |            am_last_covers()            am_last.c   (am/page) the last entry in shared memory says so, mostly
 *        |        value_store_mark()              value_store.c  (journal/store) after the sheet's first formula
 *        |        tab_references_mark()           tab_references.c  after the first with the name of a sheet;
 *        |                                                    may wait for the book's reference lock, or fail
 *        |
 *        |  after structure edits
 *        |      tab_references_follow()   tab_references.c   in the sheet and in other tabs of its book:
 *        |        formulas_begin()        formulas.c  formulas that refer to moved cells: batches again
 *        |
 *        |      property_write_end()    property_write.c   the sheet's row of property_set, once for the call
 *        |      clients_store()         clients.c   of sheet.apply(): the operations are acknowledged
 *        |
 *      COMMIT           PostgreSQL                            WAL flushed, rows visible
 *        |
 *        |      life_xact_callback()     here, as XACT_EVENT_COMMIT
 *        |  7 publish   publish_sheet()           publish.c   cannot fail
 *        |                grid_tile_set()         grid.c      (grid) set in the shared grid: tile_set() in tile.c
 *        |                follow_publish()        follow.c    (journal/follow) gateways woken
 *        |                publish_growth()        publish.c   queues a version when the open segment has become long
 *        v
 *      sheet lock released
 *
 * Everything that can fail happens in steps 1 to 6; publishing neither allocates nor raises errors. ABORT and ROLLBACK
 * TO drop staged edits; the rows of log_batch are PostgreSQL's to undo. A crash loses shared memory alone: the next
 * reader loads the sheet from its rows.
 *
 * Lock order: sheet locks by the ids of the sheets, a book's reference lock, entry's gate, entry lock, directory lock,
 * allocator. A structure edit takes the reference lock first, and waits for no sheet while it holds it
 * (tab_references.c). Steps 3 to 7 take the entry lock; while a table is read or written, only locks of sheets and
 * references are held.
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "journal/journal.h"
#include "journal/store/clients.h"
#include "journal/store/history.h"
#include "journal/store/timeconv.h"
#include "journal/write/base.h"
#include "journal/write/batch.h"
#include "journal/write/edit_life.h"
#include "journal/write/epoch.h"
#include "journal/write/formulas.h"
#include "journal/write/property_write.h"
#include "journal/write/publish.h"
#include "journal/write/session_tiles.h"
#include "journal/write/staging.h"
#include "journal/write/structure.h"
#include "miscadmin.h"
#include "support/stoppoint.h"
#include "utils/memutils.h"

/* ---- one edit: look up, append, stage ---- */

static bool
life_same_text(EditText a, EditText b)
{
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static bool
life_changes_cell(const Edit *edit, const StagingCell *cell)
{
	if (edit->kind == EDIT_STYLE)
		return !life_same_text(edit->style, cell->style);
	return !life_same_text(edit->content, cell->content) ||
		   (edit->style.data != NULL && !life_same_text(edit->style, cell->style));
}

/* The first edit of a sheet sets its size, also if that is 1 x 1, the size of a sheet without edits. */
static bool
life_changes_size(const WriterSheet *ws, const Edit *edit)
{
	return ws->meta.last_seq == 0 || edit->row >= ws->meta.rows || edit->col >= ws->meta.cols;
}

/* Sees the earlier edits of its batch. placed: the edit with physical row and column. */
static void
life_edit(AppendBatch *append, Edit *edit, const Edit *placed, GridTile *tile, bool indexed)
{
	WriterSheet *ws = append->ws;
	bool of_cell = edit_is_of_cell(edit->kind);
	StagingCell cell;

	edit->old = (EditText){NULL, 0};
	if (of_cell)
	{
		staging_lookup(ws, placed, tile, indexed, &cell);
		if (!life_changes_cell(edit, &cell))
			return;
		edit->old = cell.content;
	}
	else if (edit->kind == EDIT_RESIZE && !life_changes_size(ws, edit))
		return;
	else if (edit->kind == EDIT_PROPERTY && !property_write_look_up(append, edit))
		return;
	append_edit(append, edit); /* before staging: reserving room may move the old content */
	if (edit_is_structure(edit->kind))
		structure_change_maps(ws, edit);
	else if (of_cell || edit_is_of_extent(edit->kind))
	{
		ws->meta.rows = Max(ws->meta.rows, edit->row + 1);
		ws->meta.cols = Max(ws->meta.cols, edit->col + 1);
		staging_add(ws, placed, of_cell ? &cell : NULL);
	}
	if (!of_cell)
		property_write_apply(append, edit);
}

/* ---- one batch ---- */

/* Edits between two checks for interrupts. */
#define LIFE_INTERRUPTS 1024

/* Prefetch distance, in edits: of the cell's slot, and half of it of its content. Without it appending to large sheets
 * takes a third more CPU. */
#define LIFE_AHEAD 16

static void
life_edits(AppendBatch *append, const Edit *placed, GridTile *const *tiles, bool indexed)
{
	Edit *edits = append->call->edits;
	uint32 n = append->call->nedits;

	for (uint32 i = 0; i < n + LIFE_AHEAD; i++)
	{
		uint32 content = i - LIFE_AHEAD / 2, now = i - LIFE_AHEAD;

		if (i % LIFE_INTERRUPTS == 0)
		{
			STOP_POINT("append-edits");
			CHECK_FOR_INTERRUPTS();
		}
		if (i < n)
			grid_prefetch_cell(tiles[i], placed[i].row, placed[i].col);
		if (i >= LIFE_AHEAD / 2 && content < n)
			grid_prefetch_content(tiles[content], placed[content].row, placed[content].col);
		if (i >= LIFE_AHEAD)
			life_edit(append, &edits[now], &placed[now], tiles[now], indexed);
	}
}

/* Edits that change nothing have read the sheet: in SERIALIZABLE the predicate locks must cover that. */
static void
life_note_read(const WriterSheet *ws)
{
	HistoryLast last;

	if (IsolationIsSerializable())
		history_last_edit(ws->sheet_id, GetTransactionSnapshot(), &last);
}

void
edit_life_append(WriterSheet *ws, const AppendCall *call, AppendResult *result)
{
	/* A commit record concerns no cell: the sheet, which may have been evicted, need not be loaded for it. */
	bool record = call->nedits == 1 && call->edits[0].kind == EDIT_COMMIT;
	/* The only edit of a transaction need not be indexed; an index that exists must have all edits. */
	bool indexed = call->nedits > 1 || writer_has_changes(ws) || ws->newest != NULL;
	GridTile **tiles = MemoryContextAllocZero(writer_scratch, sizeof(GridTile *) * Max(call->nedits, 1));
	Edit *placed = call->edits;
	AppendProperties *properties = NULL;
	AppendBatch append;

	*result = (AppendResult){0, ws->meta.last_seq, ws->meta.last_at};
	if (!record)
		placed = base_find_tiles(ws, call->edits, call->nedits, tiles);
	append_begin(&append, ws, call, result);
	STOP_POINT("append-stage");
	staging_expect(ws, call->nedits);
	append.properties = call->properties != NULL ? call->properties : &properties;
	life_edits(&append, placed, tiles, indexed);
	property_write_end(ws, properties); /* of a call without properties of its own */
	if (placed != call->edits)
		pfree(placed);
	pfree(tiles);
	if (!append_end(&append))
		life_note_read(ws);
}

/* ---- one call ---- */

void
edit_life_append_part(WriterSheet *ws, const AppendCall *call, Edit *edits, uint32 nedits, AppendResult *result)
{
	AppendCall part = *call;
	AppendResult next;

	part.edits = edits;
	part.nedits = nedits;
	part.follows = result->first_seq != 0;
	edit_life_append(ws, &part, &next);
	if (result->first_seq == 0 && next.first_seq != 0)
	{
		result->first_seq = next.first_seq;
		result->at = next.at;
	}
	result->last_seq = next.last_seq;
}

#define LIFE_STRUCTURE 4096 /* cells that structure edits empty in one batch */

/* Returns whether the edit changes anything; *change has what. */
static bool
life_append_structure(WriterSheet *ws, const AppendCall *call, const Edit *edit, LineChange *change,
					  AppendResult *result)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet structure", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Structure structure;
	bool changes = structure_begin(ws, edit, &structure);

	if (changes)
	{
		Edit *edits = palloc(sizeof(Edit) * LIFE_STRUCTURE);
		uint32 n;

		property_write_check_end(ws, call->properties, &structure.edit);
		while ((n = structure_empty_cells(&structure, edits, LIFE_STRUCTURE)) > 0)
			edit_life_append_part(ws, call, edits, n, result);
		edit_life_append_part(ws, call, &structure.edit, 1, result);
		*change = structure.change;
	}
	else
		life_note_read(ws);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return changes;
}

/* Formulas that one call may have rewritten before it rewrites more. */
#define LIFE_FORMULAS 1000000

/* Rewrites the formulas that the last structure edits, `n` of them, concern. Adds their number to *rewritten. */
static void
life_append_formulas(WriterSheet *ws, const AppendCall *call, TabReferences *tabs, uint64 uid,
					 const LineChange *changes, uint32 n, uint32 *rewritten, AppendResult *result)
{
	MemoryContext context, old;

	if (n == 0)
		return;
	if (*rewritten > LIFE_FORMULAS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("one call inserts and deletes rows and columns among too many formulas"),
				 errdetail("It has rewritten %u formulas.", *rewritten),
				 errhint("Insert and delete rows and columns before or after the other edits, or in several calls.")));
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet formulas", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	*rewritten += tab_references_follow(tabs, ws, call, uid, changes, n, result);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

#define LIFE_CHANGES 64 /* structure edits after which formulas are rewritten once */

/* Structure edits are batches of their own, since rows and columns have moved for the edits after them. Formulas are
 * rewritten before those, and before structure edits of another author. tabs: see life_lock(). */
static void
life_append_call(WriterSheet *ws, const AppendCall *call, TabReferences *tabs, AppendResult *result)
{
	LineChange changes[LIFE_CHANGES];
	AppendProperties *properties = NULL;
	AppendCall batch = *call;
	uint32 done = 0, n = 0, rewritten = 0;
	uint64 uid = 0; /* of the changes */

	batch.properties = &properties;
	*result = (AppendResult){.last_seq = ws->meta.last_seq};
	while (done < call->nedits)
	{
		uint32 from = done;

		while (done < call->nedits && !edit_is_structure(call->edits[done].kind))
			done++;
		if (done > from || n == LIFE_CHANGES || call->edits[done].uid != uid)
		{
			life_append_formulas(ws, &batch, tabs, uid, changes, n, &rewritten, result);
			n = 0;
		}
		if (done > from)
			edit_life_append_part(ws, &batch, &call->edits[from], done - from, result);
		else
		{
			uid = call->edits[done].uid;
			n += life_append_structure(ws, &batch, &call->edits[done++], &changes[n], result);
		}
	}
	life_append_formulas(ws, &batch, tabs, uid, changes, n, &rewritten, result);
	property_write_end(ws, properties);
}

/* Takes the locks that the edits need before writer_open() may wait for the sheet lock: with nowait the sheet lock, and
 * for structure edits all of tab_references_lock(). Returns 0, or with nowait what another transaction holds. */
static int64
life_lock(int64 sheet_id, const Edit *edits, uint32 nedits, bool nowait, TabReferences *tabs)
{
	*tabs = (TabReferences){.sheet_id = sheet_id};
	for (uint32 i = 0; i < nedits; i++)
		if (edit_is_structure(edits[i].kind))
			return tab_references_lock(sheet_id, nowait, tabs);
	return nowait && !writer_try_lock_sheet(sheet_id) ? sheet_id : 0;
}

void
journal_apply(const JournalApply *call, JournalApplied *result)
{
	AppendCall append = {
		.epoch = call->epoch, .origin = call->origin, .batch_no = call->batch_no, .nowait = call->nowait};
	AppendResult appended = {0};
	TabReferences tabs;
	WriterSheet *ws;
	char *bytes;

	writer_require_writable("sheet.apply()");
	memset(result, 0, sizeof(*result));
	batch_check_size(call->edits_len);
	writer_begin();
	/* The texts of staged edits: freed at the end of the transaction, or when ROLLBACK TO undoes the edits. */
	bytes = MemoryContextAlloc(CurTransactionContext, call->edits_len);
	memcpy(bytes, call->edits, call->edits_len);
	append.edits = batch_decode(bytes, call->edits_len, &append.nedits);
	result->held = life_lock(call->sheet_id, append.edits, append.nedits, call->nowait, &tabs);
	if (result->held != 0)
	{
		if (append.edits != NULL)
			pfree(append.edits);
		pfree(bytes);
		return;
	}
	ws = writer_open(call->sheet_id);
	writer_require_live(ws);
	epoch_check(ws, call->epoch, NULL);
	if (batch_look_back(call, ws, append.nedits, result))
		; /* result has the seqs of the duplicate */
	else if (clients_check(call->sheet_id, call->clients, call->nclients))
	{
		result->duplicate = true;
		result->last_seq = ws->meta.last_seq;
		result->at = timeconv_from_unix(ws->meta.last_at);
	}
	else
	{
		life_append_call(ws, &append, &tabs, &appended);
		clients_store(call->sheet_id, call->clients, call->nclients);
		result->first_seq = appended.first_seq;
		result->last_seq = appended.last_seq;
		result->at = timeconv_from_unix(appended.at);
	}
	/* The duplicate is committed, but may not have reached the synchronous standbys, if its session was cancelled while
	 * it waited for them. A WAL record of this transaction makes its own commit wait for all before it. */
	if (result->duplicate)
		compat_log_message();
	if (append.edits != NULL)
		pfree(append.edits);
	if (appended.first_seq == 0)
		pfree(bytes);
}

int64
journal_edit(int64 sheet_id, Edit *edits, uint32 nedits)
{
	AppendCall call = {.edits = edits, .nedits = nedits};
	AppendResult result;
	TabReferences tabs;
	WriterSheet *ws;
	char *texts;

	writer_require_writable("edits of sheets");
	writer_begin();
	texts = batch_adopt(edits, nedits);
	(void) life_lock(sheet_id, edits, nedits, false, &tabs);
	ws = writer_open(sheet_id);
	writer_require_live(ws);
	life_append_call(ws, &call, &tabs, &result);
	if (result.first_seq == 0)
		pfree(texts);
	return result.last_seq;
}

void
journal_each_edited_calendar(void (*run)(int64 sheet_id))
{
	dlist_iter iter;

	dlist_foreach(iter, &writer_sheets)
	{
		WriterSheet *ws = dlist_container(WriterSheet, link, iter.cur);

		if (writer_has_changes(ws) && ws->meta.calendar)
			run(ws->sheet_id);
	}
}

/* ---- the end: publish, or withdraw ---- */

static void
life_end_transaction(bool commit)
{
	dlist_mutable_iter iter;

	epoch_end_transaction(commit);
	dlist_foreach_modify(iter, &writer_sheets)
	{
		WriterSheet *ws = dlist_container(WriterSheet, link, iter.cur);

		if (commit)
			publish_sheet(ws);
		else
			publish_withdraw(ws);
		writer_close(ws);
	}
	session_tiles_end_transaction();
	if (writer_context == NULL)
		return;
	MemoryContextReset(writer_context);
	MemoryContextReset(writer_scratch);
}

static void
life_xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			life_end_transaction(true);
			break;
		case XACT_EVENT_ABORT:
			cache_release_at_abort();
			life_end_transaction(false);
			break;
		case XACT_EVENT_PRE_PREPARE:
			epoch_refuse_prepare();
			writer_refuse_prepare();
			break;
		case XACT_EVENT_PREPARE:
			life_end_transaction(false);
			break;
		case XACT_EVENT_PARALLEL_ABORT:
			cache_release_at_abort();
			break;
		default:
			break;
	}
}

static void
life_subxact_callback(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	bool abort = event == SUBXACT_EVENT_ABORT_SUB;
	dlist_mutable_iter iter;

	if (!abort && event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	if (abort)
		cache_release_at_abort();
	dlist_foreach_modify(iter, &writer_sheets)
	{
		WriterSheet *ws = dlist_container(WriterSheet, link, iter.cur);

		if (abort)
			writer_abort_sub(ws, subid);
		else
			writer_commit_sub(ws, subid, parent);
	}
	if (abort && writer_context != NULL)
		MemoryContextReset(writer_scratch); /* of a call that the error has ended */
}

void
edit_life_init(void)
{
	RegisterXactCallback(life_xact_callback, NULL);
	RegisterSubXactCallback(life_subxact_callback, NULL);
}
