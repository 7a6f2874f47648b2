/*
 * edits_scan.c - sheet.log_edits(): "Custom Scan (SheetLog)", and plain calls.
 *
 * The log is read in the order of (sheet_id, seq), or backward. Times grow with seqs within a sheet, so a scan is
 * ordered by (sheet_id, at) as well. A query that returns one count(*) and nothing else gets a scan that counts:
 * batches tell how many edits they have, and no row is formed.
 *
 * Who may read what is decided when a scan begins, by the current role (edits_read.c).
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "api/logscan/edits_read.h"
#include "compat.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "journal/journal.h"
#include "journal/store/storage.h"
#include "miscadmin.h"
#include "nodes/supportnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/restrictinfo.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(sheet_log_edits);
PG_FUNCTION_INFO_V1(sheet_log_edits_support);

/* What a scan does: bits of CALL_PRIVATE_MODE. */
#define EDITS_BACKWARD 1
#define EDITS_COUNT	   2

#define EDITS_UNKNOWN_SHEET	 1000.0 /* estimate of the edits of a sheet of which nothing is known */
#define EDITS_ESTIMATED_SIZE 64		/* bytes of an edit */

static const CallColumn edits_columns[EDITS_COLUMNS] = {
	{"Sheet", INT8OID}, {"Seq", INT8OID},	   {"Segment", INT8OID}, {"At", TIMESTAMPTZOID},
	{"User", INT8OID},	{"Username", TEXTOID}, {"Origin", INT8OID},	 {"Kind", TEXTOID},
	{"Row", INT8OID},	{"Col", INT8OID},	   {"Cell", TEXTOID}};

static const CallFunction edits_functions[] = {{"sheet_log_edits", {"Log of Sheet"}, 1, EDITS_COLUMNS, edits_columns},
											   {"sheet_log_edits", {NULL}, 0, EDITS_COLUMNS, edits_columns}};

/* ---- execution ---- */

typedef struct EditsScan
{
	CallScan scan;
	EditsReader *reader;
	EditsCounters counters;
	bool counted;
} EditsScan;

/* A cell is a row, a column and a kind of edit that has a cell. */
static void
edits_limit_text(CallRange *ranges, int column, text *value)
{
	int64 uid;

	if (column == EDITS_KIND)
		call_range_limit(&ranges[EDITS_KIND], BTEqualStrategyNumber,
						 edits_kind_number(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)));
	else if (column == EDITS_A1)
	{
		call_range_limit_cell(&ranges[EDITS_ROW], &ranges[EDITS_COL], value);
		call_range_limit(&ranges[EDITS_KIND], BTGreaterEqualStrategyNumber, EDIT_SET);
		call_range_limit(&ranges[EDITS_KIND], BTLessEqualStrategyNumber, EDIT_STYLE);
	}
	else if (usernames_is_of_links(value))
		call_range_limit(&ranges[EDITS_UID], BTLessStrategyNumber, 0);
	else if (usernames_find(value, &uid))
		call_range_limit(&ranges[EDITS_UID], BTEqualStrategyNumber, uid);
	else
		call_range_clear(&ranges[EDITS_UID]);
}

static void
edits_open(CallScan *scan, const NullableDatum *args, const CallRange *ranges)
{
	EditsScan *state = (EditsScan *) scan;
	EditsQuery query = {.listed = scan->function->nargs == 0,
						.backward = (scan->mode & EDITS_BACKWARD) != 0,
						.snapshot = scan->css.ss.ps.state->es_snapshot};

	if (!query.listed)
		query.sheet_id = catalog_sheet(args[0]);
	memcpy(query.range, ranges, sizeof(query.range));
	for (int i = 0; i < scan->noutputs; i++)
		if (scan->outputs[i].column > 0)
			query.need = Max(query.need, edits_need_of(scan->outputs[i].column));
	state->counted = false;
	state->reader = edits_begin(&query, &state->counters);
}

/* Counting returns one row. */
static bool
edits_scan_next(CallScan *scan)
{
	EditsScan *state = (EditsScan *) scan;

	if ((scan->mode & EDITS_COUNT) != 0)
	{
		bool first = !state->counted;

		state->counted = true;
		return first;
	}
	return edits_next(state->reader);
}

static Datum
edits_scan_value(CallScan *scan, int column, bool *isnull)
{
	EditsReader *reader = ((EditsScan *) scan)->reader;

	return column == CALL_COUNT ? Int64GetDatum(edits_count(reader)) : edits_value(reader, column, isnull);
}

static void
edits_close(CallScan *scan)
{
	edits_end(((EditsScan *) scan)->reader);
}

