/*
 * fuzz.h - what the fuzz targets share. libFuzzer (clang -fsanitize=fuzzer) calls LLVMFuzzerTestOneInput() with one
 * input after another; a promise that is broken ends the run, and libFuzzer keeps the input.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(good)                                                                                               \
	do                                                                                                                 \
	{                                                                                                                  \
		if (!(good))                                                                                                   \
		{                                                                                                              \
			fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #good);                             \
			abort();                                                                                                   \
		}                                                                                                              \
	} while (0)

/* A heap block of exactly these bytes, so that the sanitizer sees a byte too far. */
static inline char *
fuzz_copy(const void *data, size_t size)
{
	char *copy = malloc(size > 0 ? size : 1);

	FUZZ_CHECK(copy != NULL);
	if (size > 0)
		memcpy(copy, data, size);
	return copy;
}

/* The same with a NUL behind them; shorter when there is a NUL among them. */
static inline char *
fuzz_text(const void *data, size_t size)
{
	char *text = malloc(size + 1);

	FUZZ_CHECK(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

#endif
