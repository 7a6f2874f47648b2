/*
 * origin.c - which web pages may talk to this gateway: those that it serves itself, those of other members
 * (also of members that are gone: their open pages need another gateway), and those in the setting allowed-origins. A
 * browser sends Origin with every WebSocket and every cross-origin request, and does not let a page forge it.
 */
#include "origin.h"

#include "gateway.h"

#include <string.h>

static bool
origin_is_configured(const char *origin)
{
	size_t len = strlen(origin);

	for (const char *p = gateway.config.allowed_origins; p != NULL && *p != '\0';)
	{
		size_t item = strcspn(p, ", ");

		if (item == len && strncmp(p, origin, len) == 0)
			return true;
		p += item;
		p += strspn(p, ", ");
	}
	return false;
}

bool
origin_is_allowed(const char *origin, const char *host)
{
	const char *address = NULL;

	/* A page that came without TLS is anybody's who sits on the way. */
	if (strncmp(origin, "http://", 7) == 0 && strcmp(gateway_http_scheme(), "http") == 0)
		address = origin + 7;
	else if (strncmp(origin, "https://", 8) == 0)
		address = origin + 8;
	if (address == NULL || *address == '\0')
		return origin_is_configured(origin);
	return strcmp(address, host) == 0 || strcmp(address, gateway.config.public_address) == 0 ||
		   (gateway.coord != NULL && coord_was_member(gateway.coord, address)) || origin_is_configured(origin);
}
