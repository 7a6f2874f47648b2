/* short_copy.h - copying texts that are mostly short, without calling memcpy(). */
#ifndef SHORT_COPY_H
#define SHORT_COPY_H

#include <stdint.h>
#include <string.h>

/* memcpy(), inlined for up to 16 bytes: two moves of the same size, which may overlap. */
static inline void
short_copy(void *to, const void *from, size_t len)
{
	char *t = to;
	const char *f = from;

	if (len > 16)
		memcpy(t, f, len);
	else if (len >= 8)
	{
		uint64_t a, b;

		memcpy(&a, f, 8);
		memcpy(&b, f + len - 8, 8);
		memcpy(t, &a, 8);
		memcpy(t + len - 8, &b, 8);
	}
	else if (len >= 4)
	{
		uint32_t a, b;

		memcpy(&a, f, 4);
		memcpy(&b, f + len - 4, 4);
		memcpy(t, &a, 4);
		memcpy(t + len - 4, &b, 4);
	}
	else if (len > 0)
	{
		t[0] = f[0];
		t[len / 2] = f[len / 2];
		t[len - 1] = f[len - 1];
	}
}

#endif
