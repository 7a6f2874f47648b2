/*
 * edits_size.c - how many edits a scan will look at and return, for the planner.
 */
#include "postgres.h"

#include "access/table.h"
#include "api/logscan/edits_cond.h"
#include "api/logscan/edits_plan.h"
#include "fmgr.h"
#include "journal/journal.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "permission/permission.h"
#include "journal/store/storage.h"
#include "storage/bufmgr.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(sheet_log_edits_support);

#define SIZE_UNKNOWN_SHEET 1000.0 /* edits of a sheet of which nothing is known */
#define SIZE_EDIT_BYTES	   64	  /* that an edit takes, about */
#define SIZE_UNKNOWN_RANGE 0.3333

/* Everybody can see estimates: a sheet's size is only for those to whom it is listed. */
static bool
size_may_tell(int64 sheet_id)
{
	int count;

	if (superuser())
		return true;
	pfree(permission_listed(sheet_id, sheet_id, &count));
	return count > 0;
}

double
edits_size_sheet(Node *sheet)
{
	Const *known = (Const *) sheet;
	int64 sheet_id;

	if (!IsA(known, Const) || known->constisnull || !ActiveSnapshotSet())
		return SIZE_UNKNOWN_SHEET;
	sheet_id = call_cond_int64(known->consttype, known->constvalue);
	if (!size_may_tell(sheet_id))
		return SIZE_UNKNOWN_SHEET;
	return Max(journal_guess_seq(sheet_id, GetActiveSnapshot()), 1);
}

double
edits_size_listed(void)
{
	Relation rel = storage_open(STORAGE_LOG_BATCH, AccessShareLock);
	double blocks = RelationGetNumberOfBlocks(rel);

	if (OidIsValid(rel->rd_rel->reltoastrelid))
	{
		Relation toast = table_open(rel->rd_rel->reltoastrelid, AccessShareLock);

		blocks += RelationGetNumberOfBlocks(toast);
		table_close(toast, NoLock);
	}
	table_close(rel, NoLock);
	return Max(blocks * BLCKSZ / SIZE_EDIT_BYTES, SIZE_UNKNOWN_SHEET);
}

/* The part of all seqs that is in the range; values that become known later leave a third. */
static double
size_seq_fraction(const EditsQuery *query, double last_seq, bool unknown)
{
	const CallRange *range = &query->range[EDITS_SEQ];
	double low = Max(range->low, 1), high = Min(range->high, last_seq);
	double fraction = range->low > range->high ? 0 : (high - low + 1) / last_seq;

	return Min(Max(fraction, 1 / last_seq), 1) * (unknown ? SIZE_UNKNOWN_RANGE : 1);
}

typedef struct SizeSums
{
	EditsQuery query; /* with the seqs that are known */
	bool unknown_seq;
	double scanned;	 /* part of the edits, by log and time */
	double returned; /* part of what is scanned */
} SizeSums;

static void
size_add_clause(PlannerInfo *root, RelOptInfo *rel, RestrictInfo *rinfo, bool one_sheet, SizeSums *sums)
{
	CallCond cond = {0};
	bool usable = edits_cond_match(root, rel->relid, rinfo->clause, &cond);
	Node *value = usable ? estimate_expression_value(root, (Node *) cond.value) : NULL;
	bool known = usable && IsA(value, Const);
	double selectivity;

	if (cond.column == EDITS_SHEET_ID && usable && one_sheet)
		return;
	if (cond.column == EDITS_SEQ && known)
		edits_cond_apply(&sums->query, cond.column, cond.strategy, exprType(value), ((Const *) value)->constvalue,
						 ((Const *) value)->constisnull);
	else if (cond.column == EDITS_SEQ && usable)
		sums->unknown_seq = true;
	else
	{
		selectivity = clause_selectivity(root, (Node *) rinfo, 0, JOIN_INNER, NULL);
		if (usable && (cond.column == EDITS_LID || cond.column == EDITS_AT || cond.column == EDITS_SHEET_ID))
			sums->scanned *= selectivity;
		else
			sums->returned *= selectivity;
	}
}

/* rel->tuples becomes what the sheet holds, when it is one. */
EditsSize
edits_size_scan(PlannerInfo *root, RelOptInfo *rel, Expr *sheet)
{
	SizeSums sums = {.scanned = 1, .returned = 1};
	EditsSize size;
	ListCell *cell;

	if (sheet != NULL)
		rel->tuples = edits_size_sheet(estimate_expression_value(root, (Node *) sheet));
	edits_query_init(&sums.query);
	foreach (cell, rel->baserestrictinfo)
		size_add_clause(root, rel, lfirst(cell), sheet != NULL, &sums);
	sums.scanned *= size_seq_fraction(&sums.query, Max(rel->tuples, 1), sums.unknown_seq);
	size.scanned = clamp_row_est(rel->tuples * sums.scanned);
	size.rows = clamp_row_est(size.scanned * sums.returned);
	return size;
}

/* The planner asks how many rows sheet.log_edits returns. Calling this function loads the library, and so its hooks. */
Datum
sheet_log_edits_support(PG_FUNCTION_ARGS)
{
	SupportRequestRows *request = (SupportRequestRows *) PG_GETARG_POINTER(0);
	FuncExpr *call;

	if (!IsA(request, SupportRequestRows) || !IsA(request->node, FuncExpr))
		PG_RETURN_POINTER(NULL);
	call = (FuncExpr *) request->node;
	if (call->args == NIL)
		request->rows = edits_size_listed();
	else
		request->rows = edits_size_sheet(estimate_expression_value(request->root, linitial(call->args)));
	PG_RETURN_POINTER(request);
}
