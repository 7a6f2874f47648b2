/* cells_rows.c - see cells_rows.h. */
#include "postgres.h"

#include "permission/catalog.h"
#include "api/scan/cells.h"
#include "api/scan/cells_rows.h"
#include "api/scan/cells_stream.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(sheet_range);
PG_FUNCTION_INFO_V1(sheet_at);
PG_FUNCTION_INFO_V1(sheet_at_time);
PG_FUNCTION_INFO_V1(sheet_read_cells);

#define ROWS_BYTES_OF_CELL 16	 /* in a stream, about */
#define ROWS_EXPECTED_MAX  65536 /* bytes of a stream that are asked for at first */

void
cells_wanted_init(CellsWanted *wanted)
{
	*wanted = (CellsWanted){{0, SHEET_MAX_ROWS - 1}, {0, SHEET_MAX_COLS - 1}, ~(uint32) 0};
}

/* ---- cells, one a row ---- */

/* Makes the rectangle as small as is wanted; false, and one without cells, when nothing is left. */
static bool
rows_clip(uint32 rect[4], const CellsWanted *wanted)
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

static bool
rows_want_texts(const CellsWanted *wanted)
{
	return (wanted->columns & (1 << CELLS_CONTENT | 1 << CELLS_STYLE)) != 0;
}

/* range(sheet_id, ref) */
static void *
rows_read_range(const NullableDatum *args, const CellsWanted *wanted)
{
	int64 sheet_id = catalog_sheet(args[0]);
	uint32 rect[4] = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};

	if (!args[1].isnull)
		cells_parse_range(args[1].value, rect);
	permission_require(sheet_id, 0, ROLE_VIEWER, false);
	if (!rows_clip(rect, wanted))
		return cells_make_list();
	return cells_read_rect(sheet_id, rect, rows_want_texts(wanted));
}

/* Of a past state, which `what` tells; returns the sheet's id. */
static int64
rows_begin_at(const NullableDatum *args, const CellsWanted *wanted, const char *what, uint32 rect[4])
{
	int64 sheet_id = catalog_sheet(args[0]);

	memcpy(rect, (uint32[4]){0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1}, 4 * sizeof(uint32));
	(void) rows_clip(rect, wanted);
	if (args[1].isnull)
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the %s must not be null", what)));
	permission_require(sheet_id, 0, ROLE_VIEWER, false);
	return sheet_id;
}

/* at(sheet_id, version_id) */
static void *
rows_read_at(const NullableDatum *args, const CellsWanted *wanted)
{
	uint32 rect[4];
	int64 sheet_id = rows_begin_at(args, wanted, "version", rect);

	return cells_read_version(sheet_id, DatumGetInt64(args[1].value), rect);
}

/* at(sheet_id, at) */
static void *
rows_read_past(const NullableDatum *args, const CellsWanted *wanted)
{
	uint32 rect[4];
	int64 sheet_id = rows_begin_at(args, wanted, "time", rect);

	return cells_read_past(sheet_id, DatumGetTimestampTz(args[1].value), rect);
}

static Size
rows_count_cells(const void *rows)
{
	return ((const CellList *) rows)->count;
}

static Datum
rows_cell_value(const void *rows, Size row, int column, bool *isnull)
{
	const Cell *cell = &((const CellList *) rows)->cells[row];

	*isnull = false;
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
		default:
			*isnull = cell->style_len == 0;
			return *isnull ? (Datum) 0 : cells_text(cell->style, cell->style_len);
	}
}

/* ---- cells as a stream ---- */

enum
{
	STREAM_SEQ = 1,
	STREAM_ROWS,
	STREAM_COLS,
	STREAM_CELLS
};

static uint32
rows_bound(NullableDatum arg, uint32 limit, uint32 otherwise)
{
	int32 bound = DatumGetInt32(arg.value);

	if (arg.isnull)
		return otherwise;
	if (bound < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("rows and columns start at 0")));
	return Min((uint32) bound, limit - 1);
}

static Size
rows_max_bytes(NullableDatum arg)
{
	int32 bytes = DatumGetInt32(arg.value);

	if (arg.isnull)
		return MaxAllocHugeSize / 2;
	if (bytes < 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("max_bytes must be positive")));
	return bytes;
}

