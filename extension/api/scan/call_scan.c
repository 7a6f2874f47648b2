/* call_scan.c - custom scans in place of calls: execution. */
#include "postgres.h"

#include "access/stratnum.h"
#include "api/scan/call.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_type.h"
#include "common/a1.h"
#include "compat.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

/* ---- ranges ---- */

void
call_range_clear(CallRange *range)
{
	*range = (CallRange){PG_INT64_MAX, PG_INT64_MIN};
}

void
call_range_limit(CallRange *range, int strategy, int64 value)
{
	bool strict = strategy == BTLessStrategyNumber || strategy == BTGreaterStrategyNumber;

	if ((strategy == BTLessStrategyNumber && value == PG_INT64_MIN) ||
		(strategy == BTGreaterStrategyNumber && value == PG_INT64_MAX))
	{
		call_range_clear(range);
		return;
	}
	if (strategy <= BTEqualStrategyNumber)
		range->high = Min(range->high, value - strict);
	if (strategy >= BTEqualStrategyNumber)
		range->low = Max(range->low, value + strict);
}

int64
call_int64(Oid type, Datum value)
{
	switch (type)
	{
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value); /* also timestamptz */
	}
}

/* From the lowest to the highest element. */
static void
range_limit_any(CallRange *range, ArrayType *array)
{
	Oid type = ARR_ELEMTYPE(array);
	CallRange all = {PG_INT64_MAX, PG_INT64_MIN};
	Datum *values;
	bool *nulls;
	int count;
	int16 len;
	bool byval;
	char align;

	get_typlenbyvalalign(type, &len, &byval, &align);
	deconstruct_array(array, type, len, byval, align, &values, &nulls, &count);
	for (int i = 0; i < count; i++)
		if (!nulls[i])
		{
			all.low = Min(all.low, call_int64(type, values[i]));
			all.high = Max(all.high, call_int64(type, values[i]));
		}
	range->low = Max(range->low, all.low);
	range->high = Min(range->high, all.high);
}

void
call_range_limit_cell(CallRange *row, CallRange *col, text *name)
{
	const char *bytes = VARDATA_ANY(name);
	size_t len = VARSIZE_ANY_EXHDR(name);
	char usual[A1_MAX];
	uint32 at_row, at_col;
	bool cell = a1_parse_cell(bytes, len, &at_row, &at_col);

	if (cell)
		a1_format_cell(usual, at_row, at_col);
	if (!cell || strlen(usual) != len || memcmp(usual, bytes, len) != 0)
	{
		call_range_clear(row);
		return;
	}
	call_range_limit(row, BTEqualStrategyNumber, at_row);
	call_range_limit(col, BTEqualStrategyNumber, at_col);
}

/* A comparison with null is never true. The empty range of any column makes the scan return nothing. */
static void
scan_limit(const CallScan *scan, const CallCondState *cond, CallRange *ranges)
{
	bool isnull;
	Datum value = ExecEvalExprSwitchContext(cond->value, scan->css.ss.ps.ps_ExprContext, &isnull);

	if (isnull)
		call_range_clear(&ranges[1]);
	else if (cond->strategy == CALL_STRATEGY_ANY)
		range_limit_any(&ranges[cond->column], DatumGetArrayTypeP(value));
	else if (cond->type == TEXTOID)
		scan->kind->limit_text(ranges, cond->column, DatumGetTextPP(value));
	else
		call_range_limit(&ranges[cond->column], cond->strategy, call_int64(cond->type, value));
}

/* ---- begin ---- */

/* The right to call the function, checked as the executor does for a call. */
static void
scan_check_function(Oid function)
{
	AclResult result = compat_function_aclcheck(function, GetUserId());

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_FUNCTION, get_func_name(function));
	InvokeFunctionExecuteHook(function);
}

/* Whether the result consists of constants and of columns of the scan, each at most once, and nothing is left to check.
 * The planner puts constants in place of columns that a surrounding query does not use: projecting these costs a third.
 */
static bool
scan_is_direct(CustomScan *plan)
{
	Bitmapset *seen = NULL;
	ListCell *cell;

	foreach (cell, plan->scan.plan.targetlist)
	{
		Var *var = (Var *) lfirst_node(TargetEntry, cell)->expr;

		if (!IsA(var, Const) && (!IsA(var, Var) || bms_is_member(var->varattno, seen)))
			return false;
		if (IsA(var, Var))
			seen = bms_add_member(seen, var->varattno);
	}
	return plan->scan.plan.qual == NIL;
}

