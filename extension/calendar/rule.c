/*
 * rule.c - recurrence rules, checked here and expanded by libical.
 *
 * libical ignores parts that it does not know, and accepts combinations that RFC 5545 forbids. So this file checks the
 * text first, against the table below and the notes of section 3.3.10.
 */
#include "postgres.h"

#include <ctype.h>
#include <libical/ical.h>

#include "calendar/rule.h"
#include "lib/stringinfo.h"
#include "utils/datetime.h"
#include "utils/memutils.h"

/* The parts of a rule. */
typedef enum RulePart
{
	RULE_FREQ,
	RULE_UNTIL,
	RULE_COUNT,
	RULE_INTERVAL,
	RULE_WKST,
	RULE_BYDAY,
	RULE_BYMONTHDAY,
	RULE_BYYEARDAY,
	RULE_BYWEEKNO,
	RULE_BYMONTH,
	RULE_BYSETPOS,
	RULE_PARTS
} RulePart;

typedef enum RuleFreq
{
	RULE_DAILY,
	RULE_WEEKLY,
	RULE_MONTHLY,
	RULE_YEARLY,
	RULE_FREQS
} RuleFreq;

#define RULE_IN(freq) (1 << (freq))
#define RULE_ANY	  (RULE_IN(RULE_DAILY) | RULE_IN(RULE_WEEKLY) | RULE_IN(RULE_MONTHLY) | RULE_IN(RULE_YEARLY))

static const char *const rule_freq_names[RULE_FREQS] = {"DAILY", "WEEKLY", "MONTHLY", "YEARLY"};
static const char *const rule_days[7] = {"SU", "MO", "TU", "WE", "TH", "FR", "SA"};

static const struct
{
	const char *name;
	int max;	   /* of a number, or 0: it has none */
	bool negative; /* numbers count from the end, too; 0 never is one */
	bool list;
	int freqs; /* with which it may stand */
} rule_parts[RULE_PARTS] = {
	[RULE_FREQ] = {"FREQ", 0, false, false, RULE_ANY},
	[RULE_UNTIL] = {"UNTIL", 0, false, false, RULE_ANY},
	[RULE_COUNT] = {"COUNT", 1000000, false, false, RULE_ANY},
	[RULE_INTERVAL] = {"INTERVAL", 9999, false, false, RULE_ANY},
	[RULE_WKST] = {"WKST", 0, false, false, RULE_ANY},
	[RULE_BYDAY] = {"BYDAY", 53, true, true, RULE_ANY},
	[RULE_BYMONTHDAY] = {"BYMONTHDAY", 31, true, true, RULE_ANY & ~RULE_IN(RULE_WEEKLY)},
	[RULE_BYYEARDAY] = {"BYYEARDAY", 366, true, true, RULE_IN(RULE_YEARLY)},
	[RULE_BYWEEKNO] = {"BYWEEKNO", 51, false, true, RULE_IN(RULE_YEARLY)},
	[RULE_BYMONTH] = {"BYMONTH", 12, false, true, RULE_ANY},
	[RULE_BYSETPOS] = {"BYSETPOS", 366, true, true, RULE_IN(RULE_MONTHLY) | RULE_IN(RULE_YEARLY)},
};

struct Rule
{
	icalrecur_iterator *iterator;
	Timestamp start; /* earlier times are passed over */
	int left;		 /* of COUNT; -1: it has none */
	bool ends;
	MemoryContextCallback free;
};

/* The parts of the text. */
typedef struct RuleText
{
	char *values[RULE_PARTS]; /* NULL: the part is missing */
	RuleFreq freq;
	bool numbered_days; /* BYDAY=2MO */
} RuleText;

static _Noreturn void rule_refuse(const char *format, ...) pg_attribute_printf(1, 2);

