/*
 * edits_cond.h - conditions that a scan of edits can use; see edits_cond.c.
 */
#ifndef EDITS_COND_H
#define EDITS_COND_H

#include "postgres.h"
#include "edits_read.h"
#include "nodes/pathnodes.h"

#define EDITS_STRATEGY_ANY 6 /* beside those of btree: = ANY (array) */

typedef struct EditsCond
{
	EditsColumn column;
	int strategy;
	Expr *value; /* without columns of the log */
	bool exact;	 /* a range says all of it */
} EditsCond;

/* Whether the clause compares a column of relation rti with something that is known before the scan begins. */
extern bool edits_cond_match(PlannerInfo *root, Index rti, Expr *clause, EditsCond *cond);
/* Makes the query's ranges as narrow as the condition with this value says. */
extern void edits_cond_apply(EditsQuery *query, EditsColumn column, int strategy, Oid type, Datum value, bool isnull);
/* Of the integer types, and times. */
extern int64 edits_cond_int64(Oid type, Datum value);
/* For EXPLAIN. */
extern const char *edits_cond_label(EditsColumn column);
extern const char *edits_cond_operator(int strategy);

#endif
