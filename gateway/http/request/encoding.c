/*
 * encoding.c - which compressed form of an answer a client takes (RFC 9110 12.4.2, 12.5.3).
 */
#include "http/request/encoding.h"

#include <string.h>
#include <strings.h>

/* "q=0.5" among the parameters behind a coding: in thousandths; 1000 when there is none, 0 when it is malformed. */
static int
encoding_weight(const char *params, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++)
	{
		int weight, digits = 0;

		if ((params[i] != 'q' && params[i] != 'Q') || params[i + 1] != '=')
			continue;
		i += 2;
		if (i >= len || (params[i] != '0' && params[i] != '1'))
			return 0;
		weight = (params[i] - '0') * 1000;
		if (++i < len && params[i] == '.')
		{
			int step = 100;

			for (i++; i < len && params[i] >= '0' && params[i] <= '9' && digits++ < 3; i++, step /= 10)
				weight += (params[i] - '0') * step;
		}
		return weight > 1000 ? 0 : weight;
	}
	return 1000;
}

int
encoding_quality(const char *accepted, const char *coding)
{
	int any = 0;

	for (const char *item = accepted; item != NULL && *item != '\0';)
	{
		size_t len, name_len;

		item += strspn(item, ", \t");
		len = strcspn(item, ",");
		name_len = strcspn(item, ",; \t");
		if (name_len == strlen(coding) && strncasecmp(item, coding, name_len) == 0)
			return encoding_weight(item + name_len, len - name_len);
		if (name_len == 1 && *item == '*')
			any = encoding_weight(item + name_len, len - name_len);
		item += len;
	}
	return any;
}
