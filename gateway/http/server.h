/* server.h - the listener, TLS, and libwebsockets for the WebSockets; see server.c. */
#ifndef SERVER_H
#define SERVER_H

#include "upgrade.h"

#include <stdbool.h>
#include <stddef.h>

/* Listens; false when that cannot be done: a message was printed. */
extern bool server_start(void);
/* Ends every connection; the handles close in the loop's next turns, and then server_free() takes the rest. */
extern void server_stop(void);
extern void server_free(void);
/* The i-th subprotocol that is spoken; NULL behind the last. */
extern const char *server_protocol_name(int i);
/* A socket whose upgrade was accepted, with the request and what came behind it. Takes socket and ticket over. */
extern void server_adopt(int fd, Ticket *ticket, const char *head, size_t len);

#endif
