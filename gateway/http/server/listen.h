/* listen.h - who is accepted; see listen.c. */
#ifndef LISTEN_H
#define LISTEN_H

#include "http/server/conn.h"

#include <stdbool.h>

/* Listens. handler: of all connections. False: a message was printed, and gateway.invalid is set if settings are wrong.
 */
extern bool listen_start(const ConnHandler *handler);
/* Accepts nobody from now on. */
extern void listen_stop(void);

#endif
