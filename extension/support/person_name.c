/*
 * person_name.c - characters that names may not have (Unicode 15: categories Cc, Cf, Cs, Co, Zl, Zp, noncharacters, and
 * letters that are blank). See person_name.h.
 */
#include "support/person_name.h"

#include <string.h>

typedef struct CharacterRange
{
	uint32_t first, last;
	const char *problem;
} CharacterRange;

#define CONTROL	  "control characters"
#define FORMAT	  "invisible format characters"
#define DIRECTION "characters that change the direction of text"
#define WIDTH	  "characters without width"
#define BREAK	  "line or paragraph separators"
#define BLANK	  "blank letters"
#define PRIVATE	  "characters for private use"
#define NONE	  "code points that are not characters"

/* In ascending order. */
static const CharacterRange forbidden[] = {
	{0x0000, 0x001F, CONTROL},	{0x007F, 0x009F, CONTROL},	 {0x00AD, 0x00AD, FORMAT},
	{0x034F, 0x034F, WIDTH},	{0x0600, 0x0605, FORMAT},	 {0x061C, 0x061C, DIRECTION},
	{0x06DD, 0x06DD, FORMAT},	{0x070F, 0x070F, FORMAT},	 {0x0890, 0x0891, FORMAT},
	{0x08E2, 0x08E2, FORMAT},	{0x115F, 0x1160, BLANK},	 {0x17B4, 0x17B5, WIDTH},
	{0x180B, 0x180F, FORMAT},	{0x200B, 0x200D, WIDTH},	 {0x200E, 0x200F, DIRECTION},
	{0x2028, 0x2029, BREAK},	{0x202A, 0x202E, DIRECTION}, {0x2060, 0x2064, WIDTH},
	{0x2065, 0x2065, NONE},		{0x2066, 0x2069, DIRECTION}, {0x206A, 0x206F, FORMAT},
	{0x2800, 0x2800, BLANK},	{0x3164, 0x3164, BLANK},	 {0xD800, 0xDFFF, NONE},
	{0xE000, 0xF8FF, PRIVATE},	{0xFDD0, 0xFDEF, NONE},		 {0xFE00, 0xFE0F, WIDTH},
	{0xFEFF, 0xFEFF, WIDTH},	{0xFFA0, 0xFFA0, BLANK},	 {0xFFF0, 0xFFFB, FORMAT},
	{0xFFFE, 0xFFFF, NONE},		{0x110BD, 0x110BD, FORMAT},	 {0x110CD, 0x110CD, FORMAT},
	{0x13430, 0x1343F, FORMAT}, {0x1BCA0, 0x1BCA3, FORMAT},	 {0x1D173, 0x1D17A, FORMAT},
	{0xE0000, 0xE0FFF, FORMAT}, {0xF0000, 0xFFFFD, PRIVATE}, {0x100000, 0x10FFFD, PRIVATE},
};

static const char *
character_problem(uint32_t c)
{
	size_t low = 0, high = sizeof(forbidden) / sizeof(forbidden[0]);

	if ((c & 0xFFFE) == 0xFFFE)
		return NONE;
	while (low < high)
	{
		size_t middle = (low + high) / 2;

		if (c > forbidden[middle].last)
			low = middle + 1;
		else if (c < forbidden[middle].first)
			high = middle;
		else
			return forbidden[middle].problem;
	}
	return NULL;
}

/* White space of categories Zs: it may stand within a name, not around it. */
static bool
character_is_space(uint32_t c)
{
	return c == 0x20 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F ||
		   c == 0x3000;
}

/* The next code point of well-formed UTF-8. */
static uint32_t
character_take(const unsigned char **at)
{
	const unsigned char *p = *at;
	size_t more = p[0] < 0x80 ? 0 : p[0] < 0xE0 ? 1 : p[0] < 0xF0 ? 2 : 3;
	uint32_t c = more == 0 ? p[0] : p[0] & (0x3Fu >> more);

	for (size_t i = 1; i <= more; i++)
		c = c << 6 | (p[i] & 0x3Fu);
	*at += 1 + more;
	return c;
}

const char *
name_direction_problem(const char *name, size_t len, uint32_t *character)
{
	const unsigned char *at = (const unsigned char *) name;
	const unsigned char *end = at + len;

	while (at < end)
	{
		uint32_t c = character_take(&at);
		const char *problem = character_problem(c);

		if (problem != NULL && strcmp(problem, DIRECTION) == 0)
		{
			*character = c;
			return problem;
		}
	}
	return NULL;
}

bool
name_is_blank(const char *name, size_t len)
{
	const unsigned char *at = (const unsigned char *) name;
	const unsigned char *end = at + len;

	while (at < end)
	{
		uint32_t c = character_take(&at);

		if (!character_is_space(c) && character_problem(c) == NULL)
			return false;
	}
	return true;
}

const char *
person_name_problem(const char *name, size_t len, uint32_t *character)
{
	const unsigned char *at = (const unsigned char *) name;
	const unsigned char *end = at + len;
	const char *problem = NULL;
	uint32_t c = 0;

	for (bool first = true; at < end && problem == NULL; first = false)
	{
		c = character_take(&at);
		problem = character_problem(c);
		if (problem == NULL && character_is_space(c) && (first || at == end))
			problem = "white space at its beginning or end";
	}
	if (character != NULL)
		*character = c;
	return problem;
}
