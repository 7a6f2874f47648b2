/*
 * forwarded.h - for whom a proxy forwards a request: X-Forwarded-For, and Forwarded (RFC 7239). Pure C.
 */
#ifndef FORWARDED_H
#define FORWARDED_H

#include "http/server/head.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define FORWARDED_ADDRESS_MAX 48

/*
 * Takes the last item off the first *len bytes of a header's value, and sets its address. An item without an address
 * ("unknown", an obfuscated name, anything malformed) gives the empty one. Sets *len to the bytes before the item, -1
 * if it was the first.
 */
extern void forwarded_take_last(const char *value, ssize_t *len, bool rfc7239, char address[FORWARDED_ADDRESS_MAX]);
/*
 * The address of the client. peer: the other end of the connection, which is replaced if it is a trusted proxy. False:
 * the proxy does not tell the address, or its two headers differ.
 */
extern bool forwarded_peer(const Head *head, const char *trusted, char peer[FORWARDED_ADDRESS_MAX]);

#endif
