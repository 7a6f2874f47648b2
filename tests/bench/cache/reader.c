/* reader.c - see reader.h. */
#include "reader.h"

#include "common/a1.h"
#include "bench.h"
#include "common/edit_read.h"
#include "params.h"

#include <stdio.h>
#include <string.h>

static const char *const window_statements[WAYS] = {"heap_window", "range_window", "stream_window", "floor_window"};
static const char *const whole_statements[WAYS] = {"heap_whole", "range_whole", "stream_whole", "floor_whole"};

void
reader_prepare(Session *session, bool heap)
{
	if (heap)
	{
		session_prepare(session, "heap_window",
						"SELECT \"row\", col, content FROM bench.cell WHERE sheet_id = $1::int8"
						" AND \"row\" BETWEEN $2::int4 AND $3::int4 AND col BETWEEN $4::int4 AND $5::int4");
		session_prepare(session, "heap_whole",
						"SELECT \"row\", col, content FROM bench.cell WHERE sheet_id = $1::int8");
		session_prepare(
			session, "heap_cell",
			"SELECT content FROM bench.cell WHERE sheet_id = $1::int8 AND \"row\" = $2::int4 AND col = $3::int4");
		session_prepare(session, "floor_window", "SELECT \"row\", col, content FROM bench.part");
		session_prepare(session, "floor_whole", "SELECT \"row\", col, content FROM bench.whole");
	}
	session_prepare(session, "range_window", "SELECT \"row\", col, content FROM sheet.range($1::int8, $2::text)");
	session_prepare(session, "range_whole", "SELECT \"row\", col, content FROM sheet.range($1::int8)");
	session_prepare(session, "range_cell", "SELECT sheet.get($1::int8, $2::text)");
	session_prepare(session, "stream_window",
					"SELECT cells FROM sheet.read_cells($1::int8, $2::int4, $3::int4, $4::int4, $5::int4)");
	session_prepare(session, "stream_whole", "SELECT cells FROM sheet.read_cells($1::int8, max_bytes => 65536)");
}

/* ---- answers ---- */

static Answer
answer_of_rows(const PGresult *result)
{
	Answer answer = {0};
	int rows = PQntuples(result);

	for (int i = 0; i < rows; i++)
		answer_add(&answer, answer_int4(result, i, 0), answer_int4(result, i, 1), PQgetvalue(result, i, 2),
				   PQgetlength(result, i, 2));
	return answer;
}

/* The streams of an answer, one a row. */
typedef struct Stream
{
	const PGresult *result;
	int row; /* the next one */
	EditReader reader;
} Stream;

static bool
stream_next(Stream *stream, Edit *edit)
{
	EditBatch batch;
	EditError error = EDIT_END;

	while (stream->row == 0 || (error = edit_read_inline(&stream->reader, edit)) == EDIT_END)
	{
		if (stream->row > 0 && (error = edit_read_batch(&stream->reader, &batch)) == EDIT_OK)
			continue;
		if (error != EDIT_END || stream->row == PQntuples(stream->result))
			break;
		edit_reader_init(&stream->reader, PQgetvalue(stream->result, stream->row, 0),
						 PQgetlength(stream->result, stream->row, 0));
		stream->row++;
	}
	if (error != EDIT_OK && error != EDIT_END)
		fail("sheet.read_cells(): %s", edit_error_text(error));
	return error == EDIT_OK;
}

/* What a client does before it has the cells. */
static int64_t
stream_decode(const PGresult *result)
{
	Stream stream = {.result = result};
	int64_t bytes = 0;
	Edit edit;

	while (stream_next(&stream, &edit))
		bytes += edit.content.len;
	return bytes;
}

static Answer
answer_of_stream(const PGresult *result)
{
	Stream stream = {.result = result};
	Answer answer = {0};
	Edit edit;

	while (stream_next(&stream, &edit))
		answer_add(&answer, edit.row, edit.col, edit.content.data, edit.content.len);
	return answer;
}

/* ---- questions ---- */

static volatile int64_t decoded; /* so that the decoding is not left out */

static PGresult *
reader_ask(Session *session, Way way, const char *statement, const Params *params, int64_t *ns)
{
	int64_t start = now_ns();
	PGresult *result = params_execute(session, statement, params);

	if (way == WAY_STREAM)
		decoded = stream_decode(result);
	*ns = now_ns() - start;
	return result;
}

static Answer
answer_of(Way way, const PGresult *result)
{
	return way == WAY_STREAM ? answer_of_stream(result) : answer_of_rows(result);
}

static void
window_params(Params *params, Way way, const Model *model, Window window, char ref[2 * A1_MAX])
{
	if (way == WAY_FLOOR)
		return;
	param_int8(params, model->sheet_id);
	if (way == WAY_RANGE)
	{
		a1_format_cell(ref, window.row0, window.col0);
		strcat(ref, ":");
		a1_format_cell(ref + strlen(ref), window.row1, window.col1);
		param_bytes(params, ref, strlen(ref));
		return;
	}
	param_int4(params, window.row0);
	param_int4(params, way == WAY_HEAP ? window.row1 : window.col0);
	param_int4(params, way == WAY_HEAP ? window.col0 : window.row1);
	param_int4(params, window.col1);
}

int64_t
reader_window(Session *session, Way way, const Model *model, Window window)
{
	Params params = {0};
	char ref[2 * A1_MAX];
	PGresult *result;
	int64_t ns;

	window_params(&params, way, model, window, ref);
	result = reader_ask(session, way, window_statements[way], &params, &ns);
	if (way != WAY_FLOOR)
		answer_check(answer_of(way, result), model_answer(model, window), window_statements[way], model->sheet_id);
	else if (PQntuples(result) != WINDOW_ROWS * WINDOW_COLS)
		fail("%d rows in place of a window's", PQntuples(result));
	PQclear(result);
	return ns;
}

int64_t
reader_whole(Session *session, Way way, const Model *model, int64_t *bytes)
{
	Params params = {0};
	PGresult *result;
	int64_t ns;

	if (way != WAY_FLOOR)
		param_int8(&params, model->sheet_id);
	result = reader_ask(session, way, whole_statements[way], &params, &ns);
	answer_check(answer_of(way, result), model->all, whole_statements[way], model->sheet_id);
	if (way == WAY_STREAM && bytes != NULL)
	{
		*bytes = 0;
		for (int row = 0; row < PQntuples(result); row++)
			*bytes += PQgetlength(result, row, 0);
	}
	PQclear(result);
	return ns;
}

int64_t
reader_cell(Session *session, Way way, const Model *model, int32_t row, int32_t col)
{
	const Text *cell = &model->cells[(int64_t) row * model->cols + col];
	Params params = {0};
	char ref[A1_MAX];
	PGresult *result;
	int64_t ns;

	param_int8(&params, model->sheet_id);
	if (way == WAY_HEAP)
	{
		param_int4(&params, row);
		param_int4(&params, col);
	}
	else
	{
		a1_format_cell(ref, row, col);
		param_bytes(&params, ref, strlen(ref));
	}
	result = reader_ask(session, way, way == WAY_HEAP ? "heap_cell" : "range_cell", &params, &ns);
	if (PQntuples(result) != 1 || PQgetlength(result, 0, 0) != cell->len ||
		memcmp(PQgetvalue(result, 0, 0), cell->data, cell->len) != 0)
		fail("row %d, column %d of sheet %ld: not the text that was written", row, col, (long) model->sheet_id);
	PQclear(result);
	return ns;
}
