/*
 * put_values.c - SQL functions behind sheet.put_values() (61-values.sql), for programs that compute formulas.
 *
 * Values are computed for a state of the sheet, and are stored some time after it. Cells may have other contents by
 * then: a value belongs to its place, and the program follows with newer ones. Places are those of that state, so they
 * are moved by what was inserted and deleted since.
 */
#include "postgres.h"

#include "api/scan/cells.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "grid/line_maps.h"
#include "journal/follow/follow.h"
#include "journal/store/value_store.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "utils/array.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_value_tiles);
PG_FUNCTION_INFO_V1(sheet_merge_tile);

#define PUT_CHANGES_MAX 100 /* insertions and deletions since the state that was computed */

/* A value with its place in the blocks. */
typedef struct PutValue
{
	int64 tile;
	int number; /* in the call: of two for the same place, the later one counts */
	ValueEntry entry;
} PutValue;

/* ---- arguments ---- */

typedef struct PutArray
{
	Datum *values;
	bool *nulls;
	int count;
} PutArray;

static PutArray
put_arg_array(FunctionCallInfo fcinfo, int arg, Oid type, int len, bool byval, char align)
{
	PutArray array = {NULL};

	if (!PG_ARGISNULL(arg))
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(arg), type, len, byval, align, &array.values, &array.nulls,
						  &array.count);
	return array;
}

static uint32
put_line(const PutArray *array, int i)
{
	if (array->nulls[i])
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("a row or a column is null")));
	return DatumGetInt32(array->values[i]);
}

/* None if it is null, or empty: an empty text is a lone apostrophe. */
static ValueEntry
put_entry(const PutArray *texts, const PutArray *filled, int i)
{
	ValueEntry entry = {.filled = filled->count > 0 && !filled->nulls[i] && DatumGetBool(filled->values[i]),
						.text = ""};
	text *value;

	if (texts->nulls[i])
		return entry;
	value = DatumGetTextPP(texts->values[i]);
	entry.text = VARDATA_ANY(value);
	entry.len = VARSIZE_ANY_EXHDR(value);
	if (entry.len > SHEET_MAX_CONTENT_BYTES)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("value %d is too long", i + 1),
						errdetail("A value has at most %d characters.", SHEET_MAX_CHARS)));
	return entry;
}

/* ---- blocks ---- */

/* How places at a seq lead to physical ones. */
typedef struct PutPlaces
{
	LineChange *changes; /* since the seq */
	uint32 count;
	LineMaps *maps; /* of now */
} PutPlaces;

/* 22023: the sheet has no such seq. False: too much has changed since. */
static bool
put_read_places(int64 sheet_id, int64 seq, PutPlaces *places)
{
	JournalView view;

	places->maps = cells_read_maps(sheet_id, &view);
	if (seq < 0 || seq > view.seq)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("sheet " INT64_FORMAT " has no seq " INT64_FORMAT, sheet_id, seq),
						errdetail("Its last seq is " INT64_FORMAT ".", view.seq)));
	return journal_line_changes(sheet_id, seq, view.seq, PUT_CHANGES_MAX, &places->changes, &places->count);
}

/* From a place at the seq to the physical one. False: it has been deleted. */
static bool
put_locate(const PutPlaces *places, uint32 *row, uint32 *col)
{
	for (uint32 i = 0; i < places->count; i++)
	{
		uint32 *line = places->changes[i].rows ? row : col, last = *line;

		if (!extent_move(&places->changes[i], line, &last))
			return false;
	}
	line_maps_locate(places->maps, row, col);
	return true;
}

static int
put_compare(const void *a, const void *b)
{
	const PutValue *left = a, *right = b;

	if (left->tile != right->tile)
		return left->tile < right->tile ? -1 : 1;
	if (left->entry.place != right->entry.place)
		return (int) left->entry.place - right->entry.place;
	return left->number < right->number ? -1 : left->number > right->number;
}

/* The bytes of the block that begins at *i, which is moved behind it. */
static Datum
put_tile_bytes(const PutValue *values, int count, int *i)
{
	int64 tile = values[*i].tile;
	StringInfoData bytes;

	initStringInfo(&bytes);
	appendStringInfoSpaces(&bytes, VARHDRSZ);
	for (; *i < count && values[*i].tile == tile; (*i)++)
	{
		if (*i + 1 < count && values[*i + 1].tile == tile && values[*i + 1].entry.place == values[*i].entry.place)
			continue;
		value_write(&bytes, &values[*i].entry);
	}
	SET_VARSIZE(bytes.data, bytes.len);
	return PointerGetDatum(bytes.data);
}

