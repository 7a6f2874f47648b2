/* writer.c - see writer.h. */
#include "writer.h"

#include "params.h"
#include "server.h"

#include <stdio.h>

Session *
writer_open(bool durable)
{
	Session *session = server_connect();

	if (!durable)
		session_run(session, "SET synchronous_commit = off");
	session_prepare(session, "apply", "SELECT last_seq FROM sheet.apply($1::int8, $2::bytea)");
	session_prepare(session, "commit", "SELECT sheet.commit($1::int8)");
	return session;
}

static void
writer_apply(Session *session, const Model *model, const uint8_t *bytes, size_t len)
{
	Params params = {0};
	PGresult *result;
	int64_t last_seq;

	param_int8(&params, model->sheet_id);
	param_bytes(&params, bytes, (int) len);
	result = params_execute(session, "apply", &params);
	last_seq = answer_int8(result, 0, 0);
	PQclear(result);
	if (last_seq != model->last_seq)
		fail("sheet.apply() came to seq %ld of sheet %ld instead of %ld", (long) last_seq, (long) model->sheet_id,
			 (long) model->last_seq);
}

Model *
writer_make(Session *session, const char *name, int32_t rows, int32_t cols, uint64_t seed)
{
	int64_t id = session_number(session, "SELECT sheet.create('%s', %d, %d)", name, rows, cols);
	Model *model = model_create(id, rows, cols, seed);
	uint8_t bytes[MODEL_MAX_BYTES];
	size_t len;

	while (model_fill(model, bytes, &len) > 0)
		writer_apply(session, model, bytes, len);
	return model;
}

void
writer_edit(Session *session, Model *model, int count)
{
	uint8_t bytes[MODEL_MAX_BYTES];
	size_t len;

	model_edit(model, count, bytes, &len);
	writer_apply(session, model, bytes, len);
}

/* The commit record is an edit of the log, too. */
void
writer_commit(Session *session, Model *model)
{
	Params params = {0};

	param_int8(&params, model->sheet_id);
	PQclear(params_execute(session, "commit", &params));
	model->last_seq++;
}

static void
writer_copy_cells(Session *session, const Model *model)
{
	const Text *cell = model->cells;
	char line[128];

	PQclear(PQexec(session->conn, "COPY bench.cell FROM STDIN"));
	for (int32_t row = 0; row < model->rows; row++)
		for (int32_t col = 0; col < model->cols; col++, cell++)
		{
			int len = snprintf(line, sizeof(line), "%ld\t%d\t%d\t%.*s\n", (long) model->sheet_id, row, col, cell->len,
							   cell->data);

			if (PQputCopyData(session->conn, line, len) != 1)
				fail("%s", PQerrorMessage(session->conn));
		}
	if (PQputCopyEnd(session->conn, NULL) != 1)
		fail("%s", PQerrorMessage(session->conn));
	for (PGresult *result; (result = PQgetResult(session->conn)) != NULL;)
		PQclear(session_check(session, result));
}

void
writer_make_heap(Session *session, const Model *model)
{
	char sql[256];

	session_run(session, "CREATE SCHEMA bench;"
						 "CREATE TABLE bench.cell (sheet_id bigint, \"row\" int, col int, content text,"
						 " PRIMARY KEY (sheet_id, \"row\", col))");
	writer_copy_cells(session, model);
	session_run(session, "CREATE TABLE bench.whole AS SELECT \"row\", col, content FROM bench.cell");
	snprintf(sql, sizeof(sql), "CREATE TABLE bench.part AS SELECT * FROM bench.whole WHERE \"row\" < %d AND col < %d",
			 WINDOW_ROWS, WINDOW_COLS);
	session_run(session, sql);
	session_run(session, "VACUUM ANALYZE bench.cell, bench.whole, bench.part");
}
