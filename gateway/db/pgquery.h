/*
 * pgquery.h - what a query consists of: parameters, and who gets its answer.
 */
#ifndef PGQUERY_H
#define PGQUERY_H

#include "support/buf.h"

#include <libpq-fe.h>

#define PGQUERY_MAX_PARAMS 32

/* res NULL: the connection was lost or the deadline passed while the query was under way, or it was never sent. */
typedef void (*PgResultFn)(void *arg, PGresult *res);

typedef struct PgParam
{
	const char *data; /* NULL: SQL NULL */
	int len;
	int format; /* 0 text (data NUL-terminated), 1 binary */
} PgParam;

/* Helpers to fill parameters; the buffers are static per call site or the caller's. */
extern PgParam pgparam_text(const char *text);
extern PgParam pgparam_bytes(const void *data, int len);
extern PgParam pgparam_int64(char buffer[24], long long value);
extern PgParam pgparam_null(void);
/* The buffer's content, in the format 0 (text) or 1. A query with one of a buffer that has failed is not sent. */
extern PgParam pgparam_buf(const Buf *buf, int format);

#endif
