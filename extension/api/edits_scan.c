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
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

typedef struct ScanCond
{
	EditsColumn column;
	int strategy;
	Oid type;
	ExprState *value;
} ScanCond;

typedef struct ScanColumn
{
	int place; /* in the slot */
	EditsColumn column;
} ScanColumn;

typedef struct EditsScanState
{
	CustomScanState css;
	EditsQuery query; /* without what conditions say */
	ExprState *sheet; /* NULL: all that are listed */
	ScanCond *conds;
	int nconds;
	TupleTableSlot *slot; /* for rows: the result's, when they need no more work, else that of the scan */
	bool direct;		  /* it is the result's */
	ScanColumn *columns;
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

/* Nothing is left to do with the scan's rows: they consist of columns, each of them once, and constants. */
static bool
scan_is_direct(CustomScan *plan)
{
	Bitmapset *seen = NULL;
	ListCell *cell;

	foreach (cell, plan->scan.plan.targetlist)
	{
		Var *var = (Var *) lfirst_node(TargetEntry, cell)->expr;

		if (!IsA(var, Const) && (!IsA(var, Var) || bms_is_member(var->varattno, seen)))
			return false;
		if (IsA(var, Var))
			seen = bms_add_member(seen, var->varattno);
	}
	return plan->scan.plan.qual == NIL;
}

static EditsColumn
scan_column(CustomScan *plan, Var *var)
{
	TargetEntry *entry = list_nth_node(TargetEntry, plan->custom_scan_tlist, var->varattno - 1);

	return castNode(Var, entry->expr)->varattno;
}

static void
scan_add_column(EditsScanState *state, int place, EditsColumn column)
{
	state->columns[state->ncolumns++] = (ScanColumn){place, column};
	state->query.need = Max(state->query.need, edits_need_of(column));
}

/* Columns of the result, which the scan forms itself; its constants are the same in all rows. */
static void
scan_begin_direct(EditsScanState *state, CustomScan *plan)
{
	ListCell *cell;

	state->slot = state->css.ss.ps.ps_ResultTupleSlot;
	foreach (cell, plan->scan.plan.targetlist)
	{
		Expr *expr = lfirst_node(TargetEntry, cell)->expr;
		int place = foreach_current_index(cell);

		if (IsA(expr, Var))
			scan_add_column(state, place, scan_column(plan, (Var *) expr));
		else
		{
			state->slot->tts_values[place] = ((Const *) expr)->constvalue;
			state->slot->tts_isnull[place] = ((Const *) expr)->constisnull;
		}
	}
}

static void
scan_begin_columns(EditsScanState *state, CustomScan *plan)
{
	ListCell *cell;

	state->columns = palloc(sizeof(ScanColumn) *
							(list_length(plan->custom_scan_tlist) + list_length(plan->scan.plan.targetlist) + 1));
	state->direct = scan_is_direct(plan);
	if (state->direct)
	{
		scan_begin_direct(state, plan);
		return;
	}
	state->slot = state->css.ss.ss_ScanTupleSlot;
	foreach (cell, plan->custom_scan_tlist)
		scan_add_column(state, foreach_current_index(cell),
						castNode(Var, lfirst_node(TargetEntry, cell)->expr)->varattno);
}

/* As the executor checks it of functions that it calls. */
static void
scan_check_function(Oid function)
{
	AclResult result = compat_function_aclcheck(function, GetUserId());

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_FUNCTION, get_func_name(function));
}

static void
scan_begin(CustomScanState *node, EState *estate, int eflags)
{
	EditsScanState *state = (EditsScanState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;

	scan_check_function((Oid) list_nth_int(plan->custom_private, EDITS_PRIVATE_FUNCTION));
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
	TupleTableSlot *slot = state->slot;

	ExecClearTuple(slot);
	if (state->reader == NULL)
		scan_open(state);
	if (!edits_next(state->reader))
		return slot;
	if (state->ncolumns > 0)
		edits_begin_row(state->reader);
	for (int i = 0; i < state->ncolumns; i++)
	{
		const ScanColumn *column = &state->columns[i];

		slot->tts_values[column->place] = edits_value(state->reader, column->column, &slot->tts_isnull[column->place]);
	}
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
	if (((EditsScanState *) node)->direct)
		return scan_next(&node->ss);
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
