/*
 * test_chunked.c - bodies in chunks: what they hold, where they end, and what is no such body; in one piece and byte by
 * byte.
 */
#include "http/server/chunked.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

typedef struct Body
{
	ChunkedResult result;
	char content[65536];
	size_t len;
	size_t used;
} Body;

/* Reads in pieces of so many bytes, each in memory of its own. */
static void
read_body(const char *bytes, size_t len, size_t step, Body *body)
{
	Chunked chunked = {0};

	*body = (Body){.result = CHUNKED_MORE};
	while (body->used < len && (body->result == CHUNKED_MORE || body->result == CHUNKED_PIECE))
	{
		size_t size = len - body->used < step ? len - body->used : step, used, piece_len = 0;
		char *copy = malloc(size);
		const char *piece = NULL;

		memcpy(copy, bytes + body->used, size);
		body->result = chunked_read(&chunked, copy, size, &used, &piece, &piece_len);
		if (body->result == CHUNKED_PIECE)
		{
			memcpy(body->content + body->len, piece, piece_len);
			body->len += piece_len;
		}
		body->used += used;
		free(copy);
	}
}

static void
expect(const char *bytes, size_t len, ChunkedResult wanted, const char *content, size_t used, const char *what)
{
	static Body body;
	static const size_t steps[] = {SIZE_MAX, 1, 2, 3, 7};
	bool good = true;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
	{
		read_body(bytes, len, steps[i], &body);
		good = good && body.result == wanted;
		if (wanted == CHUNKED_END)
			good = good && body.used == used && body.len == strlen(content) &&
				   memcmp(body.content, content, body.len) == 0;
	}
	TAP_OK(good, "%s", what);
}

/* On one line. */
static const char *
shown(const char *text)
{
	static char line[1024];
	size_t len = 0;

	for (; *text != '\0' && len < sizeof(line) - 8; text++)
		len += (size_t) sprintf(line + len, *text >= ' ' && *text < 0x7F ? "%c" : "<%02x>", (unsigned char) *text);
	line[len] = '\0';
	return line;
}

static void
expect_text(const char *bytes, ChunkedResult wanted, const char *content)
{
	expect(bytes, strlen(bytes), wanted, content, strlen(bytes), shown(bytes));
}

/* A chunk with an extension of n bytes behind the semicolon, and the last one. */
static void
expect_extension(size_t n, ChunkedResult wanted)
{
	char *bytes = malloc(n + 32);
	size_t len = 0;

	len += (size_t) sprintf(bytes, "1;");
	memset(bytes + len, 'x', n);
	len += n;
	len += (size_t) sprintf(bytes + len, "\r\na\r\n0\r\n\r\n");
	expect(bytes, len, wanted, "a", len, "an extension at the limit or beyond it");
	free(bytes);
}

/* A trailer of n bytes. */
static void
expect_trailer(size_t n, ChunkedResult wanted)
{
	char *bytes = malloc(n + 32);
	size_t len = (size_t) sprintf(bytes, "0\r\n");

	memset(bytes + len, 'x', n);
	bytes[len + n / 2] = ':';
	len += n;
	len += (size_t) sprintf(bytes + len, "\r\n\r\n");
	expect(bytes, len, wanted, "", len, "a trailer at the limit or beyond it");
	free(bytes);
}

int
main(void)
{
	static const char next[] = "3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n";
	static const char *const malformed[] = {
		"\r\n",
		"g\r\n",
		"-1\r\n",
		"+1\r\n",
		"0x1\r\n",
		" 1\r\n",
		";a\r\n",
		"1\na\r\n",
		"1\r\na\n",
		"1\ra",
		"1\r\nab",
		"1\r\na\r0",
		"1 \r\na\r\n",
		"1 2\r\na",
		"1;a\nb\r\n",
		"1;\x01\r\n",
		"1;a\rb",
		"00000000000000001\r\na\r\n",
		"0\r\n\rx",
		"1\x7f\r\n",
		"1;\x7f\r\n",
		"1,\r\n",
		/* trailers */
		"0\r\nX\r\n",
		"0\r\n: y\r\n",
		"0\r\nX : y\r\n",
		"0\r\n X: y\r\n",
		"0\r\nX: y\n\r\n",
		"0\r\nX: y\rz",
		"0\r\nX: \x01\r\n",
		"0\r\nX: y\r\n z\r\n\r\n",
		"0\r\nGET / HTTP/1.1\r\n",
		"0\r\nCONTENT-Length:0\r\n",
		"0\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n",
	};
	static const char *const unfinished[] = {"",	  "1",		 "1\r\n",	"1\r\na",		"1\r\na\r\n",
											 "0\r\n", "0\r\n\r", "5;a=\"b", "0\r\nX: y\r\n"};

	expect_text("0\r\n\r\n", CHUNKED_END, "");
	expect_text("5\r\nhello\r\n0\r\n\r\n", CHUNKED_END, "hello");
	expect_text("1\r\nh\r\n4\r\nello\r\n00\r\n\r\n", CHUNKED_END, "hello");
	expect_text("a\r\n0123456789\r\nA\r\n\r\n0\r\n\r\n1\r\n\r\n0\r\n\r\n", CHUNKED_END, "0123456789\r\n0\r\n\r\n1\r\n");
	expect_text("0000000000000001\r\na\r\n0;x\r\n\r\n", CHUNKED_END, "a");
	expect_text("1\r\na\r\n0\r\nX: y\r\n\r\n", CHUNKED_END, "a");
	expect_text("0\r\nDigest:sha=:a:\r\nempty:\r\nx-content-length:\t\xc3\xa9 \r\n\r\n", CHUNKED_END, "");
	expect_text("1;a=b;c=\"d e\"\r\na\r\n1 \t; x\r\nb\r\n0\r\n\r\n", CHUNKED_END, "ab");
	expect(next, strlen(next), CHUNKED_END, "abc", strlen("3\r\nabc\r\n0\r\n\r\n"),
		   "what is behind the end is not read");
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		expect_text(malformed[i], CHUNKED_MALFORMED, NULL);
	for (size_t i = 0; i < sizeof(unfinished) / sizeof(unfinished[0]); i++)
		expect_text(unfinished[i], i == 3 ? CHUNKED_PIECE : CHUNKED_MORE, NULL);
	expect("1\0\r\n", 5, CHUNKED_MALFORMED, NULL, 0, "a NUL");
	expect_text("ffffffffffffffff\r\n", CHUNKED_MORE, NULL);
	expect_extension(CHUNKED_IGNORED_MAX, CHUNKED_END);
	expect_extension(CHUNKED_IGNORED_MAX + 1, CHUNKED_MALFORMED);
	expect_trailer(CHUNKED_IGNORED_MAX, CHUNKED_END);
	expect_trailer(CHUNKED_IGNORED_MAX + 1, CHUNKED_MALFORMED);
	return tap_done();
}
