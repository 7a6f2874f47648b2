/*
 * cells_plan.c - scans of cells in plans of queries.
 *
 * Where a query selects from sheet.range(), sheet.at() or sheet.read_cells(), the planner gets a scan in place of the
 * call of the function. Conditions on where cells are make its window smaller.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "cells_rows.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "parser/parsetree.h"

static set_rel_pathlist_hook_type plan_next_hook = NULL;

/* The function's number in cells_functions[], and its call; -1 when the relation is none of them. */
static int
plan_find(const RangeTblEntry *rte, FuncExpr **call)
{
	for (int i = 0; i < CELLS_FUNCTIONS; i++)
		if ((*call = call_find(rte, cells_functions[i].source)) != NULL &&
			list_length((*call)->args) == cells_function_nargs(&cells_functions[i]))
			return i;
	return -1;
}

static Oid
plan_place_type(int column)
{
	return column <= CELLS_COL ? INT8OID : column == CELLS_A1 ? TEXTOID : InvalidOid;
}

static Oid
plan_no_type(int column)
{
	return InvalidOid;
}

static Plan *
plan_create(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	List *conds = NIL;
	FuncExpr *call;
	int function = plan_find(planner_rt_fetch(rel->relid, root), &call);

	scan->custom_exprs = list_copy(call->args);
	scan->scan.plan.qual =
		call_take_conds(root, rel->relid, cells_functions[function].places ? plan_place_type : plan_no_type, clauses,
						&scan->custom_exprs, &conds);
	scan->scan.plan.targetlist = tlist;
	scan->custom_scan_tlist = call_columns(rel, tlist, scan->scan.plan.qual);
	scan->flags = path->flags;
	scan->custom_private = list_concat(list_make2_int((int) call->funcid, function), conds);
	scan->methods = &cells_scan_methods;
	record_plan_function_dependency(root, call->funcid);
	return &scan->scan.plan;
}

static const CustomPathMethods plan_path_methods = {.CustomName = "SheetCells", .PlanCustomPath = plan_create};

/* It stands for the path that calls the function, and the planner takes it to cost as much. */
static void
plan_replace_path(PlannerInfo *root, RelOptInfo *rel, const CellsFunction *function)
{
	const int columns[2] = {CELLS_ROW, CELLS_COL};
	const Oid types[2] = {INT4OID, INT4OID};
	const Path *called = linitial(rel->pathlist);
	CustomPath *path = makeNode(CustomPath);

	path->path = *called;
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	if (function->places)
		path->path.pathkeys = call_pathkeys(root, rel->relid, columns, types, 2, false);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION | CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	path->methods = &plan_path_methods;
	rel->pathlist = NIL;
	add_path(rel, &path->path);
}

static void
plan_hook(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	FuncExpr *call;
	int function;

	if (plan_next_hook != NULL)
		plan_next_hook(root, rel, rti, rte);
	if (rel->reloptkind != RELOPT_BASEREL || rte->rtekind != RTE_FUNCTION || rte->funcordinality || IS_DUMMY_REL(rel))
		return;
	function = plan_find(rte, &call);
	if (function >= 0 && !call_needs_rows(rel))
		plan_replace_path(root, rel, &cells_functions[function]);
}

void
cells_plan_init(void)
{
	RegisterCustomScanMethods(&cells_scan_methods);
	plan_next_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = plan_hook;
}
