/*
 * pgresolve.h - the addresses of the servers in the connection string, looked up without blocking the loop, and which
 * of them to try first.
 */
#ifndef PGRESOLVE_H
#define PGRESOLVE_H

#include "db/pgconninfo.h"

#include <uv.h>

#define PGRESOLVE_ADDRESS 80 /* bytes of an IPv6 address with its scope */

/* One way to a server. */
typedef struct PgAddress
{
	const PgHost *host;
	char address[PGRESOLVE_ADDRESS]; /* "": the host needs none */
} PgAddress;

/* In the order of the string. Shared: pgresolve_unref() frees the last reference. */
typedef struct PgAddresses
{
	int references;
	int count;
	PgAddress list[];
} PgAddresses;

/* problem: why a name could not be looked up, or "". The list may be empty. The function owns the reference. */
typedef void (*PgResolvedFn)(void *arg, PgAddresses *addresses, const char *problem);

/* A request for the addresses. It belongs to the caller, and must live until fn is called or it is forgotten. */
typedef struct PgResolve
{
	struct PgResolve *next;
	PgResolvedFn fn;
	void *arg;
} PgResolve;

/*
 * Looks up the hosts of conninfo, which is the same in every call of a process. Calls fn in a later iteration of the
 * loop, or at once if the addresses are known or none are needed. A name that cannot be looked up keeps its addresses.
 */
extern void pgresolve(uv_loop_t *loop, const char *conninfo, PgResolve *request);
/* Answers a request that waits with what is known, unless that is nothing. Returns whether it did. */
extern bool pgresolve_hurry(PgResolve *request);
extern void pgresolve_forget(PgResolve *request);
extern void pgresolve_unref(PgAddresses *addresses);

/* Index of the address to try first: the one that answered last, or the one after it if that one answers no more. */
extern int pgresolve_first(const PgAddresses *addresses);
extern void pgresolve_set_answers(const PgAddress *address);
/* It does not answer, or its server cannot be used. */
extern void pgresolve_set_fails(const PgAddress *address);

#endif
