/*
 * fuzz_web_address.c - addresses for requests. What is accepted has the form that a regular expression demands, and its
 * one form is an address with the same parts, and the text again but for what the form may change.
 */
#include "common/web_address.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char form[] = "^https?://([A-Z0-9._-]+|\\[[0-9A-F:.]+\\])(:[0-9]{1,5})?([/?][!-~]*)?$";
	static regex_t expression;
	static int compiled;
	WebAddress address, again;
	char *text, written[WEB_ADDRESS_SIZE], twice[WEB_ADDRESS_SIZE];

	if (!compiled)
		compiled = regcomp(&expression, form, REG_EXTENDED | REG_NOSUB | REG_ICASE) == 0;
	text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	if (web_address_parse(text, &address) == NULL)
	{
		size_t host = strcspn(text, ":") + 3, length = strlen(address.host);

		FUZZ_CHECK(strlen(text) <= WEB_ADDRESS_MAX && regexec(&expression, text, 0, NULL, 0) == 0);
		FUZZ_CHECK(address.port >= 1 && address.port <= 65535 && strchr(address.path, '#') == NULL);
		FUZZ_CHECK(address.tls == (host == 8));
		FUZZ_CHECK(text[host] == '[' || strncasecmp(text + host, address.host, length) == 0);
		FUZZ_CHECK(text[host] == '[' || strchr(":/?.", text[host + length]) != NULL);
		FUZZ_CHECK(address.path == text + strlen(text) - strlen(address.path));
		web_address_write(&address, written);
		if (strlen(written) <= WEB_ADDRESS_MAX)
		{
			FUZZ_CHECK(web_address_parse(written, &again) == NULL && regexec(&expression, written, 0, NULL, 0) == 0);
			FUZZ_CHECK(again.tls == address.tls && again.port == address.port && again.literal == address.literal &&
					   strcmp(again.host, address.host) == 0);
			FUZZ_CHECK(strcmp(again.path + (address.path[0] != '/'), address.path) == 0);
			web_address_write(&again, twice);
			FUZZ_CHECK(strcmp(written, twice) == 0);
		}
	}
	free(text);
	return 0;
}
