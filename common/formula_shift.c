/*
 * formula_shift.c - rewrites the references of a formula when rows or columns are inserted or deleted.
 *
 * One pass from left to right. Words are runs of characters that names, numbers and references have; everything else is
 * a quoted part, which is skipped, or a separator. A word that is a corner (A1, $B, 7), and the corner behind a colon,
 * are a reference, unless "(" or "!" follows, or "!" precedes.
 */
#include "common/formula_shift.h"

#include "common/a1.h"
#include "common/extent.h"

#include <stdio.h>
#include <string.h>

#define FORMULA_REF "#REF!"

typedef struct Shift
{
	const char *pos, *end;
	const char *copied; /* `to` has the text up to here, once something has changed */
	char *to;
	uint32_t len; /* of `to` */
	bool too_long;
	FormulaMove move;
	const void *arg;
} Shift;

/* A corner of a reference. */
typedef struct Corner
{
	const char *letters, *digits; /* NULL: none */
	const char *letters_end, *end;
	uint32_t row, col;
} Corner;

/* ---- output ---- */

static void
shift_put(Shift *shift, const char *text, size_t len)
{
	if (len > SHEET_MAX_CONTENT_BYTES - shift->len)
		shift->too_long = true;
	else
	{
		memcpy(shift->to + shift->len, text, len);
		shift->len += (uint32_t) len;
	}
}

static void
shift_replace(Shift *shift, const char *from, const char *till, const char *text)
{
	shift_put(shift, shift->copied, (size_t) (from - shift->copied));
	shift_put(shift, text, strlen(text));
	shift->copied = till;
}

/* ---- words ---- */