static void
edits_explain(CallScan *scan, ExplainState *es)
{
	const EditsCounters *counters = &((EditsScan *) scan)->counters;

	if ((scan->mode & EDITS_BACKWARD) != 0)
		ExplainPropertyText("Order", "newest first", es);
	if ((scan->mode & EDITS_COUNT) != 0)
		ExplainPropertyText("Returns", "number of edits", es);
	if (!es->analyze)
		return;
	ExplainPropertyInteger("Batches Read", NULL, counters->batches_read, es);
	ExplainPropertyInteger("Batches Skipped", NULL, counters->batches_skipped, es);
	ExplainPropertyInteger("Edits Skipped", NULL, counters->edits_skipped, es);
}

static void edits_add_paths(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, int function);

static CallKind edits_kind = {.name = "SheetLog",
							  .functions = edits_functions,
							  .nfunctions = lengthof(edits_functions),
							  .state_size = sizeof(EditsScan),
							  .add_paths = edits_add_paths,
							  .limit_text = edits_limit_text,
							  .open = edits_open,
							  .next = edits_scan_next,
							  .value = edits_scan_value,
							  .close = edits_close,
							  .explain = edits_explain};

/* ---- estimates ---- */

/* Everybody can see estimates: the size of a sheet is shown only to those to whom it is listed. */
static bool
edits_may_tell_size(int64 sheet_id)
{
	int count;

	if (superuser())
		return true;
	pfree(permission_listed(sheet_id, sheet_id, &count));
	return count > 0;
}

/* sheet: an expression */
static double
edits_size_of_sheet(PlannerInfo *root, Expr *sheet)
{
	Const *known = (Const *) estimate_expression_value(root, (Node *) sheet);
	int64 sheet_id;

	if (!IsA(known, Const) || known->constisnull || !ActiveSnapshotSet())
		return EDITS_UNKNOWN_SHEET;
	sheet_id = call_int64(known->consttype, known->constvalue);
	if (!edits_may_tell_size(sheet_id))
		return EDITS_UNKNOWN_SHEET;
	return Max(journal_guess_seq(sheet_id, GetActiveSnapshot()), 1);
}

static double
edits_size_of_all(void)
{
	Relation rel = storage_open(STORAGE_LOG_BATCH, AccessShareLock);
	double blocks = RelationGetNumberOfBlocks(rel);

	table_close(rel, NoLock);
	return Max(blocks * BLCKSZ / EDITS_ESTIMATED_SIZE, EDITS_UNKNOWN_SHEET);
}

/* The planner asks for the number of rows. Calling this function loads the library, and so installs its hooks before
 * paths are made. */
Datum
sheet_log_edits_support(PG_FUNCTION_ARGS)
{
	SupportRequestRows *request = (SupportRequestRows *) PG_GETARG_POINTER(0);
	FuncExpr *call;

	if (!IsA(request, SupportRequestRows) || !IsA(request->node, FuncExpr))
		PG_RETURN_POINTER(NULL);
	call = (FuncExpr *) request->node;
	request->rows = call->args == NIL ? edits_size_of_all() : edits_size_of_sheet(request->root, linitial(call->args));
	PG_RETURN_POINTER(request);
}

typedef struct EditsSize
{
	double scanned; /* edits in the batches that are read */
	double rows;
} EditsSize;

/* Conditions on sheet, seq, segment and time shorten the scan. `sheet`: the scan reads one sheet. */
static void
edits_size_add(PlannerInfo *root, RelOptInfo *rel, List *clauses, bool sheet, const CallFunction *function,
			   EditsSize *size)
{
	ListCell *cell;

	foreach (cell, clauses)
	{
		RestrictInfo *rinfo = lfirst(cell);
		CallCond cond = {0};
		bool usable = call_cond_match(root, rel->relid, rinfo->clause, function, &cond);
		double selectivity;

		if (usable && cond.column == EDITS_SHEET_ID && sheet)
			continue;
		selectivity = clause_selectivity(root, (Node *) rinfo, rel->relid, JOIN_INNER, NULL);
		if (usable && cond.column == EDITS_SEQ && cond.strategy == BTEqualStrategyNumber)
			selectivity = 1 / Max(size->scanned, 1);
		if (usable && cond.column <= EDITS_AT)
			size->scanned = clamp_row_est(size->scanned * selectivity);
		size->rows = clamp_row_est(size->rows * selectivity);
	}
}

/* ---- paths ---- */

