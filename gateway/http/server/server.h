/* server.h - the listener, TLS, and the way from HTTP to WebSockets; see server.c. */
#ifndef SERVER_H
#define SERVER_H

#include "support/stream.h"
#include "http/routes/upgrade.h"

#include <stdbool.h>
#include <stddef.h>

/* Listens; false when that cannot be done: a message was printed. */
extern bool server_start(void);
/* Ends every connection; the handles close in the loop's next turns, and then server_free() takes the rest. */
extern void server_stop(void);
extern void server_free(void);
/* Accepts the upgrade of a connection, and takes it and the ticket over. read: what came behind the request. */
extern void server_open_websocket(Stream stream, Ticket *ticket, char *read, size_t len);

#endif
