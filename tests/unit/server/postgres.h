/* postgres.h - what the timer (extension/timer/timer_board.c, timer_window.c) uses of PostgreSQL's, for tests of it. */
#ifndef POSTGRES_H
#define POSTGRES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef int64_t int64;
typedef uint32_t uint32;
typedef unsigned int Oid;
typedef uintptr_t Datum;

#define INT64CONST(x)	 INT64_C(x)
#define InvalidOid		 ((Oid) 0)
#define Min(x, y)		 ((x) < (y) ? (x) : (y))
#define Max(x, y)		 ((x) > (y) ? (x) : (y))
#define DatumGetInt32(d) ((int) (d))
#define Int32GetDatum(i) ((Datum) (i))
#define palloc(size)	 malloc(size)

#endif
