/*
 * edits_scan.c - the scan of edits in the executor, shown by EXPLAIN as "Custom Scan (SheetLog)".
 */
#include "postgres.h"

#include "api/logscan/edits_cond.h"
#include "api/logscan/edits_plan.h"
#include "executor/instrument.h"
#include "utils/ruleutils.h"

static const CustomExecMethods scan_exec_methods;

typedef struct EditsScanState
{
	CallScanState scan;
	EditsQuery query;	 /* without what conditions say */
	EditsReader *reader; /* NULL: it has not begun */
	EditsCounters counters;
} EditsScanState;

/* ---- beginning and ending ---- */

static void
scan_begin(CustomScanState *node, EState *estate, int eflags)
{
	EditsScanState *state = (EditsScanState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	const CallOutput *output = &state->scan.output;

	call_scan_begin(&state->scan, EDITS_PRIVATE_CONDS);
	edits_query_init(&state->query);
	state->query.listed = state->scan.nargs == 0;
	state->query.backward = list_nth_int(plan->custom_private, EDITS_PRIVATE_BACKWARD);
	state->query.snapshot = estate->es_snapshot;
	for (int i = 0; i < output->ncolumns; i++)
		state->query.need = Max(state->query.need, edits_need_of(output->columns[i].column));
}

static void
scan_close(EditsScanState *state)
{
	if (state->reader != NULL)
		edits_end(state->reader);
	state->reader = NULL;
}

static void
scan_end(CustomScanState *node)
{
	scan_close((EditsScanState *) node);
}

static void
scan_rescan(CustomScanState *node)
{
	scan_close((EditsScanState *) node);
	ExecScanReScan(&node->ss);
}

/* ---- rows ---- */

/* The conditions' values, and with them the reader. */
static void
scan_open(EditsScanState *state)
{
	const CallScanState *scan = &state->scan;
	NullableDatum sheet = {.isnull = false};
	EditsQuery query = state->query;

	call_scan_args(scan, &sheet);
	query.sheet_id = DatumGetInt64(sheet.value);
	query.listed |= sheet.isnull;
	for (int i = 0; i < scan->nconds; i++)
	{
		const CallCondState *cond = &scan->conds[i];
		bool isnull;
		Datum value = call_scan_value(scan, cond, &isnull);

		edits_cond_apply(&query, cond->column, cond->strategy, cond->type, value, isnull);
	}
	if (sheet.isnull)
		call_range_clear(&query.range[EDITS_SEQ]);
	state->reader = edits_begin(&query, &state->counters);
}

static TupleTableSlot *
scan_next(ScanState *node)
{
	EditsScanState *state = (EditsScanState *) node;
	const CallOutput *output = &state->scan.output;
	TupleTableSlot *slot = output->slot;

	call_output_clear(output);
	if (state->reader == NULL)
		scan_open(state);
	if (!edits_next(state->reader))
		return slot;
	if (output->ncolumns > 0)
		edits_begin_row(state->reader);
	for (int i = 0; i < output->ncolumns; i++)
	{
		const CallColumn *column = &output->columns[i];

		slot->tts_values[column->place] = edits_value(state->reader, column->column, &slot->tts_isnull[column->place]);
	}
	return ExecStoreVirtualTuple(slot);
}

/* ---- counting ---- */

bool
edits_scan_count(PlanState *node, int64 *count)
{
	EditsScanState *state = (EditsScanState *) node;

	if (!IsA(node, CustomScanState) || state->scan.css.methods != &scan_exec_methods || node->qual != NULL)
		return false;
	if (node->instrument != NULL)
		InstrStartNode(node->instrument);
	if (state->reader == NULL)
		scan_open(state);
	*count = edits_count(state->reader);
	if (node->instrument != NULL)
		InstrStopNode(node->instrument, *count);
	return true;
}

/* ---- EXPLAIN ---- */

static void
scan_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	EditsScanState *state = (EditsScanState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List *context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, ancestors);

	if (state->scan.nargs > 0)
		ExplainPropertyText("Log of Sheet", deparse_expression(linitial(plan->custom_exprs), context, true, false), es);
	for (int column = EDITS_SHEET_ID; column <= EDITS_A1; column++)
		call_explain_conds(&state->scan, column, edits_cond_label(column), context, es);
	if (state->query.backward)
		ExplainPropertyText("Order", "newest first", es);
	if (!es->analyze)
		return;
	ExplainPropertyInteger("Batches Read", NULL, state->counters.batches_read, es);
	ExplainPropertyInteger("Batches Skipped", NULL, state->counters.batches_skipped, es);
	ExplainPropertyInteger("Edits Skipped", NULL, state->counters.edits_skipped, es);
}

/* ---- methods ---- */

static const CustomExecMethods scan_exec_methods = {.CustomName = "SheetLog",
													.BeginCustomScan = scan_begin,
													.ExecCustomScan = call_scan_exec,
													.EndCustomScan = scan_end,
													.ReScanCustomScan = scan_rescan,
													.ExplainCustomScan = scan_explain};

static Node *
scan_create(CustomScan *plan)
{
	return call_scan_create(sizeof(EditsScanState), &scan_exec_methods, scan_next);
}

const CustomScanMethods edits_scan_methods = {.CustomName = "SheetLog", .CreateCustomScanState = scan_create};