/* The sheet, if the scan reads one: the function's argument, or what its column must be equal to. */
static Expr *
edits_find_sheet(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, const CallFunction *function)
{
	ListCell *cell;

	if (call->args != NIL)
		return linitial(call->args);
	foreach (cell, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst(cell);
		CallCond cond;

		if (call_cond_match(root, rel->relid, rinfo->clause, function, &cond) && cond.column == EDITS_SHEET_ID &&
			cond.strategy == BTEqualStrategyNumber)
			return cond.value;
	}
	return NULL;
}

static void
edits_set_cost(PlannerInfo *root, CustomPath *path, const EditsSize *size)
{
	ParamPathInfo *param = path->path.param_info;
	QualCost qual;

	cost_qual_eval(&qual, param != NULL ? param->ppi_clauses : NIL, root);
	path->path.rows = size->rows;
	path->path.startup_cost = random_page_cost + qual.startup + path->path.pathtarget->cost.startup;
	path->path.total_cost = path->path.startup_cost + size->scanned * cpu_operator_cost / 2 +
							path->path.rows * (cpu_tuple_cost + qual.per_tuple + path->path.pathtarget->cost.per_tuple);
}

/*
 * Adds paths for one set of outer relations: forward by seq always, the other orders if the query asks for them. What a
 * surrounding query asks for is not known here, so a subquery gets all of them.
 */
static void
edits_add_ordered(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, int function, Relids outer, const EditsSize *size)
{
	ParamPathInfo *param = get_baserel_parampathinfo(root, rel, outer);

	if (param != NULL)
		param->ppi_rows = size->rows;
	for (int order = 0; order < 4; order++)
	{
		bool by_time = (order & 2) != 0, backward = (order & 1) != 0;
		int columns[2] = {EDITS_SHEET_ID, by_time ? EDITS_AT : EDITS_SEQ};
		Oid types[2] = {INT8OID, by_time ? TIMESTAMPTZOID : INT8OID};
		int skip = call->args == NIL ? 0 : 1;
		List *pathkeys = call_pathkeys(root, rel->relid, columns + skip, types + skip, 2 - skip, backward);
		CustomPath *path;
		int useful;

		(void) pathkeys_count_contained_in(root->query_pathkeys, pathkeys, &useful);
		if (order > 0 && useful == 0 && root->parent_root == NULL)
			continue;
		path = call_make_path(&edits_kind, rel, call, function, backward ? EDITS_BACKWARD : 0, pathkeys);
		path->path.param_info = param;
		edits_set_cost(root, path, size);
		add_path(rel, &path->path);
	}
}

static bool
edits_is_usable_column(PlannerInfo *root, RelOptInfo *rel, EquivalenceClass *ec, EquivalenceMember *em, void *arg)
{
	Var *var = (Var *) em->em_expr;

	return IsA(var, Var) && var->varno == rel->relid && var->varattno == *(int *) arg;
}

/* Adds the relations whose columns the join clause compares with the log's, if a scan can use it. */
static List *
edits_add_outer(PlannerInfo *root, RelOptInfo *rel, RestrictInfo *rinfo, const CallFunction *function, List *outers)
{
	Relids outer;
	CallCond cond;
	ListCell *cell;

	if (!join_clause_is_movable_to(rinfo, rel) || !call_cond_match(root, rel->relid, rinfo->clause, function, &cond))
		return outers;
	outer = bms_difference(bms_union(rinfo->clause_relids, rel->lateral_relids), rel->relids);
	foreach (cell, outers)
		if (bms_equal(lfirst(cell), outer))
			return outers;
	return lappend(outers, outer);
}

/* The sets of other relations whose columns shorten the scan. */
static List *
edits_find_outers(PlannerInfo *root, RelOptInfo *rel, const CallFunction *function)
{
	List *outers = NIL;
	ListCell *cell;

	foreach (cell, rel->joininfo)
		outers = edits_add_outer(root, rel, lfirst(cell), function, outers);
	for (int column = EDITS_SHEET_ID; rel->has_eclass_joins && column <= EDITS_A1; column++)
	{
		List *clauses = generate_implied_equalities_for_column(root, rel, edits_is_usable_column, &column,
															   rel->lateral_referencers);

		foreach (cell, clauses)
			outers = edits_add_outer(root, rel, lfirst(cell), function, outers);
	}
	return outers;
}