static void
rule_refuse(const char *format, ...)
{
	StringInfoData detail;
	va_list args;
	int more;

	initStringInfo(&detail);
	do
	{
		va_start(args, format);
		more = appendStringInfoVA(&detail, format, args);
		va_end(args);
		if (more != 0)
			enlargeStringInfo(&detail, more);
	} while (more != 0);
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid recurrence rule"),
					errdetail_internal("%s", detail.data),
					errhint("A rule is as in RFC 5545, for example FREQ=WEEKLY;BYDAY=MO,TH;COUNT=10.")));
}

/* ---- the text ---- */

/* A number of digits, with a sign if the part permits it. Ends at the first other character, or refuses. */
static int
rule_number(RulePart part, const char **text)
{
	const char *c = *text;
	bool negative = *c == '-' && rule_parts[part].negative;
	int number = 0, digits = 0;

	if (negative || (*c == '+' && rule_parts[part].negative))
		c++;
	for (; isdigit((unsigned char) *c) && digits < 8; c++, digits++)
		number = number * 10 + (*c - '0');
	if (digits == 0 || number == 0 || number > rule_parts[part].max || isdigit((unsigned char) *c))
		rule_refuse("%s has numbers from %d to %d%s, not \"%.40s\".", rule_parts[part].name, 1, rule_parts[part].max,
					rule_parts[part].negative ? ", or the same below zero" : "", *text);
	*text = c;
	return negative ? -number : number;
}

static bool
rule_is_day(const char *text)
{
	for (int day = 0; day < lengthof(rule_days); day++)
		if (strncmp(text, rule_days[day], 2) == 0)
			return true;
	return false;
}

/* A weekday, in BYDAY with a number before it. */
static void
rule_check_day(RulePart part, const char **text, RuleText *read)
{
	const char *from = *text;

	if (part == RULE_BYDAY && !isalpha((unsigned char) **text))
	{
		(void) rule_number(part, text);
		read->numbered_days = true;
	}
	if (!rule_is_day(*text))
		rule_refuse("%s has the days SU, MO, TU, WE, TH, FR and SA, not \"%.40s\".", rule_parts[part].name, from);
	*text += 2;
}

static void
rule_check_values(RulePart part, RuleText *read)
{
	const char *c = read->values[part];

	for (;;)
	{
		if (part == RULE_WKST || part == RULE_BYDAY)
			rule_check_day(part, &c, read);
		else
			(void) rule_number(part, &c);
		if (*c == '\0')
			return;
		if (*c != ',' || !rule_parts[part].list)
			rule_refuse("%s is followed by \"%.40s\".", rule_parts[part].name, c);
		c++;
	}
}

static RulePart
rule_find_part(const char *name)
{
	RulePart part = 0;

	while (part < RULE_PARTS && strcmp(rule_parts[part].name, name) != 0)
		part++;
	return part;
}

static void
rule_refuse_part(const char *name)
{
	if (strcmp(name, "BYHOUR") == 0 || strcmp(name, "BYMINUTE") == 0 || strcmp(name, "BYSECOND") == 0)
		rule_refuse("%s is not supported: a series has one time of day.", name);
	if (strcmp(name, "RSCALE") == 0 || strcmp(name, "SKIP") == 0)
		rule_refuse("%s is not supported: rules are of the Gregorian calendar.", name);
	rule_refuse("\"%.40s\" is no part of a rule.", name);
}

static void
rule_find_freq(RuleText *read)
{
	const char *freq = read->values[RULE_FREQ];

	if (freq == NULL)
		rule_refuse("FREQ is missing.");
	for (read->freq = 0; read->freq < RULE_FREQS; read->freq++)
		if (strcmp(freq, rule_freq_names[read->freq]) == 0)
			return;
	rule_refuse("FREQ is DAILY, WEEKLY, MONTHLY or YEARLY, not \"%.40s\".", freq);
}

static int
rule_interval(const RuleText *read)
{
	return read->values[RULE_INTERVAL] != NULL ? atoi(read->values[RULE_INTERVAL]) : 1;
}

