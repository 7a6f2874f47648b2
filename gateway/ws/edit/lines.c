/*
 * lines.c - rows and columns that come and go: where the places that somebody names are by now.
 *
 * A late edit names places as its author saw them. A view has both orders of lines in one: that of the author and that
 * of what is there now, as parts of lines that are in both, or in one of them only. Others' changes are made in the
 * order of what is there; then the author's edits are found in his, and said in the other's terms. An edit that inserts
 * or deletes changes both orders, so that those behind it mean what they would have meant without the others. There is
 * nothing to be undone and no pairs of edits to be exchanged, and what comes out does not depend on who was first but
 * for lines that are inserted at the same place.
 *
 * A view has two parts more for each change at most.
 */
#include "ws/edit/lines.h"

#include "common/extent.h"

#include <stdlib.h>
#include <string.h>

#define LINES_ENDLESS (UINT64_C(1) << 40) /* of a view's last part: what lies beyond the limit was never anything */

/* ---- one change ---- */

bool
lines_change_of(const Edit *edit, LinesChange *change)
{
	bool rows = edit_is_of_rows(edit->kind);

	*change = (LinesChange){.rows = rows,
							.insert = edit->kind == EDIT_INSERT_ROWS || edit->kind == EDIT_INSERT_COLUMNS,
							.at = rows ? edit->row : edit->col};
	return edit_is_structure(edit->kind) && edit_lines(edit, &change->n);
}

Edit
lines_edit(const LinesChange *change, uint64_t uid, char *text)
{
	EditKind insert = change->rows ? EDIT_INSERT_ROWS : EDIT_INSERT_COLUMNS;
	EditKind delete = change->rows ? EDIT_DELETE_ROWS : EDIT_DELETE_COLUMNS;

	return (Edit){.kind = change->insert ? insert : delete,
				  .uid = uid,
				  .row = change->rows ? change->at : 0,
				  .col = change->rows ? 0 : change->at,
				  .content = edit_lines_text(change->n, text)};
}

static uint32_t
lines_limit(bool rows)
{
	return rows ? SHEET_MAX_ROWS : SHEET_MAX_COLS;
}

uint32_t
lines_extent(const LinesChange *change, uint32_t extent)
{
	return extent_after(extent, lines_limit(change->rows), change->insert, change->at, change->n);
}

bool
lines_move(const LinesChange *change, uint32_t *row, uint32_t *col)
{
	uint32_t *line = change->rows ? row : col;

	if (*line < change->at)
		return true;
	if (change->insert)
		*line += change->n;
	else if (*line - change->at < change->n)
		return false;
	else
		*line -= change->n;
	return *line < lines_limit(change->rows);
}

/* What a deletion leaves of first to last, of which something goes. */
static void
lines_shrink(const LinesChange *change, uint32_t *first, uint32_t *last)
{
	uint32_t end = change->at + change->n;

	if (*first >= change->at && *last < end)
		*first = *last = change->at;
	else
	{
		*first = *first < change->at ? *first : change->at;
		*last = *last >= end ? *last - change->n : change->at - 1;
	}
}

void
lines_move_range(const LinesChange *change, uint32_t rect[4])
{
	uint32_t *first = &rect[change->rows ? 0 : 1], *last = &rect[change->rows ? 2 : 3];
	uint32_t limit = lines_limit(change->rows);

	if (*last < change->at)
		return;
	if (change->insert)
	{
		*first += *first >= change->at ? change->n : 0;
		*last += change->n;
	}
	else if (*first >= change->at + change->n)
	{
		*first -= change->n;
		*last -= change->n;
	}
	else
		lines_shrink(change, first, last);
	*last = *last < limit ? *last : limit - 1;
	*first = *first < *last ? *first : *last;
}

/* ---- a view's axis ---- */

/* There is room for what one change or edit adds: two parts, and the first. */
static bool
axis_reserve(LinesAxis *axis)
{
	size_t size = axis->size > 0 ? axis->size * 2 : 16;
	LinesPart *parts;

	if (axis->failed || axis->count + 3 <= axis->size)
		return !axis->failed;
	parts = realloc(axis->parts, size * sizeof(LinesPart));
	axis->failed = parts == NULL;
	if (axis->failed)
		return false;
	axis->parts = parts;
	axis->size = size;
	if (axis->count == 0)
		axis->parts[axis->count++] = (LinesPart){.n = LINES_ENDLESS, .seen = true, .there = true};
	return true;
}

static void
axis_add(LinesAxis *axis, size_t i, LinesPart part)
{
	memmove(&axis->parts[i + 1], &axis->parts[i], (axis->count - i) * sizeof(LinesPart));
	axis->parts[i] = part;
	axis->count++;
}

