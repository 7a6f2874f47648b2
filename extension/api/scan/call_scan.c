/*
 * call_scan.c - scans in place of calls: what they do in the executor.
 */
#include "postgres.h"

#include "api/scan/call.h"
#include "catalog/objectaccess.h"
#include "compat.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

/* The right to call the function, as the executor checks it, and modules that watch calls. */
static void
scan_check_function(Oid function)
{
	AclResult result = compat_function_aclcheck(function, GetUserId());

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_FUNCTION, get_func_name(function));
	InvokeFunctionExecuteHook(function);
}

/* ---- rows ---- */

/* Nothing is left to do with the scan's rows: they consist of columns, each of them once, and constants. */
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

static int
scan_column(CustomScan *plan, Var *var)
{
	TargetEntry *entry = list_nth_node(TargetEntry, plan->custom_scan_tlist, var->varattno - 1);

	return castNode(Var, entry->expr)->varattno;
}

static void
scan_add_column(CallOutput *output, int place, int column)
{
	output->columns[output->ncolumns++] = (CallColumn){place, column};
}

static void
scan_add_constant(CallOutput *output, int place, const Const *constant)
{
	output->constants[output->nconstants++] = (CallConstant){place, {constant->constvalue, constant->constisnull}};
}

/* Columns of the result, which the scan forms itself. */
static void
scan_begin_direct(CallOutput *output, CustomScanState *node, CustomScan *plan)
{
	ListCell *cell;

	output->slot = node->ss.ps.ps_ResultTupleSlot;
	foreach (cell, plan->scan.plan.targetlist)
	{
		Expr *expr = lfirst_node(TargetEntry, cell)->expr;
		int place = foreach_current_index(cell);

		if (IsA(expr, Var))
			scan_add_column(output, place, scan_column(plan, (Var *) expr));
		else
			scan_add_constant(output, place, (Const *) expr);
	}
}

static void
scan_begin_output(CallOutput *output, CustomScanState *node)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	ListCell *cell;

	output->columns = palloc(sizeof(CallColumn) *
							 (list_length(plan->custom_scan_tlist) + list_length(plan->scan.plan.targetlist) + 1));
	output->constants = palloc(sizeof(CallConstant) * (list_length(plan->scan.plan.targetlist) + 1));
	output->ncolumns = output->nconstants = 0;
	output->direct = scan_is_direct(plan);
	if (output->direct)
	{
		scan_begin_direct(output, node, plan);
		return;
	}
	output->slot = node->ss.ss_ScanTupleSlot;
	foreach (cell, plan->custom_scan_tlist)
		scan_add_column(output, foreach_current_index(cell),
						castNode(Var, lfirst_node(TargetEntry, cell)->expr)->varattno);
}

/*
 * The constants are put in for each row: who gets the slot may change what is in it (BEFORE triggers, generated
 * columns), and may have it keep copies of its values, which go when it is emptied.
 */
void
call_output_clear(const CallOutput *output)
{
	TupleTableSlot *slot = output->slot;

	ExecClearTuple(slot);
	for (int i = 0; i < output->nconstants; i++)
	{
		const CallConstant *constant = &output->constants[i];

		slot->tts_values[constant->place] = constant->value.value;
		slot->tts_isnull[constant->place] = constant->value.isnull;
	}
}

/* ---- conditions ---- */

static void
scan_begin_conds(CallScanState *scan, CustomScan *plan, int numbers)
{
	scan->conds = palloc(sizeof(CallCondState) * Max(scan->nconds, 1));
	for (int i = 0; i < scan->nconds; i++)
	{
		Expr *value = list_nth(plan->custom_exprs, scan->nargs + i);

		scan->conds[i].column = list_nth_int(plan->custom_private, numbers + 2 * i);
		scan->conds[i].strategy = list_nth_int(plan->custom_private, numbers + 2 * i + 1);
		scan->conds[i].type = exprType((Node *) value);
		scan->conds[i].value = ExecInitExpr(value, &scan->css.ss.ps);
	}
}

Datum
call_scan_value(const CallScanState *scan, const CallCondState *cond, bool *isnull)
{
	return ExecEvalExprSwitchContext(cond->value, scan->css.ss.ps.ps_ExprContext, isnull);
}

