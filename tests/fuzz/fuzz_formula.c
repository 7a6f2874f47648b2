/*
 * fuzz_formula.c - any bytes as a formula, and a change of rows or columns. What must hold:
 *
 *  - moving nothing changes nothing, and what is deleted right after it was inserted leaves the formula as it was;
 *  - only references change: with each digit, letter and #REF! of references taken away, both texts are the same;
 *  - UTF-8 stays UTF-8, and the new text is not too long;
 *  - a sheet that is renamed has the new name everywhere;
 *  - deleting lines in two steps is the same as in one.
 */
#include "common/formula_shift.h"
#include "common/utf8.h"

#include <strings.h>

#include "fuzz.h"

#define TEXT_MAX SHEET_MAX_CONTENT_BYTES

static bool names_meant; /* whether names of sheets mean the one that changes */

/* All names do but those that end with "y". */
static bool
is_short(const void *arg, const char *name, size_t len)
{
	FUZZ_CHECK(len > 0 && len <= FORMULA_NAME_MAX);
	return name[len - 1] != 'y';
}

static FormulaShift
shift(const char *text, uint32_t len, const LineChange *change, char *to, uint32_t *to_len)
{
	char *exact = fuzz_copy(text, len);
	FormulaChange call = {
		.move = formula_move_lines, .move_arg = change, .own = true, .is_name = names_meant ? is_short : NULL};
	FormulaShift done = formula_shift((EditText){exact, len}, &call, to, to_len);

	if (done == FORMULA_SAME)
	{
		memcpy(to, text, len);
		*to_len = len;
	}
	free(exact);
	return done;
}

static bool
move_nothing(const void *arg, bool rows, uint32_t *first, uint32_t *last)
{
	FUZZ_CHECK(*first <= *last && *last < (rows ? SHEET_MAX_ROWS : SHEET_MAX_COLS));
	return true;
}

/* What is not of a word that could be a corner, without what replaces one. */
static size_t
skeleton(const char *text, size_t len, char *to)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
	{
		char c = text[i];

		if (strchr(":$#! \t\r\n\xC2\xA0\xE3\x80", c) == NULL && !(c >= '0' && c <= '9') &&
			!((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
			to[n++] = c;
	}
	return n;
}

static void
check_rest(const char *text, size_t len, const char *result, size_t result_len)
{
	static char a[TEXT_MAX], b[TEXT_MAX];
	size_t n = skeleton(text, len, a);

	FUZZ_CHECK(skeleton(result, result_len, b) == n && memcmp(a, b, n) == 0);
}

static int
count(const char *text, size_t len, const char *word)
{
	int n = 0;

	for (size_t i = 0; i + strlen(word) <= len; i++)
		n += strncasecmp(text + i, word, strlen(word)) == 0;
	return n;
}

/* Whether a change has made references to words that a further change cannot move: #REF!, which replaces a name that
 * may have had one in it, #N/A from #N/B1, or LOG10, which is a function or a reference, depending on what follows
 * (formula_shift.c). */
static bool
has_lost(const char *before, size_t before_len, const char *text, size_t len)
{
	return count(text, len, "#REF!") != (names_meant ? 0 : count(before, before_len, "#REF!")) ||
		   count(text, len, "#N/A") != count(before, before_len, "#N/A") || count(text, len, "LOG10") > 0;
}

/* What was renamed has the new name, and no name is left that meant the sheet. */
static void
check_renaming(const char *text, uint32_t len)
{
	static char to[TEXT_MAX], again[TEXT_MAX];
	const FormulaChange first = {.is_name = is_short, .new_name = "'xy'"},
						second = {.is_name = is_short, .new_name = "x"};
	uint32_t to_len, again_len;

	if (formula_shift((EditText){text, len}, &first, to, &to_len) != FORMULA_SHIFTED)
		return;
	FUZZ_CHECK(formula_has_names((EditText){text, len}));
	FUZZ_CHECK(!utf8_check(text, len, NULL) || utf8_check(to, to_len, NULL));
	FUZZ_CHECK(memmem(to, to_len, "'xy'!", 5) != NULL);
	FUZZ_CHECK(formula_shift((EditText){to, to_len}, &second, again, &again_len) == FORMULA_SAME);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char once[TEXT_MAX], again[TEXT_MAX], both[TEXT_MAX];
	uint32_t once_len, again_len, both_len, len;
	const FormulaChange nothing = {.move = move_nothing, .own = true, .is_name = is_short};
	LineChange change, back;
	const char *text;
	FormulaShift done;

	if (size < 6 || size - 5 > TEXT_MAX)
		return 0;
	change.rows = data[0] & 1;
	change.insert = data[0] & 2;
	change.at = data[0] & 4 ? (uint32_t) (data[1] << 16 | data[2] << 8 | data[3]) : data[3];
	change.at %= change.rows ? SHEET_MAX_ROWS : SHEET_MAX_COLS;
	change.n = 1 + data[4] % 200;
	if (change.n > (change.rows ? SHEET_MAX_ROWS : SHEET_MAX_COLS) - change.at)
		change.n = 1;
	text = (const char *) data + 5;
	len = (uint32_t) size - 5;
	names_meant = data[0] & 8;
	FUZZ_CHECK(formula_shift((EditText){text, len}, &nothing, once, &once_len) == FORMULA_SAME);
	check_renaming(text, len);
	done = shift(text, len, &change, once, &once_len);
	if (done == FORMULA_TOO_LONG)
		return 0;
	FUZZ_CHECK(done == FORMULA_SAME || once_len != len || memcmp(once, text, len) != 0);
	FUZZ_CHECK(!utf8_check(text, len, NULL) || utf8_check(once, once_len, NULL));
	if (!names_meant || !has_lost(text, len, once, once_len)) /* #REF! replaces a name, too */
		check_rest(text, len, once, once_len);
	if (change.insert && !has_lost(text, len, once, once_len) && change.at < 10000)
	{
		back = change;
		back.insert = false;
		done = shift(once, once_len, &back, again, &again_len);
		/* Letters' case follows the first one; what comes near the end of sheets may be pushed beyond it. */
		FUZZ_CHECK(done == FORMULA_TOO_LONG || (again_len == len && strncasecmp(again, text, len) == 0) ||
				   memmem(text, len, "167772", 6) != NULL || memchr(text, 'X', len) != NULL ||
				   memchr(text, 'x', len) != NULL);
	}
	else if (!change.insert && change.n > 1)
	{
		back = change;
		back.n = 1;
		change.n--;
		if (shift(text, len, &back, again, &again_len) == FORMULA_TOO_LONG ||
			shift(again, again_len, &change, both, &both_len) == FORMULA_TOO_LONG)
			return 0;
		FUZZ_CHECK(has_lost(text, len, again, again_len) ||
				   (both_len == once_len && memcmp(both, once, once_len) == 0));
	}
	return 0;
}
