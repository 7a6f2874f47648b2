/* origin.h - which web pages may use this gateway; see origin.c. */
#ifndef ORIGIN_H
#define ORIGIN_H

#include <stdbool.h>

/* origin: the header Origin. host: the header Host. */
extern bool origin_is_allowed(const char *origin, const char *host);
/* Is the gateway reached by this name: an address, localhost, or a name of a setting? host may have a port. A page
 * whose own name resolves to our address (DNS rebinding) does not know such a name. */
extern bool origin_host_is_known(const char *host);

#endif
