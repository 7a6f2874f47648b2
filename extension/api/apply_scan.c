/*
 * apply_scan.c - a scan in place of the call of sheet.apply(), shown by EXPLAIN as "Custom Scan (SheetApply)".
 *
 * A statement that selects from sheet.apply() alone, which is what gateways send, gets a scan that has the batch
 * appended and returns the one row. What the executor does around a function in FROM (looking up the function and its
 * row type, keeping its rows, forming a tuple and taking it apart) costs a twentieth of a single edit. In all other
 * places sheet.apply() is a function as any other: so it is plain how often it is called, once.
 */
#include "postgres.h"

#include "apply.h"
#include "call.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "parser/parsetree.h"

typedef struct ApplyScanState
{
	CustomScanState css;
	ExprState *args[APPLY_ARGUMENTS];
	CallOutput output;
	bool applied;
	int at; /* of the row: before (-1), on (0), behind it (1) */
	Datum values[APPLY_COLUMNS];
	bool nulls[APPLY_COLUMNS];
} ApplyScanState;

static set_rel_pathlist_hook_type scan_next_hook = NULL;

/* ---- in the executor ---- */

static void
scan_begin(CustomScanState *node, EState *estate, int eflags)
{
	ApplyScanState *state = (ApplyScanState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;

	call_check_function((Oid) linitial_int(plan->custom_private));
	for (int i = 0; i < APPLY_ARGUMENTS; i++)
		state->args[i] = ExecInitExpr(list_nth(plan->custom_exprs, i), &node->ss.ps);
	call_output_begin(&state->output, node);
	state->at = -1;
}

static void
scan_end(CustomScanState *node)
{
}

/* A cursor that goes back to its beginning. */
static void
scan_rescan(CustomScanState *node)
{
	((ApplyScanState *) node)->at = -1;
	ExecScanReScan(&node->ss);
}

/* What the answer consists of lives as long as the statement. */
static void
scan_apply(ApplyScanState *state)
{
	NullableDatum args[APPLY_ARGUMENTS];
	MemoryContext old;

	for (int i = 0; i < APPLY_ARGUMENTS; i++)
		args[i].value = ExecEvalExprSwitchContext(state->args[i], state->css.ss.ps.ps_ExprContext, &args[i].isnull);
	old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	apply_call(args, state->values, state->nulls);
	MemoryContextSwitchTo(old);
	state->applied = true;
}

static TupleTableSlot *
scan_next(ScanState *node)
{
	ApplyScanState *state = (ApplyScanState *) node;
	const CallOutput *output = &state->output;
	TupleTableSlot *slot = output->slot;

	call_output_clear(output);
	if (!state->applied)
		scan_apply(state);
	state->at = ScanDirectionIsBackward(node->ps.state->es_direction) ? Max(state->at - 1, -1) : Min(state->at + 1, 1);
	if (state->at != 0)
		return slot;
	for (int i = 0; i < output->ncolumns; i++)
	{
		const CallColumn *column = &output->columns[i];

		slot->tts_values[column->place] = state->values[column->column - 1];
		slot->tts_isnull[column->place] = state->nulls[column->column - 1];
	}
	return ExecStoreVirtualTuple(slot);
}

/* Nothing locks rows of a query with this scan: there is no other relation. */
static bool
scan_recheck(ScanState *node, TupleTableSlot *slot)
{
	return true;
}

static TupleTableSlot *
scan_exec(CustomScanState *node)
{
	if (((ApplyScanState *) node)->output.direct)
		return scan_next(&node->ss);
	return ExecScan(&node->ss, scan_next, scan_recheck);
}

static const CustomExecMethods scan_exec_methods = {.CustomName = "SheetApply",
													.BeginCustomScan = scan_begin,
													.ExecCustomScan = scan_exec,
													.EndCustomScan = scan_end,
													.ReScanCustomScan = scan_rescan};

static Node *
scan_create(CustomScan *plan)
{
	ApplyScanState *state = (ApplyScanState *) newNode(sizeof(ApplyScanState), T_CustomScanState);

	state->css.methods = &scan_exec_methods;
	return (Node *) state;
}

static const CustomScanMethods scan_methods = {.CustomName = "SheetApply", .CreateCustomScanState = scan_create};

/* ---- in the planner ---- */

static Plan *
scan_create_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	FuncExpr *call = call_find(planner_rt_fetch(rel->relid, root), "sheet_apply");

	scan->custom_exprs = list_copy(call->args);
	scan->scan.plan.targetlist = tlist;
	scan->custom_scan_tlist = call_columns(rel, tlist, NIL);
	scan->flags = path->flags;
	scan->custom_private = list_make1_int((int) call->funcid);
	scan->methods = &scan_methods;
	record_plan_function_dependency(root, call->funcid);
	return &scan->scan.plan;
}

static const CustomPathMethods scan_path_methods = {.CustomName = "SheetApply", .PlanCustomPath = scan_create_plan};

/* The statement has no other relation, asks for no rows as a whole, and has nothing to check. */
static bool
scan_is_alone(PlannerInfo *root, RelOptInfo *rel)
{
	return root->parent_root == NULL && root->parse->commandType == CMD_SELECT && root->parse->rowMarks == NIL &&
		   bms_membership(root->all_baserels) == BMS_SINGLETON && rel->baserestrictinfo == NIL && !call_needs_rows(rel);
}

static void
scan_hook(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	CustomPath *path;
	FuncExpr *call;

	if (scan_next_hook != NULL)
		scan_next_hook(root, rel, rti, rte);
	if (rel->reloptkind != RELOPT_BASEREL || rte->rtekind != RTE_FUNCTION || rte->funcordinality || IS_DUMMY_REL(rel) ||
		!scan_is_alone(root, rel))
		return;
	call = call_find(rte, "sheet_apply");
	if (call == NULL || list_length(call->args) != APPLY_ARGUMENTS)
		return;
	path = makeNode(CustomPath);
	path->path = *(Path *) linitial(rel->pathlist);
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION | CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	path->methods = &scan_path_methods;
	rel->pathlist = NIL;
	add_path(rel, &path->path);
}

void
apply_scan_init(void)
{
	RegisterCustomScanMethods(&scan_methods);
	scan_next_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = scan_hook;
}
