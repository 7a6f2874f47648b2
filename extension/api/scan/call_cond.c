/*
 * call_cond.c - conditions that a scan in place of a call can use.
 *
 * "column operator value", where the operator is one of a btree (=, <, <=, >=, >) on integers or times, or the equality
 * of texts. All of these operators are leakproof, so it is safe to decide by them early.
 */
#include "postgres.h"

#include "common/a1.h"
#include "access/stratnum.h"
#include "api/scan/call.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* ---- recognizing ---- */

/* The btree strategy of "column operator type" for a column that is compared as such a type, 0 when it cannot be used.
 */
static int
cond_strategy(Oid compared, Oid operator, Oid collation, Oid *type)
{
	Oid family, left;
	int strategy;

	if (!OidIsValid(compared) || !OidIsValid(operator))
		return 0;
	family = lookup_type_cache(compared, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	if (!op_in_opfamily(operator, family))
		return 0;
	get_op_opfamily_properties(operator, family, false, &strategy, &left, type);
	if (compared != INT8OID && (left != compared || *type != compared))
		return 0;
	if (compared == TEXTOID && (strategy != BTEqualStrategyNumber || !get_collation_isdeterministic(collation)))
		return 0;
	return strategy;
}

/* The column, 0 when it is none of the function. */
static int
cond_column(Index rti, Node *node)
{
	Var *var = (Var *) node;

	return IsA(node, Var) && var->varno == rti && var->varlevelsup == 0 && var->varattno > 0 ? var->varattno : 0;
}

static bool
cond_is_known(PlannerInfo *root, Index rti, Node *value)
{
	return !bms_is_member(rti, pull_varnos(root, value)) && !contain_volatile_functions(value) &&
		   !contain_subplans(value);
}

static bool
cond_match_array(PlannerInfo *root, Index rti, const ScalarArrayOpExpr *clause, CallTypeFn type_of, CallCond *cond)
{
	Oid type;

	if (!clause->useOr || (cond->column = cond_column(rti, linitial(clause->args))) == 0 ||
		type_of(cond->column) != INT8OID ||
		cond_strategy(INT8OID, clause->opno, clause->inputcollid, &type) != BTEqualStrategyNumber)
		return false;
	cond->strategy = CALL_STRATEGY_ANY;
	cond->value = lsecond(clause->args);
	cond->exact = false;
	return cond_is_known(root, rti, (Node *) cond->value);
}

bool
call_cond_match(PlannerInfo *root, Index rti, Expr *clause, CallTypeFn type_of, CallCond *cond)
{
	OpExpr *op = (OpExpr *) clause;
	Oid operator, type;
	Node *left, *right;

	if (IsA(clause, ScalarArrayOpExpr))
		return cond_match_array(root, rti, (ScalarArrayOpExpr *) clause, type_of, cond);
	if (!IsA(clause, OpExpr) || list_length(op->args) != 2)
		return false;
	left = linitial(op->args);
	right = lsecond(op->args);
	operator= op->opno;
	if (cond_column(rti, left) == 0)
	{
		Node *swap = left;

		left = right;
		right = swap;
		operator= get_commutator(operator);
	}
	if ((cond->column = cond_column(rti, left)) == 0)
		return false;
	cond->strategy = cond_strategy(type_of(cond->column), operator, op->inputcollid, &type);
	cond->value = (Expr *) right;
	cond->exact = true;
	return cond->strategy != 0 && cond_is_known(root, rti, right);
}

/* ---- ranges ---- */

void
call_range_clear(CallRange *range)
{
	*range = (CallRange){PG_INT64_MAX, PG_INT64_MIN};
}

/* Of btree strategies: < <= = >= > */
void
call_range_limit(CallRange *range, int strategy, int64 value)
{
	bool strict = strategy == BTLessStrategyNumber || strategy == BTGreaterStrategyNumber;

	if ((strategy == BTLessStrategyNumber && value == PG_INT64_MIN) ||
		(strategy == BTGreaterStrategyNumber && value == PG_INT64_MAX))
		call_range_clear(range);
	else if (strategy <= BTLessEqualStrategyNumber)
		range->high = Min(range->high, value - strict);
	else if (strategy >= BTGreaterEqualStrategyNumber)
		range->low = Max(range->low, value + strict);
	else
	{
		range->low = Max(range->low, value);
		range->high = Min(range->high, value);
	}
}

int64
call_cond_int64(Oid type, Datum value)
{
	switch (type)
	{
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value); /* times, too */
	}
}

void
call_range_limit_any(CallRange *range, ArrayType *array)
{
	Oid type = ARR_ELEMTYPE(array);
	CallRange all = {PG_INT64_MAX, PG_INT64_MIN};
	Datum *values;
	bool *nulls;
	int count;

	deconstruct_array(array, type, get_typlen(type), true,
					  type == INT2OID	? 's'
					  : type == INT4OID ? 'i'
										: 'd',
					  &values, &nulls, &count);
	for (int i = 0; i < count; i++)
		if (!nulls[i])
		{
			all.low = Min(all.low, call_cond_int64(type, values[i]));
			all.high = Max(all.high, call_cond_int64(type, values[i]));
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
