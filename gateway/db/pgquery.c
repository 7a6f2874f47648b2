/*
 * pgquery.c - parameters of queries; see pgquery.h.
 */
#include "db/pgquery.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

PgParam
pgparam_text(const char *text)
{
	return (PgParam){text, text != NULL ? (int) strlen(text) : 0, 0};
}

PgParam
pgparam_bytes(const void *data, int len)
{
	return (PgParam){data, len, 1};
}

PgParam
pgparam_int64(char buffer[24], long long value)
{
	snprintf(buffer, 24, "%lld", value);
	return pgparam_text(buffer);
}

PgParam
pgparam_null(void)
{
	return (PgParam){NULL, 0, 0};
}

PgParam
pgparam_buf(const Buf *buf, int format)
{
	return (PgParam){buf->data, buf_failed(buf) || buf->len > INT_MAX ? -1 : (int) buf->len, format};
}
