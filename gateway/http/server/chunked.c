/*
 * chunked.c - a request's body in chunks (see chunked.h).
 */
#include "http/server/chunked.h"

#include "http/server/head.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define CHUNKED_DIGITS_MAX 16

/* A digit of the size, or the byte that ends it. */
static ChunkedResult
chunked_read_size(Chunked *chunked, char c)
{
	int digit = head_hex_digit(c);

	if (digit >= 0)
	{
		chunked->left = chunked->left << 4 | (uint64_t) digit;
		return ++chunked->digits > CHUNKED_DIGITS_MAX ? CHUNKED_MALFORMED : CHUNKED_MORE;
	}
	if (chunked->digits == 0)
		return CHUNKED_MALFORMED;
	if (c == '\r')
		chunked->state = CHUNKED_SIZE_LF;
	else if (c == ';')
		chunked->state = CHUNKED_EXTENSION;
	else if (c == ' ' || c == '\t')
		chunked->state = CHUNKED_BLANKS;
	else
		return CHUNKED_MALFORMED;
	return CHUNKED_MORE;
}

/* A byte that is ignored: a blank before a semicolon, or a byte of an extension. */
static ChunkedResult
chunked_skip(Chunked *chunked, char c)
{
	bool blank = c == ' ' || c == '\t';

	if (c == '\r' && chunked->state == CHUNKED_EXTENSION)
	{
		chunked->state = CHUNKED_SIZE_LF;
		return CHUNKED_MORE;
	}
	if (++chunked->ignored > CHUNKED_IGNORED_MAX)
		return CHUNKED_MALFORMED;
	if (chunked->state == CHUNKED_BLANKS && c == ';')
		chunked->state = CHUNKED_EXTENSION;
	else if (chunked->state == CHUNKED_BLANKS ? !blank : !blank && ((unsigned char) c <= 0x20 || c == 0x7F))
		return CHUNKED_MALFORMED;
	return CHUNKED_MORE;
}

/* Trailers say nothing of the framing (RFC 9110 6.5.1): one that does is meant for a lenient reader. */
static bool
chunked_name_is_framing(const Chunked *chunked)
{
	static const char *const names[] = {"content-length", "transfer-encoding"};
	bool found = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		found |= chunked->name_len == strlen(names[i]) && strncasecmp(chunked->name, names[i], chunked->name_len) == 0;
	return found;
}

/* A byte of a trailer (RFC 9112 7.1.2): NAME: VALUE. The first byte of its name is read by LAST_CR. */
static ChunkedResult
chunked_read_trailer(Chunked *chunked, char c)
{
	bool value = chunked->state == CHUNKED_TRAILER_VALUE;

	if (value && c == '\r')
	{
		chunked->state = CHUNKED_TRAILER_LF;
		return CHUNKED_MORE;
	}
	if (++chunked->ignored > CHUNKED_IGNORED_MAX || (value && c != '\t' && ((unsigned char) c < 0x20 || c == 0x7F)) ||
		(!value && c == ':' && chunked_name_is_framing(chunked)) || (!value && c != ':' && !head_is_token_char(c)))
		return CHUNKED_MALFORMED;
	if (c == ':')
		chunked->state = CHUNKED_TRAILER_VALUE;
	else if (!value)
	{
		if (chunked->state == CHUNKED_LAST_CR)
			chunked->name_len = 0;
		if (chunked->name_len < sizeof(chunked->name))
			chunked->name[chunked->name_len++] = c;
		chunked->state = CHUNKED_TRAILER_NAME;
	}
	return CHUNKED_MORE;
}

/* CR or LF, and the state after it. */
static ChunkedResult
chunked_expect(Chunked *chunked, char c, char wanted, ChunkedState next)
{
	if (c != wanted)
		return CHUNKED_MALFORMED;
	chunked->state = next;
	return CHUNKED_MORE;
}

/* A byte that is not content. */
static ChunkedResult
chunked_read_frame(Chunked *chunked, char c)
{
	switch (chunked->state)
	{
		case CHUNKED_SIZE:
			return chunked_read_size(chunked, c);
		case CHUNKED_BLANKS:
		case CHUNKED_EXTENSION:
			return chunked_skip(chunked, c);
		case CHUNKED_SIZE_LF:
			return chunked_expect(chunked, c, '\n', chunked->left > 0 ? CHUNKED_DATA : CHUNKED_LAST_CR);
		case CHUNKED_DATA_CR:
			return chunked_expect(chunked, c, '\r', CHUNKED_DATA_LF);
		case CHUNKED_DATA_LF:
			chunked->digits = 0;
			chunked->left = 0;
			return chunked_expect(chunked, c, '\n', CHUNKED_SIZE);
		case CHUNKED_LAST_CR:
			if (c != '\r')
				return c == ':' ? CHUNKED_MALFORMED : chunked_read_trailer(chunked, c);
			chunked->state = CHUNKED_LAST_LF;
			return CHUNKED_MORE;
		case CHUNKED_TRAILER_NAME:
		case CHUNKED_TRAILER_VALUE:
			return chunked_read_trailer(chunked, c);
		case CHUNKED_TRAILER_LF:
			return chunked_expect(chunked, c, '\n', CHUNKED_LAST_CR);
		case CHUNKED_LAST_LF:
			if (chunked_expect(chunked, c, '\n', CHUNKED_DONE) == CHUNKED_MORE)
				return CHUNKED_END;
			break;
		case CHUNKED_DATA:
		case CHUNKED_DONE:
			break;
	}
	return CHUNKED_MALFORMED;
}

ChunkedResult
chunked_read(Chunked *chunked, const char *bytes, size_t len, size_t *used, const char **piece, size_t *piece_len)
{
	for (*used = 0; *used < len;)
	{
		ChunkedResult result;

		if (chunked->state == CHUNKED_DATA)
		{
			*piece = bytes + *used;
			*piece_len = chunked->left < len - *used ? (size_t) chunked->left : len - *used;
			*used += *piece_len;
			chunked->left -= *piece_len;
			if (chunked->left == 0 && !chunked->measured)
				chunked->state = CHUNKED_DATA_CR;
			return CHUNKED_PIECE;
		}
		result = chunked_read_frame(chunked, bytes[(*used)++]);
		if (result != CHUNKED_MORE)
			return result;
	}
	return CHUNKED_MORE;
}
