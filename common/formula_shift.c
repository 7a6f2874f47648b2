/*
 * formula_shift.c - rewrites the references of a formula when rows or columns are inserted or deleted, or a sheet is
 * renamed.
 *
 * One pass from left to right. Words are runs of characters that names, numbers and references have; everything else is
 * a quoted part, which is skipped, or a separator. A word that is a corner (A1, $B, 7), and the corner behind a colon,
 * are a reference, unless "(" or "!" follows. A word or a quoted part that "!" follows is a sheet's name, and the
 * reference behind it is one of that sheet.
 */
#include "common/formula_shift.h"

#include "common/a1.h"

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
	const FormulaChange *change;
	const char *name, *name_end; /* the last words or quoted part: a sheet's name if "!" follows */
	const char *joins;	 /* a word here continues that name, and a colon joins names of several sheets (A:C!A1) */
	const char *foreign; /* a name that begins here is one of several, or of a sheet of another book ([B]A!A1) */
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
	return shift->change->move(shift->change->move_arg, rows, first, last);
}

/* word: where the reference begins, with the sheet's name. b: the same corner for a single cell. */
static void
shift_reference(Shift *shift, const char *word, const Corner *a, const Corner *b)
{
	uint32_t rows[2] = {a->row, b->row}, cols[2] = {a->col, b->col};

	if (shift->change->move == NULL)
		return;
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

/* Whether both corners are of cells, of columns, or of rows. */
static bool
corners_fit(const Corner *a, const Corner *b)
{
	return (a->letters == NULL) == (b->letters == NULL) && (a->digits == NULL) == (b->digits == NULL);
}

static bool
corner_is_cell(const Corner *corner)
{
	return corner->letters != NULL && corner->digits != NULL;
}

static void
shift_unqualified(Shift *shift, const char *word)
{
	Corner a, b;

	if (is_name_before(shift->pos, shift->end) || !corner_read(&a, word, shift->pos))
		return;
	if (corner_read_second(&b, shift->pos, shift->end) && corners_fit(&a, &b))
	{
		shift->pos = b.end;
		if (shift->change->own)
			shift_reference(shift, word, &a, &b);
	}
	else if (corner_is_cell(&a) && !word_is_log10(word, a.end) && shift->change->own)
		shift_reference(shift, word, &a, &a);
}

static void
shift_word(Shift *shift)
{
	const char *word = shift->pos;

	if (word != shift->joins || *shift->name == '\'')
		shift->name = word; /* otherwise the name has several words, as Univer takes it */
	shift->name_end = shift->pos = word_end(word, shift->end);
	shift_unqualified(shift, word);
	shift->joins = skip_spaces(shift->pos, shift->end);
}

/* ---- references that a sheet's name qualifies ---- */

/* Whether a name, as the formula has it, means the sheet. */
static bool
name_is_meant(const Shift *shift, const char *from, const char *till)
{
	char name[FORMULA_NAME_MAX];
	bool quoted = *from == '\'';
	size_t len = 0;

	if (shift->change->is_name == NULL || (size_t) (till - from) > sizeof(name))
		return false;
	if (quoted)
	{
		from++;
		till--;
	}
	for (; from < till; from++)
	{
		name[len++] = *from;
		from += quoted && *from == '\''; /* it is doubled */
	}
	return len > 0 && shift->change->is_name(shift->change->name_arg, name, len);
}

/* Returns the end of the sheet's name that begins at p; NULL if no "!" follows it. */
static const char *
name_find_end(const char *p, const char *end)
{
	const char *till = word_end(p, end);

	if (p < end && *p == '\'')
		for (till = p + 1; till < end; till++)
			if (*till == '\'' && (++till == end || *till != '\''))
				break;
	return till > p && till < end && *till == '!' ? till : NULL;
}

/* Reads the second corner of X!A1:X!B2. Returns false if there is none, or it is of another sheet. */
static bool
corner_read_named(const Shift *shift, Corner *corner)
{
	const char *end = shift->end, *p = skip_spaces(shift->pos, end), *name, *till;

	if (p == end || *p != ':')
		return false;
	name = skip_spaces(p + 1, end);
	till = name_find_end(name, end);
	if (till == NULL || !name_is_meant(shift, name, till))
		return false;
	p = skip_spaces(till + 1, end);
	till = word_end(p, end);
	return till > p && !is_name_before(till, end) && corner_read(corner, p, till);
}

/* At a "!". */
static void
shift_qualified(Shift *shift)
{
	const char *name = shift->name;
	bool meant = shift->name_end == shift->pos && name >= shift->copied && name != shift->foreign &&
				 name_is_meant(shift, name, shift->pos);
	const char *word = skip_spaces(shift->pos + 1, shift->end);
	Corner a = {.end = NULL}, b;

	if (meant && shift->change->new_name != NULL)
		shift_replace(shift, name, shift->pos, shift->change->new_name);
	shift->pos = word_end(word, shift->end);
	meant = meant && !is_name_before(shift->pos, shift->end) && corner_read(&a, word, shift->pos);
	if (corner_read_second(&b, shift->pos, shift->end))
		shift->pos = b.end;
	else if (meant && shift->change->move != NULL && corner_read_named(shift, &b) && corners_fit(&a, &b))
		shift->pos = b.end;
	else
		b = (Corner){.end = NULL};
	if (meant && b.end != NULL && corners_fit(&a, &b))
		shift_reference(shift, name, &a, &b);
	else if (meant && corner_is_cell(&a))
		shift_reference(shift, name, &a, &a);
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
		{
			shift->foreign = shift->pos;
			return true;
		}
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
			return skip_quoted(shift);
		case '\'':
			shift->name = shift->pos;
			if (!skip_quoted(shift))
				return false;
			shift->name_end = shift->pos;
			shift->joins = skip_spaces(shift->pos, shift->end);
			break;
		case '[':
			return skip_brackets(shift);
		case '{':
			return skip_braces(shift);
		case '#':
			skip_hash(shift);
			break;
		case '!':
			shift_qualified(shift);
			break;
		case ':':
			shift->pos++;
			if (shift->pos - 1 == shift->joins)
				shift->foreign = skip_spaces(shift->pos, shift->end);
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
formula_shift(EditText content, const FormulaChange *change, char *to, uint32_t *to_len)
{
	const char *text = content.data;
	Shift shift = {.to = to, .change = change};

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

/* ---- names of sheets ---- */

static bool
name_find_any(const void *found, const char *name, size_t len)
{
	(void) name;
	(void) len;
	**(bool *const *) found = true;
	return false;
}

bool
formula_has_names(EditText content)
{
	bool found = false, *to = &found;
	uint32_t len;

	if (!formula_is(content) || memchr(content.data, '!', content.len) == NULL)
		return false;
	(void) formula_shift(content, &(FormulaChange){.is_name = name_find_any, .name_arg = &to}, NULL, &len);
	return found;
}

/* Whether a name of ASCII letters, digits and "_" could be taken for a reference (A1, R1C1, RC), a number, or TRUE. */
static bool
name_is_ambiguous(const char *name, size_t len)
{
	static const char *const words[] = {"TRUE", "FALSE"};
	size_t letters = 0, digits = 0, others = 0;
	char upper[6] = "";

	for (size_t i = 0; i < len; i++)
	{
		letters += is_letter(name[i]);
		digits += is_digit(name[i]);
		others += !is_digit(name[i]) && (name[i] & 0xDF) != 'R' && (name[i] & 0xDF) != 'C';
		if (i < sizeof(upper) - 1)
			upper[i] = (char) (name[i] & (is_letter(name[i]) ? 0xDF : 0xFF));
	}
	for (size_t i = 0; i < 2; i++)
		if (len == strlen(words[i]) && memcmp(upper, words[i], len) == 0)
			return true;
	return is_digit(name[0]) || others == 0 || (letters + digits == len && letters <= 3 && digits > 0);
}

void
formula_quote_name(const char *name, char *to)
{
	size_t len = strlen(name);
	bool plain = !name_is_ambiguous(name, len);

	for (size_t i = 0; i < len; i++)
		plain = plain && (is_letter(name[i]) || is_digit(name[i]) || name[i] == '_');
	if (!plain)
		*to++ = '\'';
	for (size_t i = 0; i < len; i++)
	{
		*to++ = name[i];
		if (name[i] == '\'')
			*to++ = '\'';
	}
	if (!plain)
		*to++ = '\'';
	*to = '\0';
}
