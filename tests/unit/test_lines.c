/*
 * test_lines.c - what becomes of late edits when rows and columns have come and gone: against tests/vectors/lines.json,
 * which gateway/web/test/v2/lines.test.ts reads as well; against a plain model, in which each line is itself wherever
 * it lies; and what is remembered.
 */
#include "ws/edit/lines.h"
#include "ws/wire/v2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edit_vectors.h"
#include "tap.h"

#define VECTORS "../vectors/lines.json"

/* ---- the vectors ---- */

/* A list of edits, read as an operation. */
typedef struct Edits
{
	char *memory[2];
	V2Message message;
} Edits;

static void
edits_read(Edits *edits, const cJSON *list)
{
	char *json = cJSON_PrintUnformatted(list);
	Buf text = {NULL, 0, 0};

	memset(edits, 0, sizeof(*edits));
	buf_printf(&text, "{\"t\":\"op\",\"n\":1,\"edits\":%s}", json);
	edits->memory[0] = text.data;
	edits->memory[1] = malloc(V2_SCRATCH(text.len));
	if (cJSON_GetArraySize(list) > 0 && v2_read_json(text.data, text.len, edits->memory[1], &edits->message) != NULL)
		abort();
	free(json);
}

static void
edits_free(Edits *edits)
{
	free(edits->memory[0]);
	free(edits->memory[1]);
}

static EditReader
edits_reader(const Edits *edits)
{
	EditReader reader;

	edit_reader_init_edits(&reader, edits->message.edits, edits->message.edits_len, edits->message.count);
	return reader;
}

static void
check_vector(const cJSON *vector)
{
	Edits changes, edits, expected;
	Output output = {.writer = {.first = true}};
	Buf got = {NULL, 0, 0}, want = {NULL, 0, 0};
	EditReader reader;
	LinesView view;
	LineChange change;
	Edit edit;

	edits_read(&changes, cJSON_GetObjectItem(vector, "changes"));
	edits_read(&edits, cJSON_GetObjectItem(vector, "edits"));
	edits_read(&expected, cJSON_GetObjectItem(vector, "result"));
	lines_view_init(&view);
	reader = edits_reader(&changes);
	while (edit_read(&reader, &edit) == EDIT_OK && line_change_of(&edit, &change))
		lines_view_change(&view, &change);
	reader = edits_reader(&edits);
	while (edit_read(&reader, &edit) == EDIT_OK)
		lines_transform(&view, &edit, output_put, &output);
	v2_put_edits(&got, V2_JSON, 1, false, output.bytes.data, output.bytes.len, output.count);
	v2_put_edits(&want, V2_JSON, 1, false, expected.message.edits, expected.message.edits_len, expected.message.count);
	TAP_OK(got.len == want.len && memcmp(got.data, want.data, got.len) == 0, "%s: %.*s",
		   cJSON_GetObjectItem(vector, "name")->valuestring, (int) got.len, got.data);
	lines_view_free(&view);
	buf_free(&output.bytes);
	buf_free(&got);
	buf_free(&want);
	edits_free(&changes);
	edits_free(&edits);
	edits_free(&expected);
}

/* ---- a plain model: a sheet is a list of lines that have names ---- */

#define MODEL_LINES 60	/* that are looked at */
#define MODEL_SIZE	400 /* behind them there is room for what comes */

typedef struct Model
{
	int lines[MODEL_SIZE];
	int count;
} Model;

static int next_line;

static void
model_init(Model *model)
{
	model->count = MODEL_SIZE / 2;
	for (int i = 0; i < model->count; i++)
		model->lines[i] = i;
	next_line = MODEL_SIZE;
}

static int
model_find(const Model *model, int line)
{
	for (int i = 0; i < model->count; i++)
	{
		if (model->lines[i] == line)
			return i;
	}
	return -1;
}

static void
model_add(Model *model, int at, int line)
{
	memmove(&model->lines[at + 1], &model->lines[at], (size_t) (model->count - at) * sizeof(int));
	model->lines[at] = line;
	model->count++;
}

static void
model_drop(Model *model, int at)
{
	model->count--;
	memmove(&model->lines[at], &model->lines[at + 1], (size_t) (model->count - at) * sizeof(int));
}

/* New lines get the names from *first on. */
static void
model_change(Model *model, const LineChange *change, int first)
{
	for (uint32_t i = 0; i < change->n; i++)
	{
		if (change->insert)
			model_add(model, (int) (change->at + i), first + (int) i);
		else
			model_drop(model, (int) change->at);
	}
}

static LineChange
random_change(bool rows)
{
	return (LineChange){rows, rand() % 2 == 0, (uint32_t) rand() % MODEL_LINES, 1 + (uint32_t) rand() % 5};
}

typedef struct ModelRun
{
	Model *there;
	int names; /* of lines that are inserted next */
	bool rows;
	int cells, changes;
	uint32_t cell; /* the last one's line */
} ModelRun;

static void
model_follow(void *arg, const Edit *edit)
{
	ModelRun *run = arg;
	LineChange change;

	if (!line_change_of(edit, &change))
	{
		run->cells++;
		run->cell = run->rows ? edit->row : edit->col;
		return;
	}
	run->changes++;
	model_change(run->there, &change, run->names);
}

