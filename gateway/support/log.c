/*
 * log.c - structured log lines on stderr; see log.h. A line is built in one buffer and written with one write().
 */
#include "support/log.h"

#include "common/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_MAX   16384
#define LOG_STRING_MAX 1024					  /* bytes of a string after escaping; a longer one ends in "..." */
#define LOG_FIELD_MAX  (LOG_STRING_MAX + 128) /* a field is written completely or not at all */

static LogLevel log_level = LOG_INFO;
static bool log_json = false;

static const char *const log_level_names[] = {"error", "warn", "info", "debug"};

void
log_setup(const char *level, const char *format)
{
	for (int i = LOG_ERROR; i <= LOG_DEBUG; i++)
	{
		if (strcmp(level, log_level_names[i]) == 0)
			log_level = (LogLevel) i;
	}
	log_json = strcmp(format, "json") == 0;
}

bool
log_enabled(LogLevel level)
{
	return level <= log_level;
}

typedef struct LogLine
{
	char bytes[LOG_LINE_MAX];
	size_t used;
} LogLine;

static void
log_printf(LogLine *line, const char *format, ...)
{
	size_t room = sizeof(line->bytes) - 1 - line->used; /* without the newline */
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line->bytes + line->used, room, format, args);
	va_end(args);
	line->used += (size_t) len < room ? (size_t) len : room - 1;
}

/*
 * Writes a string in double quotes with JSON's escapes, so that text from a client can neither end the line nor the
 * string. Invalid UTF-8 is escaped by byte. A character is written completely or not at all.
 */
static void
log_put_quoted(LogLine *line, const char *text)
{
	bool utf8 = utf8_check(text, strlen(text), NULL);
	size_t begin = line->used + 1;

	log_printf(line, "\"");
	for (const unsigned char *p = (const unsigned char *) text; *p != '\0'; p++)
	{
		bool continues = utf8 && (*p & 0xC0) == 0x80;

		if (!continues && line->used - begin > LOG_STRING_MAX)
		{
			log_printf(line, "...");
			break;
		}
		if (*p == '"' || *p == '\\')
			log_printf(line, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7F || (*p >= 0x80 && !utf8))
			log_printf(line, "\\u%04x", *p);
		else if (line->used < sizeof(line->bytes) - 2)
			line->bytes[line->used++] = (char) *p;
	}
	log_printf(line, "\"");
}

static void
log_put_time(LogLine *line)
{
	struct timespec now;
	struct tm parts;
	char text[40];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	log_printf(line, "%s.%03ldZ", text, now.tv_nsec / 1000000);
}

static void
log_put_field(LogLine *line, const LogField *field)
{
	log_printf(line, log_json ? ",\"%s\":" : " %s=", field->key);
	if (field->text != NULL)
		log_put_quoted(line, field->text);
	else
		log_printf(line, "%lld", field->number);
}

void
log_write(LogLevel level, const char *event, const LogField *fields, size_t count)
{
	LogLine line;
	ssize_t written;

	if (!log_enabled(level))
		return;
	line.used = 0;
	log_printf(&line, log_json ? "{\"at\":\"" : "");
	log_put_time(&line);
	log_printf(&line, log_json ? "\",\"level\":\"%s\",\"event\":\"%s\"" : " %s %s", log_level_names[level], event);
	for (size_t i = 0; i < count && line.used + LOG_FIELD_MAX <= sizeof(line.bytes); i++)
		log_put_field(&line, &fields[i]);
	log_printf(&line, log_json ? "}" : "");
	line.bytes[line.used++] = '\n';
	written = write(STDERR_FILENO, line.bytes, line.used);
	(void) written; /* there is nowhere to report a failure */
}

void *
must_have(void *memory)
{
	if (memory != NULL)
		return memory;
	log_event(LOG_ERROR, "out of memory", LOG_STR("reason", "the gateway cannot go on without it"));
	abort();
}
