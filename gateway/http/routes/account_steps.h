/*
 * account_steps.h - what the routes of accounts share: limits on attempts, password hashes, tokens.
 *
 * Guessing is limited for an address, whatever the account, and for an account together with the network of the client.
 * After many guesses at an account from all networks, those from networks from which the account has not signed in are
 * delayed. Beyond the limits of a network from which the account has signed in, which others may have used up, its
 * logins are delayed. They are not refused, so that nobody can lock the owner out. A device that has a token of the
 * account, even an expired one, has limits of its own and is never delayed. Limits of an address do not apply to the
 * machine itself (loopback), unless a trusted proxy forwards the request.
 *
 * Passwords wait for a processor in the order of their ranks: who has had fewer hashed in the last minutes comes first,
 * known devices before networks, so that a flood of logins from some networks delays nobody else.
 */
#ifndef ACCOUNT_STEPS_H
#define ACCOUNT_STEPS_H

#include "http/request/request.h"

/* May this client ask for another password hash now? False: answered with 429. */
extern bool account_may_come(Request *request);
/* The same for a login, which is only delayed if the account has signed in from this network. */
extern bool account_may_sign_in(Request *request);
/* The account has been used from the network of the client. */
extern void account_remember(const Request *request, int64_t uid, const char *name);
/* The request comes with a token of any account, perhaps an expired one: account_find_device() may find a device. */
extern bool account_shows_token(const Request *request);
/* Finds out whether the request has a token of the account and the token generation of claims. */
extern void account_find_device(Request *request);
/* May a password of the account claims.uid (0: of the unknown "username") be tried? False: answered with 429. */
extern bool account_may_try(Request *request);
/* The password was right: the attempt does not count, and the network is familiar from now on. */
extern void account_forgive(Request *request);

/* The password may be set. False: answered. */
extern bool account_password_acceptable(Request *request, const char *password);
/* Calls next with the hash in request->secret. Answers if too many passwords wait. */
extern void account_hash(Request *request, const char *password, RequestNext next);
/* Calls next; request->number is 1 if the password matches. stored NULL: takes as long, and does not match. */
extern void account_compare(Request *request, const char *password, const char *stored, RequestNext next);

/* Appends a new token in quotes, and sets the cookie. False: answered, and `to` was freed. */
extern bool account_put_token(Request *request, Buf *to, int64_t uid, int64_t generation);

#endif
