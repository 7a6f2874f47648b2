/*
 * chunked.h - the body of a request, read strictly as it comes: in chunks (RFC 9112 7.1), or of a known length.
 *
 * Lenient readers of chunks allow requests to be smuggled past proxies. So a size has 1 to 16 hexadecimal digits and
 * nothing before them, lines end in CRLF, and CRLF follows a chunk. Printable extensions and well-formed trailers are
 * ignored, up to CHUNKED_IGNORED_MAX bytes of a body. Pure C, without memory of its own.
 */
#ifndef CHUNKED_H
#define CHUNKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNKED_IGNORED_MAX 4096

typedef enum ChunkedState
{
	CHUNKED_SIZE,	   /* before or among the digits */
	CHUNKED_BLANKS,	   /* after them: an extension has to follow */
	CHUNKED_EXTENSION, /* up to CR */
	CHUNKED_SIZE_LF,
	CHUNKED_DATA,
	CHUNKED_DATA_CR,
	CHUNKED_DATA_LF,
	CHUNKED_LAST_CR, /* after the last chunk or a trailer: the empty line, or another trailer */
	CHUNKED_LAST_LF,
	CHUNKED_TRAILER_NAME, /* after its first character */
	CHUNKED_TRAILER_VALUE,
	CHUNKED_TRAILER_LF,
	CHUNKED_DONE
} ChunkedState;

/* All zero at the beginning of a body in chunks; CHUNKED_MEASURED(length) for one of a known length. */
typedef struct Chunked
{
	ChunkedState state;
	bool measured;
	int digits;
	uint64_t left;	/* bytes of the chunk, or its size as far as it was read */
	size_t ignored; /* bytes of extensions and trailers */
	char name[20];	/* the first characters of a trailer's name */
	size_t name_len;
} Chunked;

#define CHUNKED_MEASURED(length) ((Chunked){.state = CHUNKED_DATA, .measured = true, .left = (length)})

typedef enum ChunkedResult
{
	CHUNKED_MORE,  /* all bytes are used, and more are needed */
	CHUNKED_PIECE, /* *piece is content; call again with the bytes after the used ones */
	CHUNKED_END,   /* the body ends after the used bytes */
	CHUNKED_MALFORMED
} ChunkedResult;

/* Reads len bytes as far as the next piece: *used of them. The piece lies in these bytes. */
extern ChunkedResult chunked_read(Chunked *chunked, const char *bytes, size_t len, size_t *used, const char **piece,
								  size_t *piece_len);

#endif
