/*
 * frame.h - the frames of a WebSocket, as a server reads and writes them (RFC 6455, 5). Pure C; fuzzed.
 *
 * Strict: frames that are not masked, reserved bits and opcodes, lengths in more bytes than they need, and control
 * frames that are long or in fragments end the connection, and so do messages of ever more empty fragments.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_CONTROL_MAX	  125 /* bytes of a control frame's payload */
#define FRAME_EMPTY_MAX		  16  /* fragments of a message that may be empty */
#define FRAME_HEADER_MAX	  14
#define FRAME_SENT_HEADER_MAX 10

typedef enum FrameOp
{
	FRAME_CONTINUATION = 0,
	FRAME_TEXT = 1,
	FRAME_BINARY = 2,
	FRAME_CLOSE = 8,
	FRAME_PING = 9,
	FRAME_PONG = 10
} FrameOp;

typedef enum FrameResult
{
	FRAME_MORE,	   /* all bytes were taken, and more are needed */
	FRAME_PIECE,   /* of a message */
	FRAME_CONTROL, /* a whole control frame: op, data, len */
	FRAME_INVALID  /* see reason; nothing more may be read */
} FrameResult;

typedef struct FramePiece
{
	FrameOp op; /* of the message, TEXT or BINARY; or of the control frame */
	bool first; /* of the message */
	bool last;
	const char *data; /* unmasked */
	size_t len;
	const char *reason;
} FramePiece;

/* Zeroed at first. */
typedef struct FrameReader
{
	uint8_t header[FRAME_HEADER_MAX];
	uint8_t header_len;
	uint8_t mask_at;
	uint8_t message; /* the opcode of the message that has begun; 0: none has */
	uint8_t empty;	 /* fragments of it */
	bool begun;		 /* a piece of it was given */
	bool in_frame;	 /* the header is complete */
	uint64_t left;	 /* of the frame's payload */
	uint8_t control_len;
	char control[FRAME_CONTROL_MAX];
} FrameReader;

/* Reads up to the first piece or control frame. *used bytes are taken, and unmasked in place. */
extern FrameResult frame_read(FrameReader *reader, char *bytes, size_t len, size_t *used, FramePiece *piece);
/* The header of a whole frame of len bytes, not masked; returns its size (2, 4 or 10). */
extern size_t frame_header(unsigned char header[FRAME_SENT_HEADER_MAX], FrameOp op, size_t len);
/* Marks the frame as not the last of its message. */
extern void frame_continues(unsigned char *header);
/* The code in a close frame's payload; 1005 when it has none, 1002 when it is one that a peer may not send, or the
 * payload is too short, 1007 when its text is not UTF-8. */
extern int frame_close_code(const char *payload, size_t len);

#endif
