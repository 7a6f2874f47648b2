/*
 * edits_plan.h - scans of edits in plans of queries.
 */
#ifndef EDITS_PLAN_H
#define EDITS_PLAN_H

#include "postgres.h"
#include "api/logscan/edits_read.h"

#define EDITS_SOURCE "sheet_log_edits"

/* Whether the relation is a call of sheet.log_edits. */
static inline bool
edits_is_call(const RangeTblEntry *rte)
{
	const char *source = call_source(rte);

	return source != NULL && strcmp(source, EDITS_SOURCE) == 0;
}

/* From _PG_init. */
extern void edits_plan_init(void);

/* ---- edits_order.c ---- */
typedef struct EditsOrder
{
	EditsColumn column; /* EDITS_SEQ or EDITS_AT */
	bool with_sheet;	/* of equal rank, the sheet comes first */
	bool backward;
} EditsOrder;
/* The order that the query asks of relation rti, or the query around it; without one, seq from the first on. */
extern EditsOrder edits_order_wanted(PlannerInfo *root, Index rti);
extern List *edits_order_pathkeys(PlannerInfo *root, Index rti, const EditsOrder *order, bool listed);

/* ---- edits_size.c ---- */
typedef struct EditsSize
{
	double scanned; /* edits that are looked at */
	double rows;
} EditsSize;
extern double edits_size_sheet(Node *sheet); /* sheet: an expression */
extern double edits_size_listed(void);
extern EditsSize edits_size_scan(PlannerInfo *root, RelOptInfo *rel, Expr *sheet);

/* Whether this is a path to a scan of edits. */
extern bool edits_plan_is_scan(const Path *path);

/* ---- edits_view.c ---- */
/* From _PG_init. */
extern void edits_view_init(void);

/* ---- edits_count.c ---- */
/* From _PG_init. */
extern void edits_count_init(void);

/* ---- edits_scan.c ---- */
extern const CustomScanMethods edits_scan_methods;
/* Counts the rows of a scan that has not begun, in place of executing it. False when the node is another one, or has a
 * condition of its own to check. */
extern bool edits_scan_count(PlanState *node, int64 *count);
/* A scan's private list: these, then column and strategy of each condition. */
enum
{
	EDITS_PRIVATE_FUNCTION,
	EDITS_PRIVATE_BACKWARD,
	EDITS_PRIVATE_CONDS
};

#endif
