/*
 * unchanged.c - the precondition if_seq: whether cells still have the contents, or the places, that they had at a seq.
 *
 * The sheet lock is held, so what is found is true until the transaction ends.
 */
#include "postgres.h"

#include "api/scan/unchanged.h"
#include "journal/replay/batches.h"
#include "journal/store/trimmark.h"

#define UNCHANGED_LOOK_BACK 10000 /* edits after the seq */

typedef struct UnchangedCells
{
	const uint64 *keys; /* of the cells that are written, sorted */
	uint32 count;
	bool any;	  /* any edit counts */
	bool changed; /* one of them was set */
} UnchangedCells;

static uint64
unchanged_key(const Edit *edit)
{
	return (uint64) edit->row << 32 | edit->col;
}

static int
unchanged_compare_keys(const void *a, const void *b)
{
	uint64 left = *(const uint64 *) a, right = *(const uint64 *) b;

	return left < right ? -1 : left > right;
}

/* After rows or columns have moved, the cells have other names. */
static void
unchanged_look_at(void *arg, int64 seq, int64 at, const Edit *edit)
{
	UnchangedCells *cells = arg;
	uint64 key = unchanged_key(edit);

	if (edit->kind == EDIT_SET)
		cells->changed |=
			cells->any || bsearch(&key, cells->keys, cells->count, sizeof(uint64), unchanged_compare_keys);
	else
		cells->changed |= edit_is_structure(edit->kind);
}

/* Whether a content of the cells has changed since the seq, or may have. */
static bool
unchanged_has_changed(const WriterSheet *ws, int64 since, UnchangedCells *cells)
{
	Snapshot snapshot;
	TrimMark mark;

	if (since == ws->meta.last_seq)
		return false;
	if (since > ws->meta.last_seq || ws->meta.last_seq - since > UNCHANGED_LOOK_BACK)
		return true;
	snapshot = RegisterSnapshot(writer_snapshot());
	trim_mark(ws->sheet_id, snapshot, &mark);
	if (mark.version_id == 0 || since >= mark.seq)
		batches_each_edit(ws->sheet_id, since, ws->meta.last_seq, snapshot, unchanged_look_at, cells);
	else
		cells->changed = true;
	UnregisterSnapshot(snapshot);
	return cells->changed;
}

void
unchanged_require(const WriterSheet *ws, int64 since, const Edit *edits, uint32 n, bool append)
{
	uint64 *keys = palloc(sizeof(uint64) * Max(n, 1));
	UnchangedCells cells = {.keys = keys, .count = n, .any = append};

	for (uint32 i = 0; i < n; i++)
		keys[i] = unchanged_key(&edits[i]);
	qsort(keys, n, sizeof(uint64), unchanged_compare_keys);
	if (unchanged_has_changed(ws, since, &cells))
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'M', '0', '0', '1')),
						errmsg("the cells have changed since seq " INT64_FORMAT " of sheet " INT64_FORMAT, since,
							   ws->sheet_id),
						errdetail("The last seq is " INT64_FORMAT ".", ws->meta.last_seq),
						errhint("Read the cells again. Cells whose rows or columns have moved, and those of more than "
								"%d edits ago, count as changed.",
								UNCHANGED_LOOK_BACK)));
	pfree(keys);
}

void
unchanged_require_places(int64 sheet_id, int64 since)
{
	writer_begin();
	unchanged_require(writer_open(sheet_id), since, NULL, 0, false);
}
