/* handshake.h - is a request for a WebSocket one as RFC 6455 4.2.1 wants it? See handshake.c. */
#ifndef HANDSHAKE_H
#define HANDSHAKE_H

struct Request;

/* NULL: it is. Otherwise what is wrong with it, and the HTTP status that says so. */
extern const char *handshake_problem(const struct Request *request, int *status);

#endif