static const char *
scan_operator(int strategy)
{
	static const char *const operators[] = {"", "<", "<=", "=", ">=", ">", "= ANY"};

	return operators[strategy];
}

void
call_explain_conds(const CallScanState *scan, int column, const char *label, List *context, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) scan->css.ss.ps.plan;
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < scan->nconds; i++)
	{
		if (scan->conds[i].column != column)
			continue;
		appendStringInfo(&text, "%s%s %s", text.len > 0 ? " AND " : "", scan_operator(scan->conds[i].strategy),
						 deparse_expression(list_nth(plan->custom_exprs, scan->nargs + i), context, true, false));
	}
	if (text.len > 0)
		ExplainPropertyText(label, text.data, es);
}

/* ---- arguments ---- */

/* A parameter whose value lies ready, as those of prepared statements do; others are left to the executor, errors too.
 */
static bool
scan_parameter(const EState *estate, const Expr *expr, NullableDatum *value)
{
	const Param *param = (const Param *) expr;
	ParamListInfo params = estate->es_param_list_info;
	const ParamExternData *found;

	if (!IsA(expr, Param) || param->paramkind != PARAM_EXTERN || params == NULL || params->paramFetch != NULL ||
		param->paramid <= 0 || param->paramid > params->numParams)
		return false;
	found = &params->params[param->paramid - 1];
	*value = (NullableDatum){found->value, found->isnull};
	return found->ptype == param->paramtype;
}

/* Arguments are mostly constants and parameters, which the executor need not evaluate: for the seven of sheet.apply()
 * that would be a twelfth of a single edit. */
static void
scan_begin_args(CallScanState *scan, CustomScan *plan)
{
	scan->args = palloc(sizeof(CallArg) * Max(scan->nargs, 1));
	for (int i = 0; i < scan->nargs; i++)
	{
		Expr *expr = list_nth(plan->custom_exprs, i);
		const Const *constant = (const Const *) expr;
		CallArg *arg = &scan->args[i];

		arg->state = NULL;
		if (IsA(expr, Const))
			arg->value = (NullableDatum){constant->constvalue, constant->constisnull};
		else if (!scan_parameter(scan->css.ss.ps.state, expr, &arg->value))
			arg->state = ExecInitExpr(expr, &scan->css.ss.ps);
	}
}

void
call_scan_args(const CallScanState *scan, NullableDatum *args)
{
	for (int i = 0; i < scan->nargs; i++)
	{
		const CallArg *arg = &scan->args[i];

		args[i] = arg->value;
		if (arg->state != NULL)
			args[i].value = ExecEvalExprSwitchContext(arg->state, scan->css.ss.ps.ps_ExprContext, &args[i].isnull);
	}
}

/* ---- the scan ---- */

Node *
call_scan_create(Size size, const CustomExecMethods *methods, ExecScanAccessMtd next)
{
	CallScanState *scan = (CallScanState *) newNode(size, T_CustomScanState);

	scan->css.methods = methods;
	scan->next = next;
	return (Node *) scan;
}

void
call_scan_begin(CallScanState *scan, int numbers)
{
	CustomScan *plan = (CustomScan *) scan->css.ss.ps.plan;

	scan_check_function((Oid) linitial_int(plan->custom_private));
	scan->nconds = (list_length(plan->custom_private) - numbers) / 2;
	scan->nargs = list_length(plan->custom_exprs) - scan->nconds;
	scan_begin_args(scan, plan);
	scan_begin_conds(scan, plan, numbers);
	scan_begin_output(&scan->output, &scan->css);
}

bool
call_scan_step(const CallScanState *scan, int64 *at, int64 count)
{
	if (ScanDirectionIsBackward(scan->css.ss.ps.state->es_direction))
		*at = Max(*at - 1, -1);
	else
		*at = Min(*at + 1, count);
	return *at >= 0 && *at < count;
}

/* Where a statement looks again at a row that was changed meanwhile, PostgreSQL before 15.15 asks this for the next
 * row. */
static bool
scan_recheck(ScanState *node, TupleTableSlot *slot)
{
	(void) ((CallScanState *) node)->next(node);
	return true;
}

TupleTableSlot *
call_scan_exec(CustomScanState *node)
{
	CallScanState *scan = (CallScanState *) node;

	if (scan->output.direct)
		return scan->next(&node->ss);
	return ExecScan(&node->ss, scan->next, scan_recheck);
}
