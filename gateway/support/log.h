/*
 * log.h - structured log lines on stderr: one event per line, as text (`event key=value ...`) or JSON.
 *
 * Strings are escaped, so that no client can forge a line.
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

/* The values of the settings log-level and log-format. */
extern void log_setup(const char *level, const char *format);
extern bool log_enabled(LogLevel level);
/* event and keys are constants that need no escaping. */
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

/*
 * Returns memory. If it is NULL, logs that and ends the process, which the supervisor restarts. It is for allocations
 * at start-up and for small state of the process. If any other allocation fails, only its user ends: the session is
 * closed (1011), the request is answered with 503, the query is refused, or the members of a sheet are closed (1012)
 * and reconnect.
 */
extern void *must_have(void *memory);

#endif
