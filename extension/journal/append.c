/*
 * append.c - edits into the log.
 *
 * The one place where edits get their seq and their time. The caller has opened the sheet (writer_open), checked the
 * edits, and put their texts where they live to the end of the transaction, since they are set in the shared grid then.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "append.h"
#include "stoppoint.h"
#include "storage.h"
#include "timeconv.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static bool
append_same(EditText a, EditText b)
{
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Fills in the old content. False when the edit changes nothing; meta has the extent up to here. */
static bool
append_is_change(WriterSheet *ws, const CacheMeta *meta, Edit *edit)
{
	EditText content, style;

	edit->old = (EditText){NULL, 0};
	switch (edit->kind)
	{
		case EDIT_SET:
			writer_lookup(ws, edit->row, edit->col, &content, &style);
			if (append_same(edit->content, content) && (edit->style.data == NULL || append_same(edit->style, style)))
				return false;
			edit->old = content;
			return true;
		case EDIT_STYLE:
			writer_lookup(ws, edit->row, edit->col, &content, &style);
			return !append_same(edit->style, style);
		case EDIT_RESIZE:
			return edit->row >= meta->rows || edit->col >= meta->cols;
		default:
			return true;
	}
}

static StagedEdit
append_staged(const Edit *edit)
{
	StagedEdit staged = {edit->row, edit->col, edit->kind == EDIT_RESIZE, edit->content, edit->style};

	if (edit->kind == EDIT_STYLE)
		staged.content = (EditText){NULL, 0};
	return staged;
}

/*
 * Takes the edits out that change nothing, and stages the others. An edit sees those before it in the same batch. The
 * last edit of a call is not noted for lookups when nothing else is: the next call builds what it needs, and mostly
 * there is none.
 */
static uint32
append_select(WriterSheet *ws, const AppendCall *call, CacheMeta *meta, StagedEdit *staged, uint32 *nstaged)
{
	bool note = call->nedits > 1 || writer_has_changes(ws);
	uint32 kept = 0;

	*nstaged = 0;
	for (uint32 i = 0; i < call->nedits; i++)
	{
		Edit *edit = &call->edits[i];

		if (!append_is_change(ws, meta, edit))
			continue;
		if (edit->kind != EDIT_COMMIT && edit->kind != EDIT_ROLLBACK)
		{
			StagedEdit *to = &staged[(*nstaged)++];

			*to = append_staged(edit);
			meta->rows = Max(meta->rows, edit->row + 1);
			meta->cols = Max(meta->cols, edit->col + 1);
			if (note)
				writer_note_pending(ws, to);
		}
		call->edits[kept++] = *edit;
	}
	return kept;
}

/* The edits without the batch's header, which the row has. */
static bytea *
append_encode(const Edit *edits, uint32 nedits)
{
	EditWriter writer;
	Size bound = VARHDRSZ;
	bytea *data;

	for (uint32 i = 0; i < nedits; i++)
		bound += edit_size_bound(&edits[i]);
	if (bound > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("the batch is too large to be stored"),
				 errdetail("It replaces contents of altogether %zu bytes.", bound), errhint("Send it in parts.")));
	data = palloc(bound);
	edit_write_edits(&writer, (uint8_t *) VARDATA(data));
	for (uint32 i = 0; i < nedits; i++)
		edit_write(&writer, &edits[i]);
	SET_VARSIZE(data, (char *) writer.pos - (char *) data);
	return data;
}

/* A row of log_batch, but for its data. */
typedef struct AppendRow
{
	int64 sheet_id;
	int64 lid;
	int64 first_seq, last_seq;
	int64 at; /* Unix microseconds */
	int64 epoch, origin, batch_no;
} AppendRow;

static void
append_store(const AppendRow *row, bytea *data)
{
	Relation rel = storage_open(STORAGE_LOG_BATCH, RowExclusiveLock);
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	values[LOG_BATCH_SHEET_ID - 1] = Int64GetDatum(row->sheet_id);
	values[LOG_BATCH_FIRST_SEQ - 1] = Int64GetDatum(row->first_seq);
	values[LOG_BATCH_LAST_SEQ - 1] = Int64GetDatum(row->last_seq);
	values[LOG_BATCH_LID - 1] = Int64GetDatum(row->lid);
	values[LOG_BATCH_AT - 1] = TimestampTzGetDatum(timeconv_from_unix(row->at));
	values[LOG_BATCH_EPOCH - 1] = Int64GetDatum(row->epoch);
	values[LOG_BATCH_ORIGIN - 1] = Int64GetDatum(row->origin);
	values[LOG_BATCH_BATCH_NO - 1] = Int64GetDatum(row->batch_no);
	values[LOG_BATCH_DATA - 1] = PointerGetDatum(data);
	storage_insert(STORAGE_LOG_BATCH, rel, values, nulls);
	table_close(rel, NoLock);
}

static AppendRow
append_row(const WriterSheet *ws, const AppendCall *call, const AppendResult *result)
{
	return (AppendRow){ws->sheet_id, ws->meta.lid, result->first_seq, result->last_seq,
					   result->at,	 call->epoch,  call->origin,	  call->batch_no};
}

void
append_edits(WriterSheet *ws, const AppendCall *call, AppendResult *result)
{
	CacheMeta meta;
	StagedEdit *staged;
	WriterChange *change;
	uint32 kept, nstaged;
	AppendRow row;
	bytea *data;

	writer_prepare(ws, call->edits, call->nedits);
	staged = MemoryContextAllocHuge(ws->context, sizeof(StagedEdit) * Max(call->nedits, 1));
	meta = ws->meta;
	kept = append_select(ws, call, &meta, staged, &nstaged);
	result->first_seq = 0;
	result->last_seq = meta.last_seq;
	result->at = meta.last_at;
	if (kept == 0)
		return;
	result->first_seq = meta.last_seq + 1;
	result->last_seq = meta.last_seq + kept;
	result->at = Max(timeconv_to_unix(GetCurrentTimestamp()), meta.last_at + 1);
	/* Encoded before anything is reserved: reserving may move the old contents. */
	data = append_encode(call->edits, kept);

	change = writer_begin_change(ws, call->origin);
	ws->meta.rows = meta.rows;
	ws->meta.cols = meta.cols;
	ws->meta.last_seq = result->last_seq;
	ws->meta.last_at = result->at + kept - 1;
	STOP_POINT("append-store");
	row = append_row(ws, call, result);
	append_store(&row, data);
	STOP_POINT("append-stage");
	writer_stage(ws, change, staged, nstaged);
	STOP_POINT("append-staged");
	pfree(data);
	CommandCounterIncrement();
}

void
append_commit_record(const CheckpointHead *head)
{
	Edit record = {.kind = EDIT_COMMIT, .uid = head->uid, .content = head->label};
	AppendRow row = {
		.sheet_id = head->sheet_id, .lid = head->cid, .first_seq = head->seq, .last_seq = head->seq, .at = head->at};
	bytea *data = append_encode(&record, 1);

	append_store(&row, data);
	pfree(data);
}
