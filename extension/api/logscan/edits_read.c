/*
 * edits_read.c - edits of the log, as rows.
 *
 * A query has a range for each column. Sheets, batches and edits outside of the ranges are skipped as early as
 * possible: seq, time and segment grow together, so they bound the part of the log that is read; the origin is a
 * property of the batch; uid, kind, row and column are checked for each edit. A batch is unpacked only if a column or a
 * range needs its edits.
 */
#include "postgres.h"

#include "common/a1.h"
#include "common/properties.h"
#include "access/stratnum.h"
#include "api/logscan/edits_read.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "journal/store/history.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

struct EditsReader
{
	EditsQuery query;
	EditsCounters *counters;
	MemoryContext context; /* of the reader */

	int64 *sheets; /* ascending */
	int nsheets;
	int next_sheet;
	int64 sheet_id;

	BatchScan *batches; /* of the current sheet, or NULL */
	StoredBatch batch;
	int64 seq;		/* of the current edit */
	int64 from, to; /* seqs of the batch that are in range; empty: read the next batch */

	EditReader codec;
	Edit edit;
	struct EditsFound *found; /* backward: the edits of the batch that match, oldest first */
	uint32 nfound, room;

	Usernames usernames;
	char *row; /* room for the texts of one row */
	Size row_room, row_used;
};

typedef struct EditsFound
{
	int64 seq;
	Edit edit;
} EditsFound;

static const char *const edits_kinds[] = {"unknown",  "set",		 "style",		"resize",		  "commit",
										  "rollback", "insert_rows", "delete_rows", "insert_columns", "delete_columns",
										  "property"};

/* ---- queries ---- */

EditsNeed
edits_need_of(EditsColumn column)
{
	if (column == EDITS_KIND)
		return EDITS_NEED_KIND;
	return column == EDITS_UID || column == EDITS_USERNAME || column >= EDITS_ROW ? EDITS_NEED_CONTENTS
																				  : EDITS_NEED_BATCH;
}

static bool
edits_range_empty(const CallRange *range)
{
	return range->low > range->high;
}

static bool
edits_in_range(const CallRange *range, int64 value)
{
	return value >= range->low && value <= range->high;
}

int64
edits_kind_number(const char *name, size_t len)
{
	for (int kind = EDIT_SET; kind <= EDIT_KIND_LAST; kind++)
		if (strlen(edits_kinds[kind]) == len && memcmp(edits_kinds[kind], name, len) == 0)
			return kind;
	return 0;
}

/* The content after the edit. */
static EditText
edits_new(const Edit *edit)
{
	return edit->kind == EDIT_STYLE ? edit->old : edit->content;
}

/* The property of a property edit; false for other edits. */
static bool
edits_property(const Edit *edit, Property *property)
{
	return edit->kind == EDIT_PROPERTY && property_of(edit, property);
}

/* As shown to users: -1 where the edit has no row. */
static int32
edits_row(const Edit *edit)
{
	Property property;
	bool none = edit->kind == EDIT_COMMIT || edit->kind == EDIT_ROLLBACK ||
				(edit_is_structure(edit->kind) && !edit_is_of_rows(edit->kind));

	if (edits_property(edit, &property))
		return property_has_all_rows(&property.target) ? -1 : (int32) property.target.row0;
	return none ? -1 : (int32) edit->row;
}

static int32
edits_col(const Edit *edit)
{
	Property property;
	bool none = edit->kind == EDIT_COMMIT || edit->kind == EDIT_ROLLBACK || edit_is_of_rows(edit->kind);

	if (edits_property(edit, &property))
		return property_has_all_cols(&property.target) ? -1 : (int32) property.target.col0;
	return none ? -1 : (int32) edit->col;
}

/* ---- sheets ---- */

static bool
edits_query_empty(const EditsQuery *query)
{
	for (int column = EDITS_SHEET_ID; column < EDITS_RANGES; column++)
		if (edits_range_empty(&query->range[column]))
			return true;
	return false;
}

static void
edits_find_sheets(EditsReader *reader)
{
	const EditsQuery *query = &reader->query;
	const CallRange *range = &query->range[EDITS_SHEET_ID];

	if (!query->listed)
		permission_require_log(query->sheet_id);
	if (edits_query_empty(query))
		return;
	if (query->listed)
		reader->sheets = permission_listed(range->low, range->high, &reader->nsheets);
	else if (edits_in_range(range, query->sheet_id))
	{
		reader->sheets = palloc(sizeof(int64));
		reader->sheets[reader->nsheets++] = query->sheet_id;
	}
}

