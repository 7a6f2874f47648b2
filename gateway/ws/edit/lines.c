/*
 * lines.c - maps cells across insertions and deletions of rows and columns.
 *
 * An edit may name cells as they were at an earlier seq. A view holds both orders of lines, the author's and the
 * present one, as parts: runs of lines that are in both orders or in one of them. Others' changes are applied in the
 * present order. An author's edit is looked up in the author's order and expressed in the present one. A structure edit
 * of the author changes both orders, so that the edits after it mean what they would have meant without the others'
 * changes. No edits are transformed in pairs, and the result does not depend on who was first, except for lines
 * inserted at the same position. The references of a formula are looked up as cells are. Each change adds two parts.
 */
#include "ws/edit/lines.h"

#include "common/formula_shift.h"
#include "common/properties.h"

#include <stdlib.h>
#include <string.h>

#define LINES_ENDLESS (UINT64_C(1) << 40) /* lines of a view's last part, which goes beyond the limit */

/* ---- one change ---- */

bool
lines_move_range(const LineChange *change, uint32_t rect[4])
{
	uint32_t *first = &rect[change->rows ? 0 : 1], *last = &rect[change->rows ? 2 : 3];

	if (extent_move(change, first, last))
		return true;
	*last = change->insert ? *last : change->at;
	*first = *last;
	return false;
}

/* ---- a view's map ---- */

/* Reserves the parts that one change or edit adds, and makes the first part. */
static bool
lines_map_reserve(LinesMap *map)
{
	size_t size = map->size > 0 ? map->size * 2 : 16;
	LinesPart *parts;

	if (map->failed || map->count + 3 <= map->size)
		return !map->failed;
	parts = realloc(map->parts, size * sizeof(LinesPart));
	map->failed = parts == NULL;
	if (map->failed)
		return false;
	map->parts = parts;
	map->size = size;
	if (map->count == 0)
		map->parts[map->count++] = (LinesPart){.n = LINES_ENDLESS, .seen = true, .there = true};
	return true;
}

static void
lines_map_add(LinesMap *map, size_t i, LinesPart part)
{
	memmove(&map->parts[i + 1], &map->parts[i], (map->count - i) * sizeof(LinesPart));
	map->parts[i] = part;
	map->count++;
}

static void
lines_map_drop(LinesMap *map, size_t i)
{
	map->count--;
	memmove(&map->parts[i], &map->parts[i + 1], (map->count - i) * sizeof(LinesPart));
}

static void
lines_map_count(LinesMap *map)
{
	uint64_t seen = 0, there = 0;

	for (size_t i = 0; i < map->count; i++)
	{
		LinesPart *part = &map->parts[i];

		part->seen_before = seen;
		part->there_before = there;
		seen += part->seen ? part->n : 0;
		there += part->there ? part->n : 0;
	}
}

/* Returns the part that begins with the line `index` of the present order, or of the author's; splits one for it. */
static size_t
lines_map_cut(LinesMap *map, bool there, uint64_t index)
{
	size_t i = 0;

	for (;; i++)
	{
		const LinesPart *part = &map->parts[i];

		if (!(there ? part->there : part->seen))
			continue;
		if (index < part->n)
			break;
		index -= part->n;
	}
	if (index > 0)
	{
		LinesPart rest = map->parts[i];

		rest.n -= index;
		map->parts[i].n = index;
		lines_map_add(map, ++i, rest);
	}
	return i;
}

/* Applies a deletion by others. */
static void
lines_map_lose(LinesMap *map, uint32_t at, uint32_t n)
{
	size_t i = lines_map_cut(map, true, at), end = lines_map_cut(map, true, (uint64_t) at + n);

	while (i < end)
	{
		if (map->parts[i].there && !map->parts[i].seen)
		{
			lines_map_drop(map, i);
			end--;
			continue;
		}
		map->parts[i++].there = false;
	}
}

