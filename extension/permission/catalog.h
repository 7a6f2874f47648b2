/* catalog.h - SQL on the extension's own tables with the rights of their owner, and arguments of SQL functions. */
#ifndef PERMISSION_CATALOG_H
#define PERMISSION_CATALOG_H

#include "postgres.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"

#define CATALOG_MAX_ARGS 10

/* A statement. Its plan is kept for the rest of the session. Names are qualified with their schema. */
typedef struct CatalogQuery
{
	const char *sql;
	Oid types[CATALOG_MAX_ARGS + 1]; /* of the parameters, up to the first InvalidOid */
	SPIPlanPtr plan;
	bool by_values; /* planned for the values of the parameters each time: the best plan depends on them */
} CatalogQuery;

/* Values of parameters. */
#define CATALOG_DATUM(datum) ((NullableDatum){(datum), false})
#define CATALOG_INT64(value) CATALOG_DATUM(Int64GetDatum(value))
#define CATALOG_TEXT(string) CATALOG_DATUM(CStringGetTextDatum(string))
#define CATALOG_NAME(string) CATALOG_DATUM(DirectFunctionCall1(namein, CStringGetDatum(string)))
/* SHA-256 of a text: a statement never gets the key itself, since auto_explain logs parameters. */
#define CATALOG_DIGEST(text) CATALOG_DATUM(DirectFunctionCall1(sha256_bytea, (text)))
#define CATALOG_NULL		 ((NullableDatum){(Datum) 0, true})

/* Between begin and end the current user is the owner of the tables: no code of the caller may run there. */
typedef struct CatalogScope
{
	Oid user;
	int security;
	int guc_level;
	MemoryContext caller; /* for results that outlive the scope */
} CatalogScope;

extern void catalog_begin(CatalogScope *scope);
extern void catalog_end(CatalogScope *scope);
/* Runs a query. Its rows are in SPI_tuptable until catalog_end(). Returns the number of rows. */
extern uint64 catalog_run(CatalogQuery *query, const NullableDatum *args, bool read_only);
/*
 * Runs a DELETE or an UPDATE that must leave no row behind, or a SELECT that must find none that has been deleted: it
 * sees all that is committed, in every isolation level.
 * 40001 if one of the rows is newer than the snapshot of a transaction in REPEATABLE READ or SERIALIZABLE.
 */
extern uint64 catalog_run_latest(CatalogQuery *query, const NullableDatum *args);
/* A column (from 1) of the first row; otherwise, or NULL, if it is null. The string is allocated in scope->caller. */
extern int64 catalog_int64(int column, int64 otherwise);
extern char *catalog_string(CatalogScope *scope, int column);

/* begin, run and end. */
extern uint64 catalog_execute(CatalogQuery *query, const NullableDatum *args);
/* The first column of the first row. Returns false, or NULL, if there is no row. */
extern bool catalog_find_int64(CatalogQuery *query, const NullableDatum *args, bool read_only, int64 *value);
extern char *catalog_find_string(CatalogQuery *query, const NullableDatum *args, bool read_only);

/* Results of functions: the first column of the first row (null: no row); a row of the function's row type; the rows of
 * a query, which have that type, for a set-returning function. */
extern Datum catalog_return_text(FunctionCallInfo fcinfo, CatalogQuery *query, const NullableDatum *args,
								 bool read_only);
extern Datum catalog_return_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls);
extern Datum catalog_return_rows(FunctionCallInfo fcinfo, CatalogQuery *query, const NullableDatum *args,
								 bool read_only);

/* ---- arguments: 22004 for a null that has no default ---- */
extern int64 catalog_sheet(NullableDatum arg);
extern int64 catalog_arg_sheet(FunctionCallInfo fcinfo, int arg);
extern int64 catalog_arg_int64(FunctionCallInfo fcinfo, int arg, int64 otherwise);
extern void catalog_require_arg(FunctionCallInfo fcinfo, int arg, const char *what);
/* Of all arguments: the message names the parameter. */
extern void catalog_require_args(FunctionCallInfo fcinfo);
extern char *catalog_arg_string(FunctionCallInfo fcinfo, int arg, const char *what);
/* The number of rows of a page, from 1 to max; max if null. 22023: out of range. */
extern int32 catalog_arg_page(FunctionCallInfo fcinfo, int arg, int32 max, const char *what);
/* The name in Unicode's normal form C. May return the argument. */
extern char *catalog_normal_name(char *name);
/* 22023 unless the name has 1 to max characters, of which one is visible, and none is a control character or changes
 * the direction of text. */
extern void catalog_check_name(const char *what, const char *name, int max);
/* The same for an argument that may be null or empty. */
extern void catalog_check_text(FunctionCallInfo fcinfo, int arg, const char *what, int max);

#endif
