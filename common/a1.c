/*
 * a1.c - A1 notation to 0-based rows and columns, and back.
 */
#include "common/a1.h"

#include "common/edit_codec.h"

#include <stdio.h>
#include <string.h>

/* 1 for A to 26 for Z, in either case; 0 for anything else. Not by isalpha(), which a database's locale changes. */
static uint32_t
a1_letter(char letter)
{
	unsigned char upper = (unsigned char) letter & 0xDF;

	return upper >= 'A' && upper <= 'Z' ? upper - 'A' + 1u : 0;
}

static bool
a1_is_digit(char digit)
{
	return digit >= '0' && digit <= '9';
}

/* Letters of a column at *pos; false when there are none or it is past the limit. */
static bool
a1_take_column(const char **pos, const char *end, uint32_t *col)
{
	uint32_t value = 0;
	const char *p = *pos;

	if (p < end && *p == '$')
		p++;
	if (p == end || a1_letter(*p) == 0)
		return false;
	for (; p < end && a1_letter(*p) > 0; p++)
	{
		value = value * 26 + a1_letter(*p);
		if (value > SHEET_MAX_COLS)
			return false;
	}
	*pos = p;
	*col = value - 1;
	return true;
}

/* Digits of a row at *pos; false when there are none, it is 0 or past the limit. */
static bool
a1_take_row(const char **pos, const char *end, uint32_t *row)
{
	uint32_t value = 0;
	const char *p = *pos;

	if (p < end && *p == '$')
		p++;
	if (p == end || !a1_is_digit(*p))
		return false;
	for (; p < end && a1_is_digit(*p); p++)
	{
		value = value * 10 + (uint32_t) (*p - '0');
		if (value > SHEET_MAX_ROWS)
			return false;
	}
	if (value == 0)
		return false;
	*pos = p;
	*row = value - 1;
	return true;
}

bool
a1_parse_cell(const char *text, size_t len, uint32_t *row, uint32_t *col)
{
	const char *end = text + len;

	return a1_take_column(&text, end, col) && a1_take_row(&text, end, row) && text == end;
}

/* One corner of a range; a missing row or column is told, not guessed. */
static bool
a1_take_corner(const char **pos, const char *end, uint32_t *row, bool *has_row, uint32_t *col, bool *has_col)
{
	*has_col = a1_take_column(pos, end, col);
	*has_row = a1_take_row(pos, end, row);
	return *has_col || *has_row;
}

static void
a1_order(uint32_t *low, uint32_t *high)
{
	if (*low > *high)
	{
		uint32_t swap = *low;

		*low = *high;
		*high = swap;
	}
}

bool
a1_parse_range(const char *text, size_t len, A1Range *range)
{
	const char *end = text + len;
	bool has_row0, has_col0, has_row1, has_col1;

	*range = (A1Range){0};
	if (!a1_take_corner(&text, end, &range->row0, &has_row0, &range->col0, &has_col0))
		return false;
	if (text == end)
	{
		if (!has_row0 || !has_col0)
			return false;
		range->row1 = range->row0;
		range->col1 = range->col0;
		return true;
	}
	if (*text++ != ':' || !a1_take_corner(&text, end, &range->row1, &has_row1, &range->col1, &has_col1) ||
		text != end || has_row0 != has_row1 || has_col0 != has_col1)
		return false;
	if (!has_row0)
	{
		range->row0 = 0;
		range->row1 = SHEET_MAX_ROWS - 1;
	}
	if (!has_col0)
	{
		range->col0 = 0;
		range->col1 = SHEET_MAX_COLS - 1;
	}
	a1_order(&range->row0, &range->row1);
	a1_order(&range->col0, &range->col1);
	return true;
}

void
a1_format_column(char *to, uint32_t col)
{
	char letters[8];
	int count = 0;

	for (uint64_t left = (uint64_t) col + 1; left > 0; left = (left - 1) / 26)
		letters[count++] = (char) ('A' + (left - 1) % 26);
	for (int i = 0; i < count; i++)
		to[i] = letters[count - 1 - i];
	to[count] = '\0';
}

void
a1_format_cell(char *to, uint32_t row, uint32_t col)
{
	a1_format_column(to, col);
	snprintf(to + strlen(to), A1_MAX - strlen(to), "%llu", (unsigned long long) row + 1);
}

void
a1_format_range(char *to, const A1Range *range)
{
	bool all_rows = range->row0 == 0 && range->row1 == SHEET_MAX_ROWS - 1;
	bool all_cols = range->col0 == 0 && range->col1 == SHEET_MAX_COLS - 1;
	char last[A1_MAX];

	if (all_cols)
	{
		snprintf(to, A1_RANGE_MAX, "%llu:%llu", (unsigned long long) range->row0 + 1,
				 (unsigned long long) range->row1 + 1);
		return;
	}
	if (all_rows)
	{
		a1_format_column(to, range->col0);
		a1_format_column(last, range->col1);
	}
	else
	{
		a1_format_cell(to, range->row0, range->col0);
		a1_format_cell(last, range->row1, range->col1);
		if (range->row0 == range->row1 && range->col0 == range->col1)
			return;
	}
	strcat(strcat(to, ":"), last);
}
