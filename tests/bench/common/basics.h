/* basics.h - what every program of a benchmark needs. */
#ifndef BASICS_H
#define BASICS_H

#include <stddef.h>
#include <stdint.h>

/* Ends the program: a benchmark has no use for half a run. */
extern void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
extern void *allocate(size_t size); /* zeroed */
extern int64_t now_ns(void);

#endif
