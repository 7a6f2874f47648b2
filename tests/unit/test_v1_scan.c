/*
 * test_v1_scan.c - messages of protocol v1: what is understood and what is refused. tests/fuzz/fuzz_v1_message.c
 * compares with another JSON library.
 */
#include "ws/wire/v1_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

typedef struct Case
{
	const char *text;
	V1Status status;
	V1Type type;
	uint32_t row, col;
	const char *content;
	const char *info; /* NULL: absent */
} Case;

static const Case cases[] = {
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":2,\"content\":\"x\"}}", V1_OK, V1_MODIFY, 1, 2, "x", NULL},
	{"{\"msgType\":\"acquire\",\"body\":{\"row\":0,\"col\":0}}", V1_OK, V1_ACQUIRE, 0, 0, "", NULL},
	{"{\"msgType\":\"release\",\"body\":{\"row\":16777215,\"col\":16383}}", V1_OK, V1_RELEASE, 16777215, 16383, "",
	 NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":2,\"content\":\"a\\n\\\"\\\\\\/\\t\",\"info\":null}}", V1_OK,
	 V1_MODIFY, 1, 2, "a\n\"\\/\t", "null"},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":2,\"content\":\"\\u00e9\\ud83d\\ude00\"}}", V1_OK, V1_MODIFY,
	 1, 2, "\xc3\xa9\xf0\x9f\x98\x80", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":2,\"content\":\"\\\\u0000\"}}", V1_OK, V1_MODIFY, 1, 2,
	 "\\u0000", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":3,\"col\":4,\"content\":\"\",\"info\":{\"a\":[1,-2.5,\"}}\"],\"b\":{}}}"
	 "}",
	 V1_OK, V1_MODIFY, 3, 4, "", "{\"a\":[1,-2.5,\"}}\"],\"b\":{}}"},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":3,\"col\":4,\"content\":\"\",\"info\":\"text\"}}", V1_OK, V1_MODIFY, 3,
	 4, "", "\"text\""},
	{" { \"body\" : { \"content\" : \"y\" , \"col\" : 5 , \"row\":0 } , \"msgType\" : \"modify\" } ", V1_OK, V1_MODIFY,
	 0, 5, "y", NULL},
	{" {\"msgType\":\"modify\",\"body\":{\"info\": [ 9007199254740993, 1e14, {\"x\" : \"}\\\"\"} ] "
	 ",\"row\":1,\"col\":0}}",
	 V1_OK, V1_MODIFY, 1, 0, "", "[ 9007199254740993, 1e14, {\"x\" : \"}\\\"\"} ]"},
	{" {\"msgType\":\"modify\",\"body\":{\"row\":0,\"col\":0,\"info\":-0.10e+2 }}", V1_OK, V1_MODIFY, 0, 0, "",
	 "-0.10e+2"},
	/* a lock's place may be absent, an edit's may not */
	{"{\"msgType\":\"acquire\",\"body\":{}}", V1_OK, V1_ACQUIRE, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{}}", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"content\":\"x\"}}", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"col\":1,\"content\":\"x\"}}", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":null,\"col\":1,\"content\":\"x\"}}", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":2,\"content\":null}}", V1_OK, V1_MODIFY, 1, 2, "", NULL},
	/* names without regard to case; as they are written wins, then the last one */
	{"{\"MSGTYPE\":\"modify\",\"Body\":{\"Row\":1,\"COL\":2,\"Content\":\"x\",\"INFO\":{\"a\":1}}}", V1_OK, V1_MODIFY,
	 1, 2, "x", "{\"a\":1}"},
	{"{\"msgType\":\"modify\",\"body\":{\"ROW\":9,\"row\":1,\"Row\":8,\"col\":2,\"content\":\"x\"}}", V1_OK, V1_MODIFY,
	 1, 2, "x", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":9,\"row\":1,\"col\":2,\"content\":\"a\",\"content\":\"b\"}}", V1_OK,
	 V1_MODIFY, 1, 2, "b", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":2,\"Info\":[1],\"INFO\":[2],\"content\":\"x\"}}", V1_OK,
	 V1_MODIFY, 1, 2, "x", "[2]"},
	{"{\"msgType\":\"release\",\"msgType\":\"acquire\",\"body\":{\"row\":1,\"col\":2}}", V1_OK, V1_ACQUIRE, 1, 2, "",
	 NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1e2,\"col\":2.0}}", V1_OK, V1_MODIFY, 100, 2, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":-1,\"col\":0}}", V1_RANGE, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":0,\"col\":16384}}", V1_RANGE, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":16777216,\"col\":0}}", V1_RANGE, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":2147483648,\"col\":0}}", V1_RANGE, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1e99,\"col\":0}}", V1_RANGE, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1.5,\"col\":0}}", V1_RANGE, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":\"1\",\"col\":0}}", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":0,\"content\":7}}", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":0,\"content\":\"\\u0000\"}}", V1_MALFORMED, 0, 0, 0, "",
	 NULL},
	/* cJSON takes these; the clients that are told of info would not */
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":0,\"content\":\"\",\"info\":01}}", V1_MALFORMED, 0, 0, 0, "",
	 NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":0,\"content\":\"\",\"info\":{\"a\":1.}}}", V1_MALFORMED, 0, 0,
	 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":0,\"content\":\"\",\"info\":\"a\nb\"}}", V1_MALFORMED, 0, 0,
	 0, "", NULL},
	/* two names that are the same, one of them in disguise */
	{"{\"msgType\":\"modify\",\"body\":{\"inf\\u006f\":1,\"row\":1,\"col\":0,\"info\":2}}", V1_OK, V1_MODIFY, 1, 0, "",
	 "2"},
	{"{\"msgType\":\"modify\",\"body\":{\"info\":1,\"row\":1,\"col\":0,\"inf\\u006f\":2}}", V1_OK, V1_MODIFY, 1, 0, "",
	 "2"},
	{"[1]", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":[]}", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"erase\",\"body\":{\"row\":1,\"col\":0}}", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"{\"msgType\":7,\"body\":{\"row\":1,\"col\":0}}", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"{\"msgType\":\"modify\",\"body\":{\"row\":1,\"col\":0}}x", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"[]", V1_MALFORMED, 0, 0, 0, "", NULL},
	{"", V1_MALFORMED, 0, 0, 0, "", NULL},
};

