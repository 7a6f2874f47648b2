/*
 * batch.c - a caller's batch of edits: decoded and checked, before the sheet is locked; and what has happened since the
 * seq that the caller knows, which keeps the order of a gateway right.
 */
#include "postgres.h"

#include "compat.h"
#include "common/edit_read.h"
#include "common/properties.h"
#include "common/utf8.h"
#include "journal/replay/batches.h"
#include "journal/store/trimmark.h"
#include "journal/write/batch.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

/* ---- the bytes ---- */

/* The other arguments are those of errmsg(). */
#define batch_limit(index, ...)                                                                                        \
	ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg(__VA_ARGS__),                                      \
					errdetail("In edit %u of the batch.", (index) + 1)))

static void
batch_check_text(EditText text, const char *what, uint32 index, size_t *chars)
{
	if (!utf8_check(text.data, text.len, chars))
		ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE), errmsg("%s is not valid UTF-8 without NUL", what),
						errdetail("In edit %u of the batch.", index + 1)));
}

/* The pages of all members read a property that one of them has set. */
static void
batch_check_property_of_page(const Property *property, uint32 index)
{
	const char *wanted = property_wanted_value(property);

	if (wanted != NULL)
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						errmsg("the value of the property \"%.*s\" is %s", (int) property->key.len, property->key.data,
							   wanted),
						errdetail("In edit %u of the batch.", index + 1)));
	if (property_merged_cells(property) > PROPERTY_MAX_MERGE)
		batch_limit(index, "a merge has at most %d cells", PROPERTY_MAX_MERGE);
}

/* The value must be one that sheet.properties() can return. */
static void
batch_check_property(const Edit *edit, uint32 index)
{
	Property property;
	MemoryContext context, old;
	bool deep;

	if (!property_of(edit, &property))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("malformed property"),
						errdetail("In edit %u of the batch.", index + 1),
						errhint("A key has 1 to %d of the characters A-Z, a-z, 0-9, \"_\", \"-\" and \".\".",
								PROPERTY_MAX_KEY)));
	if (edit->content.len > PROPERTY_MAX_VALUE)
		batch_limit(index, "the value of a property has at most %d bytes", PROPERTY_MAX_VALUE);
	if (!property_value_is_bounded(edit->content, &deep))
		batch_limit(index, "the value of a property is nested at most %d deep, and its numbers are below 1e%d",
					PROPERTY_MAX_DEPTH, PROPERTY_MAX_POWER + 1);
	if (edit->content.len == 0)
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet property", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	(void) DirectFunctionCall1(jsonb_in, CStringGetDatum(pnstrdup(edit->content.data, edit->content.len)));
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	if (!property_value_is_null(edit->content))
		batch_check_property_of_page(&property, index);
}

static void
batch_check_edit(const Edit *edit, uint32 index)
{
	size_t chars = 0;
	LineChange change;

	if (edit_is_structure(edit->kind) && !line_change_of(edit, &change))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("malformed insertion or deletion of rows or columns"),
				 errdetail("In edit %u of the batch.", index + 1),
				 errhint("The content is the number of lines, which lie within the limits of sheets.")));
	if (edit->kind == EDIT_COMMIT || edit->kind == EDIT_ROLLBACK)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("kind %d is not for callers", edit->kind),
						errdetail("In edit %u of the batch.", index + 1)));
	if (edit->row >= SHEET_MAX_ROWS)
		batch_limit(index, "a sheet has at most %d rows", SHEET_MAX_ROWS);
	if (edit->col >= SHEET_MAX_COLS)
		batch_limit(index, "a sheet has at most %d columns", SHEET_MAX_COLS);
	if (edit->content.len > SHEET_MAX_CONTENT_BYTES)
		batch_limit(index, "a cell holds at most %d characters", SHEET_MAX_CHARS);
	batch_check_text(edit->content, "a content", index, &chars);
	if (edit->kind == EDIT_PROPERTY)
		batch_check_property(edit, index);
	if (chars > SHEET_MAX_CHARS)
		batch_limit(index, "a cell holds at most %d characters", SHEET_MAX_CHARS);
	if (edit->style.data != NULL && edit->style.len > SHEET_MAX_STYLE_BYTES)
		batch_limit(index, "a style has at most %d bytes", SHEET_MAX_STYLE_BYTES);
	if (edit->style.data != NULL)
		batch_check_text(edit->style, "a style", index, NULL);
}

