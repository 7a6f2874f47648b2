/*
 * cells_scan.c - sheet.range(), sheet.at() and sheet.read_cells(): "Custom Scan (SheetCells)", and plain calls.
 *
 * All rows of a scan show one state of the sheet: they are read when the first one is asked for, and a rescan with the
 * same arguments returns them again. Conditions on row, column and cell make the rectangle smaller that is read.
 */
#include "postgres.h"

#include "api/scan/call.h"
#include "api/scan/cells.h"
#include "api/scan/cells_stream.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/pathnode.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(sheet_range);
PG_FUNCTION_INFO_V1(sheet_at);
PG_FUNCTION_INFO_V1(sheet_at_time);
PG_FUNCTION_INFO_V1(sheet_read_cells);

#define CELLS_STREAM_CELL_BYTES	  16	/* estimate for a cell in a stream */
#define CELLS_STREAM_EXPECTED_MAX 65536 /* bytes of a stream that are allocated at first */

/* Columns of sheet.range and sheet.at. */
enum
{
	CELLS_ROW = 1,
	CELLS_COL,
	CELLS_A1,
	CELLS_CONTENT,
	CELLS_STYLE,
	CELLS_PAST_COLUMNS = CELLS_STYLE, /* of sheet.at */
	CELLS_VALUE,
	CELLS_STALE,
	CELLS_COLUMNS = CELLS_STALE
};

/* Columns of sheet.read_cells. */
enum
{
	STREAM_SEQ = 1,
	STREAM_ROWS,
	STREAM_COLS,
	STREAM_CELLS
};

static const CallColumn cells_columns[CELLS_COLUMNS] = {{"Row", INT8OID},	{"Col", INT8OID},	{"Cell", TEXTOID},
														{NULL, InvalidOid}, {NULL, InvalidOid}, {NULL, InvalidOid},
														{NULL, InvalidOid}};

enum
{
	CELLS_FUNCTION_RANGE,
	CELLS_FUNCTION_AT,
	CELLS_FUNCTION_AT_TIME,
	CELLS_FUNCTION_READ_CELLS
};

static const CallFunction cells_functions[] = {
	{"sheet_range", {"Sheet", "Range", "Formulas"}, 3, CELLS_COLUMNS, cells_columns},
	{"sheet_at", {"Sheet", "Version"}, 2, CELLS_PAST_COLUMNS, cells_columns},
	{"sheet_at_time", {"Sheet", "Time"}, 2, CELLS_PAST_COLUMNS, cells_columns},
	{"sheet_read_cells",
	 {"Sheet", "First Row", "First Column", "Last Row", "Last Column", "Bytes a Row", "Values"},
	 7,
	 STREAM_CELLS,
	 NULL}};

/* What a caller wants of the rows. */
typedef struct CellsWanted
{
	CallRange row, col;
	uint32 columns; /* bit n: column n */
} CellsWanted;

/* The rows of a call: a CellList, or for sheet.read_cells a CellStream. */
typedef struct CellsRows
{
	CellList *list;
	CellStream *stream;
	int64 count;
} CellsRows;

/* ---- reading ---- */

/* Makes the rectangle as small as is wanted. Returns false, and a rectangle without cells, if nothing is left. */
static bool
cells_clip(uint32 rect[4], const CellsWanted *wanted)
{
	int64 low[2] = {Max(rect[0], wanted->row.low), Max(rect[1], wanted->col.low)};
	int64 high[2] = {Min(rect[2], wanted->row.high), Min(rect[3], wanted->col.high)};

	for (int i = 0; i < 2; i++)
	{
		if (low[i] > high[i])
		{
			memcpy(rect, (uint32[4]){1, 1, 0, 0}, 4 * sizeof(uint32));
			return false;
		}
		rect[i] = (uint32) low[i];
		rect[i + 2] = (uint32) high[i];
	}
	return true;
}

/* Columns that need the texts of cells. */
#define CELLS_OF_TEXTS (1 << CELLS_CONTENT | 1 << CELLS_STYLE | 1 << CELLS_VALUE | 1 << CELLS_STALE)

