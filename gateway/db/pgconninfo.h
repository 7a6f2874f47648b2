/*
 * pgconninfo.h - the connection string: what libpq makes of it, and connections to one of its servers.
 */
#ifndef PGCONNINFO_H
#define PGCONNINFO_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

#define PGCONNINFO_HOSTS 32

/* A host of the string. Empty: not given, which means the default socket (host) or port. */
typedef struct PgHost
{
	char *host;	   /* a name, an address, or the directory of a socket */
	char *address; /* hostaddr, which makes a lookup of the host unnecessary */
	char *port;
} PgHost;

typedef struct PgConninfo
{
	PQconninfoOption *options; /* with those of the service, the environment and the defaults */
	PgHost hosts[PGCONNINFO_HOSTS];
	int count;
	unsigned attempt_ms; /* time limit of an attempt to connect: connect_timeout, or 5 s */
} PgConninfo;

/* Whether libpq accepts the string, and a gateway can use it. Otherwise problem says why not. */
extern bool pgconninfo_check(const char *conninfo, char *problem, size_t size);
/* The string, which has been checked and is the same in every call of a process. */
extern const PgConninfo *pgconninfo_get(const char *conninfo);
/* Begins a connection to one server. address: the one to use for the host, or "". Returns NULL if there is no memory.
 */
extern PGconn *pgconninfo_start(const PgConninfo *info, const PgHost *host, const char *address, const char *name);

#endif
