/*
 * test_allocations.c - what becomes of buffers, streams, locks, views, batches and queries when an allocation fails:
 * each one in turn, alone and with all that come after it. Nothing is lost that was there, nothing is told with a gap,
 * and all memory is given back (the sanitizer looks).
 */
#include "ws/edit/batch.h"
#include "ws/wire/fanout.h"
#include "ws/edit/lines.h"
#include "ws/edit/locks.h"
#include "coord/ring.h"
#include "db/pgpipeline.h"
#include "support/sheet_map.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

/* ---- the allocator: --wrap (Makefile) brings calls here ---- */

static long calls, fail_at; /* the number of the call that fails; 0: none */
static bool fail_on;		/* and all behind it */

extern void *__real_malloc(size_t size);
extern void *__real_calloc(size_t count, size_t size);
extern void *__real_realloc(void *memory, size_t size);

static bool
call_fails(void)
{
	calls++;
	return fail_at > 0 && (calls == fail_at || (fail_on && calls > fail_at));
}

void *
__wrap_malloc(size_t size)
{
	return call_fails() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
	return call_fails() ? NULL : __real_calloc(count, size);
}

void *
__wrap_realloc(void *memory, size_t size)
{
	return call_fails() ? NULL : __real_realloc(memory, size);
}

/* Runs it with each of its allocations failing, until none does. It says whether what it promises held. */
static void
sweep(bool (*run)(void), const char *promise)
{
	bool good = true;
	long most = 0;

	for (int mode = 0; mode < 2; mode++)
	{
		fail_on = mode == 1;
		for (long n = 1;; n++)
		{
			calls = 0;
			fail_at = n;
			good = run() && good;
			fail_at = 0;
			if (calls < n)
				break;
			most = n;
		}
	}
	TAP_OK(good && most > 0, "%s (%ld allocations)", promise, most);
}

/* ---- buffers ---- */

static bool
run_buf(void)
{
	static size_t known; /* of the run that does not fail */
	Buf part = {NULL, 0, 0}, whole = {NULL, 0, 0};
	bool good;

	for (int i = 0; i < 100; i++)
	{
		buf_printf(&part, "%d,", i);
		buf_puts_json(&part, "a \"text\"");
		buf_puts_url(&part, "a b");
		buf_put_number(&part, i);
	}
	buf_puts(&whole, "begin");
	buf_put_buf(&whole, &part);
	buf_puts(&whole, "end");
	if (fail_at > 0 && calls < fail_at)
		known = part.len;
	good = buf_failed(&part) ? part.len == 0 && buf_failed(&whole) : known == 0 || part.len == known;
	good = good && (buf_failed(&whole) ? whole.len == 0 : whole.len == part.len + 8);
	buf_free(&part);
	buf_free(&whole);
	buf_puts(&whole, "again");
	good = good && (buf_failed(&whole) || (whole.len == 5 && memcmp(whole.data, "again", 5) == 0));
	buf_free(&whole);
	return good;
}

static bool
run_buf_try(void)
{
	Buf buf = {NULL, 0, 0};
	bool good = true;

	buf_puts(&buf, "kept");
	if (!buf_failed(&buf))
	{
		(void) buf_try_reserve(&buf, 100000);
		good = buf.len == 4 && memcmp(buf.data, "kept", 4) == 0 && !buf_try_reserve(&buf, SIZE_MAX - 2) && buf.len == 4;
	}
	buf_free(&buf);
	return good;
}

/* ---- streams ---- */

#define FRAMES 40

/* What a receiver gets is a whole number of the frames that were appended, from the first one on. */
static bool
run_fanout(void)
{
	Fanout stream = {0};
	FanoutCursor cursor = {0};
	uint64_t ends[FRAMES + 1] = {0}, got = 0;
	bool attached = fanout_attach(&stream, &cursor), good, prefix = false;
	const char *data;
	size_t len;

	for (int i = 0; i < FRAMES; i++)
	{
		Buf payload = {NULL, 0, 0};
		size_t size = (size_t) i * 997 + 1;

		if (buf_reserve(&payload, size))
		{
			memset(payload.data, 'a' + i % 26, size);
			payload.len = size;
		}
		fanout_append_message(&stream, i % 2 == 0, &payload);
		buf_free(&payload);
		ends[i + 1] = ends[i] + size + (size < 126 ? 2 : size < 65536 ? 4 : 10);
	}
	while (attached && fanout_peek(&cursor, &data, &len))
	{
		fanout_advance(&cursor, len);
		got += len;
	}
	for (int i = 0; i <= FRAMES; i++)
		prefix = prefix || got == ends[i];
	good = stream.failed ? prefix && got < ends[FRAMES] : !attached || got == ends[FRAMES];
	good = good && (!attached || stream.end == got);
	fanout_detach(&cursor);
	fanout_free(&stream);
	return good;
}

/* ---- locks ---- */

static bool
move_down(const void *arg, uint32_t rect[4])
{
	rect[0] += 7;
	rect[2] += 7;
	return rect[1] != 3;
}

