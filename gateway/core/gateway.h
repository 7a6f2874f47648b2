/*
 * gateway.h - the one gateway of this process: what its parts share. Everything runs on the loop.
 */
#ifndef GATEWAY_H
#define GATEWAY_H

#include "core/config.h"
#include "coord/coord.h"
#include "auth/jwt.h"
#include "db/pgconn.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define BLOCK_CONNECTIONS 2
#define ADMIN_TOKEN_MAX	  256

typedef struct Gateway
{
	Config config;
	JwtKeys keys;
	char admin_token[ADMIN_TOKEN_MAX + 1]; /* "": none */
	int64_t started;					   /* seconds since the Unix epoch */
	uv_loop_t loop;
	Coord *coord;
	/* Connections besides those of database.h. */
	PgConn *group;					   /* batches of several sheets in one transaction (ws/room/schedule.c) */
	PgConn *blocks[BLOCK_CONNECTIONS]; /* large blocks, streaming connections (ws/v2/v2_large_block.c) */
	PgConn *follow;					   /* waits in sheet.follow */
	int64_t origin;					   /* names this process to sheet.apply and sheet.follow; random */
	bool ready;						   /* the ring is there */
	bool suspended;					   /* contact with the coordinator is lost: nothing is acknowledged */
	bool leaving; /* told to stop, and still serving: balancers have time to notice (drain-notice-seconds) */
	bool draining;
	int connections;
	uint64_t loop_lag_us; /* the longest turn of the last second */
} Gateway;

extern Gateway gateway;

/* Seconds since the Unix epoch. */
extern int64_t gateway_now(void);
/* How clients reach the gateways: http or https, ws or wss. */
extern const char *gateway_http_scheme(void);
extern const char *gateway_ws_scheme(void);

#endif
