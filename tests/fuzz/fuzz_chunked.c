/*
 * fuzz_chunked.c - bodies in chunks: what is accepted means the same to http-parser, and does not depend on how it
 * comes.
 */
#include "http/server/chunked.h"

#include <http_parser.h>
#include <stdbool.h>

#include "fuzz.h"

typedef struct Body
{
	ChunkedResult result;
	char *content;
	size_t len;
	size_t used;
} Body;

/* Reads what comes in pieces of so many bytes. */
static Body
body_read(const char *bytes, size_t len, size_t step)
{
	Chunked chunked = {0};
	Body body = {.result = CHUNKED_MORE, .content = malloc(len + 1)};

	while (body.used < len && (body.result == CHUNKED_MORE || body.result == CHUNKED_PIECE))
	{
		size_t size = len - body.used < step ? len - body.used : step, used, piece_len = 0;
		char *copy = fuzz_copy(bytes + body.used, size);
		const char *piece = NULL;

		body.result = chunked_read(&chunked, copy, size, &used, &piece, &piece_len);
		FUZZ_CHECK(used <= size);
		if (body.result == CHUNKED_PIECE)
		{
			FUZZ_CHECK(piece >= copy && piece_len > 0 && piece + piece_len <= copy + used);
			memcpy(body.content + body.len, piece, piece_len);
			body.len += piece_len;
		}
		else if (body.result == CHUNKED_MORE)
			FUZZ_CHECK(used == size);
		body.used += used;
		free(copy);
	}
	return body;
}

typedef struct Told
{
	char *content;
	size_t len;
	bool complete;
} Told;

static int
on_body(http_parser *parser, const char *at, size_t len)
{
	Told *told = parser->data;

	memcpy(told->content + told->len, at, len);
	told->len += len;
	return 0;
}

static int
on_complete(http_parser *parser)
{
	((Told *) parser->data)->complete = true;
	return 0;
}

/*
 * What we have read to its end is such a body to http-parser, too. (To 2.9.4 a tab behind the size is malformed, and it
 * minds what trailers say of the framing.)
 */
static void
check_with_other(const Body *body, const char *bytes)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
	static const http_parser_settings settings = {.on_body = on_body, .on_message_complete = on_complete};
	Told told = {.content = malloc(body->used + 1)};
	http_parser parser;

	http_parser_init(&parser, HTTP_REQUEST);
	parser.data = &told;
	FUZZ_CHECK(http_parser_execute(&parser, &settings, head, strlen(head)) == strlen(head));
	FUZZ_CHECK(!told.complete);
	http_parser_execute(&parser, &settings, bytes, body->used);
	switch (HTTP_PARSER_ERRNO(&parser))
	{
		case HPE_INVALID_CHUNK_SIZE:
			FUZZ_CHECK(memchr(bytes, '\t', body->used) != NULL);
			break;
		case HPE_INVALID_CONTENT_LENGTH:
		case HPE_UNEXPECTED_CONTENT_LENGTH:
		case HPE_INVALID_TRANSFER_ENCODING:
			break;
		default:
			FUZZ_CHECK(HTTP_PARSER_ERRNO(&parser) == HPE_OK && told.complete);
			FUZZ_CHECK(told.len == body->len && memcmp(told.content, body->content, told.len) == 0);
	}
	free(told.content);
}

/* The first byte says in what pieces it comes. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *) data + 1;
	Body whole, pieces;

	if (size < 1)
		return 0;
	whole = body_read(bytes, size - 1, SIZE_MAX);
	pieces = body_read(bytes, size - 1, (size_t) data[0] % 17 + 1);
	FUZZ_CHECK(whole.used == pieces.used && whole.len == pieces.len &&
			   memcmp(whole.content, pieces.content, whole.len) == 0);
	FUZZ_CHECK(whole.result == pieces.result);
	if (whole.result == CHUNKED_END)
		check_with_other(&whole, bytes);
	free(whole.content);
	free(pieces.content);
	return 0;
}