/* Whether a month of BYMONTH has a day of BYMONTHDAY. libical would look for one until the year 2582. */
static bool
rule_has_month_days(const RuleText *read)
{
	static const int days[12] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	const char *month = read->values[RULE_BYMONTH];

	for (;;)
	{
		int length = days[rule_number(RULE_BYMONTH, &month) - 1];
		const char *day = read->values[RULE_BYMONTHDAY];

		do
			if (abs(rule_number(RULE_BYMONTHDAY, &day)) <= length)
				return true;
		while (*day++ == ',');
		if (*month++ != ',')
			return false;
	}
}

static int
rule_count(const char *list)
{
	int count = 1;

	for (const char *c = list; *c != '\0'; c++)
		count += *c == ',';
	return count;
}

static int
rule_highest(const char *numbers)
{
	int highest = 0;

	for (const char *c = numbers;; c++)
	{
		int number = abs(rule_number(RULE_BYSETPOS, &c));

		highest = Max(highest, number);
		if (*c == '\0')
			return highest;
	}
}

/* An upper bound of the number of times in a month, or in a year, from which BYSETPOS selects. For a position beyond
 * it, libical would search until the year 2582. */
static int
rule_set_size(const RuleText *read)
{
	char *const *values = read->values;
	int months = read->freq == RULE_MONTHLY ? 1 : values[RULE_BYMONTH] != NULL ? rule_count(values[RULE_BYMONTH]) : 12;
	int days = values[RULE_BYDAY] != NULL ? rule_count(values[RULE_BYDAY]) : 1;

	if (values[RULE_BYYEARDAY] != NULL)
		return rule_count(values[RULE_BYYEARDAY]);
	if (values[RULE_BYWEEKNO] != NULL)
		return rule_count(values[RULE_BYWEEKNO]) * days;
	if (values[RULE_BYMONTHDAY] != NULL)
		return rule_count(values[RULE_BYMONTHDAY]) * months;
	if (values[RULE_BYDAY] == NULL)
		return months;
	return days * (read->numbered_days ? months : 5 * months);
}

static void
rule_check_combinations(const RuleText *read)
{
	char *const *values = read->values;

	for (RulePart part = 0; part < RULE_PARTS; part++)
		if (values[part] != NULL && (rule_parts[part].freqs & RULE_IN(read->freq)) == 0)
			rule_refuse("%s does not go with FREQ=%s.", rule_parts[part].name, rule_freq_names[read->freq]);
	if (values[RULE_COUNT] != NULL && values[RULE_UNTIL] != NULL)
		rule_refuse("COUNT and UNTIL do not go together.");
	if (read->numbered_days && (read->freq < RULE_MONTHLY || values[RULE_BYWEEKNO] != NULL))
		rule_refuse("Days with a number, such as 2MO, go with FREQ=MONTHLY and, without BYWEEKNO, with FREQ=YEARLY.");
	if (read->numbered_days && values[RULE_BYMONTHDAY] != NULL)
		rule_refuse("Days with a number, such as 2MO, do not go with BYMONTHDAY.");
	if (values[RULE_BYSETPOS] != NULL && rule_highest(values[RULE_BYSETPOS]) > rule_set_size(read))
		rule_refuse("BYSETPOS is beyond the number of times of a month or year.");
	if (values[RULE_BYSETPOS] != NULL && values[RULE_BYDAY] == NULL && values[RULE_BYMONTHDAY] == NULL &&
		values[RULE_BYYEARDAY] == NULL && values[RULE_BYWEEKNO] == NULL && values[RULE_BYMONTH] == NULL)
		rule_refuse("BYSETPOS selects of what another part, such as BYDAY, has.");
	if (read->freq == RULE_DAILY && rule_interval(read) > 1 && values[RULE_BYMONTHDAY] != NULL &&
		strchr(values[RULE_BYMONTHDAY], '-') != NULL)
		rule_refuse("Days from the end of the month do not go with FREQ=DAILY and an INTERVAL.");
	if (values[RULE_BYMONTH] != NULL && values[RULE_BYMONTHDAY] != NULL && !rule_has_month_days(read))
		rule_refuse("No month of BYMONTH has a day of BYMONTHDAY.");
}

