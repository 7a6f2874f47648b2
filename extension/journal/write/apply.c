/*
 * apply.c - a caller's batch of edits: checked, ordered, appended.
 *
 * Everything that can be wrong with the bytes is found before the sheet is locked. What the answer tells besides the
 * seqs keeps a gateway's order right: the batches that it has not seen (`missed`), or that this batch was there
 * already.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "journal/write/append.h"
#include "journal/follow/clients.h"
#include "compat.h"
#include "common/edit_read.h"
#include "journal/journal.h"
#include "journal/replay/replay_log.h"
#include "journal/store/sheetmeta.h"
#include "journal/write/structure.h"
#include "journal/store/timeconv.h"
#include "journal/store/trim.h"
#include "common/utf8.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#define APPLY_MISSED_MAX (64 * 1024 * 1024)

static void
apply_limit(const char *what, uint32 index)
{
	ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("%s", what),
					errdetail("In edit %u of the batch.", index + 1)));
}

/* Behind the bytes of the call there is room for WRITER_PAD more. */
static inline void
apply_check_text(EditText text, const char *what, uint32 index, size_t *chars)
{
	if (text.len <= WRITER_PAD && utf8_short_is_plain(text.data, text.len))
		return;
	if (!utf8_check(text.data, text.len, chars))
		ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE), errmsg("%s is not valid UTF-8 without NUL", what),
						errdetail("In edit %u of the batch.", index + 1)));
}

static void
apply_check_edit(const Edit *edit, uint32 index)
{
	size_t chars = 0;
	uint32 lines;

	if (edit_is_structure(edit->kind) && !edit_lines(edit, &lines))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("malformed insertion or deletion of rows or columns"),
				 errdetail("In edit %u of the batch.", index + 1),
				 errhint("The content is the number of lines, which lie within the limits of sheets.")));
	if (edit->kind == EDIT_COMMIT || edit->kind == EDIT_ROLLBACK)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("kind %d is not for callers", edit->kind),
						errdetail("In edit %u of the batch.", index + 1)));
	if (edit->row >= SHEET_MAX_ROWS)
		apply_limit("a sheet has at most 16777216 rows", index);
	if (edit->col >= SHEET_MAX_COLS)
		apply_limit("a sheet has at most 16384 columns", index);
	if (edit->content.len > SHEET_MAX_CONTENT_BYTES)
		apply_limit("a cell holds at most 32767 characters", index);
	apply_check_text(edit->content, "a content", index, &chars);
	if (chars > SHEET_MAX_CHARS)
		apply_limit("a cell holds at most 32767 characters", index);
	if (edit->style.data != NULL && edit->style.len > SHEET_MAX_STYLE_BYTES)
		apply_limit("a style has at most 4096 bytes", index);
	if (edit->style.data != NULL)
		apply_check_text(edit->style, "a style", index, NULL);
}

static void
apply_malformed(EditError error, uint32 index)
{
	ereport(ERROR,
			(errcode(error == EDIT_TOO_MANY ? ERRCODE_PROGRAM_LIMIT_EXCEEDED : ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("malformed batch of edits: %s", edit_error_text(error)), errdetail("After %u edits.", index)));
}

/* Only what the kind has, so that the rest of the code need not look. */
static void
apply_normalize(Edit *edit)
{
	static const char nothing[WRITER_PAD];

	if (edit->content.data == NULL || (edit->kind != EDIT_SET && !edit_is_structure(edit->kind)))
		edit->content = (EditText){nothing, 0};
	if (edit->kind == EDIT_STYLE && edit->style.data == NULL)
		edit->style = (EditText){"", 0};
	if (edit->kind == EDIT_RESIZE || edit_is_structure(edit->kind))
		edit->style = (EditText){NULL, 0};
}

static void
apply_check_size(Size len)
{
	if (len > SHEET_MAX_BATCH_BYTES)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("a batch has at most %d bytes", SHEET_MAX_BATCH_BYTES), errhint("Send it in parts.")));
}

