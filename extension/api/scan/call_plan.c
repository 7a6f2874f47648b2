/*
 * call_plan.c - custom scans in place of calls: conditions, paths and plans.
 *
 * A condition can be used if it is "column operator value" with a btree operator on integers or times, or equality of
 * texts under a deterministic collation. These operators are leakproof, so it is safe to apply them before conditions
 * of a security barrier.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "api/scan/call.h"
#include "compat.h"
#include "catalog/namespace.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#define PLAN_MAX_KINDS 2

static set_rel_pathlist_hook_type plan_next_hook = NULL;
static planner_hook_type plan_next_planner = NULL;
static const CallKind *plan_kinds[PLAN_MAX_KINDS];
static int plan_nkinds = 0;

/* ---- conditions ---- */

/* The btree strategy of an operator on a column that is compared as this type; 0: the scan cannot use it. */
static int
plan_strategy(Oid compared, Oid operator, Oid collation)
{
	Oid family, left, right;
	int strategy;

	if (!OidIsValid(compared) || !OidIsValid(operator))
		return 0;
	family = lookup_type_cache(compared, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	if (!op_in_opfamily(operator, family))
		return 0;
	get_op_opfamily_properties(operator, family, false, &strategy, &left, &right);
	if (compared != INT8OID && (left != compared || right != compared))
		return 0;
	if (compared == TEXTOID && (strategy != BTEqualStrategyNumber || !get_collation_isdeterministic(collation)))
		return 0;
	return strategy;
}

/* The column of the function that the node is; 0: none. */
static int
plan_column(Index rti, Node *node)
{
	Var *var = (Var *) node;

	return IsA(node, Var) && var->varno == rti && var->varlevelsup == 0 && var->varattno > 0 ? var->varattno : 0;
}

static bool
plan_is_known(PlannerInfo *root, Index rti, Node *value)
{
	return !bms_is_member(rti, pull_varnos(root, value)) && !contain_volatile_functions(value) &&
		   !contain_subplans(value);
}

/* column = ANY (array of integers) */
static bool
plan_match_array(PlannerInfo *root, Index rti, const ScalarArrayOpExpr *clause, const CallFunction *function,
				 CallCond *cond)
{
	cond->column = plan_column(rti, linitial(clause->args));
	cond->strategy = CALL_STRATEGY_ANY;
	cond->value = lsecond(clause->args);
	cond->exact = false;
	return clause->useOr && cond->column != 0 && function->columns[cond->column - 1].compared == INT8OID &&
		   plan_strategy(INT8OID, clause->opno, clause->inputcollid) == BTEqualStrategyNumber &&
		   plan_is_known(root, rti, (Node *) cond->value);
}

bool
call_cond_match(PlannerInfo *root, Index rti, Expr *clause, const CallFunction *function, CallCond *cond)
{
	OpExpr *op = (OpExpr *) clause;
	Node *left, *right;
	bool swap;

	if (function->columns == NULL)
		return false;
	if (IsA(clause, ScalarArrayOpExpr))
		return plan_match_array(root, rti, (ScalarArrayOpExpr *) clause, function, cond);
	if (!IsA(clause, OpExpr) || list_length(op->args) != 2)
		return false;
	swap = plan_column(rti, linitial(op->args)) == 0;
	left = swap ? lsecond(op->args) : linitial(op->args);
	right = swap ? linitial(op->args) : lsecond(op->args);
	cond->column = plan_column(rti, left);
	if (cond->column == 0)
		return false;
	cond->strategy = plan_strategy(function->columns[cond->column - 1].compared,
								   swap ? get_commutator(op->opno) : op->opno, op->inputcollid);
	cond->value = (Expr *) right;
	cond->exact = true;
	return cond->strategy != 0 && plan_is_known(root, rti, right);
}

/* ---- paths ---- */

static FuncExpr *
plan_call(const RangeTblEntry *rte)
{
	FuncExpr *call;

	if (rte->rtekind != RTE_FUNCTION || rte->funcordinality || list_length(rte->functions) != 1)
		return NULL;
	call = (FuncExpr *) linitial_node(RangeTblFunction, rte->functions)->funcexpr;
	return IsA(call, FuncExpr) ? call : NULL;
}

/* The C name of a function of schema sheet. NULL for other functions, and for those that were made SECURITY DEFINER or
 * given settings: these must be called. */
static char *
plan_source(Oid function)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	char *source = NULL;
	bool isnull;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	if (form->prolang == ClanguageId && !form->prosecdef && heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL) &&
		form->pronamespace == get_namespace_oid("sheet", true))
		source = TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull));
	ReleaseSysCache(tuple);
	return source;
}

