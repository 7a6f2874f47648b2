/*
 * gateway.h - the state that the parts of the gateway share. All of it is used on the loop's thread only.
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

#define BLOCK_CONNECTIONS  2
#define EXPORT_CONNECTIONS 2
#define ADMIN_TOKEN_MAX	   256

typedef struct Gateway
{
	Config config;
	JwtKeys keys;
	char admin_token[ADMIN_TOKEN_MAX + 1]; /* "": none */
	int64_t started;					   /* seconds since the Unix epoch */
	uv_loop_t loop;
	Coord *coord;
	/* Connections besides those of database.h, which database_open() opens. */
	PgConn *group;						 /* batches of several sheets in one transaction */
	PgConn *blocks[BLOCK_CONNECTIONS];	 /* streaming connections for large blocks */
	PgConn *exports[EXPORT_CONNECTIONS]; /* streaming connections for downloads of sheets */
	PgConn *follow;						 /* waits in sheet.follow */
	int64_t origin;						 /* random; identifies this process to sheet.apply and sheet.follow */
	bool ready;							 /* the gateways have agreed on the ring */
	bool suspended;						 /* contact with the coordinator is lost: edits are not acknowledged */
	bool leaving;						 /* told to stop, still serving for drain-notice-seconds */
	bool draining;						 /* the sheets move to other gateways */
	bool stopping; /* draining, and no other gateway takes them: no member is read, and all are closed */
	bool away;	   /* other gateways have the sheets, because the database answers them; see main/away.c */
	int connections;
	bool invalid;		  /* at the start: a setting cannot be used, so a restart is of no use */
	uint64_t loop_lag_us; /* the longest iteration of the last second */
} Gateway;

extern Gateway gateway;

/* Seconds since the Unix epoch. */
extern int64_t gateway_now(void);
/* The scheme by which clients reach the gateways. */
extern const char *gateway_http_scheme(void);
extern const char *gateway_ws_scheme(void);

#endif
