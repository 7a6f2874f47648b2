/* text.c - see text.h. */
#include "text.h"

#include <string.h>

/* splitmix64 */
uint64_t
random_next(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;

	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}

void
text_make(Text *text, uint64_t *random)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
	uint64_t bits = random_next(random);

	memset(text, 0, sizeof(*text));
	text->len = bits >> 60;
	for (int i = 0; i < text->len; i++, bits >>= 6)
	{
		if (i == 8)
			bits = random_next(random);
		text->data[i] = letters[bits & 63];
	}
}
