/*
 * random.h - random numbers that are the same in each run (Vigna, "An experimental exploration of Marsaglia's xorshift
 * generators": xorshift64*).
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

static uint64_t random_state = 0x9E3779B97F4A7C15ULL;

static inline uint64_t
random_next(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 2685821657736338717ULL;
}

static inline uint32_t
random_below(uint32_t limit)
{
	return (uint32_t) (random_next() >> 32) % limit;
}

#endif
