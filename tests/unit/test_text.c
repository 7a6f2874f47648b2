/*
 * test_text.c - UTF-8 against a decoder written from the definition, and A1 notation there and back.
 */
#include "common/a1.h"
#include "common/edit_codec.h"
#include "tap.h"
#include "common/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a code point; any number below 2^21, also those that are not characters. */
static size_t
encode(uint32_t code, char *to)
{
	if (code < 0x80)
	{
		to[0] = (char) code;
		return 1;
	}
	if (code < 0x800)
	{
		to[0] = (char) (0xC0 | code >> 6);
		to[1] = (char) (0x80 | (code & 0x3F));
		return 2;
	}
	if (code < 0x10000)
	{
		to[0] = (char) (0xE0 | code >> 12);
		to[1] = (char) (0x80 | (code >> 6 & 0x3F));
		to[2] = (char) (0x80 | (code & 0x3F));
		return 3;
	}
	to[0] = (char) (0xF0 | code >> 18);
	to[1] = (char) (0x80 | (code >> 12 & 0x3F));
	to[2] = (char) (0x80 | (code >> 6 & 0x3F));
	to[3] = (char) (0x80 | (code & 0x3F));
	return 4;
}

/* From a heap block of exactly this size. */
static bool
check_tight(const char *data, size_t len, size_t *chars)
{
	char *copy = malloc(len > 0 ? len : 1);
	bool good;

	if (len > 0)
		memcpy(copy, data, len);
	good = utf8_check(copy, len, chars);
	free(copy);
	return good;
}

static void
test_utf8_code_points(void)
{
	bool right = true, cut = true, placed = true;

	for (uint32_t code = 0; code < 0x200000; code++)
	{
		char text[32];
		size_t len = encode(code, text);
		size_t chars = 99;
		bool legal = code != 0 && code < 0x110000 && (code < 0xD800 || code > 0xDFFF);

		right &= utf8_check(text, len, &chars) == legal && (!legal || chars == 1);
		for (size_t part = 1; part < len; part++)
			cut &= !utf8_check(text, part, NULL);
		if (code % 97 == 0)
		{
			/* Behind the ASCII that is read eight bytes at a time. */
			char line[32] = "abcdefghijk";
			size_t before = code % 11;

			memcpy(line + before, text, len);
			placed &= check_tight(line, before + len, &chars) == legal && (!legal || chars == before + 1);
		}
	}
	TAP_OK(right, "exactly the Unicode scalar values except NUL are accepted, each as one character");
	TAP_OK(cut, "a part of a sequence is refused");
	TAP_OK(placed, "so they are behind other text, with nothing read beyond the end");
}

/* All strings of two bytes, by the definition. */
static void
test_utf8_pairs(void)
{
	bool right = true;

	for (unsigned first = 0; first < 256; first++)
	{
		for (unsigned second = 0; second < 256; second++)
		{
			char text[2] = {(char) first, (char) second};
			size_t chars = 0;
			bool ascii = first > 0 && first < 0x80 && second > 0 && second < 0x80;
			bool pair = first >= 0xC2 && first <= 0xDF && (second & 0xC0) == 0x80;

			right &= utf8_check(text, 2, &chars) == (ascii || pair) && chars == (ascii ? 2 : pair ? 1 : 0);
		}
	}
	TAP_OK(right, "all pairs of bytes");
	TAP_OK(!utf8_check("\xE0\x80\xAF", 3, NULL) && !utf8_check("\xF0\x80\x80\xAF", 4, NULL) &&
			   !utf8_check("\xC0\xAF", 2, NULL),
		   "overlong forms are refused");
	TAP_OK(!utf8_check("12345678\0abcdefgh", 17, NULL) && !utf8_check("1234567\0", 8, NULL), "NUL is refused anywhere");
	TAP_OK(utf8_check("", 0, NULL), "nothing is text");
}

/* Every length up to three words with a byte of every kind at every place: NUL, and the first byte of a sequence, which
 * what follows does not continue. */
