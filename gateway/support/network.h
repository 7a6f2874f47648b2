/* network.h - lists of networks such as "127.0.0.0/8, 10.1.2.3, ::1, fd00::/8", and whether an address is in one. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stdbool.h>

#define NETWORK_NAME_MAX 48
#define NETWORK_LOOPBACK "127.0.0.0/8,::1"

/* Is every item an address, with or without a length in bits? The empty list is one. */
extern bool network_list_is_valid(const char *list);
extern bool network_is_address(const char *text);
/* An address of IPv4 within IPv6 (::ffff:a.b.c.d) is taken as what it is. False for what is not an address. */
extern bool network_list_contains(const char *list, const char *address);

/*
 * Whose the address is: itself for IPv4, its /64 for IPv6, of which whoever has one address has them all. What is no
 * address is copied.
 */
extern void network_holder(const char *address, char to[NETWORK_NAME_MAX]);

#endif
