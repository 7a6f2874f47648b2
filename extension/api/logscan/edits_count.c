/*
 * edits_count.c - count(*) of edits, without a row for each.
 *
 * A query that only counts what a scan of the log finds gets "Custom Scan (SheetLogCount)" above that scan. It lets the
 * scan count for itself: batches say how many edits they have, and what conditions must look at edit by edit is not
 * made into rows. A scan that has something to check for itself gives its rows, which are counted.
 */
#include "postgres.h"

#include "catalog/pg_aggregate.h"
#include "api/logscan/edits_plan.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planner.h"
#include "utils/fmgroids.h"

static create_upper_paths_hook_type count_next_hook = NULL;

/* ---- in the executor ---- */

typedef struct CountState
{
	CallScanState scan; /* of no call, but executed in the same way */
	bool done;
} CountState;

static PlanState *
count_child(CustomScanState *node)
{
	return linitial(node->custom_ps);
}

static void
count_begin(CustomScanState *node, EState *estate, int eflags)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;

	node->custom_ps = list_make1(ExecInitNode(linitial(plan->custom_plans), estate, eflags));
}

/* The rows of any plan. */
static int64
count_rows(PlanState *child)
{
	int64 count = 0;

	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(child);

		if (TupIsNull(slot))
			return count;
		CHECK_FOR_INTERRUPTS();
		count++;
	}
}

/* Of a scan, also below a view's subquery, which only passes its rows on. False when there is more to do. */
static bool
count_scan(PlanState *node, int64 *count)
{
	bool counted;

	if (node->chgParam != NULL)
		ExecReScan(node);
	if (!IsA(node, SubqueryScanState) || node->qual != NULL)
		return edits_scan_count(node, count);
	if (node->instrument != NULL)
		InstrStartNode(node->instrument);
	counted = count_scan(((SubqueryScanState *) node)->subplan, count);
	if (node->instrument != NULL)
		InstrStopNode(node->instrument, counted ? *count : 0);
	return counted;
}

static TupleTableSlot *
count_next(ScanState *node)
{
	CountState *state = (CountState *) node;
	TupleTableSlot *slot = node->ss_ScanTupleSlot;
	PlanState *child = count_child(&state->scan.css);
	int64 count;

	ExecClearTuple(slot);
	if (state->done)
		return slot;
	if (!count_scan(child, &count))
		count = count_rows(child);
	state->done = true;
	slot->tts_values[0] = Int64GetDatum(count);
	slot->tts_isnull[0] = false;
	return ExecStoreVirtualTuple(slot);
}

static void
count_end(CustomScanState *node)
{
	ExecEndNode(count_child(node));
}

static void
count_rescan(CustomScanState *node)
{
	PlanState *child = count_child(node);

	((CountState *) node)->done = false;
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(child, node->ss.ps.chgParam);
	if (child->chgParam == NULL)
		ExecReScan(child);
	ExecScanReScan(&node->ss);
}

static const CustomExecMethods count_exec_methods = {.CustomName = "SheetLogCount",
													 .BeginCustomScan = count_begin,
													 .ExecCustomScan = call_scan_exec,
													 .EndCustomScan = count_end,
													 .ReScanCustomScan = count_rescan};

static Node *
count_create_state(CustomScan *plan)
{
	return call_scan_create(sizeof(CountState), &count_exec_methods, count_next);
}

static const CustomScanMethods count_scan_methods = {.CustomName = "SheetLogCount",
													 .CreateCustomScanState = count_create_state};

/* ---- in the planner ---- */

static bool
count_is_count(Node *expr)
{
	Aggref *aggref = (Aggref *) expr;

	return IsA(expr, Aggref) && aggref->aggfnoid == F_COUNT_ && aggref->aggsplit == AGGSPLIT_SIMPLE &&
		   aggref->aggfilter == NULL && aggref->agglevelsup == 0;
}

static Plan *
count_create_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	Expr *count = linitial(path->path.pathtarget->exprs);

	scan->scan.plan.targetlist = tlist;
	scan->custom_scan_tlist = list_make1(makeTargetEntry(copyObject(count), 1, NULL, false));
	scan->custom_plans = custom_plans;
	scan->flags = path->flags;
	scan->methods = &count_scan_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods count_path_methods = {.CustomName = "SheetLogCount",
													 .PlanCustomPath = count_create_plan};

/* The scan, also below a view's subquery. */
static bool
count_is_of_edits(const Path *path)
{
	while (IsA(path, SubqueryScanPath) || IsA(path, ProjectionPath))
		path = IsA(path, SubqueryScanPath) ? ((const SubqueryScanPath *) path)->subpath
										   : ((const ProjectionPath *) path)->subpath;
	return edits_plan_is_scan(path);
}

/* The query gives one count(*), and nothing else. */
static bool
count_is_wanted(PlannerInfo *root, RelOptInfo *output)
{
	const Query *query = root->parse;
	List *exprs = output->reltarget->exprs;

	return query->groupClause == NIL && query->groupingSets == NIL && query->havingQual == NULL &&
		   list_length(exprs) == 1 && count_is_count(linitial(exprs));
}

/* Cheaper than the aggregate, which would take each row from the scan. */
static void
count_add_path(RelOptInfo *output, Path *scan)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = output->reltarget;
	path->path.rows = 1;
	path->path.startup_cost = scan->total_cost;
	path->path.total_cost = scan->total_cost + cpu_tuple_cost;
	path->custom_paths = list_make1(scan);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &count_path_methods;
	add_path(output, &path->path);
}

static void
count_hook(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output, void *extra)
{
	if (count_next_hook != NULL)
		count_next_hook(root, stage, input, output, extra);
	if (stage == UPPERREL_GROUP_AGG && count_is_wanted(root, output) && count_is_of_edits(input->cheapest_total_path))
		count_add_path(output, input->cheapest_total_path);
}

void
edits_count_init(void)
{
	RegisterCustomScanMethods(&count_scan_methods);
	count_next_hook = create_upper_paths_hook;
	create_upper_paths_hook = count_hook;
}
