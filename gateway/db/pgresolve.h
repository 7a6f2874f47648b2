/*
 * pgresolve.h - looks up the servers in a connection string without blocking the loop.
 */
#ifndef PGRESOLVE_H
#define PGRESOLVE_H

#include <uv.h>

/*
 * Parameters for libpq that replace the string's own: lists of equal length with an entry for each address. All are
 * NULL if the string names no host that must be looked up.
 */
typedef struct PgAddresses
{
	const char *hosts;
	const char *addresses;
	const char *ports;
} PgAddresses;

/* addresses is NULL if no host could be looked up; problem then says why. */
typedef void (*PgResolvedFn)(void *arg, const PgAddresses *addresses, const char *problem);

/* A request for the addresses. It belongs to the caller, and must live until fn is called or it is forgotten. */
typedef struct PgResolve
{
	struct PgResolve *next;
	PgResolvedFn fn;
	void *arg;
} PgResolve;

/*
 * Looks up the hosts of conninfo, which is the same in every call of a process. Calls fn in a later iteration of the
 * loop, or at once if the addresses are known or none are needed.
 */
extern void pgresolve(uv_loop_t *loop, const char *conninfo, PgResolve *request);
extern void pgresolve_forget(PgResolve *request);

#endif
