/* params.h - binary parameters of a prepared statement. */
#ifndef PARAMS_H
#define PARAMS_H

#include "session.h"

#define PARAMS_MAX 8

typedef struct Params
{
	int count;
	const char *values[PARAMS_MAX];
	int lens[PARAMS_MAX];
	int64_t numbers[PARAMS_MAX];
} Params;

/* data stays the caller's. */
extern void param_bytes(Params *params, const void *data, int len);
extern void param_int8(Params *params, int64_t value);
extern void param_int4(Params *params, int32_t value);
/* The answer is binary, too, and good: everything else ends the program. */
extern PGresult *params_execute(Session *session, const char *statement, const Params *params);
extern void session_prepare(Session *session, const char *statement, const char *sql);

/* An array of one dimension as a parameter: its head, then the elements. All return the end of what they wrote. */
#define ARRAY_HEAD 20
#define BYTEAOID   17
#define INT8OID	   20
#define INT4OID	   23
#define TEXTOID	   25
extern char *array_begin(char *to, int32_t type, int count);
extern char *array_put_bytes(char *to, const void *data, int32_t len);
extern char *array_put_int4(char *to, int32_t value);
extern char *array_put_int8(char *to, int64_t value);

/* Numbers of an answer. */
extern int64_t answer_int8(const PGresult *result, int row, int column);
extern int32_t answer_int4(const PGresult *result, int row, int column);

#endif
