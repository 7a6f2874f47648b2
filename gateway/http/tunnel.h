/* tunnel.h - a WebSocket over TLS: what is deciphered here goes to libwebsockets through a socket pair; see tunnel.c.
 */
#ifndef TUNNEL_H
#define TUNNEL_H

#include "stream.h"

/* Takes the stream over, and the len bytes that were read of it already; returns the other end, or -1 when the process
 * has no descriptors left. */
extern int tunnel_open(Stream *stream, const char *first, size_t len);
/* Ends tunnels that nobody reads from; to be called every now and then. */
extern void tunnel_tick_all(void);
extern void tunnel_close_all(void);

#endif
