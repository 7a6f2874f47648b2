/*
 * value.c - the values that contents of cells stand for. What a content means is the page's to say
 * (gateway/web/src/content.ts, table in docs/SQL.md): these functions are the rules of its textContent() and
 * numberContent(), so that a program's numbers are numbers there, and its texts are texts.
 */
#include "common/value.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_DIGITS	 "0123456789"
#define VALUE_SURE		 15 /* significant digits that a double always keeps */
#define VALUE_LARGEST	 1e15
#define VALUE_FIRST_YEAR 1900

/* ---- numbers ---- */

/* The shortest digits that parse as this number, without trailing zeros, and the place of the point: 12.5 is 125 and
 * 2. */
static int
value_shortest(double number, char digits[20], int *point)
{
	char text[VALUE_BYTES_MAX];
	int count = 0;

	/* a number below DBL_MIN has fewer digits */
	for (int precision = number < DBL_MIN ? 0 : VALUE_SURE - 1; precision <= 16; precision++)
	{
		snprintf(text, sizeof(text), "%.*e", precision, number);
		if (strtod(text, NULL) == number)
			break;
	}
	for (const char *c = text; *c != '\0' && *c != 'e'; c++)
	{
		if (*c >= '0' && *c <= '9')
			digits[count++] = *c;
	}
	while (count > 1 && digits[count - 1] == '0')
		count--;
	digits[count] = '\0';
	*point = atoi(strchr(text, 'e') + 1) + 1;
	return count;
}

/* As JavaScript writes numbers, but integers of more than 15 digits with an exponent. */
void
value_put_number(char to[VALUE_BYTES_MAX], double number)
{
	char digits[20];
	int count, point;

	if (number == 0 || (fabs(number) < VALUE_LARGEST && number == trunc(number)))
	{
		snprintf(to, VALUE_BYTES_MAX, "%.0f", number == 0 ? 0.0 : number);
		return;
	}
	if (number < 0)
		*to++ = '-';
	count = value_shortest(fabs(number), digits, &point);
	if (point > 0 && point < count)
		sprintf(to, "%.*s.%s", point, digits, digits + point);
	else if (point > -6 && point <= 0)
		sprintf(to, "0.%.*s%s", -point, "00000", digits);
	else
		sprintf(to, "%c%s%se%d", digits[0], count > 1 ? "." : "", digits + 1, point - 1);
}

static const char *
value_skip_digits(const char *text, size_t min, size_t max)
{
	size_t len = strspn(text, VALUE_DIGITS);

	return len >= min && len <= max ? text + len : NULL;
}

static bool
value_looks_like_number(const char *text)
{
	text += *text == '+' || *text == '-';
	text = *text == '0' ? text + 1 : value_skip_digits(text, 1, SIZE_MAX);
	if (text != NULL && *text == '.')
		text = value_skip_digits(text + 1, 1, SIZE_MAX);
	if (text != NULL && (*text == 'e' || *text == 'E'))
	{
		text++;
		text = value_skip_digits(text + (*text == '+' || *text == '-'), 1, 3);
	}
	return text != NULL && *text == '\0';
}

/* The digits that count: 3 of -0.0120e5. */
static size_t
value_count_digits(const char *text)
{
	size_t count = 0;

	for (; *text != '\0' && *text != 'e' && *text != 'E'; text++)
	{
		if (*text >= '0' && *text <= '9' && (count > 0 || *text != '0'))
			count++;
	}
	return count;
}

/* A number that a double keeps. Fifteen digits always are; more, if the double is written in this way. */
static bool
value_is_number(const char *text)
{
	char written[VALUE_BYTES_MAX];
	size_t digits;
	double number;

	if (!value_looks_like_number(text))
		return false;
	number = strtod(text, NULL);
	digits = value_count_digits(text);
	if (!isfinite(number) || (number == 0 && digits > 0))
		return false;
	if (digits <= VALUE_SURE)
		return true;
	value_put_number(written, number);
	return strcmp(written, text) == 0;
}

/* ---- dates and times ---- */

/* Two digits below `limit`, at least `least`; -1: none. */
static int
value_two_digits(const char *text, int least, int limit)
{
	int number;

	if (strspn(text, VALUE_DIGITS) < 2)
		return -1;
	number = (text[0] - '0') * 10 + (text[1] - '0');
	return number >= least && number < limit ? number : -1;
}

/* :MM, :MM:SS or :MM:SS.mmm */
static bool
value_is_minutes(const char *text)
{
	if (*text != ':' || value_two_digits(text + 1, 0, 60) < 0)
		return false;
	text += 3;
	if (*text == '\0')
		return true;
	if (*text != ':' || value_two_digits(text + 1, 0, 60) < 0)
		return false;
	text += 3;
	if (*text == '.')
		text = value_skip_digits(text + 1, 1, 3);
	return text != NULL && *text == '\0';
}

/* Up to 9999 hours, as a duration has. */
static bool
value_is_time(const char *text)
{
	const char *minutes = value_skip_digits(text, 1, 4);

	return minutes != NULL && value_is_minutes(minutes);
}

static bool
value_is_date(const char *text)
{
	static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year, month, day;
	bool leap;

	if (strspn(text, VALUE_DIGITS) != 4 || text[4] != '-' || (month = value_two_digits(text + 5, 1, 13)) < 0 ||
		text[7] != '-' || (day = value_two_digits(text + 8, 1, 32)) < 0)
		return false;
	year = atoi(text);
	leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	if (year < VALUE_FIRST_YEAR || day > days[month - 1] || (month == 2 && day == 29 && !leap))
		return false;
	text += 10;
	if (*text == '\0')
		return true;
	return (*text == ' ' || *text == 'T') && value_two_digits(text + 1, 0, 24) >= 0 && value_is_minutes(text + 3);
}

/* ---- all ---- */

bool
value_is_no_text(const char *text)
{
	return (text[0] == '=' && text[1] != '\0') || text[0] == '\'' || value_is_number(text) ||
		   strcmp(text, "TRUE") == 0 || strcmp(text, "FALSE") == 0 || value_is_date(text) || value_is_time(text);
}
