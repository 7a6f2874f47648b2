/*
 * account_steps.h - what the routes of accounts share: limits on attempts, password hashes, tokens.
 *
 * Limits that restrain guessing: of an address, whoever is meant, and of an account together with the network from
 * which it is tried. When there have been many guesses at an account from everywhere, those from networks that the
 * account has not signed in from take longer; they are not refused, so that nobody can keep the owner out. A device
 * that has a token of the account, also one that has expired, has attempts of its own, and is never slowed down. Limits
 * of an address are not for the machine itself (loopback), unless a trusted proxy says for whom it asks.
 */
#ifndef ACCOUNT_STEPS_H
#define ACCOUNT_STEPS_H

#include "http/request/request.h"

/* May this address ask for another password hash now? Otherwise answered (429). */
extern bool account_may_come(Request *request);
/* Finds out whether the request comes with a token of the account claims.uid, whose token generation this is. */
extern void account_find_device(Request *request, int64_t generation);
/* May a password of the account claims.uid (0: of the unknown "username") be tried? Otherwise answered (429). */
extern bool account_may_try(Request *request);
/* The password was right: the attempt does not count, and the network is known from now on. */
extern void account_forgive(Request *request);

/* A password that may be set; otherwise answered. */
extern bool account_password_acceptable(Request *request, const char *password);
/* request->secret is the hash in the next step, request->number whether there is one. Answered when too many wait. */
extern void account_hash(Request *request, const char *password, RequestNext next);
/* request->number tells the next step whether it matches. stored NULL: takes as long, and does not. */
extern void account_compare(Request *request, const char *password, const char *stored, RequestNext next);

/* A new token, in quotes, and as the cookie, for who has shown who it is; false when none can be made. */
extern bool account_put_token(Request *request, Buf *to, int64_t uid, int64_t generation);

#endif