/* range(sheet_id, ref, formulas) */
static CellList *
cells_read_range(const NullableDatum *args, const CellsWanted *wanted)
{
	int64 sheet_id = catalog_sheet(args[0]);
	uint32 rect[4] = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};
	bool formulas = !args[2].isnull && DatumGetBool(args[2].value);

	if (!args[1].isnull)
		cells_parse_range(args[1].value, rect);
	permission_require(sheet_id, 0, ROLE_VIEWER, false);
	if (!cells_clip(rect, wanted))
		return cells_make_list();
	if (formulas || ((wanted->columns & CELLS_OF_TEXTS) == 0 && !journal_has_formulas(sheet_id, false)))
		return cells_read_rect(sheet_id, rect, (wanted->columns & CELLS_OF_TEXTS) != 0);
	return cells_read_values(sheet_id, rect, false);
}

/* at(sheet_id, version_id), at(sheet_id, time) */
static CellList *
cells_read_at(const NullableDatum *args, const CellsWanted *wanted, bool by_time)
{
	int64 sheet_id = catalog_sheet(args[0]);
	uint32 rect[4] = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};

	(void) cells_clip(rect, wanted);
	if (args[1].isnull)
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the %s must not be null", by_time ? "time" : "version")));
	permission_require(sheet_id, 0, ROLE_VIEWER, false);
	return by_time ? cells_read_past(sheet_id, DatumGetTimestampTz(args[1].value), rect)
				   : cells_read_version(sheet_id, DatumGetInt64(args[1].value), rect);
}

static uint32
cells_bound(NullableDatum arg, uint32 limit, uint32 otherwise)
{
	int32 bound = DatumGetInt32(arg.value);

	if (arg.isnull)
		return otherwise;
	if (bound < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("rows and columns start at 0")));
	return Min((uint32) bound, limit - 1);
}

static Size
cells_max_bytes(NullableDatum arg)
{
	int32 bytes = DatumGetInt32(arg.value);

	if (arg.isnull)
		return MaxAllocHugeSize / 2;
	if (bytes < 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("max_bytes must be positive")));
	return bytes;
}

/* Writes the cells of a list with what they show. */
static void
cells_stream_values(CellStream *stream, const CellList *list)
{
	stream->view = list->view;
	for (Size i = 0; i < list->count; i++)
	{
		const Cell *cell = &list->cells[i];
		CellShown shown = cells_value_content(list, i);
		GridCell one = {.row = cell->row,
						.col = cell->col,
						.content = shown.text,
						.content_len = shown.len,
						.readable = shown.len,
						.style = cell->style,
						.style_len = cell->style_len};

		if (one.content_len > 0 || one.style_len > 0)
			stream_cells(stream, &one, 1);
	}
}

/* read_cells(sheet_id, row0, col0, row1, col1, max_bytes, values) */
static CellStream *
cells_read_stream(const NullableDatum *args, const CellsWanted *wanted)
{
	CellStream *stream = palloc(sizeof(CellStream));
	int64 sheet_id = catalog_sheet(args[0]);
	bool cells = (wanted->columns & 1 << STREAM_CELLS) != 0 || !args[5].isnull;
	bool values = cells && !args[6].isnull && DatumGetBool(args[6].value);
	uint32 rect[4];
	Size expected;

	permission_require_reader(sheet_id);
	rect[0] = cells_bound(args[1], SHEET_MAX_ROWS, 0);
	rect[1] = cells_bound(args[2], SHEET_MAX_COLS, 0);
	rect[2] = cells_bound(args[3], SHEET_MAX_ROWS, SHEET_MAX_ROWS - 1);
	rect[3] = cells_bound(args[4], SHEET_MAX_COLS, SHEET_MAX_COLS - 1);
	expected = rect[2] < rect[0] || rect[3] < rect[1]
				   ? 0
				   : (Size) (rect[2] - rect[0] + 1) * (rect[3] - rect[1] + 1) * CELLS_STREAM_CELL_BYTES;
	stream_begin(stream, cells_max_bytes(args[5]), Min(expected, CELLS_STREAM_EXPECTED_MAX));
	journal_read(sheet_id, rect, true, &stream->view,
				 cells ? &(JournalSink){stream_begin_again, stream_cells, stream} : NULL);
	/* Most sheets have no formulas. Asked after reading: a formula that has come before is known then. */
	if (values && journal_has_formulas(sheet_id, true))
	{
		stream_begin_again(stream);
		cells_stream_values(stream, cells_read_values(sheet_id, rect, true));
	}
	stream_end(stream);
	return stream;
}