static bool
run_locks(void)
{
	SheetLocks locks = {0};
	const uint32_t rect[4] = {1, 0, 2, 2};
	bool ranged = locks_add_range(&locks, rect, &(LockHolder){1, 1}) != NULL;
	bool held[200], good = true;
	size_t count = 0, left = 0;

	for (uint32_t i = 0; i < 200; i++)
	{
		held[i] = locks_add(&locks, i, i % 5, &(LockHolder){1, 0}, 0) != NULL;
		count += held[i];
		left += held[i] && i % 5 != 3;
	}
	good = locks.count == count;
	locks_move(&locks, move_down, NULL);
	good = good && locks.count == left && locks.range_count == ranged && (!ranged || locks.ranges->rect[2] == 9);
	for (uint32_t i = 0; i < 200; i++)
		good = good && (locks_find(&locks, i + 7, i % 5) != NULL) == (held[i] && i % 5 != 3);
	locks_free(&locks);
	return good;
}

/* ---- rows and columns ---- */

typedef struct Places
{
	size_t count;
	uint64_t sum;
} Places;

static void
places_add(void *arg, const Edit *edit)
{
	Places *places = arg;

	places->count++;
	places->sum += (uint64_t) edit->row * 1000 + edit->col;
}

/* A view says that it has failed, or where everything is. */
static bool
run_view(void)
{
	static Places known; /* of the run that does not fail, which is the last one */
	Places places = {0, 0};
	char text[LINE_CHANGE_TEXT];
	LinesHistory memory = {0};
	LinesView view;
	bool good = true, remembered = true;

	for (uint32_t i = 0; i < 40; i++)
	{
		LineChange change = {.rows = i % 3 != 0, .insert = i % 4 != 0, .at = i * 5, .n = 2};
		size_t before = memory.count;

		if (!lines_history_add(&memory, &change, i + 1))
		{
			good = good && memory.count == before;
			remembered = false;
		}
	}
	lines_view_since(&view, &memory, 0);
	for (uint32_t i = 0; i < 100; i++)
	{
		LineChange change = {.rows = true, .insert = true, .at = i, .n = 1};
		Edit edit = i % 10 == 9 ? line_change_edit(&change, 1, text) : (Edit){.kind = EDIT_SET, .row = i * 3, .col = i};

		lines_transform(&view, &edit, places_add, &places);
	}
	if (remembered && !lines_view_failed(&view))
	{
		good = good && (known.count == 0 || memcmp(&known, &places, sizeof(places)) == 0);
		known = places;
	}
	lines_view_free(&view);
	lines_history_free(&memory);
	return good;
}

static bool
run_older(void)
{
	LinesHistory memory = {.floor = 100};
	LinesEntry older[20];
	LineChange change = {.rows = true, .insert = true, .at = 1, .n = 1};
	bool good, added;
	size_t count;

	for (int i = 0; i < 20; i++)
		older[i] = (LinesEntry){80 + i, change};
	(void) lines_history_add(&memory, &change, 101);
	count = memory.count;
	added = lines_history_add_older(&memory, older, 20, 79);
	good = added ? memory.count == count + 20 && memory.floor == 79 : memory.count == count && memory.floor == 100;
	lines_history_free(&memory);
	return good;
}

/* ---- batches ---- */

#define OP_EDITS 500

/* Edits of an operation, as in the codec's form. */
static size_t
op_bytes(void)
{
	return OP_EDITS * (size_t) (20 + 12 + 10);
}

/* An operation for which there is room is taken whole, without any memory more; one for which there is none leaves what
 * was there. */
static bool
run_batch(void)
{
	RoomBatch *batch = batch_create();
	bool good = true;

	if (batch == NULL)
		return true;
	for (int op = 0; op < 5; op++)
	{
		size_t edits_len = batch->edits.len;
		uint32_t count = batch->count;
		long before, fails = fail_at;

		if (!batch_reserve(batch, op_bytes()))
		{
			good = good && batch->edits.len == edits_len && batch->count == count;
			continue;
		}
		before = calls;
		for (uint32_t i = 0; i < OP_EDITS; i++)
		{
			Edit edit = {
				.kind = EDIT_SET, .uid = UINT64_MAX, .row = i * 5000, .col = i % 9, .content = {"text of a cell", 14}};

			if (i == OP_EDITS / 2)
				good = batch_add_event(batch) != NULL && good;
			batch_put_edit(batch, &edit);
		}
		good = good && calls == before && fail_at == fails && !batch_failed(batch) && batch->count == count + OP_EDITS;
	}
	batch_free(batch);
	return good;
}