EditsReader *
edits_begin(const EditsQuery *query, EditsCounters *counters)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "pg_sheet edits of the log", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	EditsReader *reader = palloc0(sizeof(EditsReader));

	reader->query = *query;
	reader->counters = counters;
	reader->context = context;
	reader->from = 1;
	usernames_init(&reader->usernames, query->snapshot);
	for (int column = EDITS_SHEET_ID; column < EDITS_RANGES; column++)
	{
		const CallRange *range = &query->range[column];

		if (range->low != PG_INT64_MIN || range->high != PG_INT64_MAX)
			reader->query.need = Max(reader->query.need, edits_need_of(column));
	}
	edits_find_sheets(reader);
	MemoryContextSwitchTo(old);
	return reader;
}

static void
edits_close_sheet(EditsReader *reader)
{
	if (reader->batches != NULL)
		batches_end(reader->batches);
	reader->batches = NULL;
}

void
edits_end(EditsReader *reader)
{
	edits_close_sheet(reader);
	MemoryContextDelete(reader->context);
}

/* The seqs to read, with the start that follows from segment and time. edits_is_beyond() finds the end. */
static CallRange
edits_seqs(EditsReader *reader)
{
	const EditsQuery *query = &reader->query;
	const CallRange *segment_id = &query->range[EDITS_SEGMENT_ID], *at = &query->range[EDITS_AT];
	CallRange seqs = query->range[EDITS_SEQ];
	int64 *probes = &reader->counters->batches_skipped;

	seqs.low = Max(seqs.low, 1);
	if (!query->backward && segment_id->low > 1)
		seqs.low =
			Max(seqs.low, batches_seek(reader->sheet_id, BATCH_SEGMENT_ID, segment_id->low, query->snapshot, probes));
	if (!query->backward && at->low > PG_INT64_MIN)
		seqs.low = Max(seqs.low, batches_seek(reader->sheet_id, BATCH_LAST_AT, at->low, query->snapshot, probes));
	if (query->backward && segment_id->high < PG_INT64_MAX)
		seqs.high =
			Min(seqs.high,
				batches_seek(reader->sheet_id, BATCH_SEGMENT_ID, segment_id->high + 1, query->snapshot, probes) - 1);
	if (query->backward && at->high < PG_INT64_MAX)
		seqs.high = Min(seqs.high, batches_seek(reader->sheet_id, BATCH_AT, at->high + 1, query->snapshot, probes) - 1);
	return seqs;
}

static bool
edits_open_sheet(EditsReader *reader)
{
	edits_close_sheet(reader);
	while (reader->batches == NULL && reader->next_sheet < reader->nsheets)
	{
		int next = reader->next_sheet++;
		CallRange seqs;

		reader->sheet_id = reader->sheets[reader->query.backward ? reader->nsheets - 1 - next : next];
		seqs = edits_seqs(reader);
		if (!edits_range_empty(&seqs))
			reader->batches =
				batches_begin(reader->sheet_id, seqs.low, seqs.high, reader->query.backward, reader->query.snapshot);
	}
	return reader->batches != NULL;
}

/* ---- batches ---- */

/* Sets the seqs of the batch that can be in range, by what is known without unpacking it. */
static void
edits_clip(EditsReader *reader)
{
	const StoredBatch *batch = &reader->batch;
	const CallRange *seq = &reader->query.range[EDITS_SEQ], *at = &reader->query.range[EDITS_AT];
	int64 last_at = batch->at + (batch->last_seq - batch->first_seq);

	reader->from = Max(batch->first_seq, seq->low);
	reader->to = Min(batch->last_seq, seq->high);
	if (at->low > last_at || at->high < batch->at ||
		!edits_in_range(&reader->query.range[EDITS_SEGMENT_ID], batch->segment_id) ||
		!edits_in_range(&reader->query.range[EDITS_ORIGIN], batch->origin))
		reader->to = reader->from - 1;
	else
	{
		if (at->low > batch->at)
			reader->from = Max(reader->from, batch->first_seq + (at->low - batch->at));
		if (at->high < last_at)
			reader->to = Min(reader->to, batch->first_seq + (at->high - batch->at));
	}
}

/* Whether no later batch can be in range. */
static bool
edits_is_beyond(const EditsReader *reader)
{
	const StoredBatch *batch = &reader->batch;
	const CallRange *segment_id = &reader->query.range[EDITS_SEGMENT_ID], *at = &reader->query.range[EDITS_AT];

	if (reader->query.backward)
		return batch->segment_id < segment_id->low || batch->at + (batch->last_seq - batch->first_seq) < at->low;
	return batch->segment_id > segment_id->high || batch->at > at->high;
}

