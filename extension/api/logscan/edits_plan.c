/*
 * edits_plan.c - scans of edits in plans of queries.
 *
 * Where a query selects from sheet.log_edits(), the planner gets scans of the log in place of calls of the function.
 * They take the conditions on the log's columns that are known before the scan begins: constants, parameters, and
 * columns of other relations that the log is joined with. What a scan cannot use, the executor checks as always.
 */
#include "postgres.h"

#include "api/logscan/edits_cond.h"
#include "api/logscan/edits_plan.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "access/stratnum.h"

/* ---- from path to plan ---- */

static Plan *
plan_create(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	return call_create_plan(root, rel, path, tlist, clauses, edits_cond_type, &edits_scan_methods);
}

static const CustomPathMethods plan_path_methods = {.CustomName = "SheetLog", .PlanCustomPath = plan_create};

bool
edits_plan_is_scan(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &plan_path_methods;
}

/* ---- paths ---- */

static void
plan_set_cost(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, const EditsSize *size, List *clauses)
{
	QualCost qual;
	Cost per_row;

	cost_qual_eval(&qual, clauses, root);
	per_row = cpu_tuple_cost + qual.per_tuple + path->path.pathtarget->cost.per_tuple;
	path->path.startup_cost = random_page_cost + qual.startup + path->path.pathtarget->cost.startup;
	path->path.total_cost = path->path.startup_cost + size->scanned * cpu_operator_cost / 2 + path->path.rows * per_row;
}

static void
plan_add_path(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, ParamPathInfo *param, const EditsSize *size,
			  bool backward, List *pathkeys)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.param_info = param;
	path->path.rows = param != NULL ? Min(param->ppi_rows, size->rows) : size->rows;
	path->path.pathkeys = pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_private = call_private(call, list_make1_int(backward));
	path->methods = &plan_path_methods;
	plan_set_cost(root, rel, path, size, param != NULL ? param->ppi_clauses : NIL);
	add_path(rel, &path->path);
}

/* Both directions, when the query asks for the backward one. */
static void
plan_add_paths(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, Relids outer, const EditsSize *size,
			   const EditsOrder *order)
{
	ParamPathInfo *param = get_baserel_parampathinfo(root, rel, outer);
	bool listed = call->args == NIL;
	EditsOrder forward = {.column = order->column, .with_sheet = order->with_sheet};

	plan_add_path(root, rel, call, param, size, false, edits_order_pathkeys(root, rel->relid, &forward, listed));
	if (order->backward)
		plan_add_path(root, rel, call, param, size, true, edits_order_pathkeys(root, rel->relid, order, listed));
}

/* ---- joins: conditions with columns of other relations ---- */

static bool
plan_is_ordered_column(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *ec, EquivalenceMember *em, void *arg)
{
	Var *var = (Var *) em->em_expr;

	return IsA(var, Var) && var->varno == rel->relid && var->varattno == *(int *) arg;
}

/* The sets of relations whose columns make the scan shorter. */
static List *
plan_add_outer(PlannerInfo *root, RelOptInfo *rel, RestrictInfo *rinfo, List *outers)
{
	Relids outer;
	CallCond cond;
	ListCell *cell;

	if (!join_clause_is_movable_to(rinfo, rel) || !edits_cond_match(root, rel->relid, rinfo->clause, &cond))
		return outers;
	outer = bms_difference(bms_union(rinfo->clause_relids, rel->lateral_relids), rel->relids);
	foreach (cell, outers)
		if (bms_equal(lfirst(cell), outer))
			return outers;
	return lappend(outers, outer);
}

static List *
plan_find_outers(PlannerInfo *root, RelOptInfo *rel)
{
	List *outers = NIL;
	ListCell *cell;

	foreach (cell, rel->joininfo)
		outers = plan_add_outer(root, rel, lfirst(cell), outers);
	for (int column = EDITS_SHEET_ID; rel->has_eclass_joins && column <= EDITS_A1; column++)
	{
		List *clauses = generate_implied_equalities_for_column(root, rel, plan_is_ordered_column, &column,
															   rel->lateral_referencers);

		foreach (cell, clauses)
			outers = plan_add_outer(root, rel, lfirst(cell), outers);
	}
	return outers;
}

/* What remains to be looked at when the outer relation's columns are known. */
static EditsSize
plan_outer_size(PlannerInfo *root, RelOptInfo *rel, Relids outer, const EditsSize *size)
{
	ParamPathInfo *param = get_baserel_parampathinfo(root, rel, outer);
	EditsSize inner = *size;
	ListCell *cell;

	foreach (cell, param->ppi_clauses)
	{
		RestrictInfo *rinfo = lfirst(cell);
		CallCond cond;

		if (!edits_cond_match(root, rel->relid, rinfo->clause, &cond))
			continue;
		if (cond.column == EDITS_SEQ && cond.strategy == BTEqualStrategyNumber)
			inner.scanned = inner.rows = 1;
		else if (cond.column <= EDITS_AT)
			inner.scanned *= clause_selectivity(root, (Node *) rinfo, rel->relid, JOIN_INNER, NULL);
	}
	inner.scanned = clamp_row_est(inner.scanned);
	param->ppi_rows = Min(param->ppi_rows, inner.rows);
	return inner;
}

/* ---- all of them ---- */

/* The sheet, when it is one: the function's argument, or what its column must be equal to. */
static Expr *
plan_find_sheet(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call)
{
	ListCell *cell;

	if (call->args != NIL)
		return linitial(call->args);
	foreach (cell, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst(cell);
		CallCond cond;

		if (edits_cond_match(root, rel->relid, rinfo->clause, &cond) && cond.column == EDITS_SHEET_ID &&
			cond.strategy == BTEqualStrategyNumber)
			return cond.value;
	}
	return NULL;
}

static void
plan_replace_paths(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call)
{
	EditsOrder order = edits_order_wanted(root, rel->relid);
	EditsSize size = edits_size_scan(root, rel, plan_find_sheet(root, rel, call));
	List *outers = plan_find_outers(root, rel);
	ListCell *cell;

	rel->rows = size.rows;
	rel->pathlist = NIL;
	plan_add_paths(root, rel, call, rel->lateral_relids, &size, &order);
	foreach (cell, outers)
	{
		EditsSize inner = plan_outer_size(root, rel, lfirst(cell), &size);

		plan_add_paths(root, rel, call, lfirst(cell), &inner, &order);
	}
}

static void
plan_edits(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, const char *source)
{
	if (strcmp(source, EDITS_SOURCE) == 0)
		plan_replace_paths(root, rel, call);
}

void
edits_plan_init(void)
{
	call_plan_add(plan_edits, &edits_scan_methods);
}