/* Room for so many edits. A stream of many small batches has all of them copied a few times only. */
static Edit *
apply_expect(Edit *edits, uint32 wanted, uint32 *room)
{
	if (edits != NULL && wanted <= *room)
		return edits;
	*room = edits == NULL ? Max(wanted, 1) : Max(wanted, *room * 2);
	return edits == NULL ? MemoryContextAlloc(writer_scratch, sizeof(Edit) * *room)
						 : repalloc(edits, sizeof(Edit) * *room);
}

/* All edits of the stream. Their texts point into the bytes. */
static Edit *
apply_decode(const void *bytes, Size len, uint32 *nedits)
{
	EditReader reader;
	EditBatch batch;
	EditError error;
	uint32 n = 0, end, room = 0;
	Edit *edits = NULL;

	edit_reader_init(&reader, bytes, len);
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		/* An edit has three bytes at least: a count that promises more than can come takes no memory. */
		end = n + Min(batch.count, len / 3 + 1);
		if ((uint64) n + batch.count > SHEET_MAX_BATCH_EDITS)
			apply_malformed(EDIT_TOO_MANY, n);
		edits = apply_expect(edits, end, &room);
		while (n < end && (error = edit_read_inline(&reader, &edits[n])) == EDIT_OK)
		{
			apply_check_edit(&edits[n], n);
			apply_normalize(&edits[n]);
			n++;
		}
		if (error == EDIT_OK) /* all read, but the reader was not asked for the end */
		{
			Edit none;

			error = edit_read(&reader, &none);
		}
		if (error != EDIT_END)
			apply_malformed(error, n);
	}
	if (error != EDIT_END)
		apply_malformed(error, n);
	*nedits = n;
	return edits;
}

/*
 * The caller has named the places of its edits by the rows and columns that it knew. Once they have moved, the edits
 * would land elsewhere: it has to look again. Also when nothing is left of its clients' operations but that they have
 * landed, so that it moves whatever it has to tell with them.
 */
static void
apply_check_missed(const JournalApply *call, const bytea *missed)
{
	EditReader reader;
	EditBatch batch;
	EditKind kind;

	edit_reader_init(&reader, VARDATA_ANY(missed), VARSIZE_ANY_EXHDR(missed));
	while (edit_read_batch(&reader, &batch) == EDIT_OK)
		while (edit_read_kind(&reader, &kind) == EDIT_OK)
			if (edit_is_structure(kind))
				ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'R', '0', '0', '1')),
								errmsg("rows or columns of sheet " INT64_FORMAT
									   " have been inserted or deleted since seq " INT64_FORMAT,
									   call->sheet_id, call->known_seq),
								errhint("Catch up with sheet.tail, and send the edits again for the places that they "
										"have now.")));
}

/* What the caller has not seen; true when this batch is in it. */
static bool
apply_look_back(const JournalApply *call, WriterSheet *ws, uint32 nedits, JournalApplied *result)
{
	Snapshot snapshot;
	bool duplicate = false;
	int64 last_seq;

	if (call->known_seq > ws->meta.last_seq)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("seq " INT64_FORMAT " of sheet " INT64_FORMAT " is not known here", call->known_seq,
							   call->sheet_id),
						errdetail("The last one is " INT64_FORMAT ".", ws->meta.last_seq),
						errhint("Read the sheet again: the caller has seen what was lost with another server.")));
	if (call->known_seq < 0 || call->known_seq == ws->meta.last_seq)
		return false;
	snapshot = RegisterSnapshot(writer_snapshot());
	trim_check_since(call->sheet_id, call->known_seq, snapshot);
	if (call->origin != 0 && call->batch_no != 0)
		duplicate = replay_find_batch(call->sheet_id, call->known_seq, call->origin, call->batch_no, snapshot,
									  &result->first_seq, &result->last_seq, &result->at);
	result->missed = replay_tail(call->sheet_id, call->known_seq, APPLY_MISSED_MAX, snapshot, &last_seq);
	UnregisterSnapshot(snapshot);
	/* Where a batch is that is there is said whatever has come before it: its sender reads what is not told here. */
	if (!duplicate && last_seq < ws->meta.last_seq)
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'R', '0', '0', '2')),
						errmsg("too much has happened since seq " INT64_FORMAT " of sheet " INT64_FORMAT,
							   call->known_seq, call->sheet_id),
						errhint("Catch up with sheet.tail first.")));
	if (!duplicate && result->missed != NULL && (nedits > 0 || call->nclients > 0))
		apply_check_missed(call, result->missed);
	result->duplicate = duplicate;
	return duplicate;
}