static bool
edits_matches(const EditsQuery *query, const Edit *edit)
{
	if (query->need == EDITS_NEED_KIND)
		return edits_in_range(&query->range[EDITS_KIND], edit->kind);
	return edits_in_range(&query->range[EDITS_ROW], edits_row(edit)) &&
		   edits_in_range(&query->range[EDITS_COL], edits_col(edit)) &&
		   edits_in_range(&query->range[EDITS_UID], (int64) edit->uid) &&
		   edits_in_range(&query->range[EDITS_KIND], edit->kind);
}

/* Goes to the next edit of the batch that matches. reader->seq is the seq of the edit before. */
static bool
edits_decode(EditsReader *reader)
{
	while (reader->seq < reader->to)
	{
		EditError error = reader->query.need == EDITS_NEED_KIND ? edit_read_kind(&reader->codec, &reader->edit.kind)
																: edit_read(&reader->codec, &reader->edit);

		if (error != EDIT_OK)
			history_corrupted(reader->sheet_id, "the batch at seq", reader->batch.first_seq, error);
		reader->seq++;
		if (reader->seq >= reader->from && edits_matches(&reader->query, &reader->edit))
			return true;
		reader->counters->edits_skipped++;
	}
	reader->counters->edits_skipped += reader->batch.last_seq - reader->to;
	return false;
}

/* An edit is stored relative to the one before it, so a backward scan decodes the batch forward first. */
static void
edits_decode_all(EditsReader *reader)
{
	uint32 most = (uint32) Min(reader->to - reader->from + 1, SHEET_MAX_BATCH_EDITS); /* edit_read() gives no more */

	if (reader->room < most)
	{
		if (reader->found != NULL)
			pfree(reader->found);
		reader->found = palloc(sizeof(EditsFound) * most);
		reader->room = most;
	}
	reader->nfound = 0;
	while (edits_decode(reader))
		reader->found[reader->nfound++] = (EditsFound){reader->seq, reader->edit};
}

static void
edits_open_contents(EditsReader *reader)
{
	batches_read_edits(reader->batches, &reader->codec);
	reader->seq = reader->batch.first_seq - 1;
	if (reader->query.backward)
		edits_decode_all(reader);
}

/* Returns false at the end of the sheet. */
static bool
edits_open_batch(EditsReader *reader)
{
	while (batches_next(reader->batches, &reader->batch))
	{
		edits_clip(reader);
		if (reader->from <= reader->to)
		{
			reader->counters->batches_read++;
			if (reader->query.need > EDITS_NEED_BATCH)
				edits_open_contents(reader);
			else
			{
				reader->counters->edits_skipped +=
					reader->batch.last_seq - reader->batch.first_seq - (reader->to - reader->from);
				reader->seq = reader->query.backward ? reader->to + 1 : reader->from - 1;
			}
			return true;
		}
		reader->counters->batches_skipped++;
		if (edits_is_beyond(reader))
			return false;
	}
	return false;
}

/* ---- edits ---- */

static bool
edits_next_in_batch(EditsReader *reader)
{
	if (reader->query.need > EDITS_NEED_BATCH && reader->query.backward)
	{
		if (reader->nfound == 0)
			return false;
		reader->nfound--;
		reader->seq = reader->found[reader->nfound].seq;
		reader->edit = reader->found[reader->nfound].edit;
		return true;
	}
	if (reader->query.need > EDITS_NEED_BATCH)
		return edits_decode(reader);
	if (reader->query.backward)
		return --reader->seq >= reader->from;
	return ++reader->seq <= reader->to;
}

/* Goes to the next batch that may be in range, of any sheet. */
static bool
edits_next_batch(EditsReader *reader)
{
	MemoryContext old = MemoryContextSwitchTo(reader->context);
	bool found;

	reader->to = reader->from - 1;
	do
		found = reader->batches != NULL && edits_open_batch(reader);
	while (!found && edits_open_sheet(reader));
	MemoryContextSwitchTo(old);
	return found;
}

/* The texts of a row are formed in memory that the next row reuses: without it, reading a log costs a fifth more. */
static void
edits_begin_row(EditsReader *reader)
{
	const Edit *edit = &reader->edit;
	Size most =
		(Size) edit->content.len + edit->old.len + edit->style.len + A1_RANGE_MAX + 4 * (VARHDRSZ + MAXIMUM_ALIGNOF);

	reader->row_used = 0;
	if (reader->query.need < EDITS_NEED_CONTENTS || reader->row_room >= most)
		return;
	if (reader->row != NULL)
		pfree(reader->row);
	reader->row_room = Max(most, 1024);
	reader->row = MemoryContextAllocHuge(reader->context, reader->row_room);
}

