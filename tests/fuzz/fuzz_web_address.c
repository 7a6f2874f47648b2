/*
 * fuzz_web_address.c - addresses for requests. What is accepted has the form that a regular expression demands, and its
 * parts make up the text again.
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
	static const char form[] = "^https?://([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?([/?][!-~]*)?$";
	static regex_t expression;
	static int compiled;
	WebAddress address;
	char *text, *again;

	if (!compiled)
		compiled = regcomp(&expression, form, REG_EXTENDED | REG_NOSUB) == 0;
	text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	again = malloc(size + 64);
	if (web_address_parse(text, &address) == NULL)
	{
		FUZZ_CHECK(strlen(text) <= WEB_ADDRESS_MAX && regexec(&expression, text, 0, NULL, 0) == 0);
		FUZZ_CHECK(address.port >= 1 && address.port <= 65535 && strchr(address.path, '#') == NULL);
		sprintf(again, strchr(address.host, ':') != NULL ? "http%s://[%s]" : "http%s://%s", address.tls ? "s" : "",
				address.host);
		FUZZ_CHECK(strncasecmp(text, again, strlen(again)) == 0);
		FUZZ_CHECK(address.path == text + strlen(text) - strlen(address.path));
	}
	free(again);
	free(text);
	return 0;
}
