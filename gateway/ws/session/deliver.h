/*
 * deliver.h - frames of a room's stream to one receiver; see deliver.c.
 */
#ifndef DELIVER_H
#define DELIVER_H

#include "ws/session/session.h"

typedef enum Delivery
{
	DELIVER_DONE,	 /* everything has been written */
	DELIVER_BLOCKED, /* the socket is full, or has had its share of this turn */
	DELIVER_FAILED	 /* the connection is broken */
} Delivery;

extern Delivery deliver(Session *session);
/* Only the rest of a frame that the socket has taken a part of: nothing else may be written before. */
extern Delivery deliver_begun(Session *session);

#endif