/* A copy is whole, or there is none. */
static bool
run_batch_copy(void)
{
	RoomBatch *batch = batch_create();
	RoomBatch *copy = NULL;
	bool good = true;

	if (batch == NULL)
		return true;
	for (uint32_t i = 0; i < 50; i++)
	{
		Edit edit = {.kind = EDIT_SET, .row = i, .content = {"x", 1}};

		batch_put_edit(batch, &edit);
		buf_put(&batch->infos, "info", 4);
		if (i % 10 == 0)
			(void) batch_add_event(batch);
	}
	if (!batch_failed(batch))
		copy = batch_copy(batch);
	if (copy != NULL)
	{
		good = copy->count == batch->count && copy->event_count == batch->event_count &&
			   copy->edits.len == batch->edits.len &&
			   memcmp(copy->edits.data, batch->edits.data, batch->edits.len) == 0 &&
			   copy->infos.len == batch->infos.len;
		batch_free(copy);
	}
	batch_free(batch);
	return good;
}

/* ---- sheets and members ---- */

#define SHEETS 300

/* Without memory for a table every entry is found, and a walk visits each that is there once, and no others. */
static bool
run_sheet_map(void)
{
	static SheetEntry entries[SHEETS + 1];
	SheetMap map = {0};
	SheetWalk walk, inner;
	SheetEntry *entry;
	bool seen[SHEETS] = {false}, good = true;
	int visits = 0;

	for (int i = 0; i < SHEETS; i++)
	{
		entries[i] = (SheetEntry){.sheet_id = i};
		sheet_map_add(&map, &entries[i]);
	}
	for (int i = 0; i < SHEETS; i++)
		good = good && sheet_map_find(&map, i) == &entries[i];
	sheet_walk_begin(&walk, &map);
	while ((entry = sheet_walk_next(&walk)) != NULL)
	{
		good = good && entry->sheet_id < SHEETS && !seen[entry->sheet_id];
		seen[entry->sheet_id] = true;
		if (visits++ == 0)
		{
			entries[SHEETS] = (SheetEntry){.sheet_id = SHEETS};
			sheet_map_add(&map, &entries[SHEETS]);
		}
		/* This one goes and, in a walk of its own, every seventh. */
		sheet_walk_begin(&inner, &map);
		while (visits == 10 && (entry = sheet_walk_next(&inner)) != NULL)
		{
			if (entry->sheet_id % 7 == 0)
				sheet_map_remove(&map, entry);
		}
		if (visits != 10)
			while (sheet_walk_next(&inner) != NULL)
				;
	}
	for (int i = 0; i < SHEETS; i++)
		good = good && (i % 7 == 0 || seen[i]) && (sheet_map_find(&map, i) != NULL) == (i % 7 != 0);
	sheet_map_free(&map);
	return good && visits < SHEETS && sheet_map_find(&map, SHEETS) == NULL;
}

/* A ring is whole, or there is none. */
static bool
run_ring(void)
{
	const RingMember members[] = {{"a:1", 1}, {"b:1", 3}, {"c:1", 64}};
	Ring *ring = ring_build(members, 3);
	unsigned owners = 0;
	bool good;

	for (int64_t id = 0; ring != NULL && id < 1000; id++)
		owners |= 1u << (ring_owner_of(ring, id)[0] - 'a');
	good = ring == NULL || owners == 7;
	ring_free(ring);
	return good;
}

/* ---- queries ---- */

static int answers;

static void
query_answered(void *arg, PGresult *res)
{
	answers += res == NULL;
}

/* Who could ask is answered, once; who could not is not. */
static bool
run_pipeline(void)
{
	static PgPipeline pipeline;
	Buf large = {NULL, 0, 0};
	int asked = 0;
	bool good = true;

	pipeline_init(&pipeline, "test");
	answers = 0;
	for (int i = 0; i < 6; i++)
	{
		PgParam params[] = {pgparam_text("1"), pgparam_buf(&large, 1)};
		PgQuery query = {.sql = "SELECT $1, $2", .nparams = 2, .params = params, .fn = query_answered};
		PgItem *item = pipeline_item(&query, 0);

		good = good && !(buf_failed(&large) && item != NULL);
		buf_puts(&large, "more and more");
		if (item == NULL)
			continue;
		if (pipeline_add(&pipeline, item))
			asked++;
		else
			pipeline_item_free(item);
		if (i % 2 == 1)
			(void) pipeline_close_group(&pipeline);
	}
	good = good && pipeline.pending == asked;
	pipeline_lose_all(&pipeline);
	pipeline_answer_lost(&pipeline);
	buf_free(&large);
	return good && answers == asked && pipeline.pending == 0;
}

int
main(void)
{
	sweep(run_buf, "a buffer is whole or says that it has failed");
	sweep(run_buf_try, "a buffer that is asked whether there is room keeps its content");
	sweep(run_fanout, "a stream that fails has no gap");
	sweep(run_locks, "locks that could be taken are there, also when they have moved");
	sweep(run_view, "a view tells the right places or that it has failed");
	sweep(run_older, "older changes are remembered all or not");
	sweep(run_batch, "an operation is in the batch as a whole or not at all, and others' stay");
	sweep(run_batch_copy, "a copy of a batch is whole, or there is none");
	sweep(run_sheet_map, "sheets are found and visited whether or not there is a table");
	sweep(run_ring, "a ring is whole, or there is none");
	sweep(run_pipeline, "queries that could be asked are answered, others are refused");
	return tap_done();
}
