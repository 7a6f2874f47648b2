/* listen.h - the socket that connections come from; see listen.c. */
#ifndef LISTEN_H
#define LISTEN_H

#include <stdbool.h>

/* False: a message was printed. */
extern bool listen_start(void);
extern void listen_stop(void);

#endif
