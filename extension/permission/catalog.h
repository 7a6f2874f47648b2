/* catalog.h - the extension's own tables, read and written by SQL with the rights of their owner; see catalog.c. */
#ifndef CATALOG_H
#define CATALOG_H

#include "postgres.h"
#include "executor/spi.h"
#include "fmgr.h"

#define CATALOG_MAX_ARGS 6

/* A statement, and its plan for the rest of the session. Names are written with their schema. */
typedef struct CatalogQuery
{
	const char *sql;
	int nargs;
	Oid types[CATALOG_MAX_ARGS];
	SPIPlanPtr plan;
} CatalogQuery;

/* Between begin and end the rights are those of the owner: nothing of the caller's may run there. */
typedef struct CatalogScope
{
	Oid user;
	int security;
	int guc_level;
	MemoryContext caller; /* results that outlive the scope are made here */
} CatalogScope;

extern void catalog_begin(CatalogScope *scope);
extern void catalog_end(CatalogScope *scope);
/* Runs a query; rows are in SPI_tuptable until catalog_end(). isnull may be NULL. Returns the number of rows. */
extern uint64 catalog_run(CatalogQuery *query, const Datum *values, const bool *isnull, bool read_only);
/* The first row's column (from 1), copied to the caller's memory when it is a reference. */
extern int64 catalog_int64(int column, bool *isnull);
extern char *catalog_string(CatalogScope *scope, int column); /* NULL when null */

/* begin, run, end in one; for statements without a result, returns the number of rows. */
extern uint64 catalog_execute(CatalogQuery *query, const Datum *values, const bool *isnull);
/* The first column, of type text, of a query's first row, as the result of a function: null when there is no row. */
extern Datum catalog_return_text(FunctionCallInfo fcinfo, CatalogQuery *query, const Datum *values, bool read_only);
/* A row of the function's row type, as its result. */
extern Datum catalog_return_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls);
/* Runs a query whose rows have the function's row type, as the result of a set-returning function. */
extern Datum catalog_return_rows(FunctionCallInfo fcinfo, CatalogQuery *query, const Datum *values, const bool *isnull,
								 bool read_only);

/* ---- arguments ---- */
extern int64 catalog_sheet(NullableDatum arg); /* 22004 when null */
extern int64 catalog_arg_sheet(FunctionCallInfo fcinfo, int arg);
extern int64 catalog_arg_int64(FunctionCallInfo fcinfo, int arg, int64 otherwise);
extern char *catalog_arg_string(FunctionCallInfo fcinfo, int arg, const char *what); /* 22004 when null */
/* Unicode's normal form C: names that look the same are the same. May return the argument. */
extern char *catalog_normal_name(char *name);
/* 22023 unless the name has 1 to max characters, and none that controls anything or changes the direction of text. */
extern void catalog_check_name(const char *what, const char *name, int max);

#endif
