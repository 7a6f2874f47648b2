/*
 * edits_cond.c - conditions that a scan of edits can use.
 *
 * Integers and times, and the equality of the cell, the kind and the user's name; see call_cond.c.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "api/logscan/edits_cond.h"
#include "utils/builtins.h"

/* ---- recognizing ---- */

/* What the column is compared as. */
Oid
edits_cond_type(int column)
{
	switch (column)
	{
		case EDITS_AT:
			return TIMESTAMPTZOID;
		case EDITS_USERNAME:
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

bool
edits_cond_match(PlannerInfo *root, Index rti, Expr *clause, CallCond *cond)
{
	return call_cond_match(root, rti, clause, edits_cond_type, cond);
}

/* ---- applying ---- */

/* A cell is a row, a column, and a kind of edit that has a cell. */
static void
cond_apply_cell(EditsQuery *query, text *name)
{
	call_range_limit_cell(&query->range[EDITS_ROW], &query->range[EDITS_COL], name);
	call_range_limit(&query->range[EDITS_KIND], BTGreaterEqualStrategyNumber, EDIT_SET);
	call_range_limit(&query->range[EDITS_KIND], BTLessEqualStrategyNumber, EDIT_STYLE);
}

static void
cond_apply_username(EditsQuery *query, text *name)
{
	int64 uid;

	if (usernames_find(name, &uid))
		call_range_limit(&query->range[EDITS_UID], BTEqualStrategyNumber, uid);
	else
		call_range_clear(&query->range[EDITS_UID]);
}

static void
cond_apply_text(EditsQuery *query, EditsColumn column, text *value)
{
	if (column == EDITS_A1)
		cond_apply_cell(query, value);
	else if (column == EDITS_USERNAME)
		cond_apply_username(query, value);
	else
		call_range_limit(&query->range[EDITS_KIND], BTEqualStrategyNumber,
						 edits_kind_number(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)));
}

void
edits_cond_apply(EditsQuery *query, EditsColumn column, int strategy, Oid type, Datum value, bool isnull)
{
	if (isnull)
		call_range_clear(&query->range[EDITS_SEQ]);
	else if (strategy == CALL_STRATEGY_ANY)
		call_range_limit_any(&query->range[column], DatumGetArrayTypeP(value));
	else if (type == TEXTOID)
		cond_apply_text(query, column, DatumGetTextPP(value));
	else
		call_range_limit(&query->range[column], strategy, call_cond_int64(type, value));
}

/* ---- showing ---- */

const char *
edits_cond_label(EditsColumn column)
{
	static const char *const labels[] = {"",		 "Sheet",  "Seq",  "Log", "At",	 "User",
										 "Username", "Origin", "Kind", "Row", "Col", "Cell"};

	return labels[column];
}