/* NUL is none. Not by isalpha(), which a locale changes. */
static bool
is_letter(char c)
{
	return ((unsigned char) c & 0xDF) >= 'A' && ((unsigned char) c & 0xDF) <= 'Z';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The length of a space at p; 0: there is none. No-break and ideographic spaces come with pasted texts. */
static size_t
space_at(const char *p, const char *end)
{
	if (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		return 1;
	if (end - p >= 2 && memcmp(p, "\xC2\xA0", 2) == 0)
		return 2;
	return end - p >= 3 && memcmp(p, "\xE3\x80\x80", 3) == 0 ? 3 : 0;
}

static const char *
skip_spaces(const char *p, const char *end)
{
	for (size_t len; (len = space_at(p, end)) > 0;)
		p += len;
	return p;
}

static bool
is_in_word(char c)
{
	return is_letter(c) || is_digit(c) || (unsigned char) c >= 0x80 || (c != '\0' && strchr("_.$\\?~`|", c) != NULL);
}

static const char *
word_end(const char *p, const char *end)
{
	while (p < end && is_in_word(*p) && space_at(p, end) == 0)
		p++;
	return p;
}

/* Whether the word that ends here is the name of a function, or of a sheet. */
static bool
is_name_before(const char *p, const char *end)
{
	const char *next = skip_spaces(p, end);

	return (p < end && *p == '!') || (next < end && *next == '(');
}

/* ---- corners ---- */

static bool
corner_take_letters(Corner *corner, const char **pos, const char *end)
{
	const char *p = *pos + (*pos < end && **pos == '$');
	uint32_t col = 0;

	if (p == end || !is_letter(*p))
		return true;
	corner->letters = p;
	for (; p < end && is_letter(*p) && col <= SHEET_MAX_COLS; p++)
		col = col * 26 + (((unsigned char) *p & 0xDF) - 'A' + 1u);
	corner->letters_end = *pos = p;
	corner->col = col - 1;
	return col <= SHEET_MAX_COLS;
}

static bool
corner_take_digits(Corner *corner, const char **pos, const char *end)
{
	const char *p = *pos + (*pos < end && **pos == '$');
	uint32_t row = 0;

	if (p == end || !is_digit(*p))
		return true;
	corner->digits = p;
	for (; p < end && is_digit(*p) && row <= SHEET_MAX_ROWS; p++)
		row = row * 10 + (uint32_t) (*p - '0');
	*pos = p;
	corner->row = row - 1;
	return *corner->digits != '0' && row <= SHEET_MAX_ROWS;
}

/* Reads a whole word. Returns false if it is no corner. */
static bool
corner_read(Corner *corner, const char *word, const char *end)
{
	*corner = (Corner){.end = end};
	return corner_take_letters(corner, &word, end) && corner_take_digits(corner, &word, end) && word == end &&
		   (corner->letters != NULL || corner->digits != NULL);
}

/* Univer, whose functions the page has, takes this word for the function's name alone. */
static bool
word_is_log10(const char *word, const char *end)
{
	static const char name[] = "LOG10";

	if (end - word != sizeof(name) - 1)
		return false;
	for (size_t i = 0; i < sizeof(name) - 1; i++)
		if (word[i] != name[i] && word[i] != (name[i] | 0x20))
			return false;
	return true;
}

static void
corner_write(Shift *shift, const Corner *corner, uint32_t row, uint32_t col)
{
	char text[A1_MAX];

	if (corner->letters != NULL && col != corner->col)
	{
		a1_format_column(text, col);
		if (*corner->letters >= 'a')
			for (char *letter = text; *letter != '\0'; letter++)
				*letter |= 0x20;
		shift_replace(shift, corner->letters, corner->letters_end, text);
	}
	if (corner->digits != NULL && row != corner->row)
	{
		snprintf(text, sizeof(text), "%u", (unsigned) row + 1);
		shift_replace(shift, corner->digits, corner->end, text);
	}
}

/* ---- references ---- */

/* Moves the rows (columns) between two corners, whichever comes first. All rows of sheets stay all rows. */
static bool
shift_lines(const Shift *shift, bool rows, uint32_t *a, uint32_t *b)
{
	uint32_t *first = *a <= *b ? a : b, *last = *a <= *b ? b : a;

	if (*first == 0 && *last == (rows ? SHEET_MAX_ROWS : SHEET_MAX_COLS) - 1)
		return true;
	return shift->move(shift->arg, rows, first, last);
}

/* word: where the reference begins. b: the same corner for a single cell. */
static void
shift_reference(Shift *shift, const char *word, const Corner *a, const Corner *b)
{
	uint32_t rows[2] = {a->row, b->row}, cols[2] = {a->col, b->col};

	if ((a->digits != NULL && !shift_lines(shift, true, &rows[0], &rows[1])) ||
		(a->letters != NULL && !shift_lines(shift, false, &cols[0], &cols[1])))
	{
		shift_replace(shift, word, b->end, FORMULA_REF);
		return;
	}
	corner_write(shift, a, rows[0], cols[0]);
	if (b != a)
		corner_write(shift, b, rows[1], cols[1]);
}

/* Reads the corner behind a colon. Returns false if there is none. */
static bool
corner_read_second(Corner *corner, const char *p, const char *end)
{
	const char *colon = skip_spaces(p, end), *word, *till;

	if (colon == end || *colon != ':')
		return false;
	word = skip_spaces(colon + 1, end);
	till = word_end(word, end);
	return till > word && !is_name_before(till, end) && corner_read(corner, word, till);
}

static void
shift_word(Shift *shift)
{
	const char *word = shift->pos;
	Corner a, b;

	shift->pos = word_end(word, shift->end);
	if (is_name_before(shift->pos, shift->end) || !corner_read(&a, word, shift->pos))
		return;
	if (corner_read_second(&b, shift->pos, shift->end) && (a.letters == NULL) == (b.letters == NULL) &&
		(a.digits == NULL) == (b.digits == NULL))
	{
		shift->pos = b.end;
		shift_reference(shift, word, &a, &b);
	}
	else if (a.letters != NULL && a.digits != NULL && !word_is_log10(word, a.end))
		shift_reference(shift, word, &a, &a);
}

/* Behind the "!" of a sheet's name: the reference there is not of this sheet. */
static void
skip_qualified(Shift *shift)
{
	Corner corner;

	shift->pos = word_end(shift->pos, shift->end);
	if (corner_read_second(&corner, shift->pos, shift->end))
		shift->pos = corner.end;
}

/* ---- quoted parts ---- */

/* From an opening quotation mark to behind the closing one; doubled ones are text. Returns false if there is none. */
static bool
skip_quoted(Shift *shift)
{
	char mark = *shift->pos++;

	while (shift->pos < shift->end)
	{
		if (*shift->pos++ != mark)
			continue;
		if (shift->pos == shift->end || *shift->pos != mark)
			return true;
		shift->pos++;
	}
	return false;
}

/* From "[" to behind its "]". An apostrophe escapes the next character there. */
static bool
skip_brackets(Shift *shift)
{
	uint32_t depth = 0;

	while (shift->pos < shift->end)
	{
		char c = *shift->pos++;

		if (c == '\'' && shift->pos < shift->end)
			shift->pos++;
		depth += c == '[';
		if (c == ']' && --depth == 0)
			return true;
	}
	return false;
}

/* From "{" to behind the next "}". */
static bool
skip_braces(Shift *shift)
{
	while (shift->pos < shift->end)
	{
		if (*shift->pos == '"')
		{
			if (!skip_quoted(shift))
				return false;
		}
		else if (*shift->pos++ == '}')
			return true;
	}
	return false;
}

/* An error (#REF!, #N/A, #DIV/0!), or the "#" behind a reference to an array. */
static void
skip_hash(Shift *shift)
{
	static const char *const with_slash[] = {"#N/A", "#DIV/0"};

	for (size_t i = 0; i < 2; i++)
	{
		size_t len = strlen(with_slash[i]);

		if ((size_t) (shift->end - shift->pos) >= len && memcmp(shift->pos, with_slash[i], len) == 0)
		{
			shift->pos += len;
			return;
		}
	}
	shift->pos++;
	while (shift->pos < shift->end && (is_letter(*shift->pos) || *shift->pos == '_'))
		shift->pos++;
}

/* Returns false if the formula is not complete. */
static bool
shift_next(Shift *shift)
{
	size_t space;

	switch (*shift->pos)
	{
		case '"':
		case '\'':
			return skip_quoted(shift);
		case '[':
			return skip_brackets(shift);
		case '{':
			return skip_braces(shift);
		case '#':
			skip_hash(shift);
			break;
		case '!':
			shift->pos++;
			skip_qualified(shift);
			break;
		default:
			space = space_at(shift->pos, shift->end);
			if (space == 0 && is_in_word(*shift->pos))
				shift_word(shift);
			else
				shift->pos += space > 0 ? space : 1;
	}
	return true;
}

static bool
has_too_many_characters(const char *text, uint32_t len)
{
	uint32_t chars = 0;

	if (len <= SHEET_MAX_CHARS)
		return false;
	for (uint32_t i = 0; i < len; i++)
		chars += ((unsigned char) text[i] & 0xC0) != 0x80;
	return chars > SHEET_MAX_CHARS;
}

FormulaShift
formula_shift(EditText content, FormulaMove move, const void *arg, char *to, uint32_t *to_len)
{
	const char *text = content.data;
	Shift shift = {.to = to, .move = move, .arg = arg};

	if (!formula_is(content))
		return FORMULA_SAME;
	shift.copied = text;
	shift.pos = text + 1;
	shift.end = text + content.len;
	while (shift.pos < shift.end)
		if (!shift_next(&shift))
			return FORMULA_SAME;
	if (shift.copied == text)
		return FORMULA_SAME;
	shift_put(&shift, shift.copied, (size_t) (shift.end - shift.copied));
	*to_len = shift.len;
	return shift.too_long || has_too_many_characters(to, shift.len) ? FORMULA_TOO_LONG : FORMULA_SHIFTED;
}

/* ---- one structure edit ---- */

bool
formula_move_lines(const void *arg, bool rows, uint32_t *first, uint32_t *last)
{
	const LineChange *change = arg;

	return rows != change->rows || extent_move(change, first, last);
}
