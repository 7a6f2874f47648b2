/*
 * multipart.h - a streaming reader of multipart/form-data (RFC 7578), for uploads of any size in bounded memory.
 *
 * It is fed the body as it arrives, and calls back with fields and pieces of files. It is our own because that of
 * libwebsockets 4.1.6 (lws_spa) has a heap overflow at boundaries that straddle reads. Pure C; fuzzed.
 */
#ifndef MULTIPART_H
#define MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#define MULTIPART_BOUNDARY_MAX 200
#define MULTIPART_NAME_MAX	   255	/* bytes of a field's or file's name; the database permits no longer ones */
#define MULTIPART_HEADERS_MAX  4096 /* bytes of a part's headers */

typedef struct Multipart Multipart;

typedef struct MultipartEvents
{
	void *arg;
	/* A part begins. filename is NULL for a plain field, content_type "" if absent. Names are as the client sent them:
	 * not checked for UTF-8, slashes or control characters. False is an error. */
	bool (*begin)(void *arg, const char *name, const char *filename, const char *content_type);
	bool (*data)(void *arg, const char *data, size_t len);
	bool (*end)(void *arg);
} MultipartEvents;

/* NULL if the Content-Type is not multipart/form-data with a valid boundary, or out of memory (errno). */
extern Multipart *multipart_open(const char *content_type, const MultipartEvents *events);
/* False at the first error; multipart_error() says which. */
extern bool multipart_feed(Multipart *reader, const char *data, size_t len);
/* True when the closing boundary has been seen. */
extern bool multipart_done(const Multipart *reader);
extern const char *multipart_error(const Multipart *reader);
/* The error is that the name of a file is longer than MULTIPART_NAME_MAX. */
extern bool multipart_has_long_filename(const Multipart *reader);
/* Bytes that were fed and may be data or the beginning of a delimiter. */
extern size_t multipart_undecided(const Multipart *reader);
/* Bytes of the shortest closing delimiter. */
extern size_t multipart_end_length(const Multipart *reader);
extern void multipart_close(Multipart *reader);

#endif