static void
axis_drop(LinesAxis *axis, size_t i)
{
	axis->count--;
	memmove(&axis->parts[i], &axis->parts[i + 1], (axis->count - i) * sizeof(LinesPart));
}

static void
axis_count(LinesAxis *axis)
{
	uint64_t seen = 0, there = 0;

	for (size_t i = 0; i < axis->count; i++)
	{
		LinesPart *part = &axis->parts[i];

		part->seen_before = seen;
		part->there_before = there;
		seen += part->seen ? part->n : 0;
		there += part->there ? part->n : 0;
	}
}

/* The part that begins with the line at an index of what is there, or of what is seen; one is split for it. */
static size_t
axis_cut(LinesAxis *axis, bool there, uint64_t index)
{
	size_t i = 0;

	for (;; i++)
	{
		const LinesPart *part = &axis->parts[i];

		if (!(there ? part->there : part->seen))
			continue;
		if (index < part->n)
			break;
		index -= part->n;
	}
	if (index > 0)
	{
		LinesPart rest = axis->parts[i];

		rest.n -= index;
		axis->parts[i].n = index;
		axis_add(axis, ++i, rest);
	}
	return i;
}

/* Lines that others delete. */
static void
axis_lose(LinesAxis *axis, uint32_t at, uint32_t n)
{
	size_t i = axis_cut(axis, true, at), end = axis_cut(axis, true, (uint64_t) at + n);

	while (i < end)
	{
		if (axis->parts[i].there && !axis->parts[i].seen)
		{
			axis_drop(axis, i);
			end--;
			continue;
		}
		axis->parts[i++].there = false;
	}
}

/* The part that has the line which the author means: the last one with no more before it, since the part behind one
 * that he does not see has as many before it, and the last of all is seen. */
static const LinesPart *
axis_find(const LinesAxis *axis, uint32_t line)
{
	size_t low = 0, high = axis->count;

	while (high - low > 1)
	{
		size_t middle = (low + high) / 2;

		if (axis->parts[middle].seen_before <= line)
			low = middle;
		else
			high = middle;
	}
	return &axis->parts[low];
}

static bool
axis_place(const LinesAxis *axis, uint32_t *line)
{
	const LinesPart *part;
	uint64_t place;

	if (axis->parts == NULL)
		return true;
	part = axis_find(axis, *line);
	place = part->there_before + (*line - part->seen_before);
	if (!part->there || place >= axis->limit)
		return false;
	*line = (uint32_t) place;
	return true;
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
lines_view_change(LinesView *view, const LinesChange *change)
{
	LinesAxis *axis = change->rows ? &view->rows : &view->cols;

	if (!axis_reserve(axis))
		return;
	if (change->insert)
		axis_add(axis, axis_cut(axis, true, change->at), (LinesPart){.n = change->n, .there = true});
	else
		axis_lose(axis, change->at, change->n);
	axis_count(axis);
}

bool
lines_view_place(const LinesView *view, uint32_t *row, uint32_t *col)
{
	return axis_place(&view->rows, row) && axis_place(&view->cols, col);
}

/* ---- the author's edits ---- */

/* Runs of lines that are there and that the author deletes. */
typedef struct LinesRuns
{
	LinesChange run; /* the last one; n 0: none yet */
	void (*emit)(void *arg, const LinesChange *run);
	void *arg;
} LinesRuns;

static void
runs_end(LinesRuns *runs)
{
	if (runs->run.n > 0)
		runs->emit(runs->arg, &runs->run);
	runs->run.n = 0;
}

/* merge: at the place where the last one ended. No run goes beyond the limit. */
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

/* follow: what is there changes as well; otherwise it stays as it is, for those who look at what the author touches. */
static void
axis_insert(LinesAxis *axis, const LinesChange *change, bool follow, LinesRuns *runs)
{
	size_t i = axis_cut(axis, false, change->at);
	uint64_t at;

	axis_count(axis);
	at = axis->parts[i].there_before;
	axis_add(axis, i, (LinesPart){.n = change->n, .seen = true, .there = follow});
	if (follow)
		runs_add(runs, at, change->n, axis->limit, false);
	runs_end(runs);
}

static void
axis_delete(LinesAxis *axis, const LinesChange *change, bool follow, LinesRuns *runs)
{
	size_t i = axis_cut(axis, false, change->at);
	size_t end = axis_cut(axis, false, (uint64_t) change->at + change->n);
	uint64_t at;
	bool merge = false;

	axis_count(axis);
	at = axis->parts[i].there_before;
	while (i < end)
	{
		LinesPart *part = &axis->parts[i];

		if (part->seen && part->there)
			runs_add(runs, at, part->n, axis->limit, merge);
		if (part->there)
			merge = part->seen;
		at += part->there && !(part->seen && follow) ? part->n : 0;
		if (part->seen && (follow || !part->there))
		{
			axis_drop(axis, i);
			end--;
			continue;
		}
		part->seen = false;
		i++;
	}
	runs_end(runs);
}

static void
view_edit(LinesView *view, const LinesChange *change, bool follow, LinesRuns *runs)
{
	LinesAxis *axis = change->rows ? &view->rows : &view->cols;

	if (!axis_reserve(axis))
		return;
	runs->run = (LinesChange){.rows = change->rows, .insert = change->insert};
	if (change->insert)
		axis_insert(axis, change, follow, runs);
	else
		axis_delete(axis, change, follow, runs);
	axis_count(axis);
}

typedef struct Transform
{
	uint64_t uid;
	LinesEmit emit;
	void *arg;
} Transform;

static void
transform_run(void *arg, const LinesChange *run)
{
	const Transform *transform = arg;
	char text[EDIT_LINES_MAX];
	Edit edit = lines_edit(run, transform->uid, text);

	transform->emit(transform->arg, &edit);
}

void
lines_transform(LinesView *view, const Edit *edit, LinesEmit emit, void *arg)
{
	Transform transform = {edit->uid, emit, arg};
	LinesRuns runs = {.emit = transform_run, .arg = &transform};
	LinesChange change;
	Edit own = *edit;

	if (lines_change_of(edit, &change))
		view_edit(view, &change, true, &runs);
	else if (lines_view_place(view, &own.row, &own.col))
		emit(arg, &own);
}

typedef struct Trace
{
	LinesTouch touch;
	void *arg;
	bool stopped;
} Trace;

static void
trace_run(void *arg, const LinesChange *run)
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
	LinesChange change;
	uint32_t row = edit->row, col = edit->col;

	if (lines_change_of(edit, &change))
		view_edit(view, &change, false, &runs);
	else if (lines_view_place(view, &row, &col))
		return touch(arg, (const uint32_t[]){row, col, row, col});
	return !trace.stopped;
}