/* A batch with structure edits goes in parts: these, and what lies between them, for which rows and columns have moved.
 */
static void
apply_append(WriterSheet *ws, const AppendCall *call, AppendResult *result)
{
	AppendCall part = *call;
	uint32 done = 0;

	result->last_seq = ws->meta.last_seq;
	while (done < call->nedits)
	{
		Edit *edit = &call->edits[done];

		part.follows = result->first_seq != 0;
		part.edits = edit;
		part.nedits = 0;
		while (done < call->nedits && !edit_is_structure(call->edits[done].kind))
			part.nedits++, done++;
		if (part.nedits > 0)
		{
			AppendResult next;

			append_edits(ws, &part, &next);
			structure_add_result(result, &next);
		}
		else
			structure_append(ws, &call->edits[done++], &part, result);
	}
}

/*
 * The batch is stored and visible here, but its commit may not have reached the synchronous standbys: whoever waited
 * for that may have been cancelled. A record of this transaction makes its own commit wait for all before it.
 */
static void
apply_confirm_duplicate(void)
{
	compat_log_message();
}

void
journal_apply(const JournalApply *call, JournalApplied *result)
{
	WriterSheet *ws;
	AppendCall append = {.epoch = call->epoch, .origin = call->origin, .batch_no = call->batch_no, .padded = true};
	AppendResult appended = {0};
	uint8_t *bytes;

	writer_require_writable("sheet.apply()");
	memset(result, 0, sizeof(*result));
	apply_check_size(call->edits_len);
	if (call->nowait && !writer_try_lock_sheet(call->sheet_id))
	{
		result->held = true;
		return;
	}
	writer_begin();
	/* The texts must live as long as their edits are staged. */
	bytes = writer_alloc_bytes(call->edits_len + WRITER_PAD);
	memcpy(bytes, call->edits, call->edits_len);
	memset(bytes + call->edits_len, 0, WRITER_PAD);
	append.edits = apply_decode(bytes, call->edits_len, &append.nedits);
	ws = writer_open(call->sheet_id);
	writer_require_live(ws);
	writer_check_epoch(ws, call->epoch, NULL);
	if (apply_look_back(call, ws, append.nedits, result))
		;
	else if (clients_check(call->sheet_id, call->clients, call->nclients) == CLIENTS_LANDED)
	{
		result->duplicate = true;
		result->first_seq = 0;
		result->last_seq = ws->meta.last_seq;
		result->at = timeconv_from_unix(ws->meta.last_at);
	}
	else
	{
		apply_append(ws, &append, &appended);
		clients_store(call->sheet_id, call->clients, call->nclients);
		result->first_seq = appended.first_seq;
		result->last_seq = appended.last_seq;
		result->at = timeconv_from_unix(appended.at);
	}
	if (result->duplicate)
		apply_confirm_duplicate();
	if (append.edits != NULL)
		pfree(append.edits);
	if (appended.first_seq == 0)
		writer_free_bytes(bytes);
}

bool
journal_claim(int64 sheet_id, int64 epoch, const char *holder, bool nowait, int64 *last_seq)
{
	WriterSheet *ws;

	writer_require_writable("sheet.claim()");
	if (epoch <= 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("an epoch must be positive")));
	/* Before the sheet lock: who waits for a REINDEX here holds up no editor of the sheet. */
	sheetmeta_lock_epochs();
	if (nowait && !writer_try_lock_sheet(sheet_id))
		return false;
	ws = writer_open(sheet_id);
	writer_require_live(ws);
	writer_check_epoch(ws, epoch, holder != NULL ? holder : "");
	*last_seq = ws->meta.last_seq;
	return true;
}

bool
journal_release(int64 sheet_id, int64 epoch)
{
	writer_require_writable("sheet.release()");
	sheetmeta_lock_epochs();
	return writer_try_lock_sheet(sheet_id) && sheetmeta_release(sheet_id, epoch);
}

void
journal_reset_epochs(void)
{
	writer_require_writable("sheet.reset_epochs()");
	sheetmeta_delete_epochs();
	writer_reset_epochs();
}
