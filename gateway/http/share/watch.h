/* watch.h - WebSockets that hear that a published view has changed; see watch.c. */
#ifndef WATCH_H
#define WATCH_H

#include "ws/wire/socket.h"

#include <stdbool.h>

/* Becomes the user of the socket. key: of PUBLISHED_KEY_CHARS characters. Returns false when there is no memory. */
extern bool watch_open(Socket *socket, const char *key);

#endif
