/*
 * attempts.h - token buckets by name: who may try how often. A fixed amount of memory, whoever comes.
 *
 * A bucket holds at most a minute's attempts, and fills steadily. A name that is not known has a full one. When a
 * newcomer finds its places taken, the fullest bucket there makes room: it is the one that restrains least.
 */
#ifndef ATTEMPTS_H
#define ATTEMPTS_H

#include <stdint.h>

#define ATTEMPTS_WHOLE 60000u

typedef struct AttemptsBucket
{
	uint64_t key;	 /* a keyed hash of the name; 0: free */
	uint64_t at;	 /* ms: when `tokens` was right */
	uint64_t tokens; /* ATTEMPTS_WHOLE for each; a millisecond fills in as many as there are attempts a minute */
} AttemptsBucket;

#define ATTEMPTS_WAYS 8
#define ATTEMPTS_SETS 2048

typedef struct Attempts
{
	AttemptsBucket buckets[ATTEMPTS_SETS][ATTEMPTS_WAYS]; /* 384 kB */
} Attempts;

/* A keyed hash of a name, never 0: different in each process. */
extern uint64_t attempts_key(const char *name);

/*
 * Takes an attempt of `name`, of which there are per_minute a minute (0: any number). Returns 0, or the seconds until
 * there is another one.
 */
extern int attempts_take(Attempts *attempts, const char *name, int per_minute, uint64_t now_ms);
/* Gives one back: it was not to be counted after all. */
extern void attempts_give_back(Attempts *attempts, const char *name, int per_minute, uint64_t now_ms);

#endif