static void
scan_begin_outputs(CallScan *scan, CustomScan *plan)
{
	List *entries;
	ListCell *cell;

	scan->direct = scan_is_direct(plan);
	scan->slot = scan->direct ? scan->css.ss.ps.ps_ResultTupleSlot : scan->css.ss.ss_ScanTupleSlot;
	entries = scan->direct ? plan->scan.plan.targetlist : plan->custom_scan_tlist;
	scan->outputs = palloc0(sizeof(CallOutput) * Max(list_length(entries), 1));
	foreach (cell, entries)
	{
		Expr *expr = lfirst_node(TargetEntry, cell)->expr;
		CallOutput *output = &scan->outputs[scan->noutputs++];

		output->attribute = foreach_current_index(cell);
		output->column = IsA(expr, Const) ? -1 : CALL_COUNT;
		if (IsA(expr, Const))
			output->constant = (NullableDatum){((Const *) expr)->constvalue, ((Const *) expr)->constisnull};
		else if (scan->direct)
			expr = list_nth_node(TargetEntry, plan->custom_scan_tlist, ((Var *) expr)->varattno - 1)->expr;
		if (IsA(expr, Var))
			output->column = ((Var *) expr)->varattno;
	}
}

static void
scan_begin_conds(CallScan *scan, CustomScan *plan)
{
	scan->nconds = (list_length(plan->custom_private) - CALL_PRIVATE_CONDS) / 2;
	scan->conds = palloc(sizeof(CallCondState) * Max(scan->nconds, 1));
	for (int i = 0; i < scan->nconds; i++)
	{
		Expr *value = list_nth(plan->custom_exprs, scan->function->nargs + i);

		scan->conds[i].column = list_nth_int(plan->custom_private, CALL_PRIVATE_CONDS + 2 * i);
		scan->conds[i].strategy = list_nth_int(plan->custom_private, CALL_PRIVATE_CONDS + 2 * i + 1);
		scan->conds[i].type = exprType((Node *) value);
		scan->conds[i].value = ExecInitExpr(value, &scan->css.ss.ps);
	}
}

