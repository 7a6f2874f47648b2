/*
 * frame.c - the frames of a WebSocket, as a server reads and writes them (see frame.h).
 */
#include "ws/wire/frame.h"

#include "common/utf8.h"

#include <string.h>

#define HEADER_FINAL	0x80
#define HEADER_RESERVED 0x70
#define HEADER_OP		0x0F
#define HEADER_MASKED	0x80
#define HEADER_LENGTH	0x7F
#define HEADER_MASK_LEN 4

static bool
frame_is_control(const FrameReader *reader)
{
	return (reader->header[0] & HEADER_OP) >= FRAME_CLOSE;
}

/* Bytes of the header, as far as its first two tell. */
static size_t
frame_header_size(const FrameReader *reader)
{
	uint8_t length = reader->header[1] & HEADER_LENGTH;

	if (reader->header_len < 2)
		return 2;
	return HEADER_MASK_LEN + (length == 126 ? 4 : length == 127 ? 10 : 2);
}

/* What is wrong with the first two bytes; NULL when nothing is. */
static const char *
frame_problem(const FrameReader *reader)
{
	uint8_t op = reader->header[0] & HEADER_OP;

	if (reader->header[0] & HEADER_RESERVED)
		return "a reserved bit is set";
	if (!(reader->header[1] & HEADER_MASKED))
		return "a client's frames are masked";
	if (op > FRAME_PONG || (op > FRAME_BINARY && op < FRAME_CLOSE))
		return "an unknown opcode";
	if (frame_is_control(reader))
	{
		if (!(reader->header[0] & HEADER_FINAL))
			return "a control frame in fragments";
		if ((reader->header[1] & HEADER_LENGTH) > FRAME_CONTROL_MAX)
			return "a control frame is too long";
	}
	else if (op == FRAME_CONTINUATION && reader->message == 0)
		return "a continuation of no message";
	else if (op != FRAME_CONTINUATION && reader->message != 0)
		return "a message in a message";
	return NULL;
}

/* The header is complete. What is wrong with it; NULL when nothing is. */
static const char *
frame_begin(FrameReader *reader)
{
	size_t extended = (size_t) reader->header_len - 2 - HEADER_MASK_LEN;

	reader->left = extended == 0 ? reader->header[1] & HEADER_LENGTH : 0;
	for (size_t i = 0; i < extended; i++)
		reader->left = reader->left << 8 | reader->header[2 + i];
	if ((extended == 2 && reader->left < 126) || (extended == 8 && reader->left <= UINT16_MAX))
		return "a length in more bytes than it needs";
	if (reader->left > INT64_MAX)
		return "a length beyond 63 bits";
	reader->in_frame = true;
	reader->mask_at = 0;
	reader->control_len = 0;
	if (frame_is_control(reader))
		return NULL;
	if (reader->message == 0)
	{
		reader->message = reader->header[0] & HEADER_OP;
		reader->begun = false;
		reader->empty = 0;
	}
	if (reader->left == 0 && !(reader->header[0] & HEADER_FINAL) && ++reader->empty > FRAME_EMPTY_MAX)
		return "too many empty fragments";
	return NULL;
}

static void
frame_unmask(FrameReader *reader, char *bytes, size_t len)
{
	const uint8_t *key = reader->header + reader->header_len - HEADER_MASK_LEN;
	uint8_t turned[8];
	uint64_t mask, word;
	size_t i = 0;

	for (size_t j = 0; j < 8; j++)
		turned[j] = key[(reader->mask_at + j) % 4];
	memcpy(&mask, turned, 8);
	for (; i + 8 <= len; i += 8)
	{
		memcpy(&word, bytes + i, 8);
		word ^= mask;
		memcpy(bytes + i, &word, 8);
	}
	for (; i < len; i++)
		bytes[i] = (char) (bytes[i] ^ turned[i % 4]);
	reader->mask_at = (uint8_t) ((reader->mask_at + len) % 4);
}

/* The frame has ended. */
static void
frame_end(FrameReader *reader)
{
	reader->in_frame = false;
	reader->header_len = 0;
}

static FrameResult
frame_refuse(FramePiece *piece, const char *reason)
{
	piece->reason = reason;
	return FRAME_INVALID;
}

FrameResult
frame_read(FrameReader *reader, char *bytes, size_t len, size_t *used, FramePiece *piece)
{
	const char *problem;

	*used = 0;
	for (;;)
	{
		size_t piece_len;

		while (!reader->in_frame)
		{
			if (*used == len)
				return FRAME_MORE;
			reader->header[reader->header_len++] = (uint8_t) bytes[(*used)++];
			if (reader->header_len == 2 && (problem = frame_problem(reader)) != NULL)
				return frame_refuse(piece, problem);
			if (reader->header_len == frame_header_size(reader) && (problem = frame_begin(reader)) != NULL)
				return frame_refuse(piece, problem);
		}
		piece_len = len - *used < reader->left ? len - *used : (size_t) reader->left;
		*piece = (FramePiece){.data = bytes + *used, .len = piece_len};
		frame_unmask(reader, bytes + *used, piece_len);
		*used += piece_len;
		reader->left -= piece_len;
		if (frame_is_control(reader))
		{
			memcpy(reader->control + reader->control_len, piece->data, piece_len);
			reader->control_len += (uint8_t) piece_len;
			if (reader->left > 0)
				return FRAME_MORE;
			piece->op = (FrameOp) (reader->header[0] & HEADER_OP);
			piece->data = reader->control;
			piece->len = reader->control_len;
			frame_end(reader);
			return FRAME_CONTROL;
		}
		piece->op = (FrameOp) reader->message;
		piece->first = !reader->begun;
		piece->last = reader->left == 0 && (reader->header[0] & HEADER_FINAL);
		if (piece->last)
			reader->message = 0;
		if (reader->left == 0)
			frame_end(reader);
		if (piece_len > 0 || piece->last)
		{
			reader->begun = true;
			return FRAME_PIECE;
		}
		if (*used == len)
			return FRAME_MORE;
	}
}

int
frame_close_code(const char *payload, size_t len)
{
	int code;

	if (len == 0)
		return 1005;
	if (len == 1)
		return 1002;
	code = (unsigned char) payload[0] << 8 | (unsigned char) payload[1];
	if (code < 1000 || code > 4999 || (code > 1014 && code < 3000) || (code >= 1004 && code <= 1006))
		return 1002;
	for (const char *text = payload + 2, *end = payload + len; text < end;)
	{
		size_t part = strnlen(text, (size_t) (end - text));

		if (!utf8_check(text, part, NULL))
			return 1007;
		text += part + 1; /* utf8_check() refuses NUL, which is UTF-8 */
	}
	return code;
}

size_t
frame_header(unsigned char header[FRAME_SENT_HEADER_MAX], FrameOp op, size_t len)
{
	header[0] = (unsigned char) (HEADER_FINAL | op);
	if (len < 126)
	{
		header[1] = (unsigned char) len;
		return 2;
	}
	if (len <= UINT16_MAX)
	{
		header[1] = 126;
		header[2] = (unsigned char) (len >> 8);
		header[3] = (unsigned char) len;
		return 4;
	}
	header[1] = 127;
	for (int i = 0; i < 8; i++)
		header[2 + i] = (unsigned char) ((uint64_t) len >> (56 - 8 * i));
	return 10;
}

void
frame_continues(unsigned char *header)
{
	header[0] = (unsigned char) (header[0] & ~HEADER_FINAL);
}
