/* listen.h - the listening sockets; see listen.c. */
#ifndef LISTEN_H
#define LISTEN_H

#include "http/server/conn.h"

#include <stdbool.h>

/* Listens. handler: of all connections. False: a message was printed, and gateway.invalid is set if settings are wrong.
 */
extern bool listen_start(const ConnHandler *handler);
/* Closes the sockets and all connections. Their handles close in the next iterations of the loop. */
extern void listen_stop(void);

#endif
