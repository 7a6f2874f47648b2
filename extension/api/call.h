/*
 * call.h - scans in place of calls of set-returning functions: what the functions have in common.
 *
 * Where a query selects from one of these functions, a hook of the planner puts a custom scan in the place of the
 * call: it forms only the columns that are asked for, keeps no copy of the rows, and takes conditions on columns that
 * are known before it begins. What it cannot use, the executor checks as always. A scan's expressions are the call's
 * arguments and then the values of the conditions; its private list ends with column and strategy of each condition.
 */
#ifndef CALL_H
#define CALL_H

#include "postgres.h"
#include "commands/explain.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "utils/array.h"

/* ---- call_cond.c: conditions ---- */

#define CALL_STRATEGY_ANY 6 /* beside those of btree: = ANY (array) */

typedef struct CallCond
{
	int column;
	int strategy;
	Expr *value; /* without columns of the function */
	bool exact;	 /* a range says all of it */
} CallCond;

/* What a column is compared as: int8 (all integers), timestamptz or text; InvalidOid: by nothing that a scan can use.
 */
typedef Oid (*CallTypeFn)(int column);

/* Whether the clause compares a column of relation rti with something that is known before the scan begins. */
extern bool call_cond_match(PlannerInfo *root, Index rti, Expr *clause, CallTypeFn type_of, CallCond *cond);

typedef struct CallRange
{
	int64 low, high; /* inclusive */
} CallRange;

extern void call_range_clear(CallRange *range);
/* By a value of an integer type, or a time. */
extern void call_range_limit(CallRange *range, int strategy, int64 value);
/* From the lowest to the highest element of an array of integers. */
extern void call_range_limit_any(CallRange *range, ArrayType *array);
/* To the row and the column of a cell by its name; only the usual spelling is the name of one. */
extern void call_range_limit_cell(CallRange *row, CallRange *col, text *name);
/* Of the integer types, and times. */
extern int64 call_cond_int64(Oid type, Datum value);

/* ---- call_plan.c: for the planner's hook ---- */

/* The relation's call of the function of schema sheet that has this C source, when it is one. */
extern FuncExpr *call_find(const RangeTblEntry *rte, const char *source);
/* Rows as a whole are left to the function. */
extern bool call_needs_rows(RelOptInfo *rel);
/* Takes the conditions out that the scan checks by itself; adds to values and conds what the plan has of them. */
extern List *call_take_conds(PlannerInfo *root, Index rti, CallTypeFn type_of, List *clauses, List **values,
							 List **conds);
/* The columns that the scan has to form. */
extern List *call_columns(RelOptInfo *rel, List *tlist, List *quals);
/* The order of a list of columns. */
extern List *call_pathkeys(PlannerInfo *root, Index rti, const int *columns, const Oid *types, int count,
						   bool backward);

/* ---- call_scan.c: in the executor ---- */

typedef struct CallColumn
{
	int place; /* in the slot */
	int column;
} CallColumn;

typedef struct CallConstant
{
	int place;
	NullableDatum value;
} CallConstant;

/* Where a scan puts its rows. */
typedef struct CallOutput
{
	TupleTableSlot *slot; /* the result's, when the rows need no more work, else that of the scan */
	bool direct;		  /* it is the result's */
	CallColumn *columns;
	int ncolumns;
	CallConstant *constants; /* of the result */
	int nconstants;
} CallOutput;

/* Finds out what to form. */
extern void call_output_begin(CallOutput *output, CustomScanState *node);
/* Empties the slot for the next row, of which the constants are there then. */
extern void call_output_clear(const CallOutput *output);

typedef struct CallCondState
{
	int column;
	int strategy;
	Oid type;
	ExprState *value;
} CallCondState;

/* Conditions of a plan whose expressions begin with nargs arguments, and its private list with so many numbers. */
extern CallCondState *call_conds_begin(CustomScanState *node, int nargs, int numbers, int *count);
/* Adds those on a column to what EXPLAIN shows. */
extern void call_explain_conds(CustomScanState *node, int nargs, int numbers, int column, const char *label,
							   List *context, ExplainState *es);
/* The right to call the function, as the executor checks it, and modules that watch calls: 42501. */
extern void call_check_function(Oid function);

#endif
