/*
 * account_steps.h - what the routes of accounts share: limits on attempts, password hashes, tokens.
 *
 * Limits that restrain guessing: per address whoever is meant, and per account wherever the guesses come from. Those
 * per address are not for the machine itself (loopback), unless a trusted proxy says from where it forwards.
 */
#ifndef ACCOUNT_STEPS_H
#define ACCOUNT_STEPS_H

#include "request.h"

/* May this address ask for another password hash now? Otherwise answered (429). */
extern bool account_may_come(Request *request);
/* May a password of the account claims.uid (0: of the unknown "username") be tried? Otherwise answered (429). */
extern bool account_may_try(Request *request);
/* The password was right: the attempt does not count. */
extern void account_forgive(Request *request);

/* A password that may be set; otherwise answered. */
extern bool account_password_acceptable(Request *request, const char *password);
/* request->secret is the hash in the next step, request->number whether there is one. Answered when too many wait. */
extern void account_hash(Request *request, const char *password, RequestNext next);
/* request->number tells the next step whether it matches. stored NULL: takes as long, and does not. */
extern void account_compare(Request *request, const char *password, const char *stored, RequestNext next);

/* A new token, in quotes; false when none can be made. */
extern bool account_put_token(Buf *to, int64_t uid, int64_t generation);

#endif
