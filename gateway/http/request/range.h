/* range.h - answers of which clients may have a copy, or want a part (RFC 9110 13 and 14). */
#ifndef RANGE_H
#define RANGE_H

#include "http/request/request.h"

typedef struct Range
{
	int64_t from, to; /* inclusive; to < from: nothing */
	bool partial;
} Range;

/* Whether the client has what the ETag names (If-None-Match). */
extern bool range_is_known(const Request *request, const char *etag);
/* Adds the ETag. Answers 304 if the client has what it names. */
extern bool range_not_modified(Request *request, const char *etag);
/*
 * Chooses the part of `size` bytes to send: all of them, unless a GET names one range, and If-Range, if present, names
 * this ETag. Sets the length of the answer, and adds Accept-Ranges, and Content-Range to a partial answer, which has
 * the status 206. False: answered with 416.
 */
extern bool range_choose(Request *request, const char *etag, int64_t size, Range *range);

#endif
