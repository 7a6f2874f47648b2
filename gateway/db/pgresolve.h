/*
 * pgresolve.h - the addresses of the servers in a connection string, looked up without stopping the loop; see
 * pgresolve.c.
 */
#ifndef PGRESOLVE_H
#define PGRESOLVE_H

#include <stdbool.h>
#include <uv.h>

/*
 * Parameters for libpq that stand in place of the string's own: lists of the same length, one entry for each address.
 * All NULL when the string names no host that has to be looked up.
 */
typedef struct PgAddresses
{
	const char *hosts;
	const char *addresses;
	const char *ports;
} PgAddresses;

/* addresses NULL: a name could not be looked up, and problem says why. */
typedef void (*PgResolvedFn)(void *arg, const PgAddresses *addresses, const char *problem);

/* Looks up the hosts of conninfo, and calls fn in a later iteration of the loop, or at once when there are none. */
extern void pgresolve(uv_loop_t *loop, const char *conninfo, PgResolvedFn fn, void *arg);
/* fn is not called for this arg any more. */
extern void pgresolve_forget(void *arg);

#endif
