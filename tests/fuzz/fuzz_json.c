/*
 * fuzz_json.c - what is JSON is what jansson takes for JSON, but for nesting, and for what jansson cannot hold
 * (large numbers).
 */
#include "support/json.h"

#include "common/utf8.h"

#include <jansson.h>

#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = fuzz_copy(data, size);
	bool good = json_check(exact, size);
	json_error_t error;
	json_t *value;

	if (utf8_check(exact, size, NULL))
	{
		value = json_loadb(exact, size, JSON_DECODE_ANY, &error);
		if (value != NULL)
			FUZZ_CHECK(good || size > JSON_MAX_DEPTH);
		else if (json_error_code(&error) != json_error_numeric_overflow &&
				 json_error_code(&error) != json_error_null_byte_in_key)
			FUZZ_CHECK(!good);
		json_decref(value);
	}
	free(exact);
	return 0;
}
