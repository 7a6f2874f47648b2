/*
 * tls.h - the gateway's certificate, and TLS on a socket; see tls.c.
 */
#ifndef TLS_H
#define TLS_H

#include "support/stream.h"

#include <stdbool.h>

/* Reads tls-certificate and tls-key, if they are set. False: a message was printed. */
extern bool tls_start(void);
/* Reads them again; connections keep what they have. False: the certificate of before stays, and say gets why. */
extern bool tls_reload(void (*say)(const char *line));
extern void tls_stop(void);
extern bool tls_is_on(void);
/* The server's side of a connection; it takes no ownership of the descriptor. */
extern SSL *tls_new(int fd);
/* Back to a plain stream. */
extern void tls_free(Stream *stream);

#endif