/* Checks arguments and permission, and reads. The rows live in the current memory context. */
static CellsRows
cells_read_rows(int function, const NullableDatum *args, const CellsWanted *wanted)
{
	CellsRows rows = {0};

	if (function == CELLS_FUNCTION_READ_CELLS)
		rows.stream = cells_read_stream(args, wanted);
	else if (function == CELLS_FUNCTION_RANGE)
		rows.list = cells_read_range(args, wanted);
	else
		rows.list = cells_read_at(args, wanted, function == CELLS_FUNCTION_AT_TIME);
	rows.count = (int64) (rows.stream != NULL ? rows.stream->count : rows.list->count);
	return rows;
}

/* ---- values ---- */

static Datum
cells_stream_value(const CellStream *stream, int64 row, int column)
{
	switch (column)
	{
		case STREAM_SEQ:
			return Int64GetDatum(stream->view.seq);
		case STREAM_ROWS:
			return Int32GetDatum((int32) stream->view.rows);
		case STREAM_COLS:
			return Int32GetDatum((int32) stream->view.cols);
		default:
			return PointerGetDatum(stream->values[row]);
	}
}

/* The value of the column "value". */
static Datum
cells_value_datum(const CellList *list, int64 row, bool *isnull)
{
	CellShown shown = cells_shown(list, row);

	*isnull =
		shown.len == 0 && list->cells[row].content_len == 0 && (list->values == NULL || list->values[row].text == NULL);
	return *isnull ? (Datum) 0 : PointerGetDatum(cstring_to_text_with_len(shown.text, (int) shown.len));
}

/* A value that was wanted. It is allocated in the current memory context, or points into the rows. */
static Datum
cells_row_value(const CellsRows *rows, int64 row, int column, bool *isnull)
{
	const Cell *cell;

	*isnull = false;
	if (rows->stream != NULL)
		return cells_stream_value(rows->stream, row, column);
	cell = &rows->list->cells[row];
	switch (column)
	{
		case CELLS_ROW:
			return Int32GetDatum((int32) cell->row);
		case CELLS_COL:
			return Int32GetDatum((int32) cell->col);
		case CELLS_A1:
			return cells_a1(cell->row, cell->col);
		case CELLS_CONTENT:
			return cells_text(cell->content, cell->content_len);
		case CELLS_VALUE:
			return cells_value_datum(rows->list, row, isnull);
		case CELLS_STALE:
			return BoolGetDatum(cells_is_stale(rows->list, row));
		default:
			*isnull = cell->style_len == 0;
			return *isnull ? (Datum) 0 : cells_text(cell->style, cell->style_len);
	}
}

/* ---- plain calls ---- */

