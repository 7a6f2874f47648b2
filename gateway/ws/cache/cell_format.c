/*
 * cell_format.c - what the grid shows of a content in a number format (ECMA-376, 18.8.31), in English.
 *
 * A format has up to four sections: for positive numbers, negative ones, zero, and texts. A section is either one of a
 * date, or a number between literal characters. cell_format_put() writes into a buffer of its own first, so a format
 * that turns out to be unknown leaves nothing behind.
 */
#include "ws/cache/cell_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FORMAT_SECTIONS	  4
#define FORMAT_DIGITS_MAX 15 /* that a double has */
#define DAY_MS			  INT64_C(86400000)
#define LEAP_SERIAL		  60 /* 29 February 1900, which spreadsheets count and which was no day */
#define SERIAL_END		  2958466
#define NUMBER_MAX		  1e15 /* a larger one is shown as it is */

/* ---- contents ---- */

static bool
digits_at(const char *p, size_t from, size_t count)
{
	for (size_t i = from; i < from + count; i++)
	{
		if (p[i] < '0' || p[i] > '9')
			return false;
	}
	return true;
}

static int
number_at(const char *p, size_t from, size_t count)
{
	int number = 0;

	for (size_t i = from; i < from + count; i++)
		number = number * 10 + (p[i] - '0');
	return number;
}

/* [+-]digits[.digits][e[+-]digits], without leading zeros, and with at most 15 digits that count. text ends with 0. */
static bool
content_is_number(const char *text, double *number)
{
	const char *p = text + (*text == '+' || *text == '-');
	size_t whole = strspn(p, "0123456789"), count = 0;
	bool leading = true;
	char *end;

	if (whole == 0 || (*p == '0' && whole > 1))
		return false;
	for (const char *digit = p; *digit != '\0' && strchr("0123456789.", *digit) != NULL; digit++)
	{
		leading = leading && (*digit == '0' || *digit == '.');
		count += !leading && *digit != '.';
	}
	p += whole;
	if (*p == '.')
	{
		size_t places = strspn(p + 1, "0123456789");

		if (places == 0)
			return false;
		p += 1 + places;
	}
	if (*p == 'e' || *p == 'E')
	{
		size_t places;

		p += 1 + (p[1] == '+' || p[1] == '-');
		places = strspn(p, "0123456789");
		if (places == 0 || places > 3)
			return false;
		p += places;
	}
	*number = strtod(text, &end);
	return *p == '\0' && end == p && count <= FORMAT_DIGITS_MAX && *number < 1e308 && *number > -1e308;
}

/* hh:mm[:ss[.fff]], up to 9999 hours. */
static bool
content_is_time(const char *text, double *days)
{
	size_t hours = strspn(text, "0123456789"), len = strlen(text);
	const char *p = text + hours;
	double seconds = 0;

	if (hours < 1 || hours > 4 || len < hours + 3 || *p != ':' || !digits_at(p, 1, 2) || p[1] > '5')
		return false;
	if (len > hours + 3)
	{
		size_t places = len > hours + 7 ? strspn(p + 7, "0123456789") : 0;

		if (len < hours + 6 || p[3] != ':' || !digits_at(p, 4, 2) || p[4] > '5')
			return false;
		if (len > hours + 6 && (p[6] != '.' || places < 1 || places > 3 || len != hours + 7 + places))
			return false;
		seconds = strtod(p + 4, NULL);
	}
	*days = (number_at(text, 0, hours) * 3600 + number_at(p, 1, 2) * 60 + seconds) / 86400;
	return true;
}

/* Days since 1970-01-01 (Howard Hinnant, chrono-compatible low-level date algorithms). */
static int64_t
days_of(int year, int month, int day)
{
	int y = year - (month <= 2), era = y / 400, of_era = y - era * 400;
	int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return (int64_t) era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void
date_of(int64_t days, int *year, int *month, int *day)
{
	int64_t z = days + 719468, era = z / 146097, of_era = z - era * 146097;
	int64_t of_year_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * of_year_era + of_year_era / 4 - of_year_era / 100), mp = (5 * of_year + 2) / 153;

	*day = (int) (of_year - (153 * mp + 2) / 5 + 1);
	*month = (int) (mp < 10 ? mp + 3 : mp - 9);
	*year = (int) (of_year_era + era * 400) + (*month <= 2);
}