static void
test_utf8_places(void)
{
	bool plain = true, odd = true;

	for (size_t len = 1; len <= 24; len++)
	{
		char text[24];
		size_t chars = 0;

		memset(text, 'x', sizeof(text));
		plain &= check_tight(text, len, &chars) && chars == len;
		for (size_t at = 0; at < len; at++)
		{
			text[at] = 0;
			odd &= !check_tight(text, len, NULL);
			text[at] = '\xC3';
			odd &= !check_tight(text, len, NULL);
			text[at] = 'x';
		}
	}
	TAP_OK(plain, "plain text of every length is text");
	TAP_OK(odd, "a byte that does not belong is found at every place");
}

static bool
parse(const char *text, uint32_t *row, uint32_t *col)
{
	return a1_parse_cell(text, strlen(text), row, col);
}

static void
test_a1_cells(void)
{
	static const char *const wrong[] = {"",
										"A",
										"1",
										"A0",
										"0",
										"A-1",
										"-A1",
										"A1 ",
										" A1",
										"A1B",
										"A1.5",
										"A+1",
										"XFE1",
										"AAAA1",
										"A16777217",
										"A99999999999999999999",
										"A1:B2",
										"$",
										"$$A1",
										"A$$1",
										"A$",
										"\xC3\x84"
										"1"};
	uint32_t row, col;
	char text[A1_MAX];
	bool back = true;

	TAP_OK(parse("A1", &row, &col) && row == 0 && col == 0, "A1");
	TAP_OK(parse("$b$7", &row, &col) && row == 6 && col == 1, "$b$7");
	TAP_OK(parse("XFD16777216", &row, &col) && row == SHEET_MAX_ROWS - 1 && col == SHEET_MAX_COLS - 1,
		   "XFD16777216 is the last cell");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		TAP_OK(!parse(wrong[i], &row, &col), "\"%s\" is no cell", wrong[i]);
	TAP_OK(!a1_parse_cell("A1\0", 3, &row, &col), "a NUL behind it is not overlooked");
	for (uint32_t c = 0; c < SHEET_MAX_COLS; c++)
	{
		uint32_t r = c * 1021 % SHEET_MAX_ROWS;

		a1_format_cell(text, r, c);
		back &= parse(text, &row, &col) && row == r && col == c;
	}
	TAP_OK(back, "every column there and back");
	a1_format_cell(text, UINT32_MAX, UINT32_MAX);
	TAP_OK(strlen(text) < A1_MAX, "the largest numbers fit: %s", text);
}

static bool
range_is(const char *text, uint32_t row0, uint32_t col0, uint32_t row1, uint32_t col1)
{
	A1Range range;

	return a1_parse_range(text, strlen(text), &range) && range.row0 == row0 && range.col0 == col0 &&
		   range.row1 == row1 && range.col1 == col1;
}

static void
test_a1_ranges(void)
{
	static const char *const wrong[] = {"",	   ":",	   "A1:",  ":B2",	   "A",		"3",	 "A:3",
										"3:A", "A1:B", "A1:2", "A1:B2:C3", "A1;B2", "A1:B2 "};
	A1Range range;

	TAP_OK(range_is("A1:C10", 0, 0, 9, 2), "A1:C10");
	TAP_OK(range_is("c10:a1", 0, 0, 9, 2), "corners in any order");
	TAP_OK(range_is("A10:C1", 0, 0, 9, 2), "corners of the other diagonal");
	TAP_OK(range_is("B2", 1, 1, 1, 1), "a cell is a range");
	TAP_OK(range_is("B:D", 0, 1, SHEET_MAX_ROWS - 1, 3), "whole columns");
	TAP_OK(range_is("$5:3", 2, 0, 4, SHEET_MAX_COLS - 1), "whole rows");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		TAP_OK(!a1_parse_range(wrong[i], strlen(wrong[i]), &range), "\"%s\" is no range", wrong[i]);
}

int
main(void)
{
	test_utf8_code_points();
	test_utf8_pairs();
	test_utf8_places();
	test_a1_cells();
	test_a1_ranges();
	return tap_done();
}
