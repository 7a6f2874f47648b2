/*
 * upgrade.h - a request to become a WebSocket: what is refused before libwebsockets sees it; see upgrade.c.
 */
#ifndef UPGRADE_H
#define UPGRADE_H

#include "jwt.h"
#include "peers.h"

#include "trace.h"

#include <stdbool.h>
#include <stdint.h>

/* What a WebSocket that may be opened needs to know; it goes with the socket, and is freed with it. */
typedef struct Ticket
{
	JwtClaims claims;
	int64_t sheet_id;
	bool nack;
	bool v2;						   /* the token comes with the first message */
	char address[48];				   /* of the client, also behind a proxy */
	char request_id[TRACE_ID_MAX + 1]; /* of the upgrade, for the log */
	Peer *peer;
} Ticket;

struct Request;

/* For a request with an Upgrade header. NULL when it was answered, or goes on as a request that is none to upgrade. */
extern Ticket *upgrade_check(struct Request *request);

#endif
