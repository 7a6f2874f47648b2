/*
 * fuzz_a1.c - cells and ranges in A1 notation, against a reading by regular expressions and plain arithmetic; and what
 * is read is written back the same.
 */
#include "common/a1.h"
#include "common/edit_codec.h"

#include <regex.h>

#include "fuzz.h"

typedef struct Corner
{
	bool has_col, has_row;
	double col, row; /* 1-based; doubles, so that nothing overflows */
} Corner;

static regex_t corner_form;

static Corner
corner_of(const char *text, const regmatch_t *match)
{
	Corner corner = {false, false, 0, 0};

	for (regoff_t i = match[1].rm_so; i < match[1].rm_eo; i++, corner.has_col = true)
		corner.col = corner.col * 26 + ((text[i] | 0x20) - 'a') + 1;
	for (regoff_t i = match[2].rm_so; i < match[2].rm_eo; i++, corner.has_row = true)
		corner.row = corner.row * 10 + (text[i] - '0');
	return corner;
}

/* "$B$7", "B", "$7"; false for anything else, and outside a sheet. */
static bool
corner_read(const char *text, Corner *corner)
{
	regmatch_t match[3];

	if (*text == '\0' || regexec(&corner_form, text, 3, match, 0) != 0)
		return false;
	*corner = corner_of(text, match);
	return (corner->has_col || corner->has_row) && (!corner->has_col || corner->col <= SHEET_MAX_COLS) &&
		   (!corner->has_row || (corner->row >= 1 && corner->row <= SHEET_MAX_ROWS));
}

static bool
range_read(char *text, Corner *first, Corner *last)
{
	char *colon = strchr(text, ':');
	bool good;

	if (colon == NULL)
	{
		good = corner_read(text, first) && first->has_col && first->has_row;
		*last = *first;
		return good;
	}
	*colon = '\0';
	good = corner_read(text, first) && corner_read(colon + 1, last) && first->has_col == last->has_col &&
		   first->has_row == last->has_row;
	*colon = ':';
	return good;
}

static void
check_side(uint32_t low, uint32_t high, bool given, double first, double last, uint32_t limit)
{
	FUZZ_CHECK(low <= high && high < limit);
	if (given)
		FUZZ_CHECK(low + 1 == (first < last ? first : last) && high + 1 == (first < last ? last : first));
	else
		FUZZ_CHECK(low == 0 && high == limit - 1);
}

static void
check_back(uint32_t row, uint32_t col)
{
	char text[A1_MAX];
	uint32_t row_again, col_again;

	a1_format_cell(text, row, col);
	FUZZ_CHECK(a1_parse_cell(text, strlen(text), &row_again, &col_again) && row_again == row && col_again == col);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = fuzz_copy(data, size), *text = fuzz_text(data, size);
	bool nul = memchr(data, '\0', size) != NULL, good;
	uint32_t row, col;
	Corner first, last;
	A1Range range;

	if (corner_form.re_nsub == 0)
		FUZZ_CHECK(regcomp(&corner_form, "^\\$?([A-Za-z]+)?\\$?([0-9]+)?$", REG_EXTENDED) == 0);
	/* A dollar sign stands before something: the expression above would take one alone. */
	good = !nul && range_read(text, &first, &last) && strstr(text, "$$") == NULL && strstr(text, "$:") == NULL &&
		   (size == 0 || text[size - 1] != '$');
	FUZZ_CHECK(a1_parse_range(exact, size, &range) == good);
	if (good)
	{
		check_side(range.row0, range.row1, first.has_row, first.row, last.row, SHEET_MAX_ROWS);
		check_side(range.col0, range.col1, first.has_col, first.col, last.col, SHEET_MAX_COLS);
		check_back(range.row0, range.col0);
		check_back(range.row1, range.col1);
	}
	good = good && strchr(text, ':') == NULL;
	FUZZ_CHECK(a1_parse_cell(exact, size, &row, &col) == good);
	if (good)
		FUZZ_CHECK(row == range.row0 && col == range.col0);
	free(exact);
	free(text);
	return 0;
}