/* read_cells(sheet_id, row0, col0, row1, col1, max_bytes) */
static void *
rows_read_stream(const NullableDatum *args, const CellsWanted *wanted)
{
	CellStream *stream = palloc(sizeof(CellStream));
	int64 sheet_id = catalog_sheet(args[0]);
	bool cells = (wanted->columns & 1 << STREAM_CELLS) != 0 || !args[5].isnull;
	uint32 rect[4];
	Size expected;

	permission_require_reader(sheet_id);
	rect[0] = rows_bound(args[1], SHEET_MAX_ROWS, 0);
	rect[1] = rows_bound(args[2], SHEET_MAX_COLS, 0);
	rect[2] = rows_bound(args[3], SHEET_MAX_ROWS, SHEET_MAX_ROWS - 1);
	rect[3] = rows_bound(args[4], SHEET_MAX_COLS, SHEET_MAX_COLS - 1);
	expected = rect[2] < rect[0] || rect[3] < rect[1]
				   ? 0
				   : (Size) (rect[2] - rect[0] + 1) * (rect[3] - rect[1] + 1) * ROWS_BYTES_OF_CELL;
	stream_begin(stream, rows_max_bytes(args[5]), Min(expected, ROWS_EXPECTED_MAX));
	journal_read(sheet_id, rect, true, &stream->view,
				 cells ? &(JournalSink){stream_begin_again, stream_cells, stream} : NULL);
	stream_end(stream);
	return stream;
}

static Size
rows_count_stream(const void *rows)
{
	return ((const CellStream *) rows)->count;
}

static Datum
rows_stream_value(const void *rows, Size row, int column, bool *isnull)
{
	const CellStream *stream = rows;

	*isnull = false;
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

/* ---- the functions ---- */

enum
{
	FUNCTION_RANGE,
	FUNCTION_AT,
	FUNCTION_AT_TIME,
	FUNCTION_READ_CELLS
};

const CellsFunction cells_functions[CELLS_FUNCTIONS] = {
	{"sheet_range", {"Sheet", "Range"}, 5, true, rows_read_range, rows_count_cells, rows_cell_value},
	{"sheet_at", {"Sheet", "Version"}, 5, true, rows_read_at, rows_count_cells, rows_cell_value},
	{"sheet_at_time", {"Sheet", "Time"}, 5, true, rows_read_past, rows_count_cells, rows_cell_value},
	{"sheet_read_cells",
	 {"Sheet", "First Row", "First Column", "Last Row", "Last Column", "Bytes a Row"},
	 4,
	 false,
	 rows_read_stream,
	 rows_count_stream,
	 rows_stream_value}};

int
cells_function_nargs(const CellsFunction *function)
{
	int nargs = 0;

	while (nargs < CELLS_MAX_ARGS && function->args[nargs] != NULL)
		nargs++;
	return nargs;
}

/* A plain call. */
static Datum
rows_return(FunctionCallInfo fcinfo, const CellsFunction *function)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext row_context, old;
	CellsWanted wanted;
	void *rows;
	Size count;

	cells_wanted_init(&wanted);
	InitMaterializedSRF(fcinfo, 0);
	rows = function->read(fcinfo->args, &wanted);
	count = function->count(rows);
	row_context = AllocSetContextCreate(CurrentMemoryContext, "cells", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(row_context);
	for (Size row = 0; row < count; row++)
	{
		Datum values[CELLS_STYLE];
		bool nulls[CELLS_STYLE];

		CHECK_FOR_INTERRUPTS();
		for (int column = 1; column <= function->ncolumns; column++)
			values[column - 1] = function->value(rows, row, column, &nulls[column - 1]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		MemoryContextReset(row_context);
	}
	MemoryContextSwitchTo(old);
	return (Datum) 0;
}

Datum
sheet_range(PG_FUNCTION_ARGS)
{
	return rows_return(fcinfo, &cells_functions[FUNCTION_RANGE]);
}

Datum
sheet_at(PG_FUNCTION_ARGS)
{
	return rows_return(fcinfo, &cells_functions[FUNCTION_AT]);
}

Datum
sheet_at_time(PG_FUNCTION_ARGS)
{
	return rows_return(fcinfo, &cells_functions[FUNCTION_AT_TIME]);
}

Datum
sheet_read_cells(PG_FUNCTION_ARGS)
{
	return rows_return(fcinfo, &cells_functions[FUNCTION_READ_CELLS]);
}
