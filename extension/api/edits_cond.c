/*
 * edits_cond.c - conditions that a scan of edits can use.
 *
 * "column operator value", where the operator is one of a btree (=, <, <=, >=, >) on integers or times, or the equality
 * of texts for the cell and the kind. All of these operators are leakproof, so it is safe to decide by them early.
 */
#include "postgres.h"

#include "a1.h"
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "edits_cond.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* ---- recognizing ---- */

/* What the column is compared as. */
static Oid
cond_type(EditsColumn column)
{
	switch (column)
	{
		case EDITS_AT:
			return TIMESTAMPTZOID;
		case EDITS_KIND:
		case EDITS_A1:
			return TEXTOID;
		case EDITS_OLD:
		case EDITS_NEW:
		case EDITS_STYLE:
			return InvalidOid;
		default:
			return INT8OID;
	}
}

/* The btree strategy of "column operator type", 0 when it cannot be used. */
static int
cond_strategy(EditsColumn column, Oid operator, Oid collation, Oid *type)
{
	Oid compared = cond_type(column), family, left;
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

/* The column, 0 when it is none of the log. */
static EditsColumn
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
cond_match_array(PlannerInfo *root, Index rti, const ScalarArrayOpExpr *clause, EditsCond *cond)
{
	Oid type;

	if (!clause->useOr || (cond->column = cond_column(rti, linitial(clause->args))) == 0 ||
		cond_type(cond->column) != INT8OID ||
		cond_strategy(cond->column, clause->opno, clause->inputcollid, &type) != BTEqualStrategyNumber)
		return false;
	cond->strategy = EDITS_STRATEGY_ANY;
	cond->value = lsecond(clause->args);
	cond->exact = false;
	return cond_is_known(root, rti, (Node *) cond->value);
}

bool
edits_cond_match(PlannerInfo *root, Index rti, Expr *clause, EditsCond *cond)
{
	OpExpr *op = (OpExpr *) clause;
	Oid operator, type;
	Node *left, *right;

	if (IsA(clause, ScalarArrayOpExpr))
		return cond_match_array(root, rti, (ScalarArrayOpExpr *) clause, cond);
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
	cond->strategy = cond_strategy(cond->column, operator, op->inputcollid, &type);
	cond->value = (Expr *) right;
	cond->exact = true;
	return cond->strategy != 0 && cond_is_known(root, rti, right);
}

/* ---- applying ---- */

int64
edits_cond_int64(Oid type, Datum value)
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

/* A cell is a row, a column, and a kind of edit that has a cell. Only the usual spelling is equal to one. */
static void
cond_apply_cell(EditsQuery *query, const char *name, size_t len)
{
	char usual[A1_MAX];
	uint32 row, col;
	bool cell = a1_parse_cell(name, len, &row, &col);

	if (cell)
		a1_format_cell(usual, row, col);
	if (!cell || strlen(usual) != len || memcmp(usual, name, len) != 0)
	{
		edits_range_clear(&query->range[EDITS_ROW]);
		return;
	}
	edits_range_limit(&query->range[EDITS_ROW], BTEqualStrategyNumber, row);
	edits_range_limit(&query->range[EDITS_COL], BTEqualStrategyNumber, col);
	edits_range_limit(&query->range[EDITS_KIND], BTGreaterEqualStrategyNumber, EDIT_SET);
	edits_range_limit(&query->range[EDITS_KIND], BTLessEqualStrategyNumber, EDIT_STYLE);
}

static void
cond_apply_text(EditsQuery *query, EditsColumn column, text *value)
{
	const char *name = VARDATA_ANY(value);
	size_t len = VARSIZE_ANY_EXHDR(value);

	if (column == EDITS_A1)
		cond_apply_cell(query, name, len);
	else
		edits_range_limit(&query->range[EDITS_KIND], BTEqualStrategyNumber, edits_kind_number(name, len));
}

/* From the lowest to the highest element. */
static void
cond_apply_array(EditsRange *range, ArrayType *array)
{
	Oid type = ARR_ELEMTYPE(array);
	EditsRange all = {PG_INT64_MAX, PG_INT64_MIN};
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
			all.low = Min(all.low, edits_cond_int64(type, values[i]));
			all.high = Max(all.high, edits_cond_int64(type, values[i]));
		}
	range->low = Max(range->low, all.low);
	range->high = Min(range->high, all.high);
}

void
edits_cond_apply(EditsQuery *query, EditsColumn column, int strategy, Oid type, Datum value, bool isnull)
{
	if (isnull)
		edits_range_clear(&query->range[EDITS_SEQ]);
	else if (strategy == EDITS_STRATEGY_ANY)
		cond_apply_array(&query->range[column], DatumGetArrayTypeP(value));
	else if (type == TEXTOID)
		cond_apply_text(query, column, DatumGetTextPP(value));
	else
		edits_range_limit(&query->range[column], strategy, edits_cond_int64(type, value));
}

/* ---- showing ---- */

const char *
edits_cond_label(EditsColumn column)
{
	static const char *const labels[] = {"",	   "Sheet", "Seq", "Log", "At",	 "User",
										 "Origin", "Kind",	"Row", "Col", "Cell"};

	return labels[column];
}

const char *
edits_cond_operator(int strategy)
{
	static const char *const operators[] = {"", "<", "<=", "=", ">=", ">", "= ANY"};

	return operators[strategy];
}
