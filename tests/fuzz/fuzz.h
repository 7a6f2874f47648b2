/*
 * fuzz.h - the driver of a fuzz target. With clang and -DLIBFUZZER it is libFuzzer's; otherwise main() below runs the
 * files it is given, or, for a number of seconds, inputs put together at random from the target's own words and bytes.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends with NULL; pieces that inputs are made of. */
static const char *const fuzz_words[];

#ifndef LIBFUZZER
static uint64_t fuzz_state = 1;

static inline unsigned
fuzz_random(unsigned below)
{
	/* xorshift64* (Vigna 2014) */
	fuzz_state ^= fuzz_state >> 12;
	fuzz_state ^= fuzz_state << 25;
	fuzz_state ^= fuzz_state >> 27;
	return (unsigned) (fuzz_state * 0x2545f4914f6cdd1du >> 33) % below;
}

static inline size_t
fuzz_make(uint8_t *to, size_t size, unsigned words)
{
	size_t len = 0;

	for (unsigned pieces = 1 + fuzz_random(24); pieces > 0; pieces--)
	{
		const char *word = fuzz_words[fuzz_random(words)];
		size_t word_len = strlen(word);

		if (fuzz_random(8) == 0)
			to[len++] = (uint8_t) fuzz_random(256);
		else if (len + word_len < size - 2)
		{
			memcpy(to + len, word, word_len);
			len += word_len;
		}
		if (len > 0 && fuzz_random(16) == 0)
			to[fuzz_random((unsigned) len)] ^= (uint8_t) (1 << fuzz_random(8));
		if (len > 0 && fuzz_random(32) == 0)
			len -= fuzz_random((unsigned) len);
	}
	return len;
}

int
main(int argc, char **argv)
{
	static uint8_t input[65536];
	time_t end;
	unsigned words = 0;
	unsigned long long runs = 0;

	if (argc == 3 && strcmp(argv[1], "--seconds") == 0)
	{
		while (fuzz_words[words])
			words++;
		fuzz_state = (uint64_t) time(NULL) << 20 | 1;
		printf("# seed %llu\n", (unsigned long long) fuzz_state);
		fflush(stdout);
		for (end = time(NULL) + atoi(argv[2]); time(NULL) < end; runs++)
			LLVMFuzzerTestOneInput(input, fuzz_make(input, sizeof(input), words));
		printf("ok - %s: %llu inputs\n", argv[0], runs);
		return 0;
	}
	for (int i = 1; i < argc; i++)
	{
		FILE *file = fopen(argv[i], "rb");

		if (!file)
			return 1;
		LLVMFuzzerTestOneInput(input, fread(input, 1, sizeof(input), file));
		fclose(file);
	}
	return 0;
}
#endif

#endif
