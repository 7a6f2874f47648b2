/*
 * pgcause.h - the log lines about connections that fail.
 *
 * A gateway has some 17 connections, and what keeps one from the database mostly keeps all. A cause is logged once,
 * then at most once a minute with the number of failures, and once more when no connection suffers from it any longer.
 */
#ifndef PGCAUSE_H
#define PGCAUSE_H

#include <stdint.h>

/* The causes that a connection suffers from. */
typedef struct PgSufferer
{
	struct PgSufferer *next;
	uint64_t causes; /* bits: indexes of the table */
} PgSufferer;

extern void pgcause_add(PgSufferer *sufferer);
extern void pgcause_remove(PgSufferer *sufferer);
/*
 * A connection has failed. event: a constant; reason: its first line counts; hint: what to do, "" if that is clear.
 * now: ms of the loop's clock.
 */
extern void pgcause_report(PgSufferer *sufferer, uint64_t now, const char *event, const char *connection,
						   const char *reason, const char *hint);
/* The connection works. */
extern void pgcause_end(PgSufferer *sufferer, uint64_t now);

#endif
