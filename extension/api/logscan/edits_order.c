/*
 * edits_order.c - the order of edits, as the planner understands it.
 *
 * The log is read in the order of (sheet_id, seq), or backward. Within a sheet the times grow with the seqs, so a
 * scan is ordered by (sheet_id, at) as well.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "api/logscan/edits_plan.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"

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
	return var->varlevelsup == 0 && edits_is_call(rt_fetch(var->varno, rte->subquery->rtable)) ? var->varattno : 0;
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

/* The rows come out in the order of the scan. */
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
	order = (EditsOrder){0};
	if (root->query_pathkeys == NIL && root->parent_root != NULL && order_can_inherit(root->parse) &&
		order_find(root->parent_root, 0, &order))
		return order;
	return (EditsOrder){.column = EDITS_SEQ};
}

List *
edits_order_pathkeys(PlannerInfo *root, Index rti, const EditsOrder *order, bool listed)
{
	int columns[2] = {EDITS_SHEET_ID, order->column};
	Oid types[2] = {INT8OID, order->column == EDITS_AT ? TIMESTAMPTZOID : INT8OID};
	int skip = listed || order->with_sheet ? 0 : 1;

	return call_pathkeys(root, rti, columns + skip, types + skip, 2 - skip, order->backward);
}
