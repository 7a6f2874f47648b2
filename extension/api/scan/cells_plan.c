/*
 * cells_plan.c - scans of cells in plans of queries.
 *
 * Where a query selects from sheet.range(), sheet.at() or sheet.read_cells(), the planner gets a scan in place of the
 * call of the function. Conditions on where cells are make its window smaller.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "api/scan/cells_rows.h"

/* The function's number in cells_functions[]; -1 when it is none of them. */
static int
plan_find(FuncExpr *call, const char *source)
{
	for (int i = 0; i < CELLS_FUNCTIONS; i++)
		if (strcmp(source, cells_functions[i].source) == 0 &&
			list_length(call->args) == cells_function_nargs(&cells_functions[i]))
			return i;
	return -1;
}

static Oid
plan_place_type(int column)
{
	return column <= CELLS_COL ? INT8OID : column == CELLS_A1 ? TEXTOID : InvalidOid;
}

static Plan *
plan_create(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	const CellsFunction *function = &cells_functions[list_nth_int(path->custom_private, CELLS_PRIVATE_FUNCTION)];

	return call_create_plan(root, rel, path, tlist, clauses, function->places ? plan_place_type : NULL,
							&cells_scan_methods);
}

static const CustomPathMethods plan_path_methods = {.CustomName = "SheetCells", .PlanCustomPath = plan_create};

static void
plan_cells(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, const char *source)
{
	const int columns[2] = {CELLS_ROW, CELLS_COL};
	const Oid types[2] = {INT4OID, INT4OID};
	int function = plan_find(call, source);
	List *pathkeys;

	if (function < 0)
		return;
	pathkeys = cells_functions[function].places ? call_pathkeys(root, rel->relid, columns, types, 2, false) : NIL;
	call_replace_path(rel, call, list_make1_int(function), pathkeys, &plan_path_methods);
}

void
cells_plan_init(void)
{
	call_plan_add(plan_cells, &cells_scan_methods);
}
