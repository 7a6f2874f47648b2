/*
 * replay_module.c - loaded into the server: both logs read in C, as replay.c explains.
 *
 *     bench_replay_heap(log regclass, sheet bigint), bench_replay_sheet(sheet bigint): the edits, and a sum over their
 * fields
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "common/edit_codec.h"
#include "fmgr.h"
#include "funcapi.h"
#include "journal/replay/batches.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(bench_replay_heap);
PG_FUNCTION_INFO_V1(bench_replay_sheet);

/* Columns of the heap table. */
enum
{
	SHEET_ID,
	SEQ,
	TS,
	UID,
	ROW,
	COL,
	OLD,
	NEW
};

typedef struct Sum
{
	int64 edits;
	int64 fields;
} Sum;

/* Of the texts the length and the first byte: the compiler cannot leave out the decoding, and hardly anything is added.
 */
static inline void
sum_add(Sum *sum, int64 seq, int64 uid, int64 row, int64 col, const char *old, int64 old_len, const char *new,
		int64 new_len)
{
	int64 fields = seq * 7 + uid * 5 + row * 3 + col + old_len * 11 + new_len * 13;

	if (old_len > 0)
		fields += old[0];
	if (new_len > 0)
		fields += new[0] * 17;
	sum->edits++;
	sum->fields += fields;
}

static Datum
sum_result(FunctionCallInfo fcinfo, const Sum *sum)
{
	TupleDesc desc;
	Datum values[2] = {Int64GetDatum(sum->edits), Int64GetDatum(sum->fields)};
	bool nulls[2] = {false, false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "the function must return a record");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

static void
heap_add_row(Sum *sum, TupleTableSlot *slot)
{
	Datum *values;
	struct varlena *old, *new;

	slot_getallattrs(slot);
	values = slot->tts_values;
	old = (struct varlena *) DatumGetPointer(values[OLD]);
	new = (struct varlena *) DatumGetPointer(values[NEW]);
	sum_add(sum, DatumGetInt64(values[SEQ]), DatumGetInt64(values[UID]), DatumGetInt32(values[ROW]),
			DatumGetInt32(values[COL]), VARDATA_ANY(old), VARSIZE_ANY_EXHDR(old), VARDATA_ANY(new),
			VARSIZE_ANY_EXHDR(new));
}

Datum
bench_replay_heap(PG_FUNCTION_ARGS)
{
	Relation rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	Relation index;
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	IndexScanDesc scan;
	ScanKeyData key;
	Sum sum = {0};

	(void) RelationGetIndexList(rel);
	index = index_open(rel->rd_pkindex, AccessShareLock);
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT8EQ, PG_GETARG_DATUM(1));
	scan = index_beginscan(rel, index, GetActiveSnapshot(), 1, 0);
	index_rescan(scan, &key, 1, NULL, 0);
	while (index_getnext_slot(scan, ForwardScanDirection, slot))
		heap_add_row(&sum, slot);
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, AccessShareLock);
	table_close(rel, AccessShareLock);
	return sum_result(fcinfo, &sum);
}

static void
sheet_add_edit(void *arg, int64 seq, int64 at, const Edit *edit)
{
	if (edit->kind == EDIT_SET)
		sum_add(arg, seq, edit->uid, edit->row, edit->col, edit->old.data, edit->old.len, edit->content.data,
				edit->content.len);
}

Datum
bench_replay_sheet(PG_FUNCTION_ARGS)
{
	Sum sum = {0};

	batches_each_edit(PG_GETARG_INT64(0), 0, PG_INT64_MAX, GetActiveSnapshot(), sheet_add_edit, &sum);
	return sum_result(fcinfo, &sum);
}
