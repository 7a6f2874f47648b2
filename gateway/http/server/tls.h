/*
 * tls.h - the gateway's certificate, and TLS on a socket; see tls.c.
 */
#ifndef TLS_H
#define TLS_H

#include "support/transport.h"

#include <stdbool.h>

/* Reads tls-certificate and tls-key, if they are set. False: a message was printed. */
extern bool tls_start(void);
/* Reads them again for new connections. False: the reason was given to say, and the former certificate stays. */
extern bool tls_reload(void (*say)(const char *line));
extern void tls_stop(void);
extern bool tls_is_on(void);
/* The server's side of a connection; it takes no ownership of the descriptor. */
extern SSL *tls_new(int fd);
/* The client speaks HTTP without TLS, as the first byte shows. False after the handshake has begun. */
extern bool tls_is_plain(const Transport *transport);
/* During the handshake: the client has sent no byte. */
extern bool tls_is_silent(const Transport *transport);
/* Back to a plain transport. */
extern void tls_free(Transport *transport);

#endif
