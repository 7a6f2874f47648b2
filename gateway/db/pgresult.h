/*
 * pgresult.h - numbers in PostgreSQL's results, which come in the binary format.
 */
#ifndef PGRESULT_H
#define PGRESULT_H

#include <endian.h>
#include <libpq-fe.h>
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

#endif
