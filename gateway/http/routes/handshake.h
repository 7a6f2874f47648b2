/* handshake.h - the opening handshake of a WebSocket (RFC 6455 4.2); see handshake.c. */
#ifndef HANDSHAKE_H
#define HANDSHAKE_H

struct Request;

#define HANDSHAKE_ACCEPT_SIZE 29 /* 20 bytes in base64, and NUL */
#define HANDSHAKE_V1		  "sheet.v1"
#define HANDSHAKE_V2		  "sheet.v2"

/* NULL: it is. Otherwise what is wrong with it, and the HTTP status that says so. */
extern const char *handshake_problem(const struct Request *request, int *status);
/* The subprotocol: sheet.v2 before sheet.v1; NULL when none is asked for. */
extern const char *handshake_protocol(const struct Request *request);
/* What proves to the client that its Sec-WebSocket-Key was read (RFC 6455 4.2.2). */
extern void handshake_accept(const struct Request *request, char to[HANDSHAKE_ACCEPT_SIZE]);

#endif
