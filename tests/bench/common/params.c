/* params.c - see params.h. */
#include "params.h"

#include <endian.h>
#include <string.h>

void
param_bytes(Params *params, const void *data, int len)
{
	params->values[params->count] = data;
	params->lens[params->count++] = len;
}

void
param_int8(Params *params, int64_t value)
{
	int64_t *number = &params->numbers[params->count];

	*number = htobe64(value);
	param_bytes(params, number, sizeof(*number));
}

void
param_int4(Params *params, int32_t value)
{
	int32_t *number = (int32_t *) &params->numbers[params->count];

	*number = htobe32(value);
	param_bytes(params, number, sizeof(*number));
}

static char *
put_int4(char *to, int32_t value)
{
	value = htobe32(value);
	return mempcpy(to, &value, sizeof(value));
}

char *
array_begin(char *to, int32_t type, int count)
{
	to = put_int4(to, 1); /* dimensions */
	to = put_int4(to, 0); /* no nulls */
	to = put_int4(to, type);
	to = put_int4(to, count);
	return put_int4(to, 1); /* lower bound */
}

char *
array_put_bytes(char *to, const void *data, int32_t len)
{
	return mempcpy(put_int4(to, len), data, len);
}

char *
array_put_int4(char *to, int32_t value)
{
	return put_int4(put_int4(to, sizeof(value)), value);
}

char *
array_put_int8(char *to, int64_t value)
{
	value = htobe64(value);
	return array_put_bytes(to, &value, sizeof(value));
}

PGresult *
params_execute(Session *session, const char *statement, const Params *params)
{
	static const int binary[PARAMS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};

	return session_check(
		session, PQexecPrepared(session->conn, statement, params->count, params->values, params->lens, binary, 1));
}

void
session_prepare(Session *session, const char *statement, const char *sql)
{
	PQclear(session_check(session, PQprepare(session->conn, statement, sql, 0, NULL)));
}

int64_t
answer_int8(const PGresult *result, int row, int column)
{
	int64_t value;

	memcpy(&value, PQgetvalue(result, row, column), sizeof(value));
	return be64toh(value);
}

int32_t
answer_int4(const PGresult *result, int row, int column)
{
	int32_t value;

	memcpy(&value, PQgetvalue(result, row, column), sizeof(value));
	return be32toh(value);
}
