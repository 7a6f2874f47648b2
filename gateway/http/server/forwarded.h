/*
 * forwarded.h - for whom a proxy forwards a request: X-Forwarded-For, and Forwarded (RFC 7239). Pure C.
 */
#ifndef FORWARDED_H
#define FORWARDED_H

#include "http/server/head.h"

#include <stdbool.h>
#include <stddef.h>

#define FORWARDED_ADDRESS_MAX 48
#define FORWARDED_PROXIES_MAX 32 /* one behind the other */

/* The elements of a header, of which the last FORWARDED_PROXIES_MAX are kept. All zero: none. */
typedef struct ForwardedList
{
	char addresses[FORWARDED_PROXIES_MAX][FORWARDED_ADDRESS_MAX]; /* element i is at i % FORWARDED_PROXIES_MAX */
	size_t count;
} ForwardedList;

/*
 * Appends the addresses of a header line. An element without one ("unknown", an obfuscated name, anything else) has the
 * empty one. False: the line is malformed, and where its elements begin and end is not known.
 */
extern bool forwarded_read(ForwardedList *list, const char *value, bool rfc7239);
/* Has the request a header that a proxy adds? A client can add one as well. */
extern bool forwarded_has_signs(const Head *head);
/*
 * The address of the client. peer: the other end of the connection, which is replaced if it is a trusted proxy. False:
 * the proxy does not tell the address, a header is malformed, or the two headers differ.
 */
extern bool forwarded_peer(const Head *head, const char *trusted, char peer[FORWARDED_ADDRESS_MAX]);

#endif
