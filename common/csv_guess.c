/*
 * csv_guess.c - which separator a text has.
 *
 * In the first CSV_HEAD_BYTES, the separators , ; tab and | are counted in each record that is complete and not empty.
 * Those within quotes do not count; a quote begins a quoted field behind one of the four, or at the start of a record.
 * Each candidate has its most frequent number in a record, other than 0, and the share of records with that number.
 *
 * 1. A candidate whose number occurs in at most half of the records is dropped.
 * 2. If at least half of the commas stand between two digits, and another candidate is left, the comma is dropped: it
 * is a decimal comma.
 * 3. The candidate with the largest share is taken; of equal ones that with the larger number, then the first one
 * above.
 * 4. If no candidate is left, the comma is taken.
 */
#include "common/csv.h"

#include <string.h>

#define GUESS_COUNTS 256 /* numbers of a separator in a record; larger ones count as the largest */

static const char guess_separators[] = ",;\t|";
#define GUESS_COUNT (sizeof(guess_separators) - 1)

typedef struct Guess
{
	uint32_t records;
	uint32_t of_count[GUESS_COUNT][GUESS_COUNTS]; /* [i][n]: records with n of separator i */
	uint32_t count[GUESS_COUNT];				  /* in this record */
	uint32_t commas, decimals;					  /* commas outside quotes, and those between digits */
} Guess;

static inline bool
guess_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void
guess_end_record(Guess *guess)
{
	for (size_t i = 0; i < GUESS_COUNT; i++)
	{
		uint32_t count = guess->count[i];

		guess->of_count[i][count < GUESS_COUNTS ? count : GUESS_COUNTS - 1]++;
		guess->count[i] = 0;
	}
	guess->records++;
}

/* Counts in all records. whole: the last one is complete. */
static void
guess_count(Guess *guess, const char *text, const char *end, int quote, bool whole)
{
	bool quoted = false, field_begins = true, empty = true;
	const char *closed = NULL; /* behind the last quote that may end a field */

	for (const char *p = text; p < end; p++)
	{
		const char *separator;

		if (quoted)
		{
			quoted = *p != quote;
			closed = p + 1;
			continue;
		}
		if (*p == '\n' || *p == '\r')
		{
			if (!empty)
				guess_end_record(guess);
			empty = field_begins = true;
			continue;
		}
		empty = false;
		if (*p == quote && (field_begins || p == closed))
		{
			quoted = true; /* a field begins, or goes on: the quote before was the first one of two */
			field_begins = false;
			continue;
		}
		separator = *p != '\0' ? strchr(guess_separators, *p) : NULL;
		field_begins = separator != NULL || (field_begins && *p == ' ');
		if (separator == NULL)
			continue;
		guess->count[separator - guess_separators]++;
		if (*p == ',')
		{
			guess->commas++;
			guess->decimals += p > text && guess_is_digit(p[-1]) && p + 1 < end && guess_is_digit(p[1]);
		}
	}
	if (whole && !empty && !quoted)
		guess_end_record(guess);
}

/* The most frequent number of a separator, and how many records have it. */
static uint32_t
guess_mode(const Guess *guess, size_t i, uint32_t *records)
{
	uint32_t mode = 1;

	for (uint32_t count = 2; count < GUESS_COUNTS; count++)
	{
		if (guess->of_count[i][count] >= guess->of_count[i][mode])
			mode = count;
	}
	*records = guess->of_count[i][mode];
	return mode;
}

static char
guess_best(const Guess *guess, int quote)
{
	size_t best = GUESS_COUNT;
	uint32_t best_records = 0, best_mode = 0, records;

	for (size_t i = 0; i < GUESS_COUNT; i++)
	{
		uint32_t mode = guess_mode(guess, i, &records);
		bool decimal = best == 0 && guess->decimals * 2 >= guess->commas;

		if (records * 2 <= guess->records || guess_separators[i] == quote)
			continue;
		if (best == GUESS_COUNT || decimal || records > best_records || (records == best_records && mode > best_mode))
		{
			best = i;
			best_records = records;
			best_mode = mode;
		}
	}
	return best == GUESS_COUNT ? ',' : guess_separators[best];
}

/* A first line as sep=; that Excel reads. If the separator is given, the line names the same one. */
static bool
guess_take_line(CsvReader *reader, bool guess)
{
	const char *p = reader->pos;

	if (reader->end - p < 5 || memcmp(p, "sep=", 4) != 0 || p[4] == reader->dialect.quote)
		return false;
	if (p[4] != '\t' && (p[4] < ' ' || p[4] > '~'))
		return false;
	if ((p + 5 < reader->end && p[5] != '\r' && p[5] != '\n') || (!guess && p[4] != reader->dialect.separator))
		return false;
	reader->dialect.separator = p[4];
	p += 5;
	if (p < reader->end)
		p += *p == '\r' && p + 1 < reader->end && p[1] == '\n' ? 2 : 1;
	reader->pos = p;
	reader->line++;
	return true;
}

void
csv_guess(CsvReader *reader, const CsvOptions *options)
{
	Guess guess = {0};
	const char *end = reader->end;
	bool whole = !reader->more;

	if (!options->sep_line || reader->pos == NULL || guess_take_line(reader, options->guess) || !options->guess)
		return;
	if (end - reader->pos > CSV_HEAD_BYTES)
	{
		end = reader->pos + CSV_HEAD_BYTES;
		whole = false;
	}
	guess_count(&guess, reader->pos, end, reader->dialect.quote, whole);
	reader->dialect.separator = guess_best(&guess, reader->dialect.quote);
}