static void
scan_begin(CustomScanState *node, EState *estate, int eflags)
{
	CallScan *scan = (CallScan *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;

	scan_check_function((Oid) list_nth_int(plan->custom_private, CALL_PRIVATE_OID));
	scan->function = &scan->kind->functions[list_nth_int(plan->custom_private, CALL_PRIVATE_FUNCTION)];
	scan->mode = list_nth_int(plan->custom_private, CALL_PRIVATE_MODE);
	for (int i = 0; i < scan->function->nargs; i++)
		scan->args = lappend(scan->args, ExecInitExpr(list_nth(plan->custom_exprs, i), &node->ss.ps));
	scan_begin_conds(scan, plan);
	scan_begin_outputs(scan, plan);
	scan->context = AllocSetContextCreate(estate->es_query_cxt, "pg_sheet scan", ALLOCSET_DEFAULT_SIZES);
}

/* ---- rows ---- */

static void
scan_open(CallScan *scan)
{
	NullableDatum args[CALL_MAX_ARGS];
	CallRange ranges[CALL_MAX_COLUMNS + 1];
	MemoryContext old;
	ListCell *cell;

	for (int column = 0; column <= CALL_MAX_COLUMNS; column++)
		ranges[column] = (CallRange){PG_INT64_MIN, PG_INT64_MAX};
	foreach (cell, scan->args)
	{
		NullableDatum *arg = &args[foreach_current_index(cell)];

		arg->value = ExecEvalExprSwitchContext(lfirst(cell), scan->css.ss.ps.ps_ExprContext, &arg->isnull);
	}
	for (int i = 0; i < scan->nconds; i++)
		scan_limit(scan, &scan->conds[i], ranges);
	old = MemoryContextSwitchTo(scan->context);
	scan->kind->open(scan, args, ranges);
	MemoryContextSwitchTo(old);
	scan->opened = true;
}

static void
scan_close(CallScan *scan)
{
	if (scan->opened && scan->kind->close != NULL)
		scan->kind->close(scan);
	scan->opened = false;
	MemoryContextReset(scan->context);
}

/*
 * Constants are stored for each row: the slot's consumer may change its values (BEFORE triggers, generated columns) or
 * free copies of them when it clears the slot.
 */
static TupleTableSlot *
scan_next(ScanState *node)
{
	CallScan *scan = (CallScan *) node;
	TupleTableSlot *slot = scan->slot;
	MemoryContext old;

	ExecClearTuple(slot);
	if (!scan->opened)
		scan_open(scan);
	if (!scan->kind->next(scan))
		return slot;
	ResetExprContext(node->ps.ps_ExprContext);
	old = MemoryContextSwitchTo(node->ps.ps_ExprContext->ecxt_per_tuple_memory);
	for (int i = 0; i < scan->noutputs; i++)
	{
		const CallOutput *output = &scan->outputs[i];
		bool *isnull = &slot->tts_isnull[output->attribute];

		*isnull = output->constant.isnull;
		slot->tts_values[output->attribute] =
			output->column < 0 ? output->constant.value : scan->kind->value(scan, output->column, isnull);
	}
	MemoryContextSwitchTo(old);
	return ExecStoreVirtualTuple(slot);
}

/* PostgreSQL before 15.15 calls this for the next row when a statement looks again at a row that has changed. */
static bool
scan_recheck(ScanState *node, TupleTableSlot *slot)
{
	(void) scan_next(node);
	return true;
}

static TupleTableSlot *
scan_exec(CustomScanState *node)
{
	if (((CallScan *) node)->direct)
		return scan_next(&node->ss);
	return ExecScan(&node->ss, scan_next, scan_recheck);
}

static void
scan_end(CustomScanState *node)
{
	scan_close((CallScan *) node);
}

static void
scan_rescan(CustomScanState *node)
{
	CallScan *scan = (CallScan *) node;

	if (node->ss.ps.chgParam != NULL || scan->kind->rewind == NULL)
		scan_close(scan);
	else if (scan->opened)
		scan->kind->rewind(scan);
	ExecScanReScan(&node->ss);
}

/* ---- EXPLAIN ---- */

static void
scan_explain_conds(const CallScan *scan, int column, List *context, ExplainState *es)
{
	static const char *const operators[] = {"", "<", "<=", "=", ">=", ">", "= ANY"};
	CustomScan *plan = (CustomScan *) scan->css.ss.ps.plan;
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < scan->nconds; i++)
		if (scan->conds[i].column == column)
			appendStringInfo(
				&text, "%s%s %s", text.len > 0 ? " AND " : "", operators[scan->conds[i].strategy],
				deparse_expression(list_nth(plan->custom_exprs, scan->function->nargs + i), context, true, false));
	if (text.len > 0)
		ExplainPropertyText(scan->function->columns[column - 1].label, text.data, es);
}

static void
scan_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	CallScan *scan = (CallScan *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List *context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, ancestors);

	for (int i = 0; i < scan->function->nargs; i++)
	{
		Const *arg = list_nth(plan->custom_exprs, i);

		if (!IsA(arg, Const) || !arg->constisnull)
			ExplainPropertyText(scan->function->args[i], deparse_expression((Node *) arg, context, true, false), es);
	}
	for (int column = 1; column <= scan->function->ncolumns; column++)
		scan_explain_conds(scan, column, context, es);
	if (scan->kind->explain != NULL)
		scan->kind->explain(scan, es);
}

/* ---- methods ---- */

CustomExecMethods
call_exec_methods(const char *name)
{
	return (CustomExecMethods){.CustomName = name,
							   .BeginCustomScan = scan_begin,
							   .ExecCustomScan = scan_exec,
							   .EndCustomScan = scan_end,
							   .ReScanCustomScan = scan_rescan,
							   .ExplainCustomScan = scan_explain};
}

Node *
call_create_state(CustomScan *plan)
{
	const CallKind *kind = (const CallKind *) ((const char *) plan->methods - offsetof(CallKind, scan_methods));
	CallScan *scan = (CallScan *) newNode(kind->state_size, T_CustomScanState);

	scan->css.methods = &kind->exec_methods;
	scan->kind = kind;
	return (Node *) scan;
}
