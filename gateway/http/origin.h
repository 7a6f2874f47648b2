/* origin.h - which web pages may talk to this gateway; see origin.c. */
#ifndef ORIGIN_H
#define ORIGIN_H

#include <stdbool.h>

/* origin: the header; host: what the client called us. Own page, members' pages, configured origins; never "null" or a
 * wildcard. */
extern bool origin_is_allowed(const char *origin, const char *host);

#endif
