/*
 * fuzz_frame.c - frames of WebSockets: the reader finds what a plain one finds, however the bytes come.
 */
#include "ws/wire/frame.h"

#include <stdbool.h>

#include "fuzz.h"

/* What was read: each control frame and message as its opcode, its length and its bytes; then 'x' if what follows is
 * no frame. */
typedef struct Told
{
	char *bytes;
	size_t len;
	bool invalid;
} Told;

static void
tell(Told *told, const void *bytes, size_t len)
{
	memcpy(told->bytes + told->len, bytes, len);
	told->len += len;
}

static void
tell_frame(Told *told, int op, const void *bytes, size_t len)
{
	tell(told, &op, sizeof(op));
	tell(told, &len, sizeof(len));
	tell(told, bytes, len);
}

/* Every frame tells 12 bytes more than its payload, and has 6 at least. */
static Told
told_new(size_t size)
{
	return (Told){.bytes = malloc(size * 4 + 64)};
}

static Told
read_pieces(const uint8_t *data, size_t size, size_t step)
{
	Told told = told_new(size);
	FrameReader reader = {0};
	char *message = malloc(size + 1);
	size_t message_len = 0;

	for (size_t at = 0; at < size && !told.invalid; at += step)
	{
		size_t len = size - at < step ? size - at : step, taken = 0, used;
		char *copy = fuzz_copy(data + at, len);
		FramePiece piece;

		for (;;)
		{
			FrameResult result = frame_read(&reader, copy + taken, len - taken, &used, &piece);

			taken += used;
			FUZZ_CHECK(taken <= len);
			if (result == FRAME_MORE)
			{
				FUZZ_CHECK(taken == len);
				break;
			}
			told.invalid = result == FRAME_INVALID;
			if (told.invalid)
				break;
			if (result == FRAME_CONTROL)
			{
				tell_frame(&told, piece.op, piece.data, piece.len);
				(void) frame_close_code(piece.data, piece.len);
				continue;
			}
			FUZZ_CHECK(piece.first == (message_len == 0 || piece.first));
			if (piece.first)
				message_len = 0;
			memcpy(message + message_len, piece.data, piece.len);
			message_len += piece.len;
			if (piece.last)
				tell_frame(&told, piece.op, message, message_len);
		}
		free(copy);
	}
	free(message);
	return told;
}

/* Frame by frame, all bytes at hand, as RFC 6455 5.2 has it. */
static Told
read_plainly(const uint8_t *data, size_t size)
{
	Told told = told_new(size);
	char *message = malloc(size + 1);
	size_t message_len = 0, at = 0;
	int open = 0, empty = 0;

	while (size - at >= 2)
	{
		int op = data[at] & 15, extended = (data[at + 1] & 127) == 126 ? 2 : (data[at + 1] & 127) == 127 ? 8 : 0;
		bool final = data[at] >> 7;
		uint64_t len = extended == 0 ? data[at + 1] & 127 : 0;
		const uint8_t *mask;
		char *to;

		told.invalid = (data[at] & 0x70) || !(data[at + 1] & 0x80) || (op > 2 && op < 8) || op > 10 ||
					   (op > 7 && (!final || extended)) || (op == 0 && open == 0) ||
					   ((op == 1 || op == 2) && open != 0);
		if (told.invalid || size - at < (size_t) (6 + extended))
			break;
		for (int i = 0; i < extended; i++)
			len = len << 8 | data[at + 2 + (size_t) i];
		told.invalid = (extended == 2 && len < 126) || (extended == 8 && (len < 65536 || len >> 63));
		if (op < 8)
		{
			empty = op != 0 ? 0 : empty;
			empty += len == 0 && !final;
			told.invalid |= empty > FRAME_EMPTY_MAX;
		}
		mask = data + at + 2 + extended;
		at += (size_t) (6 + extended);
		if (told.invalid || len > size - at)
			break;
		if (op == 1 || op == 2)
		{
			open = op;
			message_len = 0;
		}
		to = op < 8 ? message + message_len : malloc(len + 1);
		for (size_t i = 0; i < len; i++)
			to[i] = (char) (data[at + i] ^ mask[i % 4]);
		at += len;
		if (op > 7)
		{
			tell_frame(&told, op, to, len);
			free(to);
			continue;
		}
		message_len += len;
		if (final)
			tell_frame(&told, open, message, message_len);
		open = final ? 0 : open;
	}
	free(message);
	return told;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = {SIZE_MAX / 2, 1, 3, 13};
	Told plain = read_plainly(data, size);

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
	{
		Told told = read_pieces(data, size, steps[i]);

		FUZZ_CHECK(told.invalid == plain.invalid && told.len == plain.len &&
				   memcmp(told.bytes, plain.bytes, told.len) == 0);
		free(told.bytes);
	}
	free(plain.bytes);
	return 0;
}