/* Splits the text in place. */
static void
rule_split(char *text, RuleText *read)
{
	char *next = text;

	memset(read, 0, sizeof(*read));
	while (next != NULL)
	{
		char *name = strsep(&next, ";"), *value = strchr(name, '=');
		RulePart part;

		if (value == NULL)
			rule_refuse("\"%.40s\" has no value.", name);
		*value++ = '\0';
		part = rule_find_part(name);
		if (part == RULE_PARTS)
			rule_refuse_part(name);
		if (read->values[part] != NULL)
			rule_refuse("%s stands twice.", name);
		read->values[part] = value;
	}
	rule_find_freq(read);
	for (RulePart part = RULE_COUNT; part < RULE_PARTS; part++)
		if (read->values[part] != NULL)
			rule_check_values(part, read);
	rule_check_combinations(read);
}

/* ---- UNTIL, as a local time ---- */

static int
rule_digits(const char *text, int from, int count)
{
	int number = 0;

	for (int i = from; i < from + count; i++)
		number = number * 10 + (text[i] - '0');
	return number;
}

static Timestamp
rule_until(const char *text, pg_tz *zone)
{
	Size length = strlen(text);
	bool is_date = length == 8, is_utc = length == 16 && text[15] == 'Z';
	struct pg_tm tm = {.tm_hour = 23, .tm_min = 59, .tm_sec = 59};
	Timestamp until;

	for (Size i = 0; i < length; i++)
		if (i == 8 ? text[i] != 'T' : i < 15 && !isdigit((unsigned char) text[i]))
			length = 0;
	if (!is_date && length != 15 && !(is_utc && length == 16))
		rule_refuse("UNTIL is a date or a time, such as 20271231 or 20271231T225959Z, not \"%.40s\".", text);
	tm.tm_year = rule_digits(text, 0, 4);
	tm.tm_mon = rule_digits(text, 4, 2);
	tm.tm_mday = rule_digits(text, 6, 2);
	if (!is_date)
	{
		tm.tm_hour = rule_digits(text, 9, 2);
		tm.tm_min = rule_digits(text, 11, 2);
		tm.tm_sec = rule_digits(text, 13, 2);
	}
	if (tm.tm_year < 1 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
		tm.tm_mday > day_tab[isleap(tm.tm_year)][tm.tm_mon - 1] || tm.tm_hour > 23 || tm.tm_min > 59 ||
		tm.tm_sec > 59 || tm2timestamp(&tm, 0, NULL, &until) != 0)
		rule_refuse("There is no time \"%.40s\".", text);
	return is_utc ? zone_local(until, zone) : until;
}

/* ---- libical ---- */

static struct icaltimetype
rule_to_ical(Timestamp local)
{
	struct icaltimetype time = icaltime_null_time();
	struct pg_tm tm;
	fsec_t fsec;

	if (timestamp2tm(local, NULL, &tm, &fsec, NULL, NULL) != 0 || tm.tm_year < 1 || tm.tm_year > 9999)
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("timestamp out of range")));
	time.year = tm.tm_year;
	time.month = tm.tm_mon;
	time.day = tm.tm_mday;
	time.hour = tm.tm_hour;
	time.minute = tm.tm_min;
	time.second = tm.tm_sec;
	return time;
}

static void
rule_free(void *arg)
{
	icalrecur_iterator_free(((Rule *) arg)->iterator);
}

/*
 * The rule as libical gets it. Its versions up to 3.0.16 do not expand all rules as RFC 5545 says, so these are written
 * as others that mean the same. COUNT is counted here.
 */
