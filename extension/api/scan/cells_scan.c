/*
 * cells_scan.c - the scan of cells in the executor, shown by EXPLAIN as "Custom Scan (SheetCells)".
 *
 * The first row that is asked for has all of them read: they are of one state of the sheet, whatever happens to it
 * while a cursor goes over them. They are kept for the scan's next turns with the same arguments, as the executor does
 * with what functions have returned.
 */
#include "postgres.h"

#include "api/scan/cells_rows.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

typedef struct CellsScanState
{
	CallScanState scan;
	const CellsFunction *function;
	uint32 columns;		   /* that the output has */
	MemoryContext context; /* of the rows */
	void *rows;			   /* NULL: not read yet */
	int64 count;
	int64 at; /* the current row; -1: before the first one */
} CellsScanState;

/* ---- beginning and ending ---- */

static void
scan_begin(CustomScanState *node, EState *estate, int eflags)
{
	CellsScanState *state = (CellsScanState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	const CallOutput *output = &state->scan.output;

	call_scan_begin(&state->scan, CELLS_PRIVATE_CONDS);
	state->function = &cells_functions[list_nth_int(plan->custom_private, CELLS_PRIVATE_FUNCTION)];
	for (int i = 0; i < output->ncolumns; i++)
		state->columns |= 1 << output->columns[i].column;
	state->context = AllocSetContextCreate(estate->es_query_cxt, "pg_sheet cells", ALLOCSET_DEFAULT_SIZES);
	state->at = -1;
}

static void
scan_forget(CellsScanState *state)
{
	if (state->rows != NULL)
		MemoryContextReset(state->context);
	state->rows = NULL;
}

static void
scan_end(CustomScanState *node)
{
	MemoryContextDelete(((CellsScanState *) node)->context);
}

static void
scan_rescan(CustomScanState *node)
{
	CellsScanState *state = (CellsScanState *) node;

	if (node->ss.ps.chgParam != NULL)
		scan_forget(state);
	state->at = -1;
	ExecScanReScan(&node->ss);
}

/* ---- rows ---- */

static void
scan_limit(CellsWanted *wanted, const CallCondState *cond, Datum value, bool isnull)
{
	CallRange *range = cond->column == CELLS_COL ? &wanted->col : &wanted->row;

	if (isnull)
		call_range_clear(range);
	else if (cond->column == CELLS_A1)
		call_range_limit_cell(&wanted->row, &wanted->col, DatumGetTextPP(value));
	else if (cond->strategy == CALL_STRATEGY_ANY)
		call_range_limit_any(range, DatumGetArrayTypeP(value));
	else
		call_range_limit(range, cond->strategy, call_cond_int64(cond->type, value));
}

static void
scan_want(const CellsScanState *state, CellsWanted *wanted)
{
	const CallScanState *scan = &state->scan;

	cells_wanted_init(wanted);
	wanted->columns = state->columns;
	for (int i = 0; i < scan->nconds; i++)
	{
		bool isnull;
		Datum value = call_scan_value(scan, &scan->conds[i], &isnull);

		scan_limit(wanted, &scan->conds[i], value, isnull);
	}
}

static void
scan_read(CellsScanState *state)
{
	NullableDatum args[CELLS_MAX_ARGS];
	CellsWanted wanted;
	MemoryContext old;

	call_scan_args(&state->scan, args);
	scan_want(state, &wanted);
	old = MemoryContextSwitchTo(state->context);
	state->rows = state->function->read(args, &wanted);
	MemoryContextSwitchTo(old);
	state->count = (int64) state->function->count(state->rows);
}

/* The values that are made for a row live until the next one is asked for. */
static TupleTableSlot *
scan_next(ScanState *node)
{
	CellsScanState *state = (CellsScanState *) node;
	const CallOutput *output = &state->scan.output;
	TupleTableSlot *slot = output->slot;
	MemoryContext old;

	call_output_clear(output);
	if (state->rows == NULL)
		scan_read(state);
	if (!call_scan_step(&state->scan, &state->at, state->count))
		return slot;
	ResetExprContext(node->ps.ps_ExprContext);
	old = MemoryContextSwitchTo(node->ps.ps_ExprContext->ecxt_per_tuple_memory);
	for (int i = 0; i < output->ncolumns; i++)
	{
		int place = output->columns[i].place;

		slot->tts_values[place] =
			state->function->value(state->rows, (Size) state->at, output->columns[i].column, &slot->tts_isnull[place]);
	}
	MemoryContextSwitchTo(old);
	return ExecStoreVirtualTuple(slot);
}

/* ---- EXPLAIN ---- */

static bool
scan_is_null(const Expr *expr)
{
	return IsA(expr, Const) && ((const Const *) expr)->constisnull;
}

static void
scan_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CellsScanState *state = (CellsScanState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List *context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, ancestors);

	for (int i = 0; i < state->scan.nargs; i++)
	{
		Expr *arg = list_nth(plan->custom_exprs, i);

		if (!scan_is_null(arg))
			ExplainPropertyText(state->function->args[i], deparse_expression((Node *) arg, context, true, false), es);
	}
	call_explain_conds(&state->scan, CELLS_ROW, "Row", context, es);
	call_explain_conds(&state->scan, CELLS_COL, "Col", context, es);
	call_explain_conds(&state->scan, CELLS_A1, "Cell", context, es);
}

/* ---- methods ---- */

static const CustomExecMethods scan_exec_methods = {.CustomName = "SheetCells",
													.BeginCustomScan = scan_begin,
													.ExecCustomScan = call_scan_exec,
													.EndCustomScan = scan_end,
													.ReScanCustomScan = scan_rescan,
													.ExplainCustomScan = scan_explain};

static Node *
scan_create(CustomScan *plan)
{
	return call_scan_create(sizeof(CellsScanState), &scan_exec_methods, scan_next);
}

const CustomScanMethods cells_scan_methods = {.CustomName = "SheetCells", .CreateCustomScanState = scan_create};
