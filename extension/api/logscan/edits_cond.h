/*
 * edits_cond.h - conditions that a scan of edits can use; see edits_cond.c.
 */
#ifndef EDITS_COND_H
#define EDITS_COND_H

#include "postgres.h"
#include "api/logscan/edits_read.h"
#include "nodes/pathnodes.h"

/* For call_cond_match(). */
extern Oid edits_cond_type(int column);
/* Whether the clause compares a column of relation rti with something that is known before the scan begins. */
extern bool edits_cond_match(PlannerInfo *root, Index rti, Expr *clause, CallCond *cond);
/* Makes the query's ranges as narrow as the condition with this value says. */
extern void edits_cond_apply(EditsQuery *query, EditsColumn column, int strategy, Oid type, Datum value, bool isnull);
/* For EXPLAIN. */
extern const char *edits_cond_label(EditsColumn column);

#endif
