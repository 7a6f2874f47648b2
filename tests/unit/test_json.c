/*
 * test_json.c - JSON as RFC 8259 has it and nothing else, also where cJSON is lenient.
 */
#include "support/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "tap.h"

/* A copy without a byte behind it, so that the sanitizer sees a step too far. */
static bool
check(const char *text, size_t len)
{
	char *copy = malloc(len > 0 ? len : 1);
	bool good;

	memcpy(copy, text, len);
	good = json_check(copy, len);
	free(copy);
	return good;
}

/* The text in one line of output. */
static const char *
shown(const char *text)
{
	static char line[256];
	size_t used = 0;

	for (; *text && used < sizeof(line) - 5; text++)
		used += (size_t) snprintf(line + used, sizeof(line) - used, *text < ' ' || *text == 0x7F ? "\\x%02x" : "%c",
								  (unsigned char) *text);
	line[used] = '\0';
	return line;
}

static void
test_good(void)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		" \t\r\n{} \n",
		"0",
		"-0",
		"-1.5e+10",
		"1E5",
		"0.5",
		"12345678901234567890",
		"true",
		"false",
		"null",
		"\"\"",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\uD83D\\uDE00\"",
		"{\"a\":1,\"b\":[1,2,{\"c\":[]}],\"d\":{}}",
		"[[],[[]],{}]",
		"\"\x7f\xC3\xA9\"",
		"{\"a\" : 1 , \"b\" : [ 1 , 2 ] }",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		size_t len = strlen(texts[i]);
		int cuts = 0;
		bool number = texts[i][0] == '-' || (texts[i][0] >= '0' && texts[i][0] <= '9');

		TAP_OK(check(texts[i], len), "good: %s", shown(texts[i]));
		while (len > 0 && strchr(" \t\r\n", texts[i][len - 1]))
			len--;
		for (size_t cut = 0; cut < len; cut++)
			cuts += check(texts[i], cut);
		TAP_OK(number || cuts == 0, "no prefix of it is");
	}
}

static void
test_bad(void)
{
	static const struct
	{
		const char *text;
		bool lenient; /* cJSON takes it */
	} table[] = {
		{"01", true},
		{"-01", true},
		{"1.", true},
		{"[1.]", true},
		{"{\"a\":007}", true},
		{"\"\n\"", true},
		{"\"\t\"", true},
		{"\"a\x01z\"", true},
		{"{\"a\x1f\":1}", true},
		{"+1", false},
		{".5", false},
		{"1e", false},
		{"1e+", false},
		{"-", false},
		{"--1", false},
		{"0x10", false},
		{"NaN", false},
		{"Infinity", false},
		{"", false},
		{" ", false},
		{"\"\\u0000\"", false},
		{"\"\\ud800\"", false},
		{"\"\\udc00\"", false},
		{"\"\\ud800\\u0041\"", false},
		{"\"\\u12G4\"", false},
		{"\"\\u123\"", false},
		{"\"\\x41\"", false},
		{"\"\\'\"", false},
		{"'a'", false},
		{"{a:1}", false},
		{"{\"a\" 1}", false},
		{"{\"a\":1,}", false},
		{"[1,]", false},
		{"[,1]", false},
		{"[1 2]", false},
		{"{,}", false},
		{"[1}", false},
		{"{\"a\":1]", false},
		{"{\"a\"}", false},
		{"{\"a\":}", false},
		{"{1:2}", false},
		{"{}{}", false},
		{"{} x", false},
		{"[1]]", false},
		{"tru", false},
		{"True", false},
		{"nullx", false},
		{"// c\n1", false},
		{"/**/1", false},
		{"\xEF\xBB\xBF{}", true},
		{"\"a", false},
		{"\"\\\"", false},
	};
	int lenient = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
	{
		const char *end;
		cJSON *parsed = cJSON_ParseWithLengthOpts(table[i].text, strlen(table[i].text), &end, false);
		bool taken = parsed && *end == '\0';

		TAP_OK(!check(table[i].text, strlen(table[i].text)), "refused: %s", shown(table[i].text));
		lenient += table[i].lenient && taken;
		cJSON_Delete(parsed);
	}
	TAP_OK(lenient > 0, "%d of these would have been taken by cJSON", lenient);
	TAP_OK(!check("\"a\0b\"", 5), "refused: a NUL in a string");
	TAP_OK(!check("{}\0", 3), "refused: a NUL behind the value");
}

