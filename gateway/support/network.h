/* network.h - lists of networks such as "127.0.0.0/8, 10.1.2.3, ::1, fd00::/8", and whether an address is in one. */
#ifndef NETWORK_H
#define NETWORK_H

#include <stdbool.h>

#define NETWORK_NAME_MAX 48
#define NETWORK_LOOPBACK "127.0.0.0/8,::1"
#define NETWORK_HOST_MAX 256

/* Whether every item is an address, optionally with a prefix length. The empty list is valid. */
extern bool network_list_is_valid(const char *list);
extern bool network_is_address(const char *text);
/* An IPv4-mapped address (::ffff:a.b.c.d) counts as IPv4. Returns false for text that is no address. */
extern bool network_list_contains(const char *list, const char *address);

/*
 * Whether the address is not one of the public Internet, by IANA's registries of special-purpose addresses: loopback,
 * private, link-local, shared, documentation, multicast, and others. An IPv6 address that stands for an IPv4 address
 * (mapped, NAT64) is judged by that. True for text that is no address.
 */
extern bool network_is_special(const char *address);

/* Splits host:port, or [host]:port, whose host is copied without the brackets. Returns the port; NULL if there is none.
 */
extern const char *network_split(const char *address, char host[NETWORK_HOST_MAX]);

/*
 * Writes the network that one user controls: the address itself for IPv4, its /64 for IPv6. Text that is no address is
 * copied.
 */
extern void network_holder(const char *address, char to[NETWORK_NAME_MAX]);

#endif
