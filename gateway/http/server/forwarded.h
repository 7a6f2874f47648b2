/*
 * forwarded.h - what proxies say of whom they forward for: X-Forwarded-For, and Forwarded (RFC 7239). Pure C.
 */
#ifndef FORWARDED_H
#define FORWARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define FORWARDED_ADDRESS_MAX 48

/*
 * Takes the last item off the first *len bytes of a header's value, and sets the address that it names. An item that
 * names no address ("unknown", an obfuscated name, anything malformed) gives the empty address. Afterwards *len is what
 * stands before the item, -1 when it was the first.
 */
extern void forwarded_take_last(const char *value, ssize_t *len, bool rfc7239, char address[FORWARDED_ADDRESS_MAX]);

#endif
