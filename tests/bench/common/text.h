/* text.h - random numbers, and random texts of cells: the same from the same seed. */
#ifndef TEXT_H
#define TEXT_H

#include <stdint.h>

#define TEXT_MAX 15

/* What lies behind the text is zero. */
typedef struct Text
{
	uint8_t len;
	char data[TEXT_MAX];
} Text;

extern uint64_t random_next(uint64_t *state);
/* 0 to TEXT_MAX letters, digits and signs. */
extern void text_make(Text *text, uint64_t *random);

#endif
