/*
 * append.c - edits into rows of log_batch.
 *
 * Edits get their seq and their time here and nowhere else. The edits of a call become one row, or several if they take
 * many bytes, with the contents that they replace.
 */
#include "postgres.h"

#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "journal/store/value_store.h"
#include "journal/write/append.h"
#include "journal/write/formulas.h"
#include "support/stoppoint.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* A row ends after so many bytes: followers read whole rows, and an edit of a few bytes can replace a long content. */
#define APPEND_ROW_BYTES (4 * 1024 * 1024)

/* ---- encoding ---- */

static void
append_begin_row(AppendBatch *append)
{
	append->count = 0;
	edit_write_edits(&append->writer, (uint8_t *) VARDATA(append->data));
}

static void
append_allocate(AppendBatch *append, Size expected)
{
	append->size = VARHDRSZ + expected;
	append->data = MemoryContextAllocHuge(writer_scratch, append->size);
	append_begin_row(append);
}

static Size
append_used(const AppendBatch *append)
{
	return append->writer.pos - (uint8_t *) append->data;
}

static void
append_encode(AppendBatch *append, const Edit *edit)
{
	Size used = append_used(append), more = edit_size_bound(edit);

	if (used + more > append->size)
	{
		append->size = Max(append->size * 2, used + more);
		append->data = repalloc_huge(append->data, append->size);
		append->writer.pos = (uint8_t *) append->data + used;
	}
	edit_write(&append->writer, edit);
}

/* ---- rows ---- */

/* A row of log_batch, except its data. */
typedef struct AppendRow
{
	int64 sheet_id;
	int64 segment_id;
	int64 first_seq, last_seq;
	int64 at; /* Unix microseconds */
	int64 epoch, origin, batch_no;
} AppendRow;

static void
append_store(AppendBatch *append, const AppendRow *row)
{
	Datum values[STORAGE_MAX_COLUMNS] = {
		[LOG_BATCH_SHEET_ID - 1] = Int64GetDatum(row->sheet_id),
		[LOG_BATCH_FIRST_SEQ - 1] = Int64GetDatum(row->first_seq),
		[LOG_BATCH_LAST_SEQ - 1] = Int64GetDatum(row->last_seq),
		[LOG_BATCH_SEGMENT_ID - 1] = Int64GetDatum(row->segment_id),
		[LOG_BATCH_AT - 1] = TimestampTzGetDatum(timeconv_from_unix(row->at)),
		[LOG_BATCH_EPOCH - 1] = Int64GetDatum(row->epoch),
		[LOG_BATCH_ORIGIN - 1] = Int64GetDatum(row->origin),
		[LOG_BATCH_BATCH_NO - 1] = Int64GetDatum(row->batch_no),
		[LOG_BATCH_DATA - 1] = PointerGetDatum(append->data),
	};

	SET_VARSIZE(append->data, append_used(append));
	storage_insert(STORAGE_LOG_BATCH, values, NULL);
}

/* Time never goes back within a sheet, and is continuous within a call. */
static int64
append_next_time(const AppendBatch *append)
{
	int64 next = append->ws->meta.last_at + 1;
	bool continues = append->call->follows || append->result->first_seq != 0;

	return continues ? next : Max(next, timeconv_to_unix(GetCurrentTimestamp()));
}

static void
append_end_row(AppendBatch *append)
{
	WriterSheet *ws = append->ws;
	AppendResult *result = append->result;
	AppendRow row = {.sheet_id = ws->sheet_id,
					 .segment_id = ws->meta.segment_id,
					 .first_seq = ws->meta.last_seq + 1,
					 .last_seq = ws->meta.last_seq + append->count,
					 .at = append_next_time(append),
					 .epoch = append->call->epoch,
					 .origin = append->call->origin,
					 .batch_no = append->call->batch_no};

	ws->meta.last_seq = row.last_seq;
	ws->meta.last_at = row.at + append->count - 1;
	STOP_POINT("append-store");
	append_store(append, &row);
	ws->meta.log_bytes += VARSIZE(append->data);
	if (result->first_seq == 0)
	{
		result->first_seq = row.first_seq;
		result->at = row.at;
	}
	result->last_seq = row.last_seq;
	append_begin_row(append);
}

/* ---- a batch ---- */

void
append_begin(AppendBatch *append, WriterSheet *ws, const AppendCall *call, AppendResult *result)
{
	*append = (AppendBatch){.ws = ws, .call = call, .result = result};
	append_allocate(append, (Size) call->nedits * 64 + 64);
}

void
append_edit(AppendBatch *append, const Edit *edit)
{
	if (!append->changed)
		writer_begin_change(append->ws, append->call->origin);
	append->changed = true;
	if (edit->kind == EDIT_SET && formula_is(edit->content))
	{
		append->formulas = true;
		append->names = append->names || formula_has_names(edit->content);
	}
	if (append_used(append) >= APPEND_ROW_BYTES)
		append_end_row(append);
	append->count++;
	append_encode(append, edit);
}

bool
append_end(AppendBatch *append)
{
	if (append->changed)
	{
		append_end_row(append);
		if (append->formulas)
			value_store_mark(append->ws->sheet_id);
		if (append->names)
			tab_references_mark(append->ws->sheet_id, append->call->nowait);
		STOP_POINT("append-staged");
		CommandCounterIncrement();
	}
	pfree(append->data);
	return append->changed;
}

void
append_commit_record(const VersionHead *head)
{
	AppendBatch append = {0};
	Edit record = {.kind = EDIT_COMMIT, .uid = head->uid, .row = head->cause, .content = head->label};
	AppendRow row = {.sheet_id = head->sheet_id,
					 .segment_id = head->version_id,
					 .first_seq = head->seq,
					 .last_seq = head->seq,
					 .at = head->at};

	writer_begin();
	append_allocate(&append, edit_size_bound(&record));
	append_encode(&append, &record);
	append_store(&append, &row);
	pfree(append.data);
}
