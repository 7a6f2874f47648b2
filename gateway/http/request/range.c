/*
 * range.c - conditional and partial requests (see range.h). Several ranges, other units and malformed ones are ignored,
 * as RFC 9110 14.2 allows: the client gets everything.
 */
#include "http/request/range.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Is the ETag in the list, or is it "*"? Weak validators compare like strong ones here (RFC 9110 8.8.3.2). */
static bool
range_list_has_etag(const char *list, const char *etag)
{
	size_t len;

	if (strncmp(etag, "W/", 2) == 0)
		etag += 2;
	len = strlen(etag);
	for (list += strspn(list, ", \t"); *list != '\0'; list += strspn(list, ", \t"))
	{
		const char *end;

		if (*list == '*')
			return true;
		if (strncmp(list, "W/", 2) == 0)
			list += 2;
		end = *list == '"' ? strchr(list + 1, '"') : NULL;
		if (end == NULL)
			return false;
		if ((size_t) (end + 1 - list) == len && memcmp(list, etag, len) == 0)
			return true;
		list = end + 1;
	}
	return false;
}

bool
range_is_known(const Request *request, const char *etag)
{
	const char *list = head_field(&request->head, "if-none-match");

	return list != NULL && range_list_has_etag(list, etag);
}

bool
range_not_modified(Request *request, const char *etag)
{
	request_add_header(request, "ETag", etag);
	if (!range_is_known(request, etag))
		return false;
	request_answer(request, 304, NULL, NULL);
	return true;
}

/* One digit or more. A number that is too large becomes the largest. */
static bool
range_number(const char **text, int64_t *value)
{
	const char *from = *text;

	for (*value = 0; **text >= '0' && **text <= '9'; (*text)++)
		*value = *value > (INT64_MAX - 9) / 10 ? INT64_MAX : *value * 10 + (**text - '0');
	return *text > from;
}

/* "bytes=A-B", "bytes=A-" or "bytes=-N"; to is -1 when it is open, from is -1 for the last N. False: anything else. */
static bool
range_parse(const char *text, int64_t *from, int64_t *to)
{
	if (strncasecmp(text, "bytes=", 6) != 0)
		return false;
	text += 6;
	*from = *to = -1;
	if (*text == '-')
	{
		text++;
		return range_number(&text, to) && *text == '\0';
	}
	if (!range_number(&text, from) || *text++ != '-')
		return false;
	return *text == '\0' || (range_number(&text, to) && *text == '\0' && *to >= *from);
}

bool
range_choose(Request *request, const char *etag, int64_t size, Range *range)
{
	const char *asked = head_field(&request->head, "range");
	const char *condition = head_field(&request->head, "if-range");
	char text[96];
	int64_t from, to;

	*range = (Range){.from = 0, .to = size - 1};
	request->length = (size_t) size;
	request_add_header(request, "Accept-Ranges", "bytes");
	/* A client that knows another state of the file gets the whole one: the range would not fit to its bytes. */
	if (request->method != METHOD_GET || asked == NULL || !range_parse(asked, &from, &to) ||
		(condition != NULL && strcmp(condition, etag) != 0))
		return true;
	if (from < 0)
	{
		from = to > size ? 0 : size - to;
		to = size - 1;
	}
	else if (to < 0 || to >= size)
		to = size - 1;
	range->partial = from < size;
	if (!range->partial)
	{
		snprintf(text, sizeof(text), "bytes */%lld", (long long) size);
		request_add_header(request, "Content-Range", text);
		request_error(request, 416, "the range is not in the file");
		return false;
	}
	snprintf(text, sizeof(text), "bytes %lld-%lld/%lld", (long long) from, (long long) to, (long long) size);
	request_add_header(request, "Content-Range", text);
	range->from = from;
	range->to = to;
	request->length = (size_t) (to - from + 1);
	return true;
}
