/* origin.h - which web pages may use this gateway; see origin.c. */
#ifndef ORIGIN_H
#define ORIGIN_H

#include "http/server/head.h"

#include <stdbool.h>

/* Whose page has sent a request. */
typedef enum Origin
{
	ORIGIN_UNKNOWN, /* not a page, or a browser that does not tell */
	ORIGIN_SAME,	/* of this gateway */
	ORIGIN_ALLOWED, /* of another gateway, or of allowed-origins */
	ORIGIN_SITE,	/* of another origin of the same site, which is not known: as a picture of the page */
	ORIGIN_FOREIGN
} Origin;

/* By the headers Origin and Sec-Fetch-Site, which pages cannot forge. */
extern Origin origin_of(const Head *head);

/* origin: the header Origin. host: the header Host. */
extern bool origin_is_allowed(const char *origin, const char *host);
/* Is the gateway reached by this name: an address, localhost, or a name of a setting? host may have a port. A page
 * whose own name resolves to our address (DNS rebinding) does not know such a name. */
extern bool origin_host_is_known(const char *host);

#endif
