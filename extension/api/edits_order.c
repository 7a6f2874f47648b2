/*
 * edits_order.c - the order of edits, as the planner understands it.
 *
 * The log is read in the order of (sheet_id, seq), or backward. Within a sheet the times grow with the seqs, so a
 * scan is ordered by (sheet_id, at) as well.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "edits_plan.h"
#include "nodes/makefuncs.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/typcache.h"

/* The column of the log that a variable shows: one of rti, or one of a subquery that selects from the log. */
static EditsColumn
order_column(PlannerInfo *root, Index rti, Var *var)
{
	RangeTblEntry *rte;
	TargetEntry *entry;

	if (!IsA(var, Var) || var->varlevelsup != 0 || var->varattno <= 0)
		return 0;
	if (rti != 0)
		return var->varno == rti ? var->varattno : 0;
	rte = planner_rt_fetch(var->varno, root);
	if (rte->rtekind != RTE_SUBQUERY)
		return 0;
	entry = get_tle_by_resno(rte->subquery->targetList, var->varattno);
	if (entry == NULL || !IsA(entry->expr, Var))
		return 0;
	var = (Var *) entry->expr;
	return var->varlevelsup == 0 && edits_size_call(rt_fetch(var->varno, rte->subquery->rtable)) != NULL ? var->varattno
																										 : 0;
}

static EditsColumn
order_pathkey_column(PlannerInfo *root, Index rti, PathKey *key)
{
	ListCell *cell;

	foreach (cell, key->pk_eclass->ec_members)
	{
		EquivalenceMember *member = lfirst(cell);
		EditsColumn column = order_column(root, rti, (Var *) member->em_expr);

		if (column != 0)
			return column;
	}
	return 0;
}

static bool
order_find(PlannerInfo *root, Index rti, EditsOrder *order)
{
	ListCell *cell;

	foreach (cell, root->query_pathkeys)
	{
		PathKey *key = lfirst(cell);
		EditsColumn column = order_pathkey_column(root, rti, key);

		order->backward = key->pk_strategy == BTGreaterStrategyNumber;
		order->column = column;
		if (column == EDITS_SHEET_ID)
			order->with_sheet = true;
		else
			return column == EDITS_SEQ || column == EDITS_AT;
	}
	return false;
}

/* Nothing in the query but the scan itself and joins. */
static bool
order_can_inherit(const Query *query)
{
	return !query->hasAggs && !query->hasWindowFuncs && query->groupClause == NIL && query->groupingSets == NIL &&
		   query->distinctClause == NIL && query->sortClause == NIL && query->setOperations == NULL;
}

EditsOrder
edits_order_wanted(PlannerInfo *root, Index rti)
{
	EditsOrder order = {0};

	if (order_find(root, rti, &order))
		return order;
	order = (EditsOrder){.inherited = true};
	if (root->query_pathkeys == NIL && root->parent_root != NULL && order_can_inherit(root->parse) &&
		order_find(root->parent_root, 0, &order))
		return order;
	return (EditsOrder){.column = EDITS_SEQ};
}

static void
order_add(List **clauses, List **entries, Index rti, EditsColumn column, bool backward)
{
	Oid type = column == EDITS_AT ? TIMESTAMPTZOID : INT8OID;
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
edits_order_pathkeys(PlannerInfo *root, Index rti, const EditsOrder *order, bool listed)
{
	List *clauses = NIL, *entries = NIL;

	if (listed || order->with_sheet)
		order_add(&clauses, &entries, rti, EDITS_SHEET_ID, order->backward);
	order_add(&clauses, &entries, rti, order->column, order->backward);
	return make_pathkeys_for_sortclauses(root, clauses, entries);
}

void
edits_order_keep(PlannerInfo *root, const EditsOrder *order, List *pathkeys)
{
	if (order->inherited)
		root->query_pathkeys = pathkeys;
}
