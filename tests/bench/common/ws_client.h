/* ws_client.h - just enough of a WebSocket client for load generators. */
#ifndef WS_CLIENT_H
#define WS_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A connection to this port of loopback, without Nagle's delay; by TLS if WS_TLS is in the environment. */
extern int ws_connect(int port);
/* As recv() and send(), for connections of either kind. */
extern ssize_t ws_recv(int fd, char *to, size_t size);
extern ssize_t ws_send(int fd, const char *from, size_t len);
/* The request for a WebSocket; protocol is a subprotocol, or NULL. Returns its length. */
extern size_t ws_write_upgrade(char *to, size_t size, int port, const char *path, const char *protocol);
/* Connects, asks for a WebSocket, and waits for it. *rest_len bytes that came behind the answer's head go to rest. */
extern int ws_open(int port, const char *path, const char *protocol, char *rest, size_t size, size_t *rest_len);
/* The length of a server frame's header, and of its payload; 0 when more bytes are needed. */
extern size_t ws_measure_frame(const unsigned char *frame, size_t len, uint64_t *payload);
/* A whole frame of the client; its length, at most len + WS_HEAD_MAX. */
extern size_t ws_write_frame(char *to, int opcode, const void *payload, size_t len, uint32_t mask);

#define WS_TEXT	  1
#define WS_BINARY 2
#define WS_CLOSE  8
#define WS_PING	  9
#define WS_PONG	  10

#define WS_HEAD_MAX 14

#endif
