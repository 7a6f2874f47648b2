/* setting.c - see setting.h. */
#include "setting.h"

#include "session.h"

#include <stdlib.h>

double
setting(const char *name, double otherwise, double low, double high)
{
	const char *text = getenv(name);
	char *end;
	double value;

	if (text == NULL || *text == '\0')
		return otherwise;
	value = strtod(text, &end);
	if (*end != '\0' || !(value >= low && value <= high))
		fail("%s=%s: must be a number from %g to %g", name, text, low, high);
	return value;
}
