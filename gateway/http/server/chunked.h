/*
 * chunked.h - a request's body in chunks (RFC 9112 7.1), read as it comes, and strictly.
 *
 * Lenient readers of chunks are how requests are smuggled past proxies: so a size has 1 to 16 hexadecimal digits and
 * nothing before them, lines end in CRLF, what is behind a chunk is CRLF. Extensions are read over, as far as they are
 * printable, up to CHUNKED_EXTENSIONS_MAX bytes of a body; trailers, which would be fields that nobody has checked, are
 * refused. Pure C; no memory of its own.
 */
#ifndef CHUNKED_H
#define CHUNKED_H

#include <stddef.h>
#include <stdint.h>

#define CHUNKED_EXTENSIONS_MAX 4096

/* Where in the body we are; all zero at its beginning. */
typedef enum ChunkedState
{
	CHUNKED_SIZE,	   /* before or among the digits */
	CHUNKED_BLANKS,	   /* behind them: an extension has to come */
	CHUNKED_EXTENSION, /* up to CR */
	CHUNKED_SIZE_LF,
	CHUNKED_DATA,
	CHUNKED_DATA_CR,
	CHUNKED_DATA_LF,
	CHUNKED_LAST_CR, /* behind the last chunk: the empty line */
	CHUNKED_LAST_LF,
	CHUNKED_DONE
} ChunkedState;

typedef struct Chunked
{
	ChunkedState state;
	int digits;
	uint64_t left; /* of the chunk, or its size as far as it was read */
	size_t extensions;
} Chunked;

typedef enum ChunkedResult
{
	CHUNKED_MORE,	 /* all bytes are used, and more are needed */
	CHUNKED_PIECE,	 /* *piece is content; call again with what is behind the used bytes */
	CHUNKED_END,	 /* the body ends behind the used bytes */
	CHUNKED_TRAILER, /* there is a trailer */
	CHUNKED_MALFORMED
} ChunkedResult;

/* Reads len bytes as far as the next piece: *used of them. The piece lies in these bytes. */
extern ChunkedResult chunked_read(Chunked *chunked, const char *bytes, size_t len, size_t *used, const char **piece,
								  size_t *piece_len);

#endif
