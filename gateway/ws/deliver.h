/*
 * deliver.h - frames of a room's stream to one receiver; see deliver.c.
 */
#ifndef DELIVER_H
#define DELIVER_H

#include "session.h"

typedef enum Delivery
{
	DELIVER_DONE,	 /* everything that is in the stream has been written */
	DELIVER_BLOCKED, /* the socket is full, or has had its share of this turn */
	DELIVER_FAILED	 /* the connection is broken */
} Delivery;

extern Delivery deliver(Session *session);

#endif
