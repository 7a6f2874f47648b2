/* coordination.h - the gateway's answers to the coordinator's events; see coordination.c. */
#ifndef COORDINATION_H
#define COORDINATION_H

#include "coord/coord.h"

/* `fatal` is NULL: the caller sets it. */
extern const CoordEvents coordination_events;

#endif
