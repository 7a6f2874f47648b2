/* test_cell_format.c - contents as values, and numbers in formats, as the grid of the page shows them. */
#include "tests/unit/tap.h"
#include "ws/cache/cell_format.h"

#include <string.h>

static void
check_kinds(void)
{
	static const struct
	{
		const char *content;
		CellKind kind;
		double number;
	} cases[] = {
		{"12", CELL_NUMBER, 12},
		{"-1.50", CELL_NUMBER, -1.5},
		{"+2e3", CELL_NUMBER, 2000},
		{"0.001", CELL_NUMBER, 0.001},
		{"007", CELL_TEXT, 0},
		{"1,000", CELL_TEXT, 0},
		{"1234567890123456", CELL_TEXT, 0},
		{"1.", CELL_TEXT, 0},
		{".5", CELL_TEXT, 0},
		{"1e", CELL_TEXT, 0},
		{"1e999", CELL_TEXT, 0},
		{"0x10", CELL_TEXT, 0},
		{"inf", CELL_TEXT, 0},
		{"'12", CELL_TEXT, 0},
		{"TRUE", CELL_BOOLEAN, 0},
		{"true", CELL_TEXT, 0},
		{"2024-01-31", CELL_DATE, 45322},
		{"1900-01-01", CELL_DATE, 1},
		{"1900-02-28", CELL_DATE, 59},
		{"1900-03-01", CELL_DATE, 61},
		{"2024-02-30", CELL_TEXT, 0},
		{"1899-12-31", CELL_TEXT, 0},
		{"2024-01-31 12:00", CELL_DATE, 45322.5},
		{"2024-01-31T06:00:00", CELL_DATE, 45322.25},
		{"2024-01-31 24:00", CELL_TEXT, 0},
		{"10:30", CELL_TIME, 0.4375},
		{"36:00:00.5", CELL_TIME, 1.5 + 0.5 / 86400},
		{"10:60", CELL_TEXT, 0},
		{"10:30:", CELL_TEXT, 0},
		{"", CELL_TEXT, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		EditText content = {cases[i].content, (uint32_t) strlen(cases[i].content)};
		CellValue value = cell_value(content);
		double wrong = value.number - cases[i].number;

		TAP_OK(value.kind == cases[i].kind && (value.kind == CELL_TEXT || (wrong < 1e-9 && wrong > -1e-9)),
			   "content %s", cases[i].content);
	}
}

static void
check_formats(void)
{
	static const struct
	{
		double number;
		const char *pattern, *shown; /* NULL: the format is not known */
	} cases[] = {
		{0.256, "0%", "26%"},
		{0.256, "0.0%", "25.6%"},
		{1234567.891, "#,##0.00", "1,234,567.89"},
		{123, "#,##0", "123"},
		{1000, "#,##0", "1,000"},
		{-1234.5, "#,##0.00", "-1,234.50"},
		{-0.001, "0.00", "0.00"},
		{1.005, "0.00", "1.01"},
		{0.5, "0", "1"},
		{0.5, "#.##", ".5"},
		{5, "#.##", "5."},
		{7, "000", "007"},
		{1234, "00,000", "01,234"},
		{1.5, "0.0##", "1.5"},
		{1500000, "0.0,,\"M\"", "1.5M"},
		{-5, "0;(0)", "(5)"},
		{-5, "#,##0_);[Red](#,##0)", "(5)"},
		{0, "0;-0;\"none\"", "none"},
		{5, "0;;", "5"},
		{-5, "0;;", ""},
		{12, "\"a;b \"0", "a;b 12"},
		{12, "[$€-407] #,##0.00", "€ 12.00"},
		{12, "¥0", "¥12"},
		{12, "$#,##0", "$12"},
		{-12, "$#,##0", "-$12"},
		{12, "0\\x", "12x"},
		{12, "0.00E+00", NULL},
		{0.5, "# ?/?", NULL},
		{12, "[>10]0", NULL},
		{12, "000-00", NULL},
		{12, "General", NULL},
		{12, "@", NULL},
		{1e20, "0", NULL},
		{45322, "yyyy-mm-dd", "2024-01-31"},
		{45322, "d/m/yy", "31/1/24"},
		{45322, "dddd, d mmmm yyyy", "Wednesday, 31 January 2024"},
		{45322, "ddd mmm", "Wed Jan"},
		{45322, "yyyy\"年\"m\"月\"d\"日\"", "2024年1月31日"},
		{45322.4375, "yyyy-mm-dd hh:mm", "2024-01-31 10:30"},
		{45322.75, "h:mm AM/PM", "6:00 PM"},
		{45322.0, "h AM/PM", "12 AM"},
		{0.4375, "h:mm:ss", "10:30:00"},
		{1.5, "[h]:mm", "36:00"},
		{0.5, "[mm]:ss", "720:00"},
		{0.000011574, "mm:ss.000", "00:01.000"},
		{60, "yyyy-mm-dd", "1900-02-29"},
		{1, "yyyy-mm-dd", "1900-01-01"},
		{-1, "yyyy", NULL},
		{1, "\"unclosed", NULL},
		{1, "[", NULL},
		{1, "\\", NULL},
		{1, "", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		Buf to = {NULL, 0, 0};
		bool known = cell_format_put(&to, cases[i].number, cases[i].pattern, strlen(cases[i].pattern));
		size_t len = cases[i].shown != NULL ? strlen(cases[i].shown) : 0;

		TAP_OK(known == (cases[i].shown != NULL) && to.len == len &&
				   (len == 0 || memcmp(to.data, cases[i].shown, len) == 0),
			   "%g in %s: %.*s", cases[i].number, cases[i].pattern, (int) to.len, to.len > 0 ? to.data : "");
		buf_free(&to);
	}
}

/* No format, however broken, is read beyond its end. */
static void
check_random(void)
{
	static const char characters[] = "0#?.,;%\"[]\\_*@ymdhsAMP/:$- e";
	uint32_t seed = 7;
	bool bounded = true;

	for (int i = 0; i < 200000; i++)
	{
		char pattern[12];
		size_t len = 0;
		Buf to = {NULL, 0, 0};

		for (size_t n = (seed = seed * 1664525 + 1013904223) >> 28; len < n && len < sizeof(pattern); len++)
			pattern[len] = characters[((seed = seed * 1664525 + 1013904223) >> 16) % (sizeof(characters) - 1)];
		(void) cell_format_put(&to, (double) (int32_t) seed / 1000, pattern, len);
		bounded = bounded && to.len < 400;
		buf_free(&to);
	}
	TAP_OK(bounded, "random formats");
}

int
main(void)
{
	check_kinds();
	check_formats();
	check_random();
	return tap_done();
}
