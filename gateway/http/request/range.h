/* range.h - conditional and partial requests (RFC 9110 13 and 14): of files and of the page's own. */
#ifndef RANGE_H
#define RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct Request;

typedef struct Range
{
	int64_t from, to; /* inclusive; to < from: nothing */
	bool partial;
} Range;

/* The client has what the ETag names already: the answer is 304. */
extern bool range_not_modified(const struct Request *request, const char *etag);
/*
 * The part of `size` bytes that is asked for: all of them, unless a GET names a single range, and If-Range, when it is
 * there, names this ETag. Adds Content-Range to a partial answer. False: answered with 416.
 */
extern bool range_choose(struct Request *request, const char *etag, int64_t size, Range *range);

#endif