#define FIRST_DAY (-25569) /* 1899-12-30: serial number 0 for days from 1900-03-01 on */

/* yyyy-mm-dd, with a time behind it or not. */
static bool
content_is_date(const char *text, double *serial)
{
	size_t len = strlen(text);
	int year, month, day, back[3];
	int64_t days;

	*serial = 0;
	if (len < 10 || !digits_at(text, 0, 4) || text[4] != '-' || !digits_at(text, 5, 2) || text[7] != '-' ||
		!digits_at(text, 8, 2))
		return false;
	year = number_at(text, 0, 4);
	month = number_at(text, 5, 2);
	day = number_at(text, 8, 2);
	if (year < 1900 || month < 1 || month > 12 || day < 1)
		return false;
	days = days_of(year, month, day);
	date_of(days, &back[0], &back[1], &back[2]);
	if (back[0] != year || back[1] != month || back[2] != day)
		return false;
	if (len > 10 && ((text[10] != ' ' && text[10] != 'T') || strspn(text + 11, "0123456789") != 2 ||
					 !content_is_time(text + 11, serial) || *serial >= 1))
		return false;
	days -= FIRST_DAY;
	*serial += (double) (days > LEAP_SERIAL ? days : days - 1);
	return true;
}

CellValue
cell_value(EditText content)
{
	CellValue value = {CELL_TEXT, content, 0};
	char text[64];

	if (content.len > 0 && content.data[0] == '\'')
		value.text = (EditText){content.data + 1, content.len - 1};
	else if (content.len > 0 && content.len < sizeof(text))
	{
		memcpy(text, content.data, content.len);
		text[content.len] = '\0';
		if (strlen(text) != content.len)
			;
		else if (content_is_number(text, &value.number))
			value.kind = CELL_NUMBER;
		else if (strcmp(text, "TRUE") == 0 || strcmp(text, "FALSE") == 0)
			value.kind = CELL_BOOLEAN;
		else if (content_is_date(text, &value.number))
			value.kind = CELL_DATE;
		else if (content_is_time(text, &value.number))
			value.kind = CELL_TIME;
	}
	return value;
}

/* ---- the sections of a format ---- */

/* Behind the character, the escape, the quoted part or the bracket at p. */
static const char *
format_next(const char *p, const char *end)
{
	const char *close = NULL;

	if (*p == '"' || *p == '[')
		close = memchr(p + 1, *p == '"' ? '"' : ']', (size_t) (end - p - 1));
	if (close != NULL)
		return close + 1;
	return (*p == '\\' || *p == '_' || *p == '*') && end - p > 1 ? p + 2 : p + 1;
}

/* The section for the number, which loses its sign if the section is one for negative numbers. */
static EditText
format_section(const char *p, const char *end, double *number)
{
	EditText sections[FORMAT_SECTIONS] = {{p, 0}};
	int count = 0, chosen = 0;

	for (; p < end; p = format_next(p, end))
	{
		if (*p == ';' && count + 1 < FORMAT_SECTIONS)
			sections[++count].data = p + 1;
		else if (*p != ';')
			sections[count].len = (uint32_t) (format_next(p, end) - sections[count].data);
	}
	if (*number < 0 && count >= 1)
	{
		chosen = 1;
		*number = -*number;
	}
	else if (*number == 0 && count >= 2)
		chosen = 2;
	return sections[chosen];
}

static bool
is_date_letter(char c)
{
	return c != '\0' && strchr("ymdhsYMDHS", c) != NULL;
}

/* A bracket that is an elapsed time: [h], [mm], [s]. */
static bool
is_elapsed(const char *p, const char *next)
{
	size_t len = (size_t) (next - p) - 2;

	return *p == '[' && next - p >= 3 && len <= 2 && strchr("hmsHMS", p[1]) != NULL && (len == 1 || p[1] == p[2]);
}

