/*
 * test_log.c - a line of the log stays one line, and JSON, whatever clients send.
 */
#include "support/log.h"

#include "support/json.h"
#include "common/utf8.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

static char line[65536];
static int caught = -1;

/* Writes an event, and takes what came to stderr. */
static size_t
write_event(LogLevel level, const LogField *fields, size_t count)
{
	int err = dup(2);
	ssize_t len;

	(void) !ftruncate(caught, 0);
	lseek(caught, 0, SEEK_SET);
	dup2(caught, 2);
	log_write(level, "an event", fields, count);
	dup2(err, 2);
	close(err);
	len = pread(caught, line, sizeof(line) - 1, 0);
	line[len > 0 ? len : 0] = '\0';
	return (size_t) (len > 0 ? len : 0);
}

static bool
line_is_json(size_t len)
{
	return len > 1 && line[len - 1] == '\n' && memchr(line, '\n', len) == line + len - 1 && json_check(line, len - 1) &&
		   utf8_check(line, len - 1, NULL);
}

static void
expect_json(const char *text, const char *what)
{
	LogField fields[] = {LOG_STR("text", text), LOG_INT("number", -7)};
	size_t len = write_event(LOG_INFO, fields, 2);

	TAP_OK(line_is_json(len) && strstr(line, "\"number\":-7"), "%s", what);
}

int
main(void)
{
	static char text[20000];
	LogField many[64];
	char path[] = "/tmp/test_log_XXXXXX";
	int wrong = 0;

	caught = mkstemp(path);
	unlink(path);
	log_setup("info", "json");
	expect_json("plain", "a plain text");
	expect_json("", "an empty one");
	expect_json("line\nend \"quoted\" back\\slash \x01 \x7f\t\r", "line ends, quotes and control characters");
	expect_json("Zo\xC3\xAB \xF0\x9F\x98\x80", "UTF-8");
	TAP_OK(strstr(line, "Zo\xC3\xAB \xF0\x9F\x98\x80") != NULL, "which is left as it is");
	expect_json("\xFF\xC3(\xED\xA0\x80", "bytes that are no UTF-8");
	TAP_OK(strstr(line, "\\u00ff\\u00c3(") != NULL, "which are told by their numbers");
	memset(text, 'x', sizeof(text) - 1);
	expect_json(text, "a text that is too long");
	TAP_OK(strstr(line, "x...\"") && strlen(line) < 1400, "which ends in dots");
	memset(text, '\x01', sizeof(text) - 1);
	expect_json(text, "one that grows sixfold");
	for (size_t shift = 0; shift < 4; shift++)
	{
		memset(text, 'a', shift);
		for (size_t i = shift; i + 4 < sizeof(text); i += 4)
			memcpy(text + i, "\xF0\x9F\x98\x80", 5);
		many[0] = LOG_STR("text", text);
		wrong += !line_is_json(write_event(LOG_INFO, many, 1));
	}
	TAP_OK(wrong == 0, "a long one is cut between two characters");
	for (size_t i = 0; i < 64; i++)
		many[i] = LOG_STR("text", text);
	TAP_OK(line_is_json(write_event(LOG_INFO, many, 64)), "more fields than a line holds");
	srand(1);
	for (int round = 0; round < 20000; round++)
	{
		size_t len = (size_t) rand() % 40;

		for (size_t i = 0; i < len; i++)
			text[i] = (char) (1 + rand() % 255);
		text[len] = '\0';
		many[0] = LOG_STR("text", text);
		wrong += !line_is_json(write_event(LOG_INFO, many, 1));
	}
	TAP_OK(wrong == 0, "20000 random texts");
	TAP_OK(write_event(LOG_DEBUG, many, 1) == 0, "what is less severe than log-level is not written");
	log_setup("info", "text");
	many[0] = LOG_STR("name", "a\nb\" c=1");
	write_event(LOG_WARN, many, 1);
	TAP_OK(strstr(line, " warn an event name=\"a\\u000ab\\\" c=1\"\n"), "as text: %s",
		   strchr(line, ' ') ? "quoted" : line);
	return tap_done();
}