static bool
plan_needs_whole_rows(RelOptInfo *rel)
{
	Bitmapset *columns = NULL;
	ListCell *cell;

	foreach (cell, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, cell)->clause, rel->relid, &columns);
	return !bms_is_empty(rel->attr_needed[-rel->min_attr]) ||
		   bms_is_member(-FirstLowInvalidHeapAttributeNumber, columns);
}

/* The kind of scan that can replace the call, and the index of its function; NULL if there is none. */
static const CallKind *
plan_find_kind(const FuncExpr *call, int *function)
{
	const char *source = call != NULL ? plan_source(call->funcid) : NULL;

	for (int i = 0; source != NULL && i < plan_nkinds; i++)
		for (*function = 0; *function < plan_kinds[i]->nfunctions; (*function)++)
			if (strcmp(source, plan_kinds[i]->functions[*function].source) == 0 &&
				list_length(call->args) == plan_kinds[i]->functions[*function].nargs)
				return plan_kinds[i];
	return NULL;
}

static void
plan_hook(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	FuncExpr *call = plan_call(rte);
	const CallKind *kind;
	int function;

	if (plan_next_hook != NULL)
		plan_next_hook(root, rel, rti, rte);
	if (rel->reloptkind == RELOPT_BASEREL && !IS_DUMMY_REL(rel) && (kind = plan_find_kind(call, &function)) != NULL &&
		!plan_needs_whole_rows(rel))
		kind->add_paths(root, rel, call, function);
}

CustomPath *
call_make_path(const CallKind *kind, RelOptInfo *rel, FuncExpr *call, int function, int mode, List *pathkeys)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.pathkeys = pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION | kind->flags;
	path->custom_private = list_make3_int((int) call->funcid, function, mode);
	path->methods = &kind->path_methods;
	return path;
}

/* ---- statements that need whole rows ---- */

/* Whether the query selects from one call, and from nothing else. */
static bool
plan_is_view(const Query *query)
{
	Node *from = list_length(query->jointree->fromlist) == 1 ? linitial(query->jointree->fromlist) : NULL;
	int function;

	return query->commandType == CMD_SELECT && from != NULL && IsA(from, RangeTblRef) &&
		   plan_find_kind(plan_call(rt_fetch(((RangeTblRef *) from)->rtindex, query->rtable)), &function) != NULL;
}

/*
 * UPDATE, DELETE, MERGE and SELECT FOR UPDATE may look again at the rows that they join (EvalPlanQual), so the planner
 * asks for whole rows, which a scan does not have. A view over a call, such as sheet.log, therefore stays a subquery in
 * them: the whole row is that of the subquery. PostgreSQL does not pull up a subquery that is a security barrier, and
 * to mark one is always safe. `arg`: whether a query around this one keeps rows.
 */
static bool
plan_keep_views(Node *node, void *arg)
{
	Query *query = (Query *) node;
	bool keeps;
	ListCell *cell;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, plan_keep_views, arg);
	keeps = *(bool *) arg || query->rowMarks != NIL ||
			(query->commandType != CMD_SELECT && query->commandType != CMD_INSERT);
	foreach (cell, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

		if (keeps && rte->rtekind == RTE_SUBQUERY && plan_is_view(rte->subquery))
			rte->security_barrier = true;
	}
	return query_tree_walker(query, plan_keep_views, &keeps, 0);
}

static PlannedStmt *
plan_planner(Query *query, const char *source, int options, ParamListInfo params)
{
	bool keeps = false;

	(void) plan_keep_views((Node *) query, &keeps);
	return (plan_next_planner != NULL ? plan_next_planner : standard_planner)(query, source, options, params);
}

/* ---- plans ---- */

