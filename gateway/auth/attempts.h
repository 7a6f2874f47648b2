/*
 * attempts.h - token buckets by name, which limit attempts, in a fixed amount of memory.
 *
 * A bucket holds at most a minute's attempts and fills steadily. A new name has a full one. If all places of a new name
 * are taken, it replaces the fullest bucket there, which limits least.
 */
#ifndef ATTEMPTS_H
#define ATTEMPTS_H

#include <stdint.h>

#define ATTEMPTS_WHOLE 60000u

typedef struct AttemptsBucket
{
	uint64_t key;	 /* a keyed hash of the name; 0: free */
	uint64_t at;	 /* ms: when `tokens` was computed */
	uint64_t tokens; /* ATTEMPTS_WHOLE per attempt; each millisecond adds the number of attempts per minute */
} AttemptsBucket;

#define ATTEMPTS_WAYS 8
#define ATTEMPTS_SETS 2048

typedef struct Attempts
{
	AttemptsBucket buckets[ATTEMPTS_SETS][ATTEMPTS_WAYS]; /* 384 kB */
} Attempts;

/* A keyed hash of a name, never 0. The key is the process's own. */
extern uint64_t attempts_key(const char *name);

/*
 * Takes an attempt of `name`, which has per_minute a minute (0: no limit). Returns 0, or the seconds until the next one
 * is available.
 */
extern int attempts_take(Attempts *attempts, const char *name, int per_minute, uint64_t now_ms);
/* The same for something that counts as several, from 1 to per_minute; more count as per_minute. */
extern int attempts_take_many(Attempts *attempts, const char *name, int count, int per_minute, uint64_t now_ms);
/* How many of its attempts a minute the name has taken and not got back yet, 0 to per_minute. */
extern int attempts_taken(Attempts *attempts, const char *name, int per_minute, uint64_t now_ms);
/* Returns an attempt that must not count. */
extern void attempts_give_back(Attempts *attempts, const char *name, int per_minute, uint64_t now_ms);

#endif