/* The author's lines that are there lie in his order, and nobody's are lost. */
static bool
model_agrees(const Model *author, const Model *there, const Model *others)
{
	int last = -1;

	for (int i = 0; i < author->count; i++)
	{
		int at = model_find(there, author->lines[i]);

		if (at < 0)
			continue;
		if (at <= last)
			return false;
		last = at;
	}
	for (int i = 0; i < others->count; i++)
	{
		bool mine = others->lines[i] < MODEL_SIZE / 2;

		/* Lines that others have inserted stay; those of both stay unless the author has deleted them. */
		if ((!mine || model_find(author, others->lines[i]) >= 0) != (model_find(there, others->lines[i]) >= 0))
			return false;
	}
	return true;
}

static bool
model_round(unsigned seed)
{
	Model author, there, others;
	ModelRun run = {.there = &there, .rows = seed % 2 == 0};
	LinesView view;
	bool good = true;

	srand(seed);
	model_init(&author);
	model_init(&there);
	lines_view_init(&view);
	for (int i = rand() % 6; i > 0; i--)
	{
		LineChange change = random_change(run.rows);

		lines_view_change(&view, &change);
		model_change(&there, &change, next_line);
		next_line += 10;
	}
	others = there;
	for (int i = 0; i < 12 && good; i++)
	{
		char text[LINE_CHANGE_TEXT];
		LineChange change = random_change(run.rows);
		uint32_t line = (uint32_t) rand() % MODEL_LINES;
		Edit edit = {.kind = EDIT_SET, .row = run.rows ? line : 7, .col = run.rows ? 7 : line, .content = {"x", 1}};
		int at = model_find(&there, author.lines[line]);

		if (rand() % 3 > 0)
		{
			run.cells = 0;
			lines_transform(&view, &edit, model_follow, &run);
			good = at < 0 ? run.cells == 0 : run.cells == 1 && (int) run.cell == at;
			continue;
		}
		run.names = next_line;
		next_line += 10;
		edit = line_change_edit(&change, 1, text);
		model_change(&author, &change, run.names);
		lines_transform(&view, &edit, model_follow, &run);
		/* What the author inserts lies directly in front of the line that he named. */
		if (change.insert)
		{
			int next = model_find(&there, author.lines[change.at + change.n]);

			good = model_find(&there, run.names) >= 0 &&
				   (next < 0 || model_find(&there, run.names + (int) change.n - 1) == next - 1);
		}
	}
	good = good && model_agrees(&author, &there, &others);
	lines_view_free(&view);
	return good;
}

static void
check_model(void)
{
	unsigned count = steps_to_run(4000, 20000), failed = 0;

	for (unsigned seed = 1; seed <= count && failed == 0; seed++)
		failed = model_round(seed) ? 0 : seed;
	TAP_OK(failed == 0, "%u random histories agree with the model (seed %u)", count, failed);
}

/* ---- what an operation touches ---- */

typedef struct Touched
{
	char text[200];
} Touched;

static bool
touch(void *arg, const uint32_t rect[4])
{
	Touched *touched = arg;
	size_t len = strlen(touched->text);

	snprintf(touched->text + len, sizeof(touched->text) - len, "%u-%u ", rect[0], rect[2]);
	return true;
}

static void
check_trace(void)
{
	const LineChange changes[] = {{true, true, 3, 2}, {true, false, 1, 4}, {true, false, 0, 2}};
	const uint32_t cells[] = {4, 9};
	Touched touched = {""};
	LinesView view;
	char text[LINE_CHANGE_TEXT];

	lines_view_init(&view);
	for (size_t i = 0; i < 3; i++)
	{
		Edit edit = line_change_edit(&changes[i], 0, text);

		lines_trace(&view, &edit, touch, &touched);
	}
	for (size_t i = 0; i < 2; i++)
	{
		Edit edit = {.kind = EDIT_SET, .row = cells[i], .col = 1, .content = {"x", 1}};

		lines_trace(&view, &edit, touch, &touched);
	}
	/* 0 1 2 n n 3 4 5 6: the second takes 1 2 n n, the third 0 and 3; then row 4 is 8, row 9 is 13. */
	TAP_OK(strcmp(touched.text, "1-2 0-0 3-3 8-8 13-13 ") == 0, "an operation touches the lines of before: %s",
		   touched.text);
	lines_view_free(&view);
}

/* ---- single places ---- */

static void
check_range(LineChange change, const uint32_t from[2], const uint32_t to[2], const char *what)
{
	uint32_t rect[4] = {from[0], 1, from[1], 2};
	bool left = lines_move_range(&change, rect), some = false;

	for (uint32_t line = from[0]; line <= from[1]; line++)
		some = lines_move_range(&change, (uint32_t[]){line, 1, line, 2}) || some;
	TAP_OK(rect[0] == to[0] && rect[2] == to[1] && rect[1] == 1 && rect[3] == 2 && left == some, "%s: %u to %u", what,
		   rect[0], rect[2]);
}