static Datum
cells_return(FunctionCallInfo fcinfo, int function)
{
	CellsWanted wanted = {{0, SHEET_MAX_ROWS - 1}, {0, SHEET_MAX_COLS - 1}, ~(uint32) 0};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext row_context, old;
	CellsRows rows;

	InitMaterializedSRF(fcinfo, 0);
	rows = cells_read_rows(function, fcinfo->args, &wanted);
	row_context = AllocSetContextCreate(CurrentMemoryContext, "cells", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(row_context);
	for (int64 row = 0; row < rows.count; row++)
	{
		Datum values[CELLS_COLUMNS];
		bool nulls[CELLS_COLUMNS];

		CHECK_FOR_INTERRUPTS();
		for (int column = 1; column <= cells_functions[function].ncolumns; column++)
			values[column - 1] = cells_row_value(&rows, row, column, &nulls[column - 1]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		MemoryContextReset(row_context);
	}
	MemoryContextSwitchTo(old);
	return (Datum) 0;
}

Datum
sheet_range(PG_FUNCTION_ARGS)
{
	return cells_return(fcinfo, CELLS_FUNCTION_RANGE);
}

Datum
sheet_at(PG_FUNCTION_ARGS)
{
	return cells_return(fcinfo, CELLS_FUNCTION_AT);
}

Datum
sheet_at_time(PG_FUNCTION_ARGS)
{
	return cells_return(fcinfo, CELLS_FUNCTION_AT_TIME);
}

Datum
sheet_read_cells(PG_FUNCTION_ARGS)
{
	return cells_return(fcinfo, CELLS_FUNCTION_READ_CELLS);
}

/* ---- the scan ---- */

typedef struct CellsScan
{
	CallScan scan;
	CellsRows rows;
	int64 at; /* the current row; -1: before the first one */
} CellsScan;

static void
cells_scan_open(CallScan *scan, const NullableDatum *args, const CallRange *ranges)
{
	CellsScan *state = (CellsScan *) scan;
	CellsWanted wanted = {ranges[CELLS_ROW], ranges[CELLS_COL], 0};

	for (int i = 0; i < scan->noutputs; i++)
		if (scan->outputs[i].column > 0)
			wanted.columns |= 1 << scan->outputs[i].column;
	state->rows = cells_read_rows((int) (scan->function - cells_functions), args, &wanted);
	state->at = -1;
}

static bool
cells_scan_next(CallScan *scan)
{
	CellsScan *state = (CellsScan *) scan;

	if (ScanDirectionIsBackward(scan->css.ss.ps.state->es_direction))
		state->at = Max(state->at - 1, -1);
	else
		state->at = Min(state->at + 1, state->rows.count);
	return state->at >= 0 && state->at < state->rows.count;
}

static Datum
cells_scan_value(CallScan *scan, int column, bool *isnull)
{
	CellsScan *state = (CellsScan *) scan;

	return cells_row_value(&state->rows, state->at, column, isnull);
}

static void
cells_scan_rewind(CallScan *scan)
{
	((CellsScan *) scan)->at = -1;
}

static void
cells_limit_text(CallRange *ranges, int column, text *value)
{
	call_range_limit_cell(&ranges[CELLS_ROW], &ranges[CELLS_COL], value);
}

static void cells_add_paths(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, int function);

static CallKind cells_kind = {.name = "SheetCells",
							  .functions = cells_functions,
							  .nfunctions = lengthof(cells_functions),
							  .flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN,
							  .state_size = sizeof(CellsScan),
							  .add_paths = cells_add_paths,
							  .limit_text = cells_limit_text,
							  .open = cells_scan_open,
							  .next = cells_scan_next,
							  .value = cells_scan_value,
							  .rewind = cells_scan_rewind};

/* One path, which costs as much as the call of the function. */
static void
cells_add_paths(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, int function)
{
	const int columns[2] = {CELLS_ROW, CELLS_COL};
	const Oid types[2] = {INT4OID, INT4OID};
	List *order =
		cells_functions[function].columns != NULL ? call_pathkeys(root, rel->relid, columns, types, 2, false) : NIL;
	CustomPath *path = call_make_path(&cells_kind, rel, call, function, 0, order);
	const Path *plain = linitial(rel->pathlist);

	path->path.param_info = plain->param_info;
	path->path.rows = plain->rows;
	path->path.startup_cost = plain->startup_cost;
	path->path.total_cost = plain->total_cost;
	rel->pathlist = NIL;
	add_path(rel, &path->path);
}

void
cells_scan_init(void)
{
	call_register(&cells_kind);
}
