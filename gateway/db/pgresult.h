/*
 * pgresult.h - what is in PostgreSQL's results: numbers, which come in the binary format, and errors.
 */
#ifndef PGRESULT_H
#define PGRESULT_H

#include <endian.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A bigint; NULL is 0. */
static inline int64_t
pgresult_int64(const PGresult *res, int row, int column)
{
	uint64_t value;

	if (PQgetisnull(res, row, column))
		return 0;
	memcpy(&value, PQgetvalue(res, row, column), sizeof(value));
	return (int64_t) be64toh(value);
}

/* An integer that is not below 0; NULL is 0. */
static inline uint32_t
pgresult_uint32(const PGresult *res, int row, int column)
{
	uint32_t value;

	if (PQgetisnull(res, row, column))
		return 0;
	memcpy(&value, PQgetvalue(res, row, column), sizeof(value));
	return be32toh(value);
}

/* Returns whether the query has succeeded; res may be NULL. */
static inline bool
pgresult_succeeded(const PGresult *res)
{
	return res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK;
}

/* SQLSTATE of a failed result, "" when there is none; never NULL. */
static inline const char *
pgresult_sqlstate(const PGresult *res)
{
	const char *state = res != NULL ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;

	return state != NULL ? state : "";
}

/* libpq's own error, which has no SQLSTATE: there was no memory for the answer. What the query did is not known. */
static inline bool
pgresult_is_libpq_error(const PGresult *res)
{
	return PQresultStatus(res) == PGRES_FATAL_ERROR && PQresultErrorField(res, PG_DIAG_SQLSTATE) == NULL;
}

/* What the server says of a failed result. */
static inline const char *
pgresult_reason(const PGresult *res)
{
	const char *reason = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);

	return reason != NULL ? reason : "out of memory";
}

#endif