/*
 * Appends what is between the digits, or between the parts of a date. False: it is not literal, or not known. A colour
 * is nothing, [$€-407] is a currency.
 */
static bool
format_put_literal(Buf *to, const char *p, const char *next)
{
	static const char *const colours[] = {"black", "blue", "cyan", "green", "magenta", "red", "white", "yellow"};

	if (*p == '"' && next - p >= 2)
		buf_put(to, p + 1, (size_t) (next - p) - 2);
	else if (*p == '\\' && next - p == 2)
		buf_put(to, p + 1, 1);
	else if (*p == '_' && next - p == 2)
		buf_puts(to, " ");
	else if (*p == '*' && next - p == 2)
		;
	else if (*p == '[' && next - p > 3 && p[1] == '$')
	{
		const char *dash = memchr(p + 2, '-', (size_t) (next - p) - 3);

		buf_put(to, p + 2, (size_t) ((dash != NULL ? dash : next - 1) - (p + 2)));
	}
	else if (*p == '[')
	{
		for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
		{
			if (strlen(colours[i]) == (size_t) (next - p) - 2 &&
				strncasecmp(colours[i], p + 1, strlen(colours[i])) == 0)
				return true;
		}
		return false;
	}
	else if ((unsigned char) *p >= 0x80 || strchr("$-+(): !^&'~{}<>=%", *p) != NULL)
		buf_put(to, p, 1);
	else
		return false;
	return true;
}

/* ---- dates ---- */

typedef struct Moment
{
	int year, month, day, weekday; /* weekday: 0 is Sunday */
	int64_t ms;					   /* of the day, or of all days if hours are elapsed ones */
	int64_t all_ms;
	bool half; /* of 12 hours: AM and PM */
} Moment;

static const char *const month_names[] = {"January", "February", "March",	  "April",	 "May",		 "June",
										  "July",	 "August",	 "September", "October", "November", "December"};
