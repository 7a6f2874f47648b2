/*
 * fuzz_forwarded.c - the addresses that proxies forward for, against an oracle: regular expressions say what a line is
 * made of. Whatever a client has sent, what a proxy appends is the last element, or the line is refused.
 */
#include "http/server/forwarded.h"
#include "support/network.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define ADDED "203.0.113.9"

/* A line of Forwarded (RFC 7239 4), with ports and paths also without quotes; characters of X-Forwarded-For. */
#define CHARS	"[][!#$%&'*+.^_`|~0-9A-Za-z:/-]"
#define QUOTED	"\"([^\"\\,]|\\\\[^,])*\""
#define BLANKS	"[ \t]*"
#define PAIR	"([!#$%&'*+.^_`|~0-9A-Za-z-]+=(" CHARS "+|" QUOTED "))?"
#define ELEMENT BLANKS PAIR BLANKS "(;" BLANKS PAIR BLANKS ")*"

static bool
could_be(const char *text, bool rfc7239)
{
	static const char *const patterns[] = {"^[^\"]*$", "^" ELEMENT "(," ELEMENT ")*$"};
	static regex_t regexes[2];
	static bool compiled[2];

	if (!compiled[rfc7239])
		FUZZ_CHECK(regcomp(&regexes[rfc7239], patterns[rfc7239], REG_EXTENDED | REG_NOSUB) == 0);
	compiled[rfc7239] = true;
	return regexec(&regexes[rfc7239], text, 0, NULL, 0) == 0;
}

static void
check(const char *text, bool rfc7239)
{
	size_t size = strlen(text) + 32;
	char *value = malloc(size);
	ForwardedList list = {.count = 0}, more = {.count = 0};
	bool good = forwarded_read(&list, text, rfc7239);

	for (size_t i = 0; i < FORWARDED_PROXIES_MAX; i++)
		FUZZ_CHECK(list.addresses[i][0] == '\0' || network_is_address(list.addresses[i]));
	if (good && strlen(text) < 512)
		FUZZ_CHECK(could_be(text, rfc7239));
	snprintf(value, size, "%s, %s" ADDED, text, rfc7239 ? "for=" : "");
	/* What follows a whole line is an element of its own. What follows another one is part of no whole line. */
	FUZZ_CHECK(forwarded_read(&more, value, rfc7239) == good);
	if (good)
	{
		FUZZ_CHECK(more.count == list.count + 1);
		FUZZ_CHECK(strcmp(more.addresses[list.count % FORWARDED_PROXIES_MAX], ADDED) == 0);
	}
	free(value);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	check(text, false);
	check(text, true);
	free(text);
	return 0;
}
