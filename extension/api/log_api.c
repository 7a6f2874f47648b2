/* log_api.c - a stored batch as rows: what the view sheet.log is made of. */
#include "postgres.h"

#include "a1.h"
#include "edit_codec.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_log_unpack);

static const char *
log_kind_name(EditKind kind)
{
	static const char *const names[] = {"unknown", "set", "style", "resize", "commit", "rollback"};

	return kind >= EDIT_SET && kind <= EDIT_ROLLBACK ? names[kind] : names[0];
}

static Datum
log_text(EditText text, bool *isnull)
{
	*isnull = text.data == NULL;
	/* Anybody can call log_unpack with bytes of his own. */
	if (!*isnull)
		(void) pg_verifymbstr(text.data, (int) text.len, false);
	return *isnull ? (Datum) 0 : PointerGetDatum(cstring_to_text_with_len(text.data, (int) text.len));
}

/* Rows (seq, at, uid, kind, row, col, a1, old, new, style). */
static void
log_put_edit(ReturnSetInfo *rsinfo, int64 seq, TimestampTz at, const Edit *edit)
{
	bool place = edit->kind != EDIT_COMMIT && edit->kind != EDIT_ROLLBACK;
	bool cell = edit->kind == EDIT_SET || edit->kind == EDIT_STYLE;
	char a1[A1_MAX];
	Datum values[10] = {0};
	bool nulls[10] = {0};

	values[0] = Int64GetDatum(seq);
	values[1] = TimestampTzGetDatum(at);
	values[2] = Int64GetDatum((int64) edit->uid);
	values[3] = CStringGetTextDatum(log_kind_name(edit->kind));
	values[4] = Int32GetDatum(place ? (int32) edit->row : -1);
	values[5] = Int32GetDatum(place ? (int32) edit->col : -1);
	nulls[6] = !cell;
	if (cell)
	{
		a1_format_cell(a1, edit->row, edit->col);
		values[6] = CStringGetTextDatum(a1);
	}
	values[7] = log_text(edit->old, &nulls[7]);
	values[8] = log_text(edit->content, &nulls[8]);
	values[9] = log_text(edit->style, &nulls[9]);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* log_unpack(first_seq, at, data) */
Datum
sheet_log_unpack(PG_FUNCTION_ARGS)
{
	int64 seq = PG_GETARG_INT64(0);
	TimestampTz at = PG_GETARG_TIMESTAMPTZ(1);
	bytea *data = PG_GETARG_BYTEA_PP(2);
	EditReader reader;
	EditBatch batch;
	EditError error;
	Edit edit;

	InitMaterializedSRF(fcinfo, 0);
	edit_reader_init(&reader, VARDATA_ANY(data), VARSIZE_ANY_EXHDR(data));
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
		{
			CHECK_FOR_INTERRUPTS();
			log_put_edit((ReturnSetInfo *) fcinfo->resultinfo, seq++, at++, &edit);
		}
	if (error != EDIT_END)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("a batch of the log is damaged after seq " INT64_FORMAT, seq - 1),
						errdetail("%s", edit_error_text(error)), errhint("Check the sheet with sheet.fsck().")));
	return (Datum) 0;
}
