/*
 * call.h - custom scans in place of calls of set-returning functions.
 *
 * A query that selects from sheet.log_edits(), sheet.range(), sheet.at() or sheet.read_cells() gets a custom scan
 * instead of a function scan. The scan forms only the columns that the query uses, copies no rows into a tuplestore,
 * and uses conditions "column operator value" whose value is known before the scan begins. The executor checks all
 * other conditions. Rows as a whole, WITH ORDINALITY and calls in a select list remain calls of the function.
 *
 * A CallKind describes the scans of one name in EXPLAIN. call_plan.c is the planner's part, call_scan.c the executor's.
 *
 * The custom_exprs of a plan are the arguments of the call, then the values of the conditions. Its custom_private is a
 * list of integers: CALL_PRIVATE_*, then column and strategy of each condition.
 */
#ifndef CALL_H
#define CALL_H

#include "postgres.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

#define CALL_MAX_ARGS	 8
#define CALL_MAX_COLUMNS 16
#define CALL_COUNT		 0 /* in place of a column: the number of rows */

typedef struct CallScan CallScan;

/* Inclusive bounds. An empty range has low > high. */
typedef struct CallRange
{
	int64 low, high;
} CallRange;

typedef struct CallColumn
{
	const char *label; /* of its conditions in EXPLAIN */
	/* Type of the conditions that a scan can use: INT8OID (all integer types) or TIMESTAMPTZOID with any btree
	 * operator, TEXTOID with equality only. InvalidOid: none. */
	Oid compared;
} CallColumn;

typedef struct CallFunction
{
	const char *source;				 /* C name */
	const char *args[CALL_MAX_ARGS]; /* labels of the arguments in EXPLAIN */
	int nargs;
	int ncolumns;
	const CallColumn *columns; /* column n is columns[n - 1]; NULL: the scan uses no conditions */
} CallFunction;

typedef struct CallKind
{
	const char *name; /* Custom Scan (name) in EXPLAIN */
	const CallFunction *functions;
	int nfunctions;
	uint32 flags;	 /* of its paths */
	Size state_size; /* of a struct that begins with CallScan */
	/* Replaces the relation's paths. `function` is an index into `functions`. */
	void (*add_paths)(PlannerInfo *root, RelOptInfo *rel, FuncExpr *call, int function);
	/* Narrows ranges by "column = value" of type text. */
	void (*limit_text)(CallRange *ranges, int column, text *value);
	/* Called for the first row. ranges[column] is what the conditions leave of the column. Checks the permission to
	 * read. The current memory context lives until close. */
	void (*open)(CallScan *scan, const NullableDatum *args, const CallRange *ranges);
	bool (*next)(CallScan *scan); /* goes to the next row; false: there is none */
	/* A value of the current row, at most once per column. The current memory context lives until the next row. */
	Datum (*value)(CallScan *scan, int column, bool *isnull);
	void (*rewind)(CallScan *scan); /* before the first row, with the same arguments; NULL: the scan is opened again */
	void (*close)(CallScan *scan);	/* may be NULL */
	void (*explain)(CallScan *scan, ExplainState *es); /* may be NULL */
	/* Filled in by call_register(). */
	CustomPathMethods path_methods;
	CustomScanMethods scan_methods;
	CustomExecMethods exec_methods;
} CallKind;

/* Called by _PG_init, for each kind once. */
extern void call_register(CallKind *kind);

/* ---- call_plan.c ---- */

#define CALL_STRATEGY_ANY 6 /* beside the strategies of btree: = ANY (array) */

typedef struct CallCond
{
	int column;
	int strategy;
	Expr *value; /* without columns of the function */
	bool exact;	 /* the executor need not check the condition */
} CallCond;

enum
{
	CALL_PRIVATE_OID,	   /* of the SQL function */
	CALL_PRIVATE_FUNCTION, /* its index in the kind */
	CALL_PRIVATE_MODE,	   /* for the kind */
	CALL_PRIVATE_CONDS
};

/* Whether the clause is a condition on a column of relation rti that the scan can use. */
extern bool call_cond_match(PlannerInfo *root, Index rti, Expr *clause, const CallFunction *function, CallCond *cond);
/* A path of the relation without rows and costs. */
extern CustomPath *call_make_path(const CallKind *kind, RelOptInfo *rel, FuncExpr *call, int function, int mode,
								  List *pathkeys);
/* The order of `count` columns without a collation. */
extern List *call_pathkeys(PlannerInfo *root, Index rti, const int *columns, const Oid *types, int count,
						   bool backward);

/* ---- call_scan.c ---- */

/* What fills one attribute of the slot. */
typedef struct CallOutput
{
	int attribute; /* from 0 */
	int column;	   /* of the function, or CALL_COUNT; -1: the constant */
	NullableDatum constant;
} CallOutput;

typedef struct CallCondState
{
	int column;
	int strategy;
	Oid type;
	ExprState *value;
} CallCondState;

struct CallScan
{
	CustomScanState css;
	const CallKind *kind;
	const CallFunction *function;
	int mode;
	TupleTableSlot *slot; /* of the result if the scan forms it (direct), else of the scan */
	bool direct;
	CallOutput *outputs;
	int noutputs;
	List *args; /* of ExprState */
	CallCondState *conds;
	int nconds;
	MemoryContext context; /* of what `open` makes */
	bool opened;
};

extern CustomExecMethods call_exec_methods(const char *name);
extern Node *call_create_state(CustomScan *plan);
extern void call_range_clear(CallRange *range);
/* By a btree strategy and the value of an integer or a time. */
extern void call_range_limit(CallRange *range, int strategy, int64 value);
/* To the row and column of the cell of this name. Only the usual spelling (B7) names a cell. */
extern void call_range_limit_cell(CallRange *row, CallRange *col, text *name);
/* The value of an integer type or timestamptz. */
extern int64 call_int64(Oid type, Datum value);

#endif
