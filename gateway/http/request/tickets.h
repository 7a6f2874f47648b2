/*
 * tickets.h - one-time tickets for WebSockets; see tickets.c.
 */
#ifndef TICKETS_H
#define TICKETS_H

#include "auth/jwt.h"

#include <stdbool.h>
#include <stdint.h>

#define TICKET_SECONDS 30
#define TICKET_SIZE	   32 /* of the text, with its NUL */

struct Request;

/* A ticket for this sheet and for whoever the claims name. False: too many are out, or there is no randomness. */
extern bool ticket_issue(const JwtClaims *claims, int64_t sheet_id, char to[TICKET_SIZE]);
/* Takes a ticket back: whose it is. False when it is none, has been used, is for another sheet, or is too old. */
extern bool ticket_redeem(const char *ticket, int64_t sheet_id, JwtClaims *claims);
/* POST /v2/ticket {token, fid} */
extern void route_ticket(struct Request *request);

#endif
