/*
 * test_frame.c - frames of WebSockets: what they hold, in one piece and byte by byte, and what ends the connection.
 */
#include "ws/wire/frame.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static char wire[1 << 18];
static size_t wire_len;

/* Appends a frame; length_bytes: 0, 2 or 8 more bytes for the length; masked with a key that is not 0. */
static void
put_frame(uint8_t first, const char *payload, size_t len, int length_bytes, bool masked)
{
	static const uint8_t key[4] = {0x37, 0xFA, 0x21, 0x3D};
	uint8_t short_length = length_bytes == 0 ? (uint8_t) len : length_bytes == 2 ? 126 : 127;

	wire[wire_len++] = (char) first;
	wire[wire_len++] = (char) (short_length | (masked ? 0x80 : 0));
	for (int i = length_bytes - 1; i >= 0; i--)
		wire[wire_len++] = (char) (len >> (8 * i));
	for (int i = 0; masked && i < 4; i++)
		wire[wire_len++] = (char) key[i];
	for (size_t i = 0; i < len; i++)
		wire[wire_len++] = (char) (payload[i] ^ (masked ? key[i % 4] : 0));
}

static void
put(uint8_t first, const char *text)
{
	put_frame(first, text, strlen(text), strlen(text) < 126 ? 0 : strlen(text) < 65536 ? 2 : 8, true);
}

/* What is read from the wire in pieces of so many bytes: "T:text|" and "B:bytes|" for messages, "P:x|" pings, "O:x|"
 * pongs, "C:x|" closes, "!" and the reason at the end. Pieces of a message are joined. */
static const char *
read_wire(size_t step)
{
	static char out[1 << 19];
	FrameReader reader = {0};
	size_t at = 0, out_len = 0;

	while (at < wire_len)
	{
		size_t size = wire_len - at < step ? wire_len - at : step, taken = 0;
		char *copy = malloc(size);

		memcpy(copy, wire + at, size);
		while (taken < size)
		{
			FramePiece piece;
			size_t used;
			FrameResult result = frame_read(&reader, copy + taken, size - taken, &used, &piece);

			taken += used;
			if (result == FRAME_MORE)
				break;
			if (result == FRAME_INVALID)
			{
				free(copy);
				sprintf(out + out_len, "!%s", piece.reason);
				return out;
			}
			if (result == FRAME_CONTROL || piece.first)
				out_len += (size_t) sprintf(out + out_len, "%c:", ".TB.....CPO"[piece.op]);
			memcpy(out + out_len, piece.data, piece.len);
			out_len += piece.len;
			if (result == FRAME_CONTROL || piece.last)
				out[out_len++] = '|';
		}
		at += size;
		free(copy);
	}
	out[out_len] = '\0';
	return out;
}

/* The same however it comes; empties the wire. */
static void
expect(const char *wanted, const char *what)
{
	static const size_t steps[] = {SIZE_MAX, 1, 2, 3, 7, 4096};
	bool good = true;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		good = good && strcmp(read_wire(steps[i]), wanted) == 0;
	TAP_OK(good, "%s%s%.100s", what, good ? "" : ": ", good ? "" : read_wire(SIZE_MAX));
	wire_len = 0;
}

static void
test_messages(void)
{
	static const size_t lengths[] = {1, 7, 125, 126, 127, 65535, 65536, 70000};
	static char text[70001], wanted[70004];

	put(0x81, "hello");
	put(0x82, "bytes");
	put(0x81, "");
	expect("T:hello|B:bytes|T:|", "messages of one frame");
	put(0x01, "he");
	put(0x00, "ll");
	put(0x89, "x");
	put(0x80, "o");
	expect("T:hellP:x|o|", "a message in fragments, and a ping between them");
	put(0x02, "");
	put(0x00, "a");
	put(0x00, "");
	put(0x80, "");
	expect("B:a|", "empty fragments");
	put(0x89, "");
	put(0x8A, "pong");
	put(0x88, "\x03\xE8 end");
	expect("P:|O:pong|C:\x03\xE8 end|", "control frames");
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		memset(text, 'a' + (int) i, lengths[i]);
		text[lengths[i]] = '\0';
		put(0x81, text);
		sprintf(wanted, "T:%s|", text);
		expect(wanted, "a message's length");
	}
}

static void
test_violations(void)
{
	put_frame(0x81, "a", 1, 0, false);
	expect("!a client's frames are masked", "no mask");
	put_frame(0x81, "a", 1, 2, true);
	expect("!a length in more bytes than it needs", "1 in 2 bytes");
	put_frame(0x82, "a", 1, 8, true);
	expect("!a length in more bytes than it needs", "1 in 8 bytes");
	memcpy(wire, "\x82\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\1\2\3\4", wire_len = 14);
	expect("!a length beyond 63 bits", "the largest length");
	for (uint8_t bit = 0x10; bit <= 0x40; bit = (uint8_t) (bit << 1))
	{
		put((uint8_t) (0x81 | bit), "a");
		expect("!a reserved bit is set", "a reserved bit");
	}
	for (uint8_t op = 3; op < 16; op = op == 7 ? 11 : (uint8_t) (op + 1))
	{
		put((uint8_t) (0x80 | op), "a");
		expect("!an unknown opcode", "an unknown opcode");
	}
	put(0x09, "a");
	expect("!a control frame in fragments", "a ping in fragments");
	put_frame(0x89, "a", 1, 2, true);
	expect("!a control frame is too long", "a ping with a long length");
	put(0x80, "a");
	expect("!a continuation of no message", "a continuation first");
	put(0x81, "a");
	put(0x00, "b");
	expect("T:a|!a continuation of no message", "a continuation behind a whole message");
	put(0x01, "a");
	put(0x81, "b");
	expect("T:a!a message in a message", "a message in a message");
	put(0x01, "a");
	for (int i = 0; i < FRAME_EMPTY_MAX; i++)
		put(0x00, "");
	put(0x80, "b");
	expect("T:ab|", "as many empty fragments as may be");
	put(0x01, "a");
	for (int i = 0; i <= FRAME_EMPTY_MAX; i++)
		put(0x00, "");
	expect("T:a!too many empty fragments", "one more");
}

static void
test_closes(void)
{
	static const struct
	{
		const char *payload;
		size_t len;
		int code;
	} table[] = {
		{"", 0, 1005},
		{"\x03", 1, 1002},
		{"\x03\xE8", 2, 1000},
		{"\x03\xE8 text", 7, 1000},
		{"\x03\xE7", 2, 1002},
		{"\x03\xEC", 2, 1002},
		{"\x03\xED", 2, 1002},
		{"\x03\xEE", 2, 1002},
		{"\x03\xF6", 2, 1014},
		{"\x03\xF7", 2, 1002},
		{"\x0B\xB7", 2, 1002},
		{"\x0B\xB8", 2, 3000},
		{"\x13\x87", 2, 4999},
		{"\x13\x88", 2, 1002},
		{"\x03\xE8\xFF", 3, 1007},
		{"\x03\xE8\xC3\xA9", 4, 1000},
		{"\x03\xE8"
		 "a\0b",
		 5, 1000},
		{"\x03\xE8\xC3\0", 4, 1007},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
	{
		int code = frame_close_code(table[i].payload, table[i].len);

		TAP_OK(code == table[i].code, "close %zu is %d: %d", i, table[i].code, code);
	}
}

int
main(void)
{
	test_messages();
	test_violations();
	test_closes();
	return tap_done();
}
