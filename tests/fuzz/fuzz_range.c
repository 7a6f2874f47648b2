/*
 * fuzz_range.c - which part of a file a Range header asks for, as regular expressions see it (RFC 9110 14.1.2); and
 * lists of ETags, which are read to their end and not beyond.
 */
#include "../../gateway/http/request/range.c"

#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>

#include "fuzz.h"

#define FUZZ_ETAG "\"0123abcd\""

static const char *header_range, *header_list, *content_range;
static bool refused;

/* What range.c calls of a request. */
const char *
head_field(const Head *head, const char *name)
{
	return strcmp(name, "range") == 0 ? header_range : strcmp(name, "if-none-match") == 0 ? header_list : NULL;
}

void
request_add_header(Request *request, const char *name, const char *value)
{
	if (strcmp(name, "Content-Range") == 0)
		content_range = strdup(value);
}

void
request_error(Request *request, int status, const char *reason)
{
	FUZZ_CHECK(status == 416 && !refused);
	refused = true;
}

void
request_answer(Request *request, int status, const char *type, Buf *body)
{
	FUZZ_CHECK(status == 304);
}

static int64_t
saturated(const char *digits)
{
	intmax_t value = strtoimax(digits, NULL, 10);

	return value >= INT64_MAX - 7 ? INT64_MAX : value; /* whose last digit is not looked at */
}

static void
check_range(const char *text, int64_t size)
{
	static regex_t window, last;
	static bool compiled;
	regmatch_t at[3];
	Request request = {.method = METHOD_GET};
	Range range;
	int64_t from = 0, to = size - 1;
	bool asks = false, answered;

	if (!compiled)
		FUZZ_CHECK(regcomp(&window, "^bytes=([0-9]+)-([0-9]*)$", REG_EXTENDED | REG_ICASE) == 0 &&
				   regcomp(&last, "^bytes=-([0-9]+)$", REG_EXTENDED | REG_ICASE) == 0);
	compiled = true;
	if (regexec(&window, text, 3, at, 0) == 0)
	{
		from = saturated(text + at[1].rm_so);
		to = at[2].rm_eo > at[2].rm_so ? saturated(text + at[2].rm_so) : INT64_MAX;
		asks = to >= from;
		to = to < size ? to : size - 1;
	}
	else if (regexec(&last, text, 2, at, 0) == 0)
	{
		int64_t count = saturated(text + at[1].rm_so);

		from = count > size ? 0 : size - count;
		asks = true;
	}
	header_range = text;
	content_range = NULL;
	refused = false;
	answered = range_choose(&request, FUZZ_ETAG, size, &range);
	FUZZ_CHECK(answered == !refused && (content_range != NULL) == asks);
	if (!asks)
		FUZZ_CHECK(answered && !range.partial && range.from == 0 && range.to == size - 1);
	else
		FUZZ_CHECK(answered == (from < size) && (!answered || (range.partial && range.from == from && range.to == to)));
	free((char *) content_range);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	Request request = {.method = METHOD_GET};

	check_range(text, size > 0 ? data[size - 1] * 1000 : 0);
	header_list = text;
	(void) range_not_modified(&request, FUZZ_ETAG);
	free(text);
	return 0;
}