static Datum
put_return_tiles(FunctionCallInfo fcinfo, TupleDesc desc, PutValue *values, int count)
{
	Datum *tiles = palloc(sizeof(Datum) * Max(count, 1)), *data = palloc(sizeof(Datum) * Max(count, 1));
	Datum result[2];
	int n = 0;

	if (count > 1)
		qsort(values, count, sizeof(PutValue), put_compare);
	for (int i = 0; i < count; n++)
	{
		CHECK_FOR_INTERRUPTS();
		tiles[n] = Int64GetDatum(values[i].tile);
		data[n] = put_tile_bytes(values, count, &i);
	}
	result[0] = PointerGetDatum(construct_array(tiles, n, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	result[1] = PointerGetDatum(construct_array(data, n, BYTEAOID, -1, false, TYPALIGN_INT));
	return HeapTupleGetDatum(heap_form_tuple(desc, result, (bool[2]){false, false}));
}

/* value_tiles(sheet_id, seq, row, col, value, filled, whole) */
Datum
sheet_value_tiles(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	PutArray rows = put_arg_array(fcinfo, 2, INT4OID, 4, true, TYPALIGN_INT);
	PutArray cols = put_arg_array(fcinfo, 3, INT4OID, 4, true, TYPALIGN_INT);
	PutArray texts = put_arg_array(fcinfo, 4, TEXTOID, -1, false, TYPALIGN_INT);
	PutArray filled = put_arg_array(fcinfo, 5, BOOLOID, 1, true, TYPALIGN_CHAR);
	PutValue *values = palloc(sizeof(PutValue) * Max(rows.count, 1));
	PutPlaces places = {NULL};
	TupleDesc desc;
	int count = 0;

	if (PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the seq must not be null")));
	if (rows.count != cols.count || rows.count != texts.count || (!PG_ARGISNULL(5) && rows.count != filled.count))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the arrays have different lengths"),
						errdetail("Rows: %d, columns: %d, values: %d.", rows.count, cols.count, texts.count)));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "sheet.value_tiles() does not return a row");
	desc = BlessTupleDesc(desc);
	if (!put_read_places(sheet_id, PG_GETARG_INT64(1), &places))
		return HeapTupleGetDatum(heap_form_tuple(desc, (Datum[2]){0, 0}, (bool[2]){true, true}));
	if (rows.count > 0 || (!PG_ARGISNULL(6) && PG_GETARG_BOOL(6)))
		follow_register_values(sheet_id);
	for (int i = 0; i < rows.count; i++)
	{
		uint32 row = put_line(&rows, i), col = put_line(&cols, i);

		cells_check_place((int32) row, (int32) col);
		if (!put_locate(&places, &row, &col))
			continue;
		values[count] = (PutValue){value_tile_at(row, col), i, put_entry(&texts, &filled, i)};
		values[count++].entry.place = value_place_at(row, col);
	}
	return put_return_tiles(fcinfo, desc, values, count);
}

/* merge_tile(old, new): an entry without a text removes the old one */
Datum
sheet_merge_tile(PG_FUNCTION_ARGS)
{
	struct varlena *old =
		PG_ARGISNULL(0) ? (struct varlena *) cstring_to_text("") : PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(0));
	struct varlena *new =
		PG_ARGISNULL(1) ? (struct varlena *) cstring_to_text("") : PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(1));
	ValueReader old_reader, new_reader;
	ValueEntry old_entry = {0}, new_entry = {0};
	bool have_old = false, have_new = false, take_old = true, take_new = true;
	StringInfoData bytes;

	value_reader_init(&old_reader, old);
	value_reader_init(&new_reader, new);
	initStringInfo(&bytes);
	appendStringInfoSpaces(&bytes, VARHDRSZ);
	for (;;)
	{
		if (take_old)
			have_old = value_reader_next(&old_reader, &old_entry);
		if (take_new)
			have_new = value_reader_next(&new_reader, &new_entry);
		if (!have_old && !have_new)
			break;
		take_old = have_old && (!have_new || old_entry.place <= new_entry.place);
		take_new = have_new && (!have_old || new_entry.place <= old_entry.place);
		if (!take_new)
			value_write(&bytes, &old_entry);
		else if (new_entry.len > 0)
			value_write(&bytes, &new_entry);
	}
	if (bytes.len == VARHDRSZ)
		PG_RETURN_NULL();
	SET_VARSIZE(bytes.data, bytes.len);
	PG_RETURN_BYTEA_P(bytes.data);
}