static void
test_depth(void)
{
	char text[2 * JSON_MAX_DEPTH + 16];
	size_t max = JSON_MAX_DEPTH;

	memset(text, '[', max);
	memset(text + max, ']', max);
	TAP_OK(check(text, 2 * max), "as deep as can be");
	memset(text, '[', max + 1);
	memset(text + max + 1, ']', max + 1);
	TAP_OK(!check(text, 2 * max + 2), "and one more");
	TAP_OK(check("[[],[],[]]", 10), "breadth is not depth");
}

/* What the check lets through, cJSON reads in the same way: printed and read again it is the same. */
static void
test_mutations(void)
{
	static const char seed[] = "{\"a\":[1,-2.5e3,\"x\\u00e9\\n\"],\"b\":{\"c\":null,\"d\":true}}";
	static const char alphabet[] = "{}[]\",:\\u0159eE+-. \ntfn\x01";
	unsigned state = 1;
	int accepted = 0, wrong = 0;

	for (int round = 0; round < 200000; round++)
	{
		char text[sizeof(seed)];
		const char *end;
		cJSON *parsed;

		memcpy(text, seed, sizeof(seed));
		for (int i = 0; i < 1 + round % 4; i++)
		{
			state = state * 1103515245u + 12345u;
			text[(state >> 8) % (sizeof(seed) - 1)] = alphabet[(state >> 20) % (sizeof(alphabet) - 1)];
		}
		if (!check(text, sizeof(seed) - 1))
			continue;
		accepted++;
		parsed = cJSON_ParseWithLengthOpts(text, sizeof(seed) - 1, &end, false);
		while (parsed && *end != '\0' && strchr(" \n", *end))
			end++;
		wrong += !parsed || *end != '\0';
		cJSON_Delete(parsed);
	}
	TAP_OK(accepted > 1000 && wrong == 0, "of 200000 mutations %d are good, and cJSON reads each of them whole",
		   accepted);
}

static bool
parses(const char *text, size_t most, int depth)
{
	cJSON *object;
	bool good = json_parse_object(text, strlen(text), most, depth, &object) == JSON_OK;

	good = good && cJSON_IsObject(object);
	cJSON_Delete(object);
	return good;
}

static void
test_objects(void)
{
	TAP_OK(parses("{}", 2, 1) && parses("{\"a\":1,\"b\":[2]}", 4, 2), "an object is parsed");
	TAP_OK(!parses("{\"a\":1,\"b\":[2]}", 3, 2), "not one of too many values");
	TAP_OK(!parses("{\"a\":1,\"b\":[2]}", 4, 1), "nor one that is nested too deeply");
	TAP_OK(parses("{\"a\":\"[,{,\\\",,\"}", 2, 1), "brackets and commas in strings do not count");
	TAP_OK(!parses("{\"a\":1,\"a\":1}", 9, 9) && !parses("{\"a\":1,\"\\u0061\":1}", 9, 9), "names are distinct");
	TAP_OK(!parses("[]", 9, 9) && !parses("1", 9, 9) && !parses("", 9, 9), "nothing else is an object");
	TAP_OK(!parses("{\"a\":\"\xff\"}", 9, 9), "it is UTF-8");
}

int
main(void)
{
	test_good();
	test_bad();
	test_depth();
	test_objects();
	test_mutations();
	return tap_done();
}
