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
#define TICKETS_MAX	   64 /* of an account, unused */

/* Counts the account's tickets that are unused and not too old. */
extern int ticket_count(int64_t uid);
/* Issues a ticket for a sheet and an account. False: too many accounts have as many, or there is no randomness. */
extern bool ticket_issue(const JwtClaims *claims, int64_t sheet_id, char to[TICKET_SIZE]);
/* Returns whether ticket_redeem() would accept it. */
extern bool ticket_is_valid(const char *ticket, int64_t sheet_id);
/* Uses a ticket up, and sets the account. False: it does not exist, was used, is for another sheet, or is too old. */
extern bool ticket_redeem(const char *ticket, int64_t sheet_id, JwtClaims *claims);

#endif
