/* server.h - libwebsockets and what hangs on it; see server.c. */
#ifndef SERVER_H
#define SERVER_H

#include <stdbool.h>

/* Listens; a message is logged and false returned when the address is not to be had. */
extern bool server_start(void);
/* Ends every connection; the handles close in the loop's next turns, and then server_free() takes the rest. */
extern void server_stop(void);
extern void server_free(void);

#endif