static void
batch_malformed(EditError error, uint32 index)
{
	ereport(ERROR,
			(errcode(error == EDIT_TOO_MANY ? ERRCODE_PROGRAM_LIMIT_EXCEEDED : ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("malformed batch of edits: %s", edit_error_text(error)), errdetail("After %u edits.", index)));
}

/* Removes what edits of the kind do not have. The value of a property that is null removes it. */
static void
batch_normalize(Edit *edit)
{
	bool has_content = edit->kind == EDIT_SET || edit->kind == EDIT_PROPERTY || edit_is_structure(edit->kind);

	if (edit->content.data == NULL || !has_content ||
		(edit->kind == EDIT_PROPERTY && property_value_is_null(edit->content)))
		edit->content = (EditText){"", 0};
	if (edit->kind == EDIT_STYLE && edit->style.data == NULL)
		edit->style = (EditText){"", 0};
	if (edit->kind == EDIT_RESIZE || edit_is_structure(edit->kind))
		edit->style = (EditText){NULL, 0};
}

void
batch_check_size(Size len)
{
	if (len > SHEET_MAX_BATCH_BYTES)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("a batch has at most %d bytes", SHEET_MAX_BATCH_BYTES), errhint("Send it in parts.")));
}

/* Grows the array by doubling: the caller may send many small batches. */
static Edit *
batch_expect(Edit *edits, uint32 wanted, uint32 *room)
{
	if (edits != NULL && wanted <= *room)
		return edits;
	*room = edits == NULL ? Max(wanted, 1) : Max(wanted, *room * 2);
	return edits == NULL ? MemoryContextAlloc(writer_scratch, sizeof(Edit) * *room)
						 : repalloc(edits, sizeof(Edit) * *room);
}

Edit *
batch_decode(const void *bytes, Size len, uint32 *nedits)
{
	EditReader reader;
	EditBatch batch;
	EditError error;
	uint32 n = 0, end, room = 0;
	Edit *edits = NULL;

	edit_reader_init(&reader, bytes, len);
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		/* An edit has three bytes at least: a count that is too high allocates no more than that. */
		end = n + Min(batch.count, len / 3 + 1);
		if ((uint64) n + batch.count > SHEET_MAX_BATCH_EDITS)
			batch_malformed(EDIT_TOO_MANY, n);
		edits = batch_expect(edits, end, &room);
		while (n < end && (error = edit_read_inline(&reader, &edits[n])) == EDIT_OK)
		{
			batch_check_edit(&edits[n], n);
			batch_normalize(&edits[n]);
			n++;
		}
		if (error == EDIT_OK) /* all edits are read; the reader must be at the end of the batch */
		{
			Edit none;

			error = edit_read(&reader, &none);
		}
		if (error != EDIT_END)
			batch_malformed(error, n);
	}
	if (error != EDIT_END)
		batch_malformed(error, n);
	*nedits = n;
	return edits;
}

static char *
batch_copy_text(EditText *text, char *to)
{
	if (text->len == 0)
		return to;
	memcpy(to, text->data, text->len);
	text->data = to;
	return to + text->len;
}

char *
batch_adopt(Edit *edits, uint32 nedits)
{
	Size size = 1;
	char *texts, *to;

	Assert(nedits <= SHEET_MAX_BATCH_EDITS);
	for (uint32 i = 0; i < nedits; i++)
	{
		batch_check_edit(&edits[i], i);
		batch_normalize(&edits[i]);
		size += (Size) edits[i].content.len + edits[i].style.len;
	}
	to = texts = MemoryContextAllocHuge(CurTransactionContext, size);
	for (uint32 i = 0; i < nedits; i++)
	{
		to = batch_copy_text(&edits[i].content, to);
		to = batch_copy_text(&edits[i].style, to);
	}
	return texts;
}

/* ---- what the caller has not seen ---- */

#define BATCH_MISSED_MAX (64 * 1024 * 1024)

/*
 * The caller has addressed cells by the rows and columns that it knew. If they have moved since, the edits would change
 * other cells: the caller must translate them. This holds for operations of clients that turn out to be acknowledged,
 * too: the caller must catch up before it reports them.
 */
static void
batch_check_missed(const JournalApply *call, const bytea *missed)
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

bool
batch_look_back(const JournalApply *call, WriterSheet *ws, uint32 nedits, JournalApplied *result)
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
		duplicate = batches_find(call->sheet_id, call->known_seq, call->origin, call->batch_no, snapshot,
								 &result->first_seq, &result->last_seq, &result->at);
	result->missed = batches_tail(call->sheet_id, call->known_seq, BATCH_MISSED_MAX, snapshot, &last_seq);
	UnregisterSnapshot(snapshot);
	/* A duplicate batch is always answered with its seqs, even if `missed` is truncated. */
	if (!duplicate && last_seq < ws->meta.last_seq)
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'R', '0', '0', '2')),
						errmsg("too much has happened since seq " INT64_FORMAT " of sheet " INT64_FORMAT,
							   call->known_seq, call->sheet_id),
						errhint("Catch up with sheet.tail first.")));
	if (!duplicate && result->missed != NULL && (nedits > 0 || call->nclients > 0))
		batch_check_missed(call, result->missed);
	result->duplicate = duplicate;
	return duplicate;
}
