/* ws_client.h - just enough of a WebSocket client for load generators. */
#ifndef WS_CLIENT_H
#define WS_CLIENT_H

#include <stddef.h>
#include <stdint.h>

/* The request that asks the gateway on this port of loopback for a WebSocket to a sheet; its length. */
extern size_t ws_write_upgrade(char *to, size_t size, int port, const char *sheet, const char *token);
/* The length of a server frame's header, and of its payload; 0 when more bytes are needed. */
extern size_t ws_measure_frame(const unsigned char *frame, size_t len, uint64_t *payload);
/* A frame of the client with opcode and a payload below 126 bytes, masked with zeros; its length, payload + 6. */
extern size_t ws_write_short(char *to, int opcode, const void *payload, size_t len);

#define WS_TEXT	 1
#define WS_CLOSE 8
#define WS_PING	 9
#define WS_PONG	 10

#endif