static void
check_ranges(void)
{
	const LineChange insert = {true, true, 5, 3}, delete = {true, false, 5, 3};
	const LineChange end = {true, true, 5, SHEET_MAX_ROWS - 5};

#define RANGE(...) ((const uint32_t[]){__VA_ARGS__})
	check_range(insert, RANGE(1, 4), RANGE(1, 4), "a selection in front of inserted rows stays");
	check_range(insert, RANGE(5, 9), RANGE(8, 12), "one behind them moves");
	check_range(insert, RANGE(4, 5), RANGE(4, 8), "one around them grows");
	check_range(end, RANGE(4, 9), RANGE(4, SHEET_MAX_ROWS - 1), "one that is pushed beyond the end ends there");
	check_range(end, RANGE(7, 9), RANGE(SHEET_MAX_ROWS - 1, SHEET_MAX_ROWS - 1), "one beyond it is the last row");
	check_range(delete, RANGE(1, 4), RANGE(1, 4), "a selection in front of deleted rows stays");
	check_range(delete, RANGE(8, 9), RANGE(5, 6), "one behind them moves");
	check_range(delete, RANGE(4, 8), RANGE(4, 5), "one around them shrinks");
	check_range(delete, RANGE(2, 6), RANGE(2, 4), "one that ends in them ends before");
	check_range(delete, RANGE(6, 9), RANGE(5, 6), "one that begins in them begins behind");
	check_range(delete, RANGE(5, 7), RANGE(5, 5), "of one that is gone the line is left that is there now");
	check_range((LineChange){true, false, 0, 3}, RANGE(0, 2), RANGE(0, 0), "also at the beginning");
}

/* ---- what is remembered ---- */

static uint32_t
memory_find(const LinesHistory *memory, int64_t seq, uint32_t row)
{
	LinesView view;
	uint32_t col = 0;
	bool there;

	lines_view_since(&view, memory, seq);
	there = lines_view_find(&view, &row, &col);
	lines_view_free(&view);
	return there ? row : UINT32_MAX;
}

static void
check_extents(void)
{
	LineChange insert = {true, true, 5, 3}, remove = {true, false, 5, 3}, all = {false, false, 0, 4};

	TAP_OK(extent_after(&insert, 2) == 8 && extent_after(&insert, 10) == 13,
		   "an insertion behind the end extends to it");
	TAP_OK(extent_after(&insert, SHEET_MAX_ROWS - 2) == SHEET_MAX_ROWS, "not beyond the limit");
	TAP_OK(extent_after(&remove, 2) == 2 && extent_after(&remove, 6) == 5 && extent_after(&remove, 10) == 7,
		   "a deletion takes those that are there");
	TAP_OK(extent_after(&all, 3) == 1 && extent_after(&all, 4) == 1 && extent_after(&all, 5) == 1, "one stays");
}

static void
check_memory(void)
{
	LinesHistory memory = {.floor = 100};
	const LineChange insert = {true, true, 0, 1};
	const LinesEntry older[] = {{40, insert}, {50, insert}, {60, insert}};
	LinesEntry many[LINES_REMEMBERED];
	size_t left;

	for (int64_t seq = 101; seq <= 103; seq++)
		lines_history_add(&memory, &insert, seq);
	TAP_OK(lines_history_changed_since(&memory, 102) && !lines_history_changed_since(&memory, 103) &&
			   memory_find(&memory, 101, 5) == 7 && memory_find(&memory, 100, 5) == 8,
		   "changes above a seq are told apart from those up to it");
	lines_history_add_older(&memory, older, 3, 39);
	TAP_OK(memory.floor == 39 && memory_find(&memory, 50, 5) == 9 && memory_find(&memory, 39, 5) == 11,
		   "older ones are learnt");
	lines_history_add_older(&memory, older, 3, 45);
	TAP_OK(memory.count == 6, "but not again");
	for (int64_t seq = 104; memory.floor == 39; seq++)
		lines_history_add(&memory, &insert, seq);
	left = memory.count;
	TAP_OK(left <= LINES_REMEMBERED && memory_find(&memory, memory.floor, 0) == left,
		   "the oldest are forgotten, %zu are left above %lld", left, (long long) memory.floor);
	for (int i = 0; i < LINES_REMEMBERED; i++)
		many[i] = (LinesEntry){1 + i / 2, insert};
	memory.floor = 1000;
	lines_history_add_older(&memory, many, LINES_REMEMBERED, 0);
	TAP_OK(memory.count == LINES_REMEMBERED && memory.floor == many[left - 1].seq,
		   "of more than there is room for the newest are learnt");
	lines_history_free(&memory);
}

int
main(void)
{
	cJSON *vectors = read_vectors(VECTORS);
	const cJSON *vector;

	TAP_OK(cJSON_GetArraySize(vectors) >= 16, "there are %d vectors", cJSON_GetArraySize(vectors));
	cJSON_ArrayForEach(vector, vectors) check_vector(vector);
	check_model();
	check_trace();
	check_ranges();
	check_extents();
	check_memory();
	cJSON_Delete(vectors);
	return tap_done();
}
