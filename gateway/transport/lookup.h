/* lookup.h - the addresses of a host's name, looked up on threads; see lookup.c. */
#ifndef LOOKUP_H
#define LOOKUP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define LOOKUP_ADDRESS		 48
#define LOOKUP_ADDRESSES_MAX 16

/* count 0: the name has no address, or it cannot be found out. */
typedef void (*LookupFn)(void *arg, const char (*addresses)[LOOKUP_ADDRESS], int count);

typedef struct Lookup Lookup;

extern void lookup_start(uv_loop_t *loop);
extern void lookup_stop(void);
/* Calls fn in a later iteration of the loop. NULL: too many names are being looked up, for this account or in all, or
 * no memory. */
extern Lookup *lookup_name(int64_t account, const char *name, LookupFn fn, void *arg);
/* fn is not called. The thread goes on until its answer comes. */
extern void lookup_forget(Lookup *lookup);

#endif