/* ---- what is remembered ---- */

/* The oldest go. */
static void
memory_cut(LinesMemory *memory, size_t drop)
{
	memory->floor = memory->entries[drop - 1].seq;
	memory->count -= drop;
	memmove(memory->entries, memory->entries + drop, memory->count * sizeof(LinesEntry));
}

static bool
memory_reserve(LinesMemory *memory, size_t more)
{
	size_t size = memory->size > 0 ? memory->size : 8;
	LinesEntry *entries;

	if (memory->count + more <= memory->size)
		return true;
	while (size < memory->count + more)
		size *= 2;
	entries = realloc(memory->entries, size * sizeof(LinesEntry));
	if (entries == NULL)
		return false;
	memory->entries = entries;
	memory->size = size;
	return true;
}

bool
lines_remember(LinesMemory *memory, const LinesChange *change, int64_t seq)
{
	if (memory->count == LINES_REMEMBERED)
		memory_cut(memory, LINES_REMEMBERED / 2);
	if (!memory_reserve(memory, 1))
		return false;
	memory->entries[memory->count++] = (LinesEntry){seq, *change};
	return true;
}

bool
lines_remember_older(LinesMemory *memory, const LinesEntry *entries, size_t count, int64_t floor)
{
	size_t room = LINES_REMEMBERED - memory->count;
	size_t skip = count > room ? count - room : 0;

	if (floor >= memory->floor)
		return true;
	if (!memory_reserve(memory, count - skip))
		return false;
	if (memory->count > 0)
		memmove(memory->entries + count - skip, memory->entries, memory->count * sizeof(LinesEntry));
	if (count > skip)
		memcpy(memory->entries, entries + skip, (count - skip) * sizeof(LinesEntry));
	memory->count += count - skip;
	memory->floor = skip > 0 ? entries[skip - 1].seq : floor;
	return true;
}

bool
lines_changed_since(const LinesMemory *memory, int64_t seq)
{
	return memory->count > 0 && memory->entries[memory->count - 1].seq > seq;
}

void
lines_view_since(LinesView *view, const LinesMemory *memory, int64_t seq)
{
	lines_view_init(view);
	for (size_t i = 0; i < memory->count; i++)
	{
		if (memory->entries[i].seq > seq)
			lines_view_change(view, &memory->entries[i].change);
	}
}

void
lines_forget(LinesMemory *memory)
{
	free(memory->entries);
	*memory = (LinesMemory){0};
}
