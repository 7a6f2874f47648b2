/*
 * update.c - batches of 1000 random edits through sheet.apply(), each in a random sheet of a working set, by one
 * client, durable; with a cache that holds all of it, a tenth of it, and nothing.
 *
 * Blocks of as many batches each go through the sizes and back again, so that what happens on the machine meets all.
 * Before each block every sheet gets a version: its log is about as long in all blocks.
 */
#include "bench.h"
#include "reader.h"
#include "server.h"
#include "writer.h"

#include <stdio.h>

#define SHEET_ROWS 200
#define SHEET_COLS 50
#define BATCH	   MODEL_MAX_EDITS
#define SIZES	   3

typedef struct Size
{
	const char *name, *key;
	int64_t kb;
	double edits, seconds, cpu_us;
} Size;

static int64_t
update_bytes(Bench *bench, Model **models)
{
	Session *session;

	server_restart(bench, SERVER_AMPLE, false);
	session = server_connect();
	reader_prepare(session, false);
	for (int64_t i = 0; i < bench->update_sheets; i++)
		reader_whole(session, WAY_STREAM, models[i], NULL);
	session_close(session);
	if (session_number(bench->monitor,
					   "SELECT count(*) FROM sheet.cache_entries WHERE cached AND sheet_id BETWEEN %ld "
					   "AND %ld",
					   (long) models[0]->sheet_id,
					   (long) models[bench->update_sheets - 1]->sheet_id) != bench->update_sheets)
		fail("the working set of the updates does not fit into the cache of bench.conf");
	return session_number(bench->monitor,
						  "SELECT sum(bytes)::bigint FROM sheet.cache_entries WHERE cached AND sheet_id BETWEEN %ld "
						  "AND %ld",
						  (long) models[0]->sheet_id, (long) models[bench->update_sheets - 1]->sheet_id);
}

/* Batches in random sheets, from the state that a version of each has left in the cache. */
static void
update_block(Bench *bench, Model **models, Size *size, uint64_t *random)
{
	Session *session;
	int64_t cpu, start;

	server_restart(bench, size->kb, false);
	session = writer_open(true);
	for (int64_t i = 0; i < bench->update_sheets; i++)
	{
		writer_edit(session, models[i], 1); /* a version needs one */
		writer_commit(session, models[i]);
	}
	session_run(bench->monitor, "CHECKPOINT");
	cpu = session_cpu_ns(session);
	start = now_ns();
	for (int64_t i = 0; i < bench->update_batches; i++)
		writer_edit(session, models[random_next(random) % bench->update_sheets], BATCH);
	size->seconds += (now_ns() - start) / 1e9;
	size->cpu_us += (session_cpu_ns(session) - cpu) / 1e3;
	size->edits += (double) bench->update_batches * BATCH;
	session_close(session);
}

static void
update_check(Bench *bench, Model **models)
{
	server_restart(bench, SERVER_AMPLE, false);
	reader_prepare(bench->monitor, false);
	for (int64_t i = 0; i < bench->update_sheets; i++)
		reader_whole(bench->monitor, WAY_STREAM, models[i], NULL);
}

static void
update_report(const Size sizes[SIZES], int64_t bytes)
{
	static char texts[SIZES][2][80], keys[SIZES][2][32];

	report_section("1000 random edits a transaction, each in a random sheet of a working set, 1 client");
	report_headline("update_set_mb", "  the working set, MB", bytes / 1e6);
	for (int i = 0; i < SIZES; i++)
	{
		snprintf(keys[i][0], sizeof(keys[i][0]), "update_%s", sizes[i].key);
		snprintf(keys[i][1], sizeof(keys[i][1]), "update_%s_cpu_us", sizes[i].key);
		snprintf(texts[i][0], sizeof(texts[i][0]), "  %s: edits a second", sizes[i].name);
		snprintf(texts[i][1], sizeof(texts[i][1]), "  %s: CPU of the backend, us an edit", sizes[i].name);
		report_headline(keys[i][0], texts[i][0], sizes[i].edits / sizes[i].seconds);
		report_headline(keys[i][1], texts[i][1], sizes[i].cpu_us / sizes[i].edits);
	}
	report_headline("tenth_ratio", "  a tenth / ample: edits a second", sizes[0].seconds / sizes[1].seconds);
	report_headline("nocache_ratio", "  no cache / ample: edits a second", sizes[0].seconds / sizes[2].seconds);
	report_headline("nocache_cpu_ratio", "  ample / no cache: CPU an edit", sizes[0].cpu_us / sizes[2].cpu_us);
}

void
update_run(Bench *bench)
{
	Size sizes[SIZES] = {{.name = "ample cache", .key = "ample", .kb = SERVER_AMPLE},
						 {.name = "cache of a tenth", .key = "tenth"},
						 {.name = "no cache", .key = "nocache"}};
	Model **models = allocate(bench->update_sheets * sizeof(*models));
	uint64_t random = 80;
	Session *session;
	int64_t bytes;

	session = writer_open(false);
	for (int64_t i = 0; i < bench->update_sheets; i++)
		models[i] = writer_make(session, "update", SHEET_ROWS, SHEET_COLS, 1000 + i);
	session_close(session);
	bytes = update_bytes(bench, models);
	sizes[1].kb = bytes / 10 / 1024;
	for (int i = 0; i < 2 * SIZES; i++)
		update_block(bench, models, &sizes[i < SIZES ? i : 2 * SIZES - 1 - i], &random);
	update_check(bench, models);
	update_report(sizes, bytes);
	for (int64_t i = 0; i < bench->update_sheets; i++)
		model_free(models[i]);
}
