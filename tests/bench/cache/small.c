/*
 * small.c - see small.h.
 *
 * Two clients make them, 1000 in a transaction: sheet.create() for all of them in one statement, then sheet.apply() for
 * all of them in another. Without waiting for the disk: the figures are those of opening them.
 */
#include "small.h"

#include "params.h"
#include "server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MAKERS	   2
#define CHUNK	   1000
#define SHEET_ROOM (4 + 32 + SMALL_ROWS * SMALL_COLS * (64 + TEXT_MAX))
#define TABLES	   64 /* at most, in the schema */

typedef struct Maker
{
	pthread_t thread;
	int64_t *ids;
	int64_t count;
	char *arrays[2]; /* ids and batches */
} Maker;

/* What the relations of the schema held before. */
static struct
{
	char names[TABLES][64];
	int64_t bytes[TABLES];
	int count;
} before;

Model *
small_model(int64_t sheet_id)
{
	return model_create(sheet_id, SMALL_ROWS, SMALL_COLS, sheet_id);
}

/* ---- making ---- */

static void
maker_create(Session *session, int64_t *ids, int count)
{
	Params params = {0};
	PGresult *result;

	param_int4(&params, count);
	result = params_execute(session, "create", &params);
	if (PQntuples(result) != count)
		fail("sheet.create() made %d sheets instead of %d", PQntuples(result), count);
	for (int i = 0; i < count; i++)
		ids[i] = answer_int8(result, i, 0);
	PQclear(result);
}

static void
maker_fill(Session *session, const Maker *maker, const int64_t *ids, int count)
{
	char *ends[2] = {array_begin(maker->arrays[0], INT8OID, count), array_begin(maker->arrays[1], BYTEAOID, count)};
	Params params = {0};
	PGresult *result;

	for (int i = 0; i < count; i++)
	{
		Model *model = small_model(ids[i]);
		uint8_t bytes[SHEET_ROOM];
		size_t len;

		model_fill(model, bytes, &len);
		ends[0] = array_put_int8(ends[0], ids[i]);
		ends[1] = array_put_bytes(ends[1], bytes, len);
		model_free(model);
	}
	for (int i = 0; i < 2; i++)
		param_bytes(&params, maker->arrays[i], ends[i] - maker->arrays[i]);
	result = params_execute(session, "fill", &params);
	for (int i = 0; i < count; i++)
		if (answer_int8(result, i, 0) != 1 + SMALL_ROWS * SMALL_COLS)
			fail("sheet.apply() did not fill sheet %ld", (long) ids[i]);
	PQclear(result);
}

static void *
maker_main(void *arg)
{
	Maker *maker = arg;
	Session *session = server_connect();

	session_run(session, "SET synchronous_commit = off");
	session_prepare(session, "create", "SELECT sheet.create('small', 10, 10) FROM generate_series(1, $1::int4)");
	session_prepare(session, "fill",
					"SELECT last_seq FROM unnest($1::int8[], $2::bytea[]) AS e(id, edits),"
					" LATERAL sheet.apply(e.id, e.edits)");
	for (int64_t done = 0; done < maker->count; done += CHUNK)
	{
		int count = maker->count - done < CHUNK ? maker->count - done : CHUNK;

		session_run(session, "BEGIN");
		maker_create(session, maker->ids + done, count);
		maker_fill(session, maker, maker->ids + done, count);
		session_run(session, "COMMIT");
	}
	session_close(session);
	return NULL;
}

static PGresult *
tables_bytes(Bench *bench)
{
	return session_query(bench->monitor, "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
										 " WHERE relnamespace = 'sheet'::regnamespace AND relkind = 'r' ORDER BY 1");
}

static void
tables_remember(Bench *bench)
{
	PGresult *result = tables_bytes(bench);

	before.count = PQntuples(result);
	if (before.count > TABLES)
		fail("schema sheet has %d tables", before.count);
	for (int i = 0; i < before.count; i++)
	{
		snprintf(before.names[i], sizeof(before.names[i]), "%s", PQgetvalue(result, i, 0));
		before.bytes[i] = atoll(PQgetvalue(result, i, 1));
	}
	PQclear(result);
}

void
small_make(Bench *bench, SmallSheets *small)
{
	Maker makers[MAKERS];
	int64_t start = now_ns();

	tables_remember(bench);
	small->count = bench->sheets;
	small->ids = allocate(small->count * sizeof(int64_t));
	for (int i = 0; i < MAKERS; i++)
	{
		int64_t from = small->count * i / MAKERS, to = small->count * (i + 1) / MAKERS;

		makers[i] = (Maker){.ids = small->ids + from, .count = to - from};
		makers[i].arrays[0] = allocate(ARRAY_HEAD + CHUNK * 12);
		makers[i].arrays[1] = allocate(ARRAY_HEAD + CHUNK * SHEET_ROOM);
		if (pthread_create(&makers[i].thread, NULL, maker_main, &makers[i]) != 0)
			fail("a thread could not be started");
	}
	for (int i = 0; i < MAKERS; i++)
		pthread_join(makers[i].thread, NULL);
	small->seconds = (now_ns() - start) / 1e9;
}

/* ---- bytes ---- */

/* Of the batches that users have made, as they are stored; the one that a sheet is born with is the sheet's own. */
static double
small_edit_bytes(Bench *bench, const SmallSheets *small)
{
	int64_t low = small->ids[0], high = low;

	for (int64_t i = 0; i < small->count; i++)
	{
		low = small->ids[i] < low ? small->ids[i] : low;
		high = small->ids[i] > high ? small->ids[i] : high;
	}
	return session_number(bench->monitor,
						  "SELECT sum(pg_column_size(data)) FROM sheet.log_batch WHERE sheet_id BETWEEN %ld AND %ld"
						  " AND first_seq > 1",
						  (long) low, (long) high);
}

void
small_report_bytes(Bench *bench, const SmallSheets *small)
{
	static char texts[TABLES][96], keys[TABLES][80];
	double edits = small_edit_bytes(bench, small) / small->count, total = 0;
	PGresult *result = tables_bytes(bench);

	report_section("storage of a sheet of 10 x 10 cells, filled by one batch");
	for (int i = 0; i < before.count; i++)
	{
		double bytes = (double) (atoll(PQgetvalue(result, i, 1)) - before.bytes[i]) / small->count;

		total += bytes;
		if (bytes < 0.5)
			continue;
		snprintf(texts[i], sizeof(texts[i]), "  sheet.%s with indexes, bytes", before.names[i]);
		snprintf(keys[i], sizeof(keys[i]), "small_%s_bytes", before.names[i]);
		report_headline(keys[i], texts[i], bytes);
	}
	PQclear(result);
	report_headline("small_edit_bytes", "  of which its edits, as they are stored, bytes", edits);
	report_headline("bytes_per_sheet", "  beyond its edits, bytes", total - edits);
	report_headline("small_made", "  made by 2 clients, sheets a second", small->count / small->seconds);
}
