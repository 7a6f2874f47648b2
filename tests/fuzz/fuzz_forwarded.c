/*
 * fuzz_forwarded.c - the addresses that proxies forward for. Whatever stands before it, the item that a proxy adds at
 * the end is read; an address that is given back stands in the item; and every item is taken once.
 */
#include "http/server/forwarded.h"
#include "support/network.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define ADDED	   "203.0.113.9"
#define FUZZ_ITEMS 32 /* as many as are looked at */

static int
count_of(const char *text, char c)
{
	int count = 0;

	for (; *text != '\0'; text++)
		count += *text == c;
	return count;
}

static void
check(const char *text, bool rfc7239)
{
	size_t size = strlen(text) + 32;
	char *value = malloc(size);
	char address[FORWARDED_ADDRESS_MAX];
	ssize_t len = (ssize_t) strlen(text), before;
	int items = 0;

	for (; len >= 0 && items < FUZZ_ITEMS; items++)
	{
		before = len;
		forwarded_take_last(text, &len, rfc7239, address);
		FUZZ_CHECK(len < before && (len == -1 || text[len] == ','));
		FUZZ_CHECK(address[0] == '\0' || network_is_address(address));
		if (address[0] != '\0' && memchr(text + len + 1, '\\', (size_t) (before - len - 1)) == NULL)
			FUZZ_CHECK(memmem(text + len + 1, (size_t) (before - len - 1), address, strlen(address)) != NULL);
	}
	FUZZ_CHECK(items <= count_of(text, ',') + 1 && (len >= 0 || rfc7239 || items == count_of(text, ',') + 1));
	/* Quotes that are not closed take in what stands behind them. */
	if (!rfc7239 || memchr(text, '"', strlen(text)) == NULL)
	{
		len = snprintf(value, size, "%s, %s" ADDED, text, rfc7239 ? "for=" : "");
		forwarded_take_last(value, &len, rfc7239, address);
		FUZZ_CHECK(strcmp(address, ADDED) == 0 && len == (ssize_t) strlen(text));
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
