/*
 * api_values.c - JSON values as contents of cells, so that a program's numbers are numbers, and its texts are texts.
 */
#include "http/api/api_values.h"

#include "common/value.h"

#include <math.h>

bool
value_content(const cJSON *value, bool raw, Buf *scratch, EditText *content)
{
	char number[VALUE_BYTES_MAX];
	bool known = true;

	scratch->len = 0;
	if (cJSON_IsString(value))
	{
		if (raw && value_is_no_text(value->valuestring))
			buf_puts(scratch, "'");
		buf_puts(scratch, value->valuestring);
	}
	else if (cJSON_IsNumber(value) && isfinite(value->valuedouble))
	{
		value_put_number(number, value->valuedouble);
		buf_puts(scratch, number);
	}
	else if (cJSON_IsBool(value))
		buf_puts(scratch, cJSON_IsTrue(value) ? "TRUE" : "FALSE");
	else
		known = cJSON_IsNull(value);
	*content = (EditText){scratch->len > 0 ? scratch->data : "", (uint32_t) scratch->len};
	return known;
}