/* Returns the part with a line of the author's order: the last part with at most `line` seen lines before it. A part
 * behind an unseen one has as many before it, and the last part is seen. */
static const LinesPart *
lines_map_find(const LinesMap *map, uint32_t line)
{
	size_t low = 0, high = map->count;

	while (high - low > 1)
	{
		size_t middle = (low + high) / 2;

		if (map->parts[middle].seen_before <= line)
			low = middle;
		else
			high = middle;
	}
	return &map->parts[low];
}

static bool
lines_map_map(const LinesMap *map, uint32_t *line)
{
	const LinesPart *part;
	uint64_t present;

	if (map->parts == NULL)
		return true;
	part = lines_map_find(map, *line);
	present = part->there_before + (*line - part->seen_before);
	if (!part->there || present >= map->limit)
		return false;
	*line = (uint32_t) present;
	return true;
}

/* Maps a run of the author's lines to the present ones, and to those between them; false if none exists. All stay all.
 */
static bool
lines_map_map_range(const LinesMap *map, uint32_t *first, uint32_t *last)
{
	uint64_t from = UINT64_MAX, to = 0;

	if (map->parts == NULL || (*first == 0 && *last == map->limit - 1))
		return true;
	for (size_t i = 0; i < map->count; i++)
	{
		const LinesPart *part = &map->parts[i];
		uint64_t low = part->seen_before > *first ? part->seen_before : *first;
		uint64_t past = part->seen_before + part->n, wanted = *last + UINT64_C(1), end = past < wanted ? past : wanted;

		if (!part->seen || !part->there || low >= end)
			continue;
		if (from == UINT64_MAX)
			from = part->there_before + (low - part->seen_before);
		to = part->there_before + (end - 1 - part->seen_before);
	}
	*first = (uint32_t) from;
	*last = (uint32_t) (to < map->limit ? to : map->limit - 1);
	return from < map->limit;
}

/* ---- a view ---- */

void
lines_view_init(LinesView *view)
{
	*view = (LinesView){.rows = {.limit = SHEET_MAX_ROWS}, .cols = {.limit = SHEET_MAX_COLS}};
}

bool
lines_view_failed(const LinesView *view)
{
	return view->rows.failed || view->cols.failed;
}

void
lines_view_free(LinesView *view)
{
	free(view->rows.parts);
	free(view->cols.parts);
}

void
lines_view_change(LinesView *view, const LineChange *change)
{
	LinesMap *map = change->rows ? &view->rows : &view->cols;

	if (!lines_map_reserve(map))
		return;
	if (change->insert)
		lines_map_add(map, lines_map_cut(map, true, change->at), (LinesPart){.n = change->n, .there = true});
	else
		lines_map_lose(map, change->at, change->n);
	lines_map_count(map);
}

bool
lines_view_find(const LinesView *view, uint32_t *row, uint32_t *col)
{
	return lines_map_map(&view->rows, row) && lines_map_map(&view->cols, col);
}

/* ---- the author's edits ---- */

/* Collects adjacent present lines that the author inserts or deletes. */
typedef struct LinesRuns
{
	LineChange run; /* the current one; n 0: none */
	void (*emit)(void *arg, const LineChange *run);
	void *arg;
} LinesRuns;

static void
runs_end(LinesRuns *runs)
{
	if (runs->run.n > 0)
		runs->emit(runs->arg, &runs->run);
	runs->run.n = 0;
}

/* merge: the lines follow the current run. No run goes beyond the limit. */
static void
runs_add(LinesRuns *runs, uint64_t at, uint64_t n, uint32_t limit, bool merge)
{
	if (at >= limit)
		return;
	if (!merge || runs->run.n == 0)
	{
		runs_end(runs);
		runs->run.at = (uint32_t) at;
	}
	n += runs->run.n;
	runs->run.n = (uint32_t) (n < limit - runs->run.at ? n : limit - runs->run.at);
}

