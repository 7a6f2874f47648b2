/* delivery.h - one request to the address of a webhook; see delivery.c. */
#ifndef DELIVERY_H
#define DELIVERY_H

#include "support/buf.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Delivery Delivery;

typedef enum DeliveryOutcome
{
	DELIVERY_DELIVERED,
	DELIVERY_FAILED,
	DELIVERY_GONE,		/* the receiver wants no more */
	DELIVERY_POSTPONED, /* nothing was sent: too much is under way */
	DELIVERY_OUTCOMES
} DeliveryOutcome;

typedef struct DeliveryResult
{
	int64_t webhook_id;
	int64_t attempt;
	int64_t to_seq; /* -1: a ping */
	DeliveryOutcome outcome;
	int status;		 /* 0: no answer */
	const char *why; /* "": delivered */
	int wait_seconds;
} DeliveryResult;

typedef void (*DeliveryFn)(const DeliveryResult *result);

/* A body, and the address that it is posted to. delivery_start() copies the strings. */
typedef struct DeliveryTask
{
	int64_t webhook_id, attempt, to_seq, account;
	int failures; /* since the last success */
	const char *url, *secret, *body;
} DeliveryTask;

/* Sends. fn is called once, in a later iteration of the loop, or at once if nothing is sent. */
extern void delivery_start(const DeliveryTask *task, DeliveryFn fn);
extern int delivery_count(void);
/* Writes two arrays of PostgreSQL with an element for each delivery under way: its account, and its host as in a URL.
 */
extern void delivery_put_running(Buf *accounts, Buf *hosts);
extern void delivery_stop_all(void);

#endif
