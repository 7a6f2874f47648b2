/*
 * upgrade.h - a request to become a WebSocket: checked, and refused by an answer of HTTP; see upgrade.c.
 */
#ifndef UPGRADE_H
#define UPGRADE_H

#include "ws/session/session.h"
#include "http/routes/handshake.h"
#include "auth/jwt.h"
#include "http/server/peers.h"
#include "http/request/trace.h"

#include <stdbool.h>
#include <stdint.h>

/* What a WebSocket that may be opened needs to know; it goes with the socket, and is freed with it. */
typedef struct Ticket
{
	JwtClaims claims;
	int64_t sheet_id;
	char link[LINK_KEY_MAX + 1]; /* a key by which the sheet is opened first; "": none */
	bool nack;
	bool v2;			  /* the token comes with the first message */
	const char *protocol; /* the subprotocol; NULL: none was asked for */
	char accept[HANDSHAKE_ACCEPT_SIZE];
	char address[48];				   /* of the client, also behind a proxy */
	char request_id[TRACE_ID_MAX + 1]; /* of the upgrade, for the log */
	Peer *peer;
} Ticket;

struct Request;

/* The key of a link in the query: letters, digits, - and _; false when there is none. */
extern bool upgrade_link(const struct Request *request, char to[LINK_KEY_MAX + 1]);
/* For a request with an Upgrade header. NULL when it was answered, or goes on as a request that is none to upgrade. */
extern Ticket *upgrade_check(struct Request *request);

#endif