/* follow: the present order changes, too. It does not for lines_trace(). */
static void
lines_map_insert(LinesMap *map, const LineChange *change, bool follow, LinesRuns *runs)
{
	size_t i = lines_map_cut(map, false, change->at);
	uint64_t at;

	lines_map_count(map);
	at = map->parts[i].there_before;
	lines_map_add(map, i, (LinesPart){.n = change->n, .seen = true, .there = follow});
	if (follow)
		runs_add(runs, at, change->n, map->limit, false);
	runs_end(runs);
}

static void
lines_map_delete(LinesMap *map, const LineChange *change, bool follow, LinesRuns *runs)
{
	size_t i = lines_map_cut(map, false, change->at);
	size_t end = lines_map_cut(map, false, (uint64_t) change->at + change->n);
	uint64_t at;
	bool merge = false;

	lines_map_count(map);
	at = map->parts[i].there_before;
	while (i < end)
	{
		LinesPart *part = &map->parts[i];

		if (part->seen && part->there)
			runs_add(runs, at, part->n, map->limit, merge);
		if (part->there)
			merge = part->seen;
		at += part->there && !(part->seen && follow) ? part->n : 0;
		if (part->seen && (follow || !part->there))
		{
			lines_map_drop(map, i);
			end--;
			continue;
		}
		part->seen = false;
		i++;
	}
	runs_end(runs);
}

static void
view_edit(LinesView *view, const LineChange *change, bool follow, LinesRuns *runs)
{
	LinesMap *map = change->rows ? &view->rows : &view->cols;

	if (!lines_map_reserve(map))
		return;
	runs->run = (LineChange){.rows = change->rows, .insert = change->insert};
	if (change->insert)
		lines_map_insert(map, change, follow, runs);
	else
		lines_map_delete(map, change, follow, runs);
	lines_map_count(map);
}

typedef struct Transform
{
	uint64_t uid;
	LinesEmit emit;
	void *arg;
} Transform;

static void
transform_run(void *arg, const LineChange *run)
{
	const Transform *transform = arg;
	char text[LINE_CHANGE_TEXT];
	Edit edit = line_change_edit(run, transform->uid, text);

	transform->emit(transform->arg, &edit);
}

static bool
view_move(const void *arg, bool rows, uint32_t *first, uint32_t *last)
{
	const LinesView *view = arg;

	return lines_map_map_range(rows ? &view->rows : &view->cols, first, last);
}

/* Rewrites the references of a formula that no sheet's name qualifies: the gateway does not know the names of tabs.
 * Returns false if it would be too long. *memory is to be freed after the edit's use. */
static bool
view_shift_formula(LinesView *view, Edit *edit, char **memory)
{
	FormulaChange change = {.move = view_move, .move_arg = view, .own = true};
	uint32_t len;
	FormulaShift shift;

	*memory = malloc(SHEET_MAX_CONTENT_BYTES);
	view->rows.failed |= *memory == NULL;
	if (*memory == NULL)
		return false;
	shift = formula_shift(edit->content, &change, *memory, &len);
	if (shift == FORMULA_SHIFTED)
		edit->content = (EditText){*memory, len};
	return shift != FORMULA_TOO_LONG;
}

/* Maps the range of a property. Returns false if nothing is left of it. `text` is used by the edit. */
static bool
view_move_property(const LinesView *view, Edit *edit, char *text)
{
	Property property;
	PropertyTarget *target = &property.target;
	bool left = property_of(edit, &property) && view_move(view, true, &target->row0, &target->row1) &&
				view_move(view, false, &target->col0, &target->col1);

	if (left)
		*edit = property_edit(&property, text);
	return left;
}

