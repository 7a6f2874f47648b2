/*
 * test_person_name.c - names in any script are good; what cannot be seen is not.
 */
#include "support/person_name.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

static size_t
encode(uint32_t c, char to[5])
{
	size_t len = 0;

	if (c < 0x80)
		to[len++] = (char) c;
	else if (c < 0x800)
		to[len++] = (char) (0xC0 | c >> 6);
	else if (c < 0x10000)
	{
		to[len++] = (char) (0xE0 | c >> 12);
		to[len++] = (char) (0x80 | (c >> 6 & 0x3F));
	}
	else
	{
		to[len++] = (char) (0xF0 | c >> 18);
		to[len++] = (char) (0x80 | (c >> 12 & 0x3F));
		to[len++] = (char) (0x80 | (c >> 6 & 0x3F));
	}
	if (c >= 0x80)
		to[len++] = (char) (0x80 | (c & 0x3F));
	to[len] = '\0';
	return len;
}

int
main(void)
{
	static const char *const good[] = {
		"anna",	 "Zoë Åström", "李小龍", "Иван", "محمد", "דוד", "ถนอม", "नमस्ते", "O'Brien #1 <x@y> \"\\",
		"😀 𝔘𝔫𝔦", "e\xCC\x81",  "ß",		 "ſ",	 "ﬁ",
	};
	static const struct
	{
		uint32_t character;
		const char *word;
	} bad[] = {
		{0x01, "control"},		{0x09, "control"},		{0x0A, "control"},	   {0x7F, "control"},
		{0x85, "control"},		{0xAD, "invisible"},	{0x200B, "width"},	   {0x200C, "width"},
		{0x200D, "width"},		{0x2060, "width"},		{0xFEFF, "width"},	   {0xFE0F, "width"},
		{0x34F, "width"},		{0x200E, "direction"},	{0x200F, "direction"}, {0x202A, "direction"},
		{0x202E, "direction"},	{0x2066, "direction"},	{0x2069, "direction"}, {0x61C, "direction"},
		{0x2028, "separator"},	{0x2029, "separator"},	{0x3164, "blank"},	   {0x2800, "blank"},
		{0x115F, "blank"},		{0xE000, "private"},	{0xF0000, "private"},  {0x10FFFD, "private"},
		{0xFDD0, "not char"},	{0xFFFE, "not char"},	{0x1FFFF, "not char"}, {0xE0001, "invisible"},
		{0xE0041, "invisible"}, {0x1D173, "invisible"}, {0xFFF9, "invisible"},
	};
	static const uint32_t spaces[] = {0x20, 0xA0, 0x1680, 0x2000, 0x200A, 0x202F, 0x205F, 0x3000};
	uint32_t character;
	int refused = 0;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		TAP_OK(person_name_problem(good[i], strlen(good[i]), NULL) == NULL, "good: %s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		char name[16] = "ab", bytes[5];
		const char *problem;

		encode(bad[i].character, bytes);
		strcat(strcat(name, bytes), "c");
		problem = person_name_problem(name, strlen(name), &character);
		TAP_OK(problem && strstr(problem, bad[i].word) && character == bad[i].character, "U+%04X: %s",
			   (unsigned) bad[i].character, problem ? problem : "accepted");
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		char name[16] = "ab", bytes[5];
		bool turns;

		encode(bad[i].character, bytes);
		strcat(strcat(name, bytes), "c");
		turns = name_direction_problem(name, strlen(name), &character) != NULL;
		TAP_OK(turns == (strcmp(bad[i].word, "direction") == 0) && (!turns || character == bad[i].character),
			   "U+%04X %s", (unsigned) bad[i].character,
			   turns ? "turns the direction of any name" : "may turn nothing");
	}
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
	{
		char space[5], front[16], back[16], middle[16];

		encode(spaces[i], space);
		snprintf(front, sizeof(front), "%sa", space);
		snprintf(back, sizeof(back), "a%s", space);
		snprintf(middle, sizeof(middle), "a%sb", space);
		TAP_OK(person_name_problem(front, strlen(front), NULL) && person_name_problem(back, strlen(back), NULL) &&
				   !person_name_problem(middle, strlen(middle), NULL),
			   "U+%04X stands within a name only", (unsigned) spaces[i]);
	}
	TAP_OK(name_is_blank("", 0) && name_is_blank(" \xE3\x80\x80\xE2\x80\x8B", 7),
		   "white space and characters without width are blank");
	TAP_OK(!name_is_blank("\xE2\x9D\xA4\xEF\xB8\x8F", 6) && !name_is_blank("\xE2\x80\x8B"
																		   "a",
																		   4),
		   "a visible one among them is not");
	for (uint32_t c = 1; c < 0x110000; c++)
	{
		char bytes[5];

		if (c >= 0xD800 && c <= 0xDFFF)
			continue;
		encode(c, bytes);
		refused += person_name_problem(bytes, strlen(bytes), &character) != NULL;
		if (character != c)
			TAP_OK(false, "U+%04X is read as U+%04X", (unsigned) c, (unsigned) character);
	}
	TAP_OK(refused > 137468 && refused < 142000, "of all code points %d cannot be a name", refused);
	return tap_done();
}
