/*
 * apply_scan.c - a scan in place of the call of sheet.apply(), shown by EXPLAIN as "Custom Scan (SheetApply)".
 *
 * A statement that selects from sheet.apply() alone, which is what gateways send, gets a scan that has the batch
 * appended and returns the one row. What the executor does around a function in FROM (looking up the function and its
 * row type, keeping its rows, forming a tuple and taking it apart) costs a twentieth of a single edit. In all other
 * places sheet.apply() is a function as any other: so it is plain how often it is called, once.
 */
#include "postgres.h"

#include "api/functions/apply.h"
#include "api/scan/call.h"

/* The scan's private list is the function alone. */
#define SCAN_NUMBERS 1

typedef struct ApplyScanState
{
	CallScanState scan;
	bool applied;
	int64 at; /* of the row: before (-1), on (0), behind it (1) */
	Datum values[APPLY_COLUMNS];
	bool nulls[APPLY_COLUMNS];
} ApplyScanState;

/* ---- in the executor ---- */

static void
scan_begin(CustomScanState *node, EState *estate, int eflags)
{
	ApplyScanState *state = (ApplyScanState *) node;

	call_scan_begin(&state->scan, SCAN_NUMBERS);
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

	call_scan_args(&state->scan, args);
	old = MemoryContextSwitchTo(state->scan.css.ss.ps.state->es_query_cxt);
	apply_call(args, state->values, state->nulls);
	MemoryContextSwitchTo(old);
	state->applied = true;
}

static TupleTableSlot *
scan_next(ScanState *node)
{
	ApplyScanState *state = (ApplyScanState *) node;
	const CallOutput *output = &state->scan.output;
	TupleTableSlot *slot = output->slot;

	call_output_clear(output);
	if (!state->applied)
		scan_apply(state);
	if (!call_scan_step(&state->scan, &state->at, 1))
		return slot;
	for (int i = 0; i < output->ncolumns; i++)
	{
		const CallColumn *column = &output->columns[i];

		slot->tts_values[column->place] = state->values[column->column - 1];
		slot->tts_isnull[column->place] = state->nulls[column->column - 1];
	}
	return ExecStoreVirtualTuple(slot);
}

static const CustomExecMethods scan_exec_methods = {.CustomName = "SheetApply",
													.BeginCustomScan = scan_begin,
													.ExecCustomScan = call_scan_exec,
													.EndCustomScan = scan_end,
													.ReScanCustomScan = scan_rescan};

static Node *
scan_create(CustomScan *plan)
{
	return call_scan_create(sizeof(ApplyScanState), &scan_exec_methods, scan_next);
}

static const CustomScanMethods scan_methods = {.CustomName = "SheetApply", .CreateCustomScanState = scan_create};

/* ---- in the planner ---- */

static Plan *
scan_create_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	return call_create_plan(root, rel, path, tlist, clauses, NULL, &scan_methods);
}

static const CustomPathMethods scan_path_methods = {.CustomName = "SheetApply", .PlanCustomPath = scan_create_plan};

/* The statement has no other relation, and has nothing to check; so nothing locks rows of this one. */
static bool
scan_is_alone(PlannerInfo *root, RelOptInfo *rel)
{
	return root->parent_root == NULL && root->parse->commandType == CMD_SELECT && root->parse->rowMarks == NIL &&
		   bms_membership(root->all_baserels) == BMS_SINGLETON && rel->baserestrictinfo == NIL;
}

static void
scan_plan(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, const char *source)
{
	if (strcmp(source, "sheet_apply") == 0 && list_length(call->args) == APPLY_ARGUMENTS && scan_is_alone(root, rel))
		call_replace_path(rel, call, NIL, NIL, &scan_path_methods);
}

void
apply_scan_init(void)
{
	call_plan_add(scan_plan, &scan_methods);
}
