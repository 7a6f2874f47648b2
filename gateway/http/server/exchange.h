/*
 * exchange.h - from the head of a request to its route: what is refused at once, who takes the body; see exchange.c.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "http/routes/upgrade.h"

#include <stdbool.h>
#include <stddef.h>

struct Request;

typedef enum Exchange
{
	EXCHANGE_GOES_ON, /* answered, being answered, or waiting for content_length bytes of body */
	EXCHANGE_UPGRADE, /* the connection becomes a WebSocket: *ticket is set */
} Exchange;

extern Exchange exchange_begin(struct Request *request, const char *head, size_t len, Ticket **ticket);
/* A piece of the body; its end. */
extern void exchange_body(struct Request *request, const char *data, size_t len);
extern void exchange_body_end(struct Request *request);

#endif
