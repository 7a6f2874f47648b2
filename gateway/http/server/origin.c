/*
 * origin.c - which web pages may use this gateway: its own, those of present and former members (open pages of a
 * member that has gone need another gateway), and those of the setting allowed-origins. A browser sends Origin with
 * every WebSocket, every POST and every cross-origin request of a script, over TLS and on loopback also Sec-Fetch-Site
 * with every request, and does not let a page forge them.
 */
#include "http/server/origin.h"

#include "core/gateway.h"
#include "support/network.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool
origin_is_configured(const char *origin)
{
	size_t len = strlen(origin);

	for (const char *p = gateway.config.allowed_origins; p != NULL && *p != '\0';)
	{
		size_t item = strcspn(p, ", ");

		if (item == len && strncasecmp(p, origin, len) == 0)
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

	/* Anybody on the way can forge a page that is sent without TLS. */
	if (strncmp(origin, "http://", 7) == 0 && strcmp(gateway_http_scheme(), "http") == 0)
		address = origin + 7;
	else if (strncmp(origin, "https://", 8) == 0)
		address = origin + 8;
	if (address == NULL || *address == '\0')
		return origin_is_configured(origin);
	return strcmp(address, host) == 0 || strcasecmp(address, gateway.config.public_address) == 0 ||
		   (gateway.coord != NULL && coord_was_member(gateway.coord, address)) || origin_is_configured(origin);
}

/* Scheme, host and port are those of the request: a page without TLS is another one than with it. */
static bool
origin_is_own(const char *origin, const char *host)
{
	const char *scheme = gateway_http_scheme();
	size_t len = strlen(scheme);

	return *host != '\0' && strncmp(origin, scheme, len) == 0 && strncmp(origin + len, "://", 3) == 0 &&
		   strcmp(origin + len + 3, host) == 0;
}

Origin
origin_of(const Head *head)
{
	const char *origin = head_field(head, "origin"), *host = head_field(head, "host");
	const char *site = head_field(head, "sec-fetch-site");
	bool same = site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;

	if (host == NULL)
		host = "";
	if (origin != NULL && origin_is_own(origin, host))
		return same ? ORIGIN_SAME : ORIGIN_FOREIGN;
	if (origin != NULL)
		return origin_is_allowed(origin, host) ? ORIGIN_ALLOWED : ORIGIN_FOREIGN;
	if (site == NULL || strcmp(site, "none") == 0)
		return ORIGIN_UNKNOWN;
	if (same)
		return ORIGIN_SAME;
	return strcmp(site, "same-site") == 0 ? ORIGIN_SITE : ORIGIN_FOREIGN;
}

/* Compares the host of an address, "name:port", "[v6]:port" or either without its port. */
static bool
origin_same_host(const char *address, size_t len, const char *name, size_t name_len)
{
	return len >= name_len && strncasecmp(address, name, name_len) == 0 &&
		   (len == name_len || address[name_len] == ':');
}

bool
origin_host_is_known(const char *host)
{
	const char *colon = strrchr(host, ':');
	size_t len = colon != NULL && strchr(colon, ']') == NULL ? (size_t) (colon - host) : strlen(host);
	char name[128];

	if (len == 0 || len >= sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int) len, host);
	if (name[0] == '[' || network_is_address(name) || strcasecmp(name, "localhost") == 0 ||
		origin_same_host(gateway.config.public_address, strlen(gateway.config.public_address), name, len))
		return true;
	for (const char *p = gateway.config.allowed_origins; p != NULL && *p != '\0'; p += strspn(p, ", "))
	{
		size_t item = strcspn(p, ", ");
		const char *address = strstr(p, "://");

		if (address != NULL && address < p + item &&
			origin_same_host(address + 3, (size_t) (p + item - address - 3), name, len))
			return true;
		p += item;
	}
	return false;
}
