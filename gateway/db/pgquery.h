/*
 * pgquery.h - a query: its parameters, and the function that gets its result.
 */
#ifndef PGQUERY_H
#define PGQUERY_H

#include "support/buf.h"

#include <libpq-fe.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PGQUERY_MAX_PARAMS 32

/* res is NULL if the outcome is unknown: the query was lost with its connection, or it was never sent. */
typedef void (*PgResultFn)(void *arg, PGresult *res);

typedef struct PgParam
{
	const char *data; /* NULL: SQL NULL */
	int len;		  /* below 0: the query is refused */
	int format;		  /* 0 text (data NUL-terminated), 1 binary */
} PgParam;

typedef struct PgQuery
{
	const char *sql; /* a constant string: its address identifies the prepared statement */
	int nparams;
	const PgParam *params; /* copied */
	int result_format;	   /* 0 text, 1 binary */
	unsigned deadline_ms;
	PgResultFn row_fn; /* gets each row as it arrives; NULL: the result has all rows */
	PgResultFn fn;
	void *arg;
	int64_t account; /* for pgpool.c: the account on whose behalf it is */
	bool goes_on;	 /* for pgpool.c: it reads the rest of an answer that has begun */
} PgQuery;

static inline PgParam
pgparam_text(const char *text)
{
	return (PgParam){text, text != NULL ? (int) strlen(text) : 0, 0};
}

static inline PgParam
pgparam_bytes(const void *data, int len)
{
	return (PgParam){data, len, 1};
}

/* The buffer must live as long as the parameter. */
static inline PgParam
pgparam_int64(char buffer[24], long long value)
{
	snprintf(buffer, 24, "%lld", value);
	return pgparam_text(buffer);
}

static inline PgParam
pgparam_null(void)
{
	return (PgParam){NULL, 0, 0};
}

/* The buffer's content. A query with a parameter of a failed buffer is refused. */
static inline PgParam
pgparam_buf(const Buf *buf, int format)
{
	return (PgParam){buf->data, buf_failed(buf) || buf->len > INT_MAX ? -1 : (int) buf->len, format};
}

#endif