/* Moves conditions that the scan uses to *values and *conds. Returns the clauses that the executor checks. */
static List *
plan_take_conds(PlannerInfo *root, Index rti, const CallFunction *function, List *clauses, List **values, List **conds)
{
	List *rest = NIL;
	ListCell *cell;

	foreach (cell, clauses)
	{
		RestrictInfo *rinfo = lfirst(cell);
		CallCond cond;

		if (rinfo->pseudoconstant)
			continue;
		if (call_cond_match(root, rti, rinfo->clause, function, &cond))
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
 * The columns that the scan forms: those of the target list first, so that mostly no projection is needed; then the
 * relation's others, since the planner may replace the target list later. Above the relation, a scan forms the
 * aggregate that its path stands for.
 */
static List *
plan_columns(RelOptInfo *rel, CustomPath *path, List *tlist, List *quals)
{
	List *columns;

	if (IS_UPPER_REL(path->path.parent))
		return list_make1(makeTargetEntry(copyObject(linitial(path->path.pathtarget->exprs)), 1, NULL, false));
	columns = plan_add_columns(NIL, rel->relid, tlist);
	columns = plan_add_columns(columns, rel->relid, rel->reltarget->exprs);
	return plan_add_columns(columns, rel->relid, quals);
}

static Plan *
plan_create(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	const CallKind *kind = (const CallKind *) ((const char *) path->methods - offsetof(CallKind, path_methods));
	const CallFunction *function = &kind->functions[list_nth_int(path->custom_private, CALL_PRIVATE_FUNCTION)];
	CustomScan *scan = makeNode(CustomScan);
	List *conds = NIL;
	FuncExpr *call;

	if (IS_UPPER_REL(rel))
	{
		rel = find_base_rel(root, bms_singleton_member(root->all_baserels));
		clauses = rel->baserestrictinfo;
	}
	call = plan_call(planner_rt_fetch(rel->relid, root));
	scan->custom_exprs = list_copy(call->args);
	scan->scan.plan.qual = plan_take_conds(root, rel->relid, function, clauses, &scan->custom_exprs, &conds);
	scan->scan.plan.targetlist = tlist;
	scan->custom_scan_tlist = plan_columns(rel, path, tlist, scan->scan.plan.qual);
	scan->flags = path->flags;
	scan->custom_private = list_concat(list_copy(path->custom_private), conds);
	scan->methods = &kind->scan_methods;
	record_plan_function_dependency(root, call->funcid);
	return &scan->scan.plan;
}

void
call_register(CallKind *kind)
{
	kind->path_methods = (CustomPathMethods){.CustomName = kind->name, .PlanCustomPath = plan_create};
	kind->scan_methods = (CustomScanMethods){.CustomName = kind->name, .CreateCustomScanState = call_create_state};
	kind->exec_methods = call_exec_methods(kind->name);
	RegisterCustomScanMethods(&kind->scan_methods);
	if (plan_nkinds == 0)
	{
		plan_next_hook = set_rel_pathlist_hook;
		set_rel_pathlist_hook = plan_hook;
		plan_next_planner = planner_hook;
		planner_hook = plan_planner;
	}
	Assert(plan_nkinds < PLAN_MAX_KINDS);
	plan_kinds[plan_nkinds++] = kind;
}

/* ---- order ---- */

List *
call_pathkeys(PlannerInfo *root, Index rti, const int *columns, const Oid *types, int count, bool backward)
{
	List *clauses = NIL, *entries = NIL;

	for (int i = 0; i < count; i++)
	{
		SortGroupClause *clause = makeNode(SortGroupClause);
		TargetEntry *entry;
		TypeCacheEntry *cache;

		cache = lookup_type_cache(types[i], TYPECACHE_EQ_OPR | TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
		entry = makeTargetEntry((Expr *) makeVar(rti, columns[i], types[i], -1, InvalidOid, 0), i + 1, NULL, false);
		entry->ressortgroupref = clause->tleSortGroupRef = i + 1;
		clause->eqop = cache->eq_opr;
		clause->sortop = backward ? cache->gt_opr : cache->lt_opr;
		clause->nulls_first = backward;
		compat_set_reverse(clause, backward);
		entries = lappend(entries, entry);
		clauses = lappend(clauses, clause);
	}
	return make_pathkeys_for_sortclauses(root, clauses, entries);
}
