/*
 * update.c - batches of 1000 random edits through sheet.apply(), each in a random sheet of a working set, by one
 * client, durable; with a cache that holds all of it, a tenth of it, and nothing.
 *
 * Blocks of as many batches each go through the sizes and back again, so that what happens on the machine meets all.
 * Before each block every sheet gets a version: its log is about as long in all blocks. Rates are medians of the slices
 * of both blocks.
 */
#include "bench.h"
#include "reader.h"
#include "server.h"
#include "writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SHEET_COLS 50
#define BATCH	   MODEL_MAX_EDITS
#define SIZES	   3
#define BLOCKS	   2
#define SLICES	   (BLOCKS * 10)

typedef struct Size
{
	const char *name, *key;
	int64_t kb;
	double seconds[SLICES]; /* of each slice */
	int slices;
	double edits, cpu_us; /* of all blocks */
} Size;

/* A working set. */
typedef struct Set
{
	const char *key, *title;
	int64_t sheets, batches; /* batches: of a block */
	int32_t rows;
	Model **models;
	int64_t bytes; /* in the cache */
	uint64_t random;
	Size sizes[SIZES];
} Set;

static void
set_make(Set *set)
{
	Session *session = writer_open(false);

	set->models = allocate(set->sheets * sizeof(Model *));
	for (int64_t i = 0; i < set->sheets; i++)
		set->models[i] = writer_make(session, "update", set->rows, SHEET_COLS, 1000 + i);
	session_close(session);
}

/* Reads all sheets, and so checks every cell. */
static void
set_read(Bench *bench, const Set *set)
{
	server_restart(bench, SERVER_AMPLE, false);
	reader_prepare(bench->monitor, false);
	for (int64_t i = 0; i < set->sheets; i++)
		reader_whole(bench->monitor, WAY_STREAM, set->models[i], NULL);
}

static void
set_weigh(Bench *bench, Set *set)
{
	char sheets[128];

	set_read(bench, set);
	snprintf(sheets, sizeof(sheets), "FROM sheet.cache_entries WHERE cached AND sheet_id BETWEEN %ld AND %ld",
			 (long) set->models[0]->sheet_id, (long) set->models[set->sheets - 1]->sheet_id);
	if (session_number(bench->monitor, "SELECT count(*) %s", sheets) != set->sheets)
		fail("the working set of the updates does not fit into the cache of bench.conf");
	set->bytes = session_number(bench->monitor, "SELECT sum(bytes)::bigint %s", sheets);
	set->sizes[1].kb = set->bytes / 10 / 1024;
}

/* Batches in random sheets, from the state that a version of each has left in the cache. */
static void
set_block(Bench *bench, Set *set, Size *size)
{
	Session *session;
	int64_t cpu, batches = set->batches / (SLICES / BLOCKS);

	server_restart(bench, size->kb, false);
	session = writer_open(true);
	for (int64_t i = 0; i < set->sheets; i++)
	{
		writer_edit(session, set->models[i], 1); /* a version needs one */
		writer_commit(session, set->models[i]);
	}
	session_run(bench->monitor, "CHECKPOINT");
	cpu = session_cpu_ns(session);
	for (int slice = 0; slice < SLICES / BLOCKS; slice++)
	{
		int64_t start = now_ns();

		for (int64_t i = 0; i < batches; i++)
			writer_edit(session, set->models[random_next(&set->random) % set->sheets], BATCH);
		size->seconds[size->slices++] = (now_ns() - start) / 1e9;
		size->edits += (double) batches * BATCH;
	}
	size->cpu_us += (session_cpu_ns(session) - cpu) / 1e3;
	session_close(session);
}

static void __attribute__((format(printf, 4, 5)))
set_headline(const Set *set, const char *key, double value, const char *format, ...)
{
	char *name = allocate(64), *text = allocate(96);
	va_list args;

	snprintf(name, 64, "%s%s", key, set->key);
	va_start(args, format);
	vsnprintf(text, 96, format, args);
	va_end(args);
	report_headline(name, text, value);
}

static void
set_report(Set *set)
{
	const Size *ample = &set->sizes[0], *none = &set->sizes[2];
	double rates[SIZES];

	report_section(set->title);
	set_headline(set, "update_set_mb", set->bytes / 1e6, "  the working set, MB");
	for (int i = 0; i < SIZES; i++)
	{
		Size *size = &set->sizes[i];
		char key[64];

		rates[i] = size->edits / size->slices / median(size->seconds, size->slices);
		snprintf(key, sizeof(key), "update_%s", size->key);
		set_headline(set, key, rates[i], "  %s: edits a second", size->name);
		snprintf(key, sizeof(key), "update_%s_cpu_us", size->key);
		set_headline(set, key, size->cpu_us / size->edits, "  %s: CPU of the backend, us an edit", size->name);
	}
	set_headline(set, "tenth_ratio", rates[1] / rates[0], "  a tenth / ample: edits a second");
	set_headline(set, "nocache_ratio", rates[2] / rates[0], "  no cache / ample: edits a second");
	set_headline(set, "nocache_cpu_ratio", ample->cpu_us / none->cpu_us, "  ample / no cache: CPU an edit");
}

static void
set_run(Bench *bench, Set *set)
{
	set_make(set);
	set_weigh(bench, set);
	for (int i = 0; i < BLOCKS * SIZES; i++)
		set_block(bench, set, &set->sizes[i < SIZES ? i : BLOCKS * SIZES - 1 - i]);
	set_read(bench, set);
	set_report(set);
	for (int64_t i = 0; i < set->sheets; i++)
		model_free(set->models[i]);
	free(set->models);
}

#define SET_SIZES                                                                                                      \
	{                                                                                                                  \
		{.name = "ample cache", .key = "ample", .kb = SERVER_AMPLE}, {.name = "cache of a tenth", .key = "tenth"},     \
			{.name = "no cache", .key = "nocache"},                                                                    \
	}

void
update_run(Bench *bench)
{
	Set sets[] = {{.key = "",
				   .title = "batches of 1000 random edits, each in one of many sheets of 10,000 cells, 1 client",
				   .sheets = bench->update_sheets,
				   .batches = bench->update_batches,
				   .rows = 200,
				   .sizes = SET_SIZES},
				  {.key = "_large",
				   .title = "the same in sheets of 100,000 cells",
				   .sheets = bench->update_sheets / 8,
				   .batches = bench->update_batches / 2,
				   .rows = 2000,
				   .sizes = SET_SIZES}};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		set_run(bench, &sets[i]);
}