static const char *const day_names[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

/* The parts of a date that are at p: AM/PM, a run of one letter, a fraction of seconds; 0: none is. */
static size_t
date_part(const char *p, const char *end)
{
	size_t len = 0;

	if (end - p >= 5 && strncasecmp(p, "AM/PM", 5) == 0)
		return 5;
	if (end - p >= 3 && strncasecmp(p, "A/P", 3) == 0)
		return 3;
	if (*p == '.')
	{
		while (p + len + 1 < end && p[len + 1] == '0')
			len++;
		return len > 0 && len <= 3 ? len + 1 : 0;
	}
	while (p + len < end && is_date_letter(*p) && (p[len] | 32) == (*p | 32))
		len++;
	return len;
}

/* An m is one of minutes behind hours, or before seconds. */
static bool
date_is_minute(const char *p, const char *end, char last)
{
	if (last == 'h')
		return true;
	for (p += date_part(p, end); p < end; p = format_next(p, end))
	{
		if (is_date_letter(*p) || (*p == '[' && is_elapsed(p, format_next(p, end))))
			return (*p | 32) == 's' || (*p == '[' && (p[1] | 32) == 's');
	}
	return false;
}

static void
date_put_part(Buf *to, const Moment *at, char letter, size_t len, bool minute)
{
	int hour = (int) (at->ms / 3600000);

	if (letter == 'y')
		buf_printf(to, len > 2 ? "%04d" : "%02d", len > 2 ? at->year : at->year % 100);
	else if (letter == 'm' && minute)
		buf_printf(to, len > 1 ? "%02d" : "%d", (int) (at->ms / 60000 % 60));
	else if (letter == 'm' && len <= 2)
		buf_printf(to, len > 1 ? "%02d" : "%d", at->month);
	else if (letter == 'm')
		buf_printf(to, "%.*s", len == 3 ? 3 : len == 5 ? 1 : 9, month_names[at->month - 1]);
	else if (letter == 'd' && len <= 2)
		buf_printf(to, len > 1 ? "%02d" : "%d", at->day);
	else if (letter == 'd')
		buf_printf(to, "%.*s", len == 3 ? 3 : 9, day_names[at->weekday]);
	else if (letter == 'h')
		buf_printf(to, len > 1 ? "%02d" : "%d", at->half ? (hour + 11) % 12 + 1 : hour);
	else
		buf_printf(to, len > 1 ? "%02d" : "%d", (int) (at->ms / 1000 % 60));
}

static void
date_put_elapsed(Buf *to, const Moment *at, char letter, size_t len)
{
	int64_t unit = letter == 'h' ? 3600000 : letter == 'm' ? 60000 : 1000;

	buf_printf(to, len > 1 ? "%02lld" : "%lld", (long long) (at->all_ms / unit));
}

static bool
format_moment(EditText section, double serial, Moment *at)
{
	const char *p = section.data, *end = p + section.len;
	int64_t unit = 1000, days;

	if (serial < 0 || serial >= SERIAL_END)
		return false;
	*at = (Moment){0};
	for (; p < end; p = format_next(p, end))
	{
		at->half = at->half || date_part(p, end) == 5 || (date_part(p, end) == 3 && (*p | 32) == 'a');
		if (*p == '.' && date_part(p, end) > 0)
			unit = 1;
	}
	at->all_ms = (int64_t) (serial * (double) DAY_MS / (double) unit + 0.5) * unit;
	days = at->all_ms / DAY_MS;
	at->ms = at->all_ms % DAY_MS;
	at->weekday = (int) ((days + 6) % 7);
	if (days == LEAP_SERIAL)
		*at = (Moment){1900, 2, 29, at->weekday, at->ms, at->all_ms, at->half};
	else
		date_of(FIRST_DAY + (days < LEAP_SERIAL ? days + 1 : days), &at->year, &at->month, &at->day);
	return true;
}

static bool
format_put_date(Buf *to, EditText section, double serial)
{
	const char *p = section.data, *end = p + section.len, *next;
	Moment at;
	char last = 0;

	if (!format_moment(section, serial, &at))
		return false;
	for (; p < end; p = next)
	{
		size_t len = date_part(p, end);

		next = len > 0 ? p + len : format_next(p, end);
		if (len > 0 && (*p | 32) == 'a')
			buf_printf(to, "%.*s", len == 5 ? 2 : 1, at.ms < DAY_MS / 2 ? "AM" : "PM");
		else if (len > 0 && *p == '.')
			buf_printf(to, "%.*s", (int) len,
					   (char[]){'.', (char) ('0' + at.ms % 1000 / 100), (char) ('0' + at.ms % 100 / 10),
								(char) ('0' + at.ms % 10), 0});
		else if (len > 0)
		{
			date_put_part(to, &at, *p | 32, len, (*p | 32) == 'm' && date_is_minute(p, end, last));
			last = *p | 32;
		}
		else if (is_elapsed(p, next))
		{
			date_put_elapsed(to, &at, p[1] | 32, (size_t) (next - p) - 2);
			last = p[1] | 32;
		}
		else if (strchr("/,.", *p) != NULL)
			buf_put(to, p, 1);
		else if (!format_put_literal(to, p, next))
			return false;
	}
	return true;
}

/* ---- numbers ---- */

typedef struct Digits
{
	int whole;			/* least digits before the point */
	int decimals, most; /* least and most behind it */
	bool thousands, there;
	double scale;
} Digits;

/* Reads the digits of a section, from p. Returns the end. */
static const char *
digits_read(const char *p, const char *end, Digits *digits)
{
	bool point = false;
	int commas = 0;

	for (; p < end && strchr("0#?,.", *p) != NULL; p++)
	{
		if (*p == ',')
		{
			commas++;
			continue;
		}
		if (*p == '.')
		{
			point = true;
			continue;
		}
		digits->thousands = digits->thousands || (commas > 0 && !point);
		commas = 0;
		if (!point)
			digits->whole += *p == '0';
		else
		{
			digits->most++;
			digits->decimals = *p == '0' ? digits->most : digits->decimals;
		}
	}
	for (; commas > 0; commas--)
		digits->scale /= 1000;
	digits->there = true;
	return p;
}

/* The digits of a number that is not negative, rounded as people do: 1.005 has two decimals as 1.01. */
static void
digits_write(const Digits *digits, double number, char *to, size_t size)
{
	int most = digits->most < FORMAT_DIGITS_MAX ? digits->most : FORMAT_DIGITS_MAX;
	double scaled = number;
	char text[64];

	for (int i = 0; i < most; i++)
		scaled *= 10;
	snprintf(text, sizeof(text), "%.15g", scaled);
	scaled = strtod(text, NULL);
	if (scaled < NUMBER_MAX)
		snprintf(text, sizeof(text), "%0*lld", most + 1, (long long) (scaled + 0.5));
	else
		snprintf(text, sizeof(text), "%0*.0f", most + 1, scaled);
	snprintf(to, size, "%.*s%s%s", (int) strlen(text) - most, text, most > 0 ? "." : "", text + strlen(text) - most);
	for (size_t len = strlen(to); most > digits->decimals && to[len - 1] == '0'; most--)
		to[--len] = '\0';
}

static void
digits_put(Buf *to, const Digits *digits, const char *text)
{
	size_t len = strcspn(text, ".");
	int zeros;

	if (len == 1 && *text == '0' && digits->whole == 0)
	{
		text++; /* #.## shows .5 */
		len = 0;
	}
	zeros = digits->whole > (int) len ? digits->whole - (int) len : 0;
	for (int left = zeros + (int) len; left > 0; left--)
	{
		buf_put(to, zeros > 0 ? "0" : text, 1);
		text += zeros <= 0;
		zeros -= zeros > 0;
		if (digits->thousands && left > 1 && left % 3 == 1)
			buf_puts(to, ",");
	}
	buf_puts(to, text[0] == '.' && text[1] == '\0' && digits->decimals == 0 && digits->most == 0 ? "" : text);
}

static bool
format_put_number(Buf *to, EditText section, double number)
{
	const char *p = section.data, *end = p + section.len, *next;
	Buf before = {NULL, 0, 0}, after = {NULL, 0, 0};
	Digits digits = {.scale = number < 0 ? -1 : 1};
	bool known = true;
	char text[96] = "";

	for (; p < end && known; p = next)
	{
		if (strchr("0#?.,", *p) != NULL && !digits.there)
			next = digits_read(p, end, &digits);
		else
		{
			next = format_next(p, end);
			if (*p == '%')
				digits.scale *= 100;
			known = format_put_literal(digits.there ? &after : &before, p, next);
		}
	}
	if (digits.there)
	{
		digits_write(&digits, number * digits.scale, text, sizeof(text));
		/* What is rounded to zero has no sign. */
		if (number < 0 && text[strspn(text, "0.")] != '\0')
			buf_puts(to, "-");
	}
	buf_put_buf(to, &before);
	if (digits.there)
		digits_put(to, &digits, text);
	buf_put_buf(to, &after);
	buf_free(&before);
	buf_free(&after);
	return known;
}

/* ---- the whole ---- */

static bool
format_is_date(EditText section)
{
	const char *end = section.data + section.len;

	for (const char *p = section.data, *next; p < end; p = next)
	{
		next = format_next(p, end);
		if (is_date_letter(*p) || is_elapsed(p, next))
			return true;
	}
	return false;
}

bool
cell_format_put(Buf *to, double number, const char *pattern, size_t len)
{
	Buf text = {NULL, 0, 0};
	EditText section;
	bool known;

	if (number >= NUMBER_MAX || number <= -NUMBER_MAX)
		return false;
	section = format_section(pattern, pattern + len, &number);
	known =
		format_is_date(section) ? format_put_date(&text, section, number) : format_put_number(&text, section, number);
	if (known)
		buf_put_buf(to, &text);
	buf_free(&text);
	return known;
}