bool
edits_next(EditsReader *reader)
{
	while (reader->from > reader->to || !edits_next_in_batch(reader))
		if (!edits_next_batch(reader))
			return false;
	edits_begin_row(reader);
	return true;
}

int64
edits_count(EditsReader *reader)
{
	int64 count = 0;

	while (edits_next_batch(reader))
	{
		CHECK_FOR_INTERRUPTS();
		if (reader->query.need == EDITS_NEED_BATCH)
			count += reader->to - reader->from + 1;
		else if (reader->query.backward)
			count += reader->nfound;
		else
			while (edits_decode(reader))
				count++;
	}
	return count;
}

/* ---- columns ---- */

static Datum
edits_bytes(EditsReader *reader, const char *data, Size len)
{
	text *value = (text *) (reader->row + reader->row_used);

	if (MAXALIGN(VARHDRSZ + len) > reader->row_room - reader->row_used) /* a text twice */
		return PointerGetDatum(cstring_to_text_with_len(data, (int) len));
	SET_VARSIZE(value, VARHDRSZ + len);
	memcpy(VARDATA(value), data, len);
	reader->row_used += MAXALIGN(VARHDRSZ + len);
	return PointerGetDatum(value);
}

static Datum
edits_text(EditsReader *reader, EditText text, bool *isnull)
{
	*isnull = text.data == NULL;
	return *isnull ? (Datum) 0 : edits_bytes(reader, text.data, text.len);
}

static Datum
edits_a1(EditsReader *reader, bool *isnull)
{
	char a1[A1_MAX];

	*isnull = !edit_is_of_cell(reader->edit.kind);
	if (*isnull)
		return (Datum) 0;
	a1_format_cell(a1, reader->edit.row, reader->edit.col);
	return edits_bytes(reader, a1, strlen(a1));
}

/* Null for the sheet itself. */
static Datum
edits_target(EditsReader *reader, bool *isnull)
{
	char name[A1_RANGE_MAX];
	Property property;

	*isnull = !edits_property(&reader->edit, &property) ||
			  (property_has_all_rows(&property.target) && property_has_all_cols(&property.target));
	if (*isnull)
		return (Datum) 0;
	a1_format_range(name,
					&(A1Range){property.target.row0, property.target.col0, property.target.row1, property.target.col1});
	return edits_bytes(reader, name, strlen(name));
}

static Datum
edits_key(EditsReader *reader, bool *isnull)
{
	Property property;

	*isnull = !edits_property(&reader->edit, &property);
	return *isnull ? (Datum) 0 : edits_bytes(reader, property.key.data, property.key.len);
}

static Datum
edits_username(EditsReader *reader, bool *isnull)
{
	text *name = usernames_get(&reader->usernames, (int64) reader->edit.uid);

	*isnull = name == NULL;
	return PointerGetDatum(name);
}

Datum
edits_value(EditsReader *reader, EditsColumn column, bool *isnull)
{
	const Edit *edit = &reader->edit;

	*isnull = false;
	switch (column)
	{
		case EDITS_SHEET_ID:
			return Int64GetDatum(reader->sheet_id);
		case EDITS_SEQ:
			return Int64GetDatum(reader->seq);
		case EDITS_SEGMENT_ID:
			return Int64GetDatum(reader->batch.segment_id);
		case EDITS_AT:
			return TimestampTzGetDatum(reader->batch.at + (reader->seq - reader->batch.first_seq));
		case EDITS_UID:
			return Int64GetDatum((int64) edit->uid);
		case EDITS_USERNAME:
			return edits_username(reader, isnull);
		case EDITS_ORIGIN:
			return Int64GetDatum(reader->batch.origin);
		case EDITS_KIND:
			return CStringGetTextDatum(edits_kinds[edit->kind]);
		case EDITS_ROW:
			return Int32GetDatum(edits_row(edit));
		case EDITS_COL:
			return Int32GetDatum(edits_col(edit));
		case EDITS_A1:
			return edits_a1(reader, isnull);
		case EDITS_OLD:
			return edits_text(reader, edit->old, isnull);
		case EDITS_NEW:
			return edits_text(reader, edits_new(edit), isnull);
		case EDITS_TARGET:
			return edits_target(reader, isnull);
		case EDITS_KEY:
			return edits_key(reader, isnull);
		default:
			*isnull = edit->kind == EDIT_PROPERTY; /* its style is the target and the key */
			return *isnull ? (Datum) 0 : edits_text(reader, edit->style, isnull);
	}
}
