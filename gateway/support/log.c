/*
 * log.c - structured log lines on stderr; see log.h. A line is built in one buffer and written by one write().
 */
#include "support/log.h"

#include "common/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_MAX   16384
#define LOG_STRING_MAX 1024 /* bytes of one string, as it is written; what is longer ends in "..." */

#define LOG_FIELD_ROOM (LOG_STRING_MAX + 128) /* a field is written whole or not at all */

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
log_put(LogLine *line, const char *text, size_t len)
{
	size_t room = sizeof(line->bytes) - 2 - line->used; /* for the newline */

	if (len > room)
		len = room;
	memcpy(line->bytes + line->used, text, len);
	line->used += len;
}

static void
log_puts(LogLine *line, const char *text)
{
	log_put(line, text, strlen(text));
}

/* One byte, or what stands for it in JSON. Bytes that are no UTF-8 are told by their number. */
static size_t
log_escape(unsigned char byte, bool utf8, char to[8])
{
	if (byte == '"' || byte == '\\')
		return (size_t) snprintf(to, 8, "\\%c", byte);
	if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8))
		return (size_t) snprintf(to, 8, "\\u%04x", byte);
	to[0] = (char) byte;
	return 1;
}

/*
 * A string in double quotes, with JSON's escapes: whatever a client has sent, the line stays one, and JSON. A character
 * is written whole or not at all.
 */
static void
log_put_quoted(LogLine *line, const char *text)
{
	bool utf8 = utf8_check(text, strlen(text), NULL);
	size_t begin;

	log_puts(line, "\"");
	begin = line->used;
	for (const unsigned char *p = (const unsigned char *) text; *p != '\0'; p++)
	{
		bool continues = utf8 && (*p & 0xC0) == 0x80;
		char escape[8];
		size_t len = log_escape(*p, utf8, escape);

		if (!continues && line->used - begin > LOG_STRING_MAX)
		{
			log_puts(line, "...");
			break;
		}
		log_put(line, escape, len);
	}
	log_puts(line, "\"");
}

static void
log_put_time(LogLine *line)
{
	struct timespec now;
	struct tm parts;
	char text[40];
	size_t len;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + len, sizeof(text) - len, ".%03ldZ", now.tv_nsec / 1000000);
	log_puts(line, text);
}

static void
log_put_field(LogLine *line, const LogField *field)
{
	char number[24];

	if (log_json)
	{
		log_puts(line, ",");
		log_put_quoted(line, field->key);
		log_puts(line, ":");
	}
	else
	{
		log_puts(line, " ");
		log_puts(line, field->key);
		log_puts(line, "=");
	}
	if (field->text != NULL)
	{
		log_put_quoted(line, field->text);
		return;
	}
	snprintf(number, sizeof(number), "%lld", field->number);
	log_puts(line, number);
}

void
log_write(LogLevel level, const char *event, const LogField *fields, size_t count)
{
	LogLine line;
	ssize_t written;

	if (!log_enabled(level))
		return;
	line.used = 0;
	log_puts(&line, log_json ? "{\"at\":\"" : "");
	log_put_time(&line);
	log_puts(&line, log_json ? "\",\"level\":\"" : " ");
	log_puts(&line, log_level_names[level]);
	log_puts(&line, log_json ? "\",\"event\":" : " ");
	if (log_json)
		log_put_quoted(&line, event);
	else
		log_puts(&line, event);
	for (size_t i = 0; i < count && line.used + LOG_FIELD_ROOM <= sizeof(line.bytes); i++)
		log_put_field(&line, &fields[i]);
	log_puts(&line, log_json ? "}" : "");
	line.bytes[line.used++] = '\n';
	written = write(STDERR_FILENO, line.bytes, line.used);
	(void) written; /* nowhere to complain */
}
