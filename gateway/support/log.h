/*
 * log.h - structured log lines on stderr: one event a line, as text (`event key=value ...`) or JSON.
 *
 * Fields are typed, so that no line can be forged by what a client sends: strings are escaped.
 */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stddef.h>

typedef enum LogLevel
{
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG
} LogLevel;

typedef struct LogField
{
	const char *key;
	const char *text; /* NULL: a number */
	long long number;
} LogField;

#define LOG_STR(key, value) ((LogField){(key), (value) != NULL ? (value) : "", 0})
#define LOG_INT(key, value) ((LogField){(key), NULL, (long long) (value)})

/* Names as in the setting log-level and log-format; unknown ones are ignored. */
extern void log_setup(const char *level, const char *format);
extern bool log_enabled(LogLevel level);
extern void log_write(LogLevel level, const char *event, const LogField *fields, size_t count);

/* log_event(LOG_INFO, "session closed", LOG_STR("reason", why), LOG_INT("sheet", id)); */
#define log_event(level, event, ...)                                                                                   \
	do                                                                                                                 \
	{                                                                                                                  \
		if (log_enabled(level))                                                                                        \
		{                                                                                                              \
			const LogField log_fields_[] = {__VA_ARGS__};                                                              \
			log_write(level, event, log_fields_, sizeof(log_fields_) / sizeof(log_fields_[0]));                        \
		}                                                                                                              \
	} while (0)

#endif