static char *
rule_to_libical(const RuleText *read)
{
	char *const *values = read->values;
	RuleFreq freq = read->freq;
	StringInfoData text;

	/* It reads no days from the end of a month with DAILY. */
	if (freq == RULE_DAILY && values[RULE_BYMONTHDAY] != NULL && rule_interval(read) == 1)
		freq = RULE_MONTHLY;
	initStringInfo(&text);
	appendStringInfo(&text, "FREQ=%s", rule_freq_names[freq]);
	for (RulePart part = RULE_INTERVAL; part < RULE_PARTS; part++)
		if (values[part] != NULL)
			appendStringInfo(&text, ";%s=%s", rule_parts[part].name, values[part]);
	/* It takes the days of the start's month alone. */
	if (freq == RULE_YEARLY && values[RULE_BYMONTHDAY] != NULL && values[RULE_BYMONTH] == NULL)
		appendStringInfoString(&text, ";BYMONTH=1,2,3,4,5,6,7,8,9,10,11,12");
	return text.data;
}

/*
 * With WEEKLY and BYDAY, it may take the start for one of the week before or behind, unless it is the week's first day
 * that the rule has. Of the week of the start, this is that day.
 */
static Timestamp
rule_first(const RuleText *read, Timestamp start)
{
	const char *wkst = read->values[RULE_WKST] != NULL ? read->values[RULE_WKST] : "MO";
	Timestamp days = start >= 0 ? start / USECS_PER_DAY : -((-start + USECS_PER_DAY - 1) / USECS_PER_DAY);
	int day = (int) (((days + 6) % 7 + 7) % 7); /* 2000-01-01 was a Saturday */
	int week = 0, first = 0;

	if (read->freq != RULE_WEEKLY || read->values[RULE_BYDAY] == NULL)
		return start;
	while (strncmp(wkst, rule_days[week], 2) != 0)
		week++;
	while (strstr(read->values[RULE_BYDAY], rule_days[(week + first) % 7]) == NULL)
		first++;
	return start + (first - (day - week + 7) % 7) * USECS_PER_DAY;
}

Rule *
rule_read(const char *text, Timestamp start, pg_tz *zone)
{
	struct icalrecurrencetype recurrence;
	RuleText read;
	Rule *rule;
	char *copy;

	if (pg_strncasecmp(text, "RRULE:", 6) == 0)
		text += 6;
	if (strlen(text) > RULE_MAX_LENGTH)
		rule_refuse("It has more than %d bytes.", RULE_MAX_LENGTH);
	copy = pstrdup(text);
	for (char *c = copy; *c != '\0'; c++)
		*c = (char) pg_ascii_toupper((unsigned char) *c);
	rule_split(copy, &read);

	rule = palloc0(sizeof(Rule));
	rule->start = start;
	rule->left = read.values[RULE_COUNT] != NULL ? atoi(read.values[RULE_COUNT]) : -1;
	rule->ends = read.values[RULE_COUNT] != NULL || read.values[RULE_UNTIL] != NULL;
	icalerror_set_errors_are_fatal(false);
	recurrence = icalrecurrencetype_from_string(rule_to_libical(&read));
	if (recurrence.freq == ICAL_NO_RECURRENCE)
		rule_refuse("libical refuses it.");
	if (read.values[RULE_UNTIL] != NULL)
		recurrence.until = rule_to_ical(rule_until(read.values[RULE_UNTIL], zone));
	rule->iterator = icalrecur_iterator_new(recurrence, rule_to_ical(rule_first(&read, start)));
	if (rule->iterator == NULL)
		rule_refuse("libical finds no time that it has.");
	rule->free = (MemoryContextCallback){.func = rule_free, .arg = rule};
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &rule->free);
	return rule;
}

bool
rule_ends(const Rule *rule)
{
	return rule->ends;
}

bool
rule_next(Rule *rule, Timestamp *local)
{
	if (rule->left == 0)
		return false;
	do
	{
		struct icaltimetype next = icalrecur_iterator_next(rule->iterator);
		struct pg_tm tm = {0};

		if (icaltime_is_null_time(next))
			return false;
		tm.tm_year = next.year;
		tm.tm_mon = next.month;
		tm.tm_mday = next.day;
		tm.tm_hour = next.hour;
		tm.tm_min = next.minute;
		tm.tm_sec = next.second;
		if (tm2timestamp(&tm, 0, NULL, local) != 0)
			return false;
	} while (*local < rule->start);
	if (rule->left > 0)
		rule->left--;
	return true;
}