static void
edits_add_paths(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, int function)
{
	const CallFunction *source = &edits_functions[function];
	Expr *sheet = edits_find_sheet(root, rel, call, source);
	EditsSize size;
	ListCell *cell;

	if (sheet != NULL)
		rel->tuples = edits_size_of_sheet(root, sheet);
	size.scanned = size.rows = rel->tuples;
	edits_size_add(root, rel, rel->baserestrictinfo, sheet != NULL, source, &size);
	rel->rows = size.rows;
	rel->pathlist = NIL;
	edits_add_ordered(root, rel, call, function, rel->lateral_relids, &size);
	foreach (cell, edits_find_outers(root, rel, source))
	{
		ParamPathInfo *param = get_baserel_parampathinfo(root, rel, lfirst(cell));
		EditsSize inner = size;

		edits_size_add(root, rel, param->ppi_clauses, sheet != NULL, source, &inner);
		edits_add_ordered(root, rel, call, function, lfirst(cell), &inner);
	}
}

/* ---- counting ---- */

static create_upper_paths_hook_type edits_next_hook = NULL;

/* The query aggregates to one count(*), and to nothing else. */
static bool
edits_count_is_wanted(PlannerInfo *root, RelOptInfo *output)
{
	const Query *query = root->parse;
	Aggref *count;

	if (query->groupClause != NIL || query->groupingSets != NIL || query->havingQual != NULL ||
		list_length(output->reltarget->exprs) != 1)
		return false;
	count = linitial(output->reltarget->exprs);
	return IsA(count, Aggref) && count->aggfnoid == F_COUNT_ && count->aggsplit == AGGSPLIT_SIMPLE &&
		   count->aggfilter == NULL && count->agglevelsup == 0;
}

/* The path to the log if it is the only relation and its scan uses all conditions. */
static const CustomPath *
edits_find_counted(PlannerInfo *root)
{
	int relid;
	RelOptInfo *rel;
	const Path *cheapest;
	const CustomPath *path;
	ListCell *cell;

	if (!bms_get_singleton_member(root->all_baserels, &relid))
		return NULL;
	rel = find_base_rel(root, relid);
	cheapest = rel->cheapest_total_path;
	if (IsA(cheapest, ProjectionPath))
		cheapest = ((const ProjectionPath *) cheapest)->subpath;
	path = (const CustomPath *) cheapest;
	if (!IsA(path, CustomPath) || path->methods != &edits_kind.path_methods || path->path.param_info != NULL)
		return NULL;
	foreach (cell, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst(cell);
		int function = list_nth_int(path->custom_private, CALL_PRIVATE_FUNCTION);
		CallCond cond;

		if (rinfo->pseudoconstant || !call_cond_match(root, relid, rinfo->clause, &edits_functions[function], &cond) ||
			!cond.exact)
			return NULL;
	}
	return path;
}

static void
edits_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output, void *extra)
{
	const CustomPath *scan;
	CustomPath *path;

	if (edits_next_hook != NULL)
		edits_next_hook(root, stage, input, output, extra);
	if (stage != UPPERREL_GROUP_AGG || !edits_count_is_wanted(root, output))
		return;
	scan = edits_find_counted(root);
	if (scan == NULL)
		return;
	path = makeNode(CustomPath);
	*path = *scan;
	path->path.parent = output;
	path->path.pathtarget = output->reltarget;
	path->path.pathkeys = NIL;
	path->path.rows = 1;
	path->custom_private = list_copy(scan->custom_private);
	list_nth_cell(path->custom_private, CALL_PRIVATE_MODE)->int_value = EDITS_COUNT;
	add_path(output, &path->path);
}

void
edits_scan_init(void)
{
	call_register(&edits_kind);
	edits_next_hook = create_upper_paths_hook;
	create_upper_paths_hook = edits_upper_paths;
}

/* ---- plain calls ---- */

/* log_edits(sheet_id); log_edits() returns the edits of all sheets that are listed */
Datum
sheet_log_edits(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	EditsQuery query = {.listed = PG_NARGS() == 0, .need = EDITS_NEED_CONTENTS, .snapshot = GetActiveSnapshot()};
	EditsCounters counters = {0};
	EditsReader *reader;
	MemoryContext row_context, old;
	Datum values[EDITS_COLUMNS];
	bool nulls[EDITS_COLUMNS];

	if (!query.listed)
		query.sheet_id = catalog_arg_sheet(fcinfo, 0);
	for (int column = 0; column < EDITS_RANGES; column++)
		query.range[column] = (CallRange){PG_INT64_MIN, PG_INT64_MAX};
	InitMaterializedSRF(fcinfo, 0);
	reader = edits_begin(&query, &counters);
	row_context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet edit", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(row_context);
	while (edits_next(reader))
	{
		for (int i = 0; i < EDITS_COLUMNS; i++)
			values[i] = edits_value(reader, i + 1, &nulls[i]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		MemoryContextReset(row_context);
	}
	MemoryContextSwitchTo(old);
	edits_end(reader);
	return (Datum) 0;
}
