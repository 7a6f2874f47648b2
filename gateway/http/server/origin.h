/* origin.h - which web pages may talk to this gateway; see origin.c. */
#ifndef ORIGIN_H
#define ORIGIN_H

#include <stdbool.h>

/* origin: the header; host: what the client called us. Own page, members' pages, configured origins; never "null" or a
 * wildcard. */
/* Is this a name under which the gateway is reached: an address, localhost, or a name of a setting? `host` is a
 * request's Host, with its port or without. A page that has its own name resolved to our address does not know one. */
extern bool origin_host_is_known(const char *host);
extern bool origin_is_allowed(const char *origin, const char *host);

#endif
