/*
 * call_plan.c - scans in place of calls: from the query to the plan.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "call.h"
#include "catalog/namespace.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* ---- which function ---- */

/* One that somebody has made SECURITY DEFINER, or given settings of its own, is left to be called with them. */
static bool
plan_is_function(HeapTuple tuple, const char *source)
{
	Form_pg_proc function = (Form_pg_proc) GETSTRUCT(tuple);
	bool isnull;
	Datum name = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);

	return function->prolang == ClanguageId && !function->prosecdef &&
		   heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL) && !isnull &&
		   strcmp(TextDatumGetCString(name), source) == 0 && function->pronamespace == get_namespace_oid("sheet", true);
}

FuncExpr *
call_find(const RangeTblEntry *rte, const char *source)
{
	const RangeTblFunction *function;
	FuncExpr *call;
	HeapTuple tuple;
	bool ours;

	if (rte->rtekind != RTE_FUNCTION || list_length(rte->functions) != 1)
		return NULL;
	function = linitial(rte->functions);
	call = (FuncExpr *) function->funcexpr;
	if (!IsA(call, FuncExpr))
		return NULL;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(call->funcid));
	if (!HeapTupleIsValid(tuple))
		return NULL;
	ours = plan_is_function(tuple, source);
	ReleaseSysCache(tuple);
	return ours ? call : NULL;
}

bool
call_needs_rows(RelOptInfo *rel)
{
	Bitmapset *columns = NULL;
	ListCell *cell;

	foreach (cell, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, cell)->clause, rel->relid, &columns);
	return !bms_is_empty(rel->attr_needed[-rel->min_attr]) ||
		   bms_is_member(-FirstLowInvalidHeapAttributeNumber, columns);
}

/* ---- from path to plan ---- */

/* Takes the conditions out that the scan checks by itself. */
List *
call_take_conds(PlannerInfo *root, Index rti, CallTypeFn type_of, List *clauses, List **values, List **conds)
{
	List *rest = NIL;
	ListCell *cell;

	foreach (cell, clauses)
	{
		RestrictInfo *rinfo = lfirst(cell);
		CallCond cond;

		if (rinfo->pseudoconstant)
			continue;
		if (call_cond_match(root, rti, rinfo->clause, type_of, &cond))
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
List *
call_columns(RelOptInfo *rel, List *tlist, List *quals)
{
	List *columns = plan_add_columns(NIL, rel->relid, tlist);

	columns = plan_add_columns(columns, rel->relid, rel->reltarget->exprs);
	return plan_add_columns(columns, rel->relid, quals);
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
