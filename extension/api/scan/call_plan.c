/*
 * call_plan.c - scans in place of calls: from the query to the plan.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "api/scan/call.h"
#include "catalog/namespace.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#define PLAN_KINDS 4

static set_rel_pathlist_hook_type plan_next_hook = NULL;
static CallPlanFn plan_kinds[PLAN_KINDS];
static int plan_nkinds = 0;

/* ---- which function ---- */

/* One that somebody has made SECURITY DEFINER, or given settings of its own, is left to be called with them. */
static const char *
plan_source(HeapTuple tuple)
{
	Form_pg_proc function = (Form_pg_proc) GETSTRUCT(tuple);
	bool isnull;
	Datum source;

	if (function->prolang != ClanguageId || function->prosecdef ||
		!heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL) ||
		function->pronamespace != get_namespace_oid("sheet", true))
		return NULL;
	source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	return isnull ? NULL : TextDatumGetCString(source);
}

static FuncExpr *
plan_call(const RangeTblEntry *rte)
{
	FuncExpr *call;

	if (rte->rtekind != RTE_FUNCTION || list_length(rte->functions) != 1)
		return NULL;
	call = (FuncExpr *) linitial_node(RangeTblFunction, rte->functions)->funcexpr;
	return IsA(call, FuncExpr) ? call : NULL;
}

const char *
call_source(const RangeTblEntry *rte)
{
	FuncExpr *call = plan_call(rte);
	const char *source;
	HeapTuple tuple;

	if (call == NULL)
		return NULL;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(call->funcid));
	if (!HeapTupleIsValid(tuple))
		return NULL;
	source = plan_source(tuple);
	ReleaseSysCache(tuple);
	return source;
}

/* Rows as a whole are left to the function. */
static bool
plan_needs_rows(RelOptInfo *rel)
{
	Bitmapset *columns = NULL;
	ListCell *cell;

	foreach (cell, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, cell)->clause, rel->relid, &columns);
	return !bms_is_empty(rel->attr_needed[-rel->min_attr]) ||
		   bms_is_member(-FirstLowInvalidHeapAttributeNumber, columns);
}

/* ---- paths ---- */

static void
plan_hook(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	const char *source;

	if (plan_next_hook != NULL)
		plan_next_hook(root, rel, rti, rte);
	if (rel->reloptkind != RELOPT_BASEREL || rte->rtekind != RTE_FUNCTION || rte->funcordinality || IS_DUMMY_REL(rel))
		return;
	source = call_source(rte);
	if (source == NULL || plan_needs_rows(rel))
		return;
	for (int i = 0; i < plan_nkinds; i++)
		plan_kinds[i](root, rel, plan_call(rte), source);
}

void
call_plan_add(CallPlanFn plan, const CustomScanMethods *methods)
{
	RegisterCustomScanMethods(methods);
	if (plan_nkinds == 0)
	{
		plan_next_hook = set_rel_pathlist_hook;
		set_rel_pathlist_hook = plan_hook;
	}
	Assert(plan_nkinds < PLAN_KINDS);
	plan_kinds[plan_nkinds++] = plan;
}

List *
call_private(FuncExpr *call, List *numbers)
{
	return lcons_int((int) call->funcid, numbers);
}

void
call_replace_path(RelOptInfo *rel, FuncExpr *call, List *numbers, List *pathkeys, const CustomPathMethods *methods)
{
	CustomPath *path = makeNode(CustomPath);

	path->path = *(Path *) linitial(rel->pathlist);
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->path.pathkeys = pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION | CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	path->custom_private = call_private(call, numbers);
	path->methods = methods;
	rel->pathlist = NIL;
	add_path(rel, &path->path);
}

/* ---- from path to plan ---- */

/* Takes the conditions out that the scan checks by itself; adds to values and conds what the plan has of them. */
static List *
plan_take_conds(PlannerInfo *root, Index rti, CallTypeFn type_of, List *clauses, List **values, List **conds)
{
	List *rest = NIL;
	ListCell *cell;

	foreach (cell, clauses)
	{
		RestrictInfo *rinfo = lfirst(cell);
		CallCond cond;

		if (rinfo->pseudoconstant)
			continue;
		if (type_of != NULL && call_cond_match(root, rti, rinfo->clause, type_of, &cond))
		{
			*values = lappend(*values, cond.value);
			*conds = lappend_int(lappend_int(*conds, cond.column), cond.strategy);
			if (cond.exact)
				continue;
		}
		rest = lappend(rest, rinfo->clause);
	}
	return rest;
}

static List *
plan_add_columns(List *columns, Index rti, List *exprs)
{
	ListCell *cell;

	foreach (cell, pull_var_clause((Node *) exprs,
								   PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS))
	{
		Var *var = lfirst(cell);

		if (var->varno == rti && tlist_member((Expr *) var, columns) == NULL)
			columns =
				lappend(columns, makeTargetEntry((Expr *) copyObject(var), list_length(columns) + 1, NULL, false));
	}
	return columns;
}

/*
 * The columns that the scan has to form: those of the target list first, so that it mostly needs no projection; the
 * planner may yet put another target list in its place, with any columns of the relation's.
 */
static List *
plan_columns(RelOptInfo *rel, List *tlist, List *quals)
{
	List *columns = plan_add_columns(NIL, rel->relid, tlist);

	columns = plan_add_columns(columns, rel->relid, rel->reltarget->exprs);
	return plan_add_columns(columns, rel->relid, quals);
}

Plan *
call_create_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, CallTypeFn type_of,
				 const CustomScanMethods *methods)
{
	CustomScan *scan = makeNode(CustomScan);
	FuncExpr *call = plan_call(planner_rt_fetch(rel->relid, root));
	List *conds = NIL;

	scan->custom_exprs = list_copy(call->args);
	scan->scan.plan.qual = plan_take_conds(root, rel->relid, type_of, clauses, &scan->custom_exprs, &conds);
	scan->scan.plan.targetlist = tlist;
	scan->custom_scan_tlist = plan_columns(rel, tlist, scan->scan.plan.qual);
	scan->flags = path->flags;
	scan->custom_private = list_concat(list_copy(path->custom_private), conds);
	scan->methods = methods;
	record_plan_function_dependency(root, call->funcid);
	return &scan->scan.plan;
}

/* ---- order ---- */

static void
plan_add_order(List **clauses, List **entries, Index rti, int column, Oid type, bool backward)
{
	TypeCacheEntry *cache = lookup_type_cache(type, TYPECACHE_EQ_OPR | TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	Var *var = makeVar(rti, column, type, -1, InvalidOid, 0);
	TargetEntry *entry = makeTargetEntry((Expr *) var, list_length(*entries) + 1, NULL, false);
	SortGroupClause *clause = makeNode(SortGroupClause);

	entry->ressortgroupref = entry->resno;
	clause->tleSortGroupRef = entry->resno;
	clause->eqop = cache->eq_opr;
	clause->sortop = backward ? cache->gt_opr : cache->lt_opr;
	clause->nulls_first = backward;
	*entries = lappend(*entries, entry);
	*clauses = lappend(*clauses, clause);
}

List *
call_pathkeys(PlannerInfo *root, Index rti, const int *columns, const Oid *types, int count, bool backward)
{
	List *clauses = NIL, *entries = NIL;

	for (int i = 0; i < count; i++)
		plan_add_order(&clauses, &entries, rti, columns[i], types[i], backward);
	return make_pathkeys_for_sortclauses(root, clauses, entries);
}
