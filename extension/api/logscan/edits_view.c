/*
 * edits_view.c - views of the log inside queries.
 *
 * sheet.log is a security barrier, which PostgreSQL plans as a query of its own: its columns are made twice, and
 * conditions of joins do not get into it. But the barrier guards nothing: a scan of edits reads only what the caller
 * may see (edits_read.c), and the view leaves none of it out. So it is taken away before a query is planned, and the
 * scan becomes one of the query's own. Where PostgreSQL may have to look again at the rows of a statement (UPDATE,
 * DELETE, FOR UPDATE), it asks for rows as a whole, which scans do not have: there the barrier stays.
 */
#include "postgres.h"

#include "api/logscan/edits_plan.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"

static planner_hook_type view_next_hook = NULL;

/* Nothing but columns of sheet.log_edits, of all its rows. A view's query has other relations in its table, too. */
static bool
view_is_plain(const Query *query)
{
	RangeTblRef *from;
	ListCell *cell;

	if (query->commandType != CMD_SELECT || list_length(query->jointree->fromlist) != 1 ||
		query->jointree->quals != NULL || query->groupClause != NIL || query->distinctClause != NIL ||
		query->limitOffset != NULL || query->limitCount != NULL)
		return false;
	foreach (cell, query->targetList)
		if (!IsA(lfirst_node(TargetEntry, cell)->expr, Var))
			return false;
	from = linitial(query->jointree->fromlist);
	return IsA(from, RangeTblRef) && edits_is_call(rt_fetch(from->rtindex, query->rtable));
}

/* Are rows of this query's relations kept, to look at them again? */
static bool
view_rows_are_kept(const Query *query)
{
	return query->rowMarks != NIL || (query->commandType != CMD_SELECT && query->commandType != CMD_INSERT);
}

/* kept: rows of a query around this one are kept, and this one may become a part of it. */
static bool
view_walk(Node *node, void *kept)
{
	Query *query = (Query *) node;
	bool keeps;
	ListCell *cell;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, view_walk, kept);
	keeps = *(bool *) kept || view_rows_are_kept(query);
	foreach (cell, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

		if (!keeps && rte->rtekind == RTE_SUBQUERY && rte->security_barrier && view_is_plain(rte->subquery))
			rte->security_barrier = false;
	}
	return query_tree_walker(query, view_walk, &keeps, 0);
}

static PlannedStmt *
view_hook(Query *query, const char *source, int options, ParamListInfo params)
{
	bool kept = false;

	(void) view_walk((Node *) query, &kept);
	if (view_next_hook != NULL)
		return view_next_hook(query, source, options, params);
	return standard_planner(query, source, options, params);
}

void
edits_view_init(void)
{
	view_next_hook = planner_hook;
	planner_hook = view_hook;
}