void
lines_transform(LinesView *view, const Edit *edit, LinesEmit emit, void *arg)
{
	Transform transform = {edit->uid, emit, arg};
	LinesRuns runs = {.emit = transform_run, .arg = &transform};
	LineChange change;
	Edit own = *edit;
	char *memory = NULL, text[PROPERTY_TEXT_MAX];

	if (line_change_of(edit, &change))
		view_edit(view, &change, true, &runs);
	else if (own.kind == EDIT_PROPERTY
				 ? view_move_property(view, &own, text)
				 : lines_view_find(view, &own.row, &own.col) &&
					   (own.kind != EDIT_SET || !formula_is(own.content) || view_shift_formula(view, &own, &memory)))
		emit(arg, &own);
	free(memory);
}

typedef struct Trace
{
	LinesTouch touch;
	void *arg;
	bool stopped;
} Trace;

static void
trace_run(void *arg, const LineChange *run)
{
	Trace *trace = arg;
	uint32_t rect[4] = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};

	rect[run->rows ? 0 : 1] = run->at;
	rect[run->rows ? 2 : 3] = run->at + run->n - 1;
	if (!trace->stopped)
		trace->stopped = !trace->touch(trace->arg, rect);
}

bool
lines_trace(LinesView *view, const Edit *edit, LinesTouch touch, void *arg)
{
	Trace trace = {touch, arg, false};
	LinesRuns runs = {.emit = trace_run, .arg = &trace};
	LineChange change;
	uint32_t row = edit->row, col = edit->col;

	if (line_change_of(edit, &change))
		view_edit(view, &change, false, &runs);
	else if (edit->kind != EDIT_PROPERTY && lines_view_find(view, &row, &col))
		return touch(arg, (const uint32_t[]){row, col, row, col});
	return !trace.stopped;
}

/* ---- the history ---- */

/* Drops the oldest changes. */
static void
history_cut(LinesHistory *history, size_t drop)
{
	history->floor = history->entries[drop - 1].seq;
	history->count -= drop;
	memmove(history->entries, history->entries + drop, history->count * sizeof(LinesEntry));
}

static bool
history_reserve(LinesHistory *history, size_t more)
{
	size_t size = history->size > 0 ? history->size : 8;
	LinesEntry *entries;

	if (history->count + more <= history->size)
		return true;
	while (size < history->count + more)
		size *= 2;
	entries = realloc(history->entries, size * sizeof(LinesEntry));
	if (entries == NULL)
		return false;
	history->entries = entries;
	history->size = size;
	return true;
}

bool
lines_history_add(LinesHistory *history, const LineChange *change, int64_t seq)
{
	if (history->count == LINES_REMEMBERED)
		history_cut(history, LINES_REMEMBERED / 2);
	if (!history_reserve(history, 1))
		return false;
	history->entries[history->count++] = (LinesEntry){seq, *change};
	return true;
}

bool
lines_history_add_older(LinesHistory *history, const LinesEntry *entries, size_t count, int64_t floor)
{
	size_t free_entries = LINES_REMEMBERED - history->count;
	size_t skip = count > free_entries ? count - free_entries : 0;

	if (floor >= history->floor)
		return true;
	if (!history_reserve(history, count - skip))
		return false;
	if (history->count > 0)
		memmove(history->entries + count - skip, history->entries, history->count * sizeof(LinesEntry));
	if (count > skip)
		memcpy(history->entries, entries + skip, (count - skip) * sizeof(LinesEntry));
	history->count += count - skip;
	history->floor = skip > 0 ? entries[skip - 1].seq : floor;
	return true;
}

bool
lines_history_changed_since(const LinesHistory *history, int64_t seq)
{
	return history->count > 0 && history->entries[history->count - 1].seq > seq;
}

void
lines_view_since(LinesView *view, const LinesHistory *history, int64_t seq)
{
	lines_view_init(view);
	for (size_t i = 0; i < history->count; i++)
	{
		if (history->entries[i].seq > seq)
			lines_view_change(view, &history->entries[i].change);
	}
}

void
lines_history_free(LinesHistory *history)
{
	free(history->entries);
	*history = (LinesHistory){0};
}
