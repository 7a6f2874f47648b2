/*
 * edits_scan.c - the scan of edits in the executor, shown by EXPLAIN as "Custom Scan (SheetLog)".
 */
#include "postgres.h"

#include "commands/explain.h"
#include "compat.h"
#include "edits_cond.h"
#include "edits_plan.h"
#include "executor/executor.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/ruleutils.h"

typedef struct ScanCond
{
	EditsColumn column;
	int strategy;
	Oid type;
	ExprState *value;
} ScanCond;

typedef struct EditsScanState
{
	CustomScanState css;
	EditsQuery query; /* without what conditions say */
	ExprState *sheet; /* NULL: all that are listed */
	ScanCond *conds;
	int nconds;
	EditsColumn *columns; /* of the scan's rows */
	int ncolumns;
	EditsReader *reader; /* NULL: it has not begun */
	EditsCounters counters;
} EditsScanState;

/* ---- beginning and ending ---- */

static void
scan_begin_conds(EditsScanState *state, CustomScan *plan)
{
	bool listed = list_nth_int(plan->custom_private, EDITS_PRIVATE_LISTED);
	List *exprs = plan->custom_exprs;
	int first = listed ? 0 : 1;

	if (!listed)
		state->sheet = ExecInitExpr(linitial(exprs), &state->css.ss.ps);
	state->nconds = list_length(exprs) - first;
	state->conds = palloc(sizeof(ScanCond) * Max(state->nconds, 1));
	for (int i = 0; i < state->nconds; i++)
	{
		Expr *value = list_nth(exprs, first + i);

		state->conds[i].column = list_nth_int(plan->custom_private, EDITS_PRIVATE_CONDS + 2 * i);
		state->conds[i].strategy = list_nth_int(plan->custom_private, EDITS_PRIVATE_CONDS + 2 * i + 1);
		state->conds[i].type = exprType((Node *) value);
		state->conds[i].value = ExecInitExpr(value, &state->css.ss.ps);
	}
}

static void
scan_begin_columns(EditsScanState *state, CustomScan *plan)
{
	ListCell *cell;

	state->columns = palloc(sizeof(EditsColumn) * Max(list_length(plan->custom_scan_tlist), 1));
	foreach (cell, plan->custom_scan_tlist)
	{
		EditsColumn column = ((Var *) lfirst_node(TargetEntry, cell)->expr)->varattno;

		state->columns[state->ncolumns++] = column;
		state->query.contents |= column == EDITS_UID || column == EDITS_KIND || column >= EDITS_ROW;
	}
}

static void
scan_begin(CustomScanState *node, EState *estate, int eflags)
{
	EditsScanState *state = (EditsScanState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;

	edits_query_init(&state->query);
	state->query.listed = list_nth_int(plan->custom_private, EDITS_PRIVATE_LISTED);
	state->query.backward = list_nth_int(plan->custom_private, EDITS_PRIVATE_BACKWARD);
	state->query.snapshot = estate->es_snapshot;
	scan_begin_conds(state, plan);
	scan_begin_columns(state, plan);
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
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	EditsQuery query = state->query;
	bool isnull = false;

	if (state->sheet != NULL)
		query.sheet_id = DatumGetInt64(ExecEvalExprSwitchContext(state->sheet, econtext, &isnull));
	if (isnull)
		query.listed = true;
	for (int i = 0; i < state->nconds; i++)
	{
		ScanCond *cond = &state->conds[i];
		bool null;
		Datum value = ExecEvalExprSwitchContext(cond->value, econtext, &null);

		edits_cond_apply(&query, cond->column, cond->strategy, cond->type, value, null);
	}
	if (isnull)
		edits_range_clear(&query.range[EDITS_SEQ]);
	state->reader = edits_begin(&query, &state->counters);
}

static TupleTableSlot *
scan_next(ScanState *node)
{
	EditsScanState *state = (EditsScanState *) node;
	TupleTableSlot *slot = node->ss_ScanTupleSlot;
	MemoryContext old;

	ExecClearTuple(slot);
	if (state->reader == NULL)
		scan_open(state);
	if (!edits_next(state->reader))
		return slot;
	old = MemoryContextSwitchTo(node->ps.ps_ExprContext->ecxt_per_tuple_memory);
	for (int i = 0; i < state->ncolumns; i++)
		slot->tts_values[i] = edits_value(state->reader, state->columns[i], &slot->tts_isnull[i]);
	MemoryContextSwitchTo(old);
	return ExecStoreVirtualTuple(slot);
}

static bool
scan_recheck(ScanState *node, TupleTableSlot *slot)
{
	return true; /* nobody updates edits */
}

static TupleTableSlot *
scan_exec(CustomScanState *node)
{
	return ExecScan(&node->ss, scan_next, scan_recheck);
}

/* ---- EXPLAIN ---- */

static void
scan_explain_column(EditsColumn column, CustomScan *plan, List *context, ExplainState *es)
{
	int first = list_nth_int(plan->custom_private, EDITS_PRIVATE_LISTED) ? 0 : 1;
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < list_length(plan->custom_exprs) - first; i++)
	{
		int strategy = list_nth_int(plan->custom_private, EDITS_PRIVATE_CONDS + 2 * i + 1);

		if (list_nth_int(plan->custom_private, EDITS_PRIVATE_CONDS + 2 * i) != column)
			continue;
		appendStringInfo(&text, "%s%s %s", text.len > 0 ? " AND " : "", edits_cond_operator(strategy),
						 deparse_expression(list_nth(plan->custom_exprs, first + i), context, true, false));
	}
	if (text.len > 0)
		ExplainPropertyText(edits_cond_label(column), text.data, es);
}

static void
scan_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	EditsScanState *state = (EditsScanState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List *context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, ancestors);

	if (state->sheet != NULL)
		ExplainPropertyText("Log of Sheet", deparse_expression(linitial(plan->custom_exprs), context, true, false), es);
	for (int column = EDITS_SHEET_ID; column <= EDITS_A1; column++)
		scan_explain_column(column, plan, context, es);
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
													.ExecCustomScan = scan_exec,
													.EndCustomScan = scan_end,
													.ReScanCustomScan = scan_rescan,
													.ExplainCustomScan = scan_explain};

static Node *
scan_create(CustomScan *plan)
{
	EditsScanState *state = (EditsScanState *) newNode(sizeof(EditsScanState), T_CustomScanState);

	state->css.methods = &scan_exec_methods;
	return (Node *) state;
}

const CustomScanMethods edits_scan_methods = {.CustomName = "SheetLog", .CreateCustomScanState = scan_create};