/* Exact allocations, so that the sanitizer sees a byte too far. */
static V1Status
scan_exact(const char *text, size_t len, char **scratch, char **copy, V1Message *message)
{
	*copy = malloc(len > 0 ? len : 1);
	memcpy(*copy, text, len);
	*scratch = malloc(V1_SCRATCH(len));
	return v1_scan(*copy, len, *scratch, message);
}

static void
test_cases(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const Case *c = &cases[i];
		V1Message message;
		char *scratch, *copy;
		V1Status status = scan_exact(c->text, strlen(c->text), &scratch, &copy, &message);
		bool good = status == c->status;

		if (good && status == V1_OK)
			good = message.type == c->type && message.row == c->row && message.col == c->col &&
				   message.content_len == strlen(c->content) && strcmp(message.content, c->content) == 0 &&
				   (c->info == NULL
						? message.info == NULL
						: message.info_len == strlen(c->info) && memcmp(message.info, c->info, message.info_len) == 0);
		TAP_OK(good, "%s", c->text);
		free(scratch);
		free(copy);
	}
}

static void
test_truncations(void)
{
	bool good = true;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		for (size_t len = 0; len + 1 < strlen(cases[i].text); len++)
		{
			V1Message message;
			char *scratch, *copy;

			if (cases[i].status == V1_OK && cases[i].text[0] == '{' &&
				scan_exact(cases[i].text, len, &scratch, &copy, &message) == V1_OK)
				good = false;
			else if (cases[i].status != V1_OK || cases[i].text[0] != '{')
				continue;
			free(scratch);
			free(copy);
		}
	}
	TAP_OK(good, "no message is understood before it is whole");
}

int
main(void)
{
	test_cases();
	test_truncations();
	return tap_done();
}
