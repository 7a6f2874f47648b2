/*
 * call.h - scans in place of calls of set-returning functions: what the functions have in common.
 *
 * Where a query selects from one of these functions, a hook of the planner puts a custom scan in the place of the
 * call: it forms only the columns that are asked for, keeps no copy of the rows, and takes conditions on columns that
 * are known before it begins. What it cannot use, the executor checks as always. A scan's expressions are the call's
 * arguments and then the values of the conditions; its private list is the function's OID, numbers of its kind, and
 * column and strategy of each condition.
 */
#ifndef CALL_H
#define CALL_H

#include "postgres.h"
#include "commands/explain.h"
#include "executor/executor.h"
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

/* ---- call_plan.c: in the planner ---- */

/* The name in C of the function of schema sheet that the relation is a call of; NULL when it is none. */
extern const char *call_source(const RangeTblEntry *rte);

/* Puts paths to its scan in place of those to the call, when this is its function. */
typedef void (*CallPlanFn)(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, const char *source);
/* From _PG_init. */
extern void call_plan_add(CallPlanFn plan, const CustomScanMethods *methods);

/* A path in place of the one to the call, which the planner takes to cost as much. The scan's private list begins with
 * the function's OID and the numbers. */
extern void call_replace_path(RelOptInfo *rel, FuncExpr *call, List *numbers, List *pathkeys,
							  const CustomPathMethods *methods);
/* The private list of a path, up to the conditions. */
extern List *call_private(FuncExpr *call, List *numbers);
/* The order of a list of columns. */
extern List *call_pathkeys(PlannerInfo *root, Index rti, const int *columns, const Oid *types, int count,
						   bool backward);
/* The plan of a path: takes the conditions out that the scan checks by itself; type_of NULL: it checks none. */
extern Plan *call_create_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
							  CallTypeFn type_of, const CustomScanMethods *methods);

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

/* Empties the slot for the next row, of which the constants are there then. */
extern void call_output_clear(const CallOutput *output);

typedef struct CallCondState
{
	int column;
	int strategy;
	Oid type;
	ExprState *value;
} CallCondState;

/* An argument of the call. */
typedef struct CallArg
{
	ExprState *state; /* NULL: the value is known */
	NullableDatum value;
} CallArg;

/* What the states of all scans begin with. */
typedef struct CallScanState
{
	CustomScanState css;
	ExecScanAccessMtd next; /* puts the next row into the output's slot, and returns this; empty: none is left */
	CallOutput output;
	CallArg *args;
	int nargs;
	CallCondState *conds;
	int nconds;
} CallScanState;

/* A state of so many bytes. */
extern Node *call_scan_create(Size size, const CustomExecMethods *methods, ExecScanAccessMtd next);
/* Checks the right to call the function (42501), and finds out what to form. So many numbers stand in the private list
 * before those of the conditions. */
extern void call_scan_begin(CallScanState *scan, int numbers);
/* For ExecCustomScan. */
extern TupleTableSlot *call_scan_exec(CustomScanState *node);
/* The values of the call's arguments. */
extern void call_scan_args(const CallScanState *scan, NullableDatum *args);
/* The value that a condition compares with. */
extern Datum call_scan_value(const CallScanState *scan, const CallCondState *cond, bool *isnull);
/* Goes to the next of count rows in the executor's direction; false when there is none. Before the first: -1. */
extern bool call_scan_step(const CallScanState *scan, int64 *at, int64 count);
/* Adds the conditions on a column to what EXPLAIN shows. */
extern void call_explain_conds(const CallScanState *scan, int column, const char *label, List *context,
							   ExplainState *es);

#endif
