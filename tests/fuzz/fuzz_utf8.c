/*
 * fuzz_utf8.c - what is UTF-8 and how many characters it has, as glibc's iconv sees it; and a text in JSON and back.
 */
#include "common/utf8.h"

#include "support/buf.h"

#include <iconv.h>
#include <jansson.h>

#include "fuzz.h"

/* True when iconv converts all of it and there is no NUL; *chars gets the number of code points. */
static bool
iconv_check(const char *data, size_t size, size_t *chars)
{
	static iconv_t converter;
	uint32_t *wide = malloc(size * 4 + 4);
	char *from = (char *) data, *to = (char *) wide;
	size_t left = size, room = size * 4 + 4;
	bool good;

	if (converter == NULL)
		converter = iconv_open("UCS-4LE", "UTF-8");
	FUZZ_CHECK(converter != (iconv_t) -1);
	(void) iconv(converter, NULL, NULL, NULL, NULL);
	good = iconv(converter, &from, &left, &to, &room) != (size_t) -1 && left == 0 && memchr(data, '\0', size) == NULL;
	*chars = (size_t) (to - (char *) wide) / 4;
	for (size_t i = 0; good && i < *chars; i++)
		good = wide[i] <= 0x10FFFF; /* glibc converts what was UTF-8 before 2003, too */
	free(wide);
	return good;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = fuzz_copy(data, size);
	size_t chars = 0, right = 0;
	bool good = utf8_check(exact, size, &chars);

	FUZZ_CHECK(good == iconv_check(exact, size, &right) && (!good || chars == right));
	if (good)
	{
		Buf json = {NULL, 0, 0};
		json_t *text;

		buf_put_json(&json, exact, size);
		text = json_loadb(json.data, json.len, JSON_DECODE_ANY, NULL);
		FUZZ_CHECK(text != NULL && json_string_length(text) == size &&
				   memcmp(json_string_value(text), exact, size) == 0);
		json_decref(text);
		buf_free(&json);
	}
	free(exact);
	return 0;
}
