/*
 * tap.h - results of a unit test in the Test Anything Protocol: TAP_OK() for each promise, `return tap_done();` at the
 * end of main.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_count, tap_failures;

/* One result. The name says what is promised; what helps to understand a failure goes into it too. */
__attribute__((format(printf, 3, 4))) static inline bool
tap_ok(bool good, const char *place, const char *format, ...)
{
	va_list args;

	printf("%s %d - ", good ? "ok" : "not ok", ++tap_count);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	if (!good)
	{
		tap_failures++;
		printf("# failed at %s\n", place);
	}
	fflush(stdout);
	return good;
}

#define TAP_STRING_(x)	  x
#define TAP_STRING(x)	  #x
#define TAP_PLACE_(f, l)  f ":" TAP_STRING(l)
#define TAP_PLACE(f, l)	  TAP_PLACE_(f, l)
#define TAP_OK(good, ...) tap_ok(good, TAP_PLACE(__FILE__, __LINE__), __VA_ARGS__)

static inline int
tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failures > 0;
}

/* How many random steps a test takes: `few` in make check, `many` in make check-long. */
static inline unsigned
steps_to_run(unsigned few, unsigned many)
{
	return getenv("LONG") ? many : few;
}

#endif
