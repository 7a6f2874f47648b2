/* web_address.c - see web_address.h. */
#include "common/web_address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool
web_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
web_is_alnum(char c)
{
	return web_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Copies the host in lower case. False: it is too long or empty. */
static bool
web_copy_host(const char *from, size_t len, WebAddress *to)
{
	if (len == 0 || len > WEB_ADDRESS_HOST_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		to->host[i] = (char) (from[i] >= 'A' && from[i] <= 'Z' ? from[i] + ('a' - 'A') : from[i]);
	to->host[len] = '\0';
	return true;
}

/* Labels of letters, digits, - and _, each of 1 to 63 characters. */
static bool
web_is_name(const char *host)
{
	size_t label = 0;

	for (; *host != '\0'; host++)
	{
		if (*host == '.')
		{
			if (label == 0)
				return false;
			label = 0;
		}
		else if (!web_is_alnum(*host) && *host != '-' && *host != '_')
			return false;
		else if (++label > 63)
			return false;
	}
	return label > 0;
}

/* The last label is a number: resolvers take such a name for an IPv4 address, in forms such as 127.1 or 0x7f000001. */
static bool
web_ends_in_number(const char *host)
{
	size_t len = strlen(host), start;

	for (start = len; start > 0 && host[start - 1] != '.'; start--)
		;
	if (len - start > 1 && host[start] == '0' && host[start + 1] == 'x')
		return true;
	for (size_t i = start; i < len; i++)
	{
		if (!web_is_digit(host[i]))
			return false;
	}
	return len > start;
}

static const char *
web_parse_host(const char *from, size_t len, WebAddress *to)
{
	unsigned char bytes[16];

	to->literal = true;
	if (len > 0 && from[0] == '[')
	{
		if (from[len - 1] != ']' || !web_copy_host(from + 1, len - 2, to) ||
			inet_pton(AF_INET6, to->host, bytes) != 1 || inet_ntop(AF_INET6, bytes, to->host, sizeof(to->host)) == NULL)
			return "have an IPv6 address between its brackets";
		return NULL;
	}
	if (len > 1 && from[len - 1] == '.')
		len--; /* the root's */
	if (!web_copy_host(from, len, to))
		return "have a host of 1 to 253 characters";
	if (web_ends_in_number(to->host))
		return inet_pton(AF_INET, to->host, bytes) == 1 ? NULL : "write an IPv4 address as four decimal numbers";
	to->literal = false;
	return web_is_name(to->host) ? NULL : "have a host of letters, digits, hyphens and dots";
}

/* The text behind the host: "" or ":1234". */
static bool
web_parse_port(const char *from, size_t len, WebAddress *to)
{
	int port = 0;

	if (len == 0)
		return true;
	if (len < 2 || len > 6)
		return false;
	for (size_t i = 1; i < len; i++)
	{
		if (!web_is_digit(from[i]))
			return false;
		port = port * 10 + (from[i] - '0');
	}
	to->port = port;
	return port >= 1 && port <= 65535;
}

const char *
web_address_parse(const char *text, WebAddress *to)
{
	const char *host, *colon;
	size_t authority, len;

	for (const char *c = text; *c != '\0'; c++)
	{
		if (*c <= ' ' || *c > '~' || strchr("\"<>\\^`{|}", *c) != NULL)
			return "have no spaces and no characters outside of ASCII; encode them";
		if (c - text >= WEB_ADDRESS_MAX)
			return "have at most 2048 bytes";
	}
	to->tls = strncasecmp(text, "https://", 8) == 0;
	if (!to->tls && strncasecmp(text, "http://", 7) != 0)
		return "begin with https:// or http://";
	to->port = to->tls ? 443 : 80;
	host = text + (to->tls ? 8 : 7);
	authority = strcspn(host, "/?#");
	to->path = host + authority;
	if (strchr(to->path, '#') != NULL)
		return "have no fragment (#)";
	if (memchr(host, '@', authority) != NULL)
		return "have no user name or password (@)";
	colon = host[0] == '[' ? memchr(host, ']', authority) : memchr(host, ':', authority);
	if (host[0] == '[' && colon != NULL)
		colon++;
	len = colon != NULL ? (size_t) (colon - host) : authority;
	if (len < authority && host[len] != ':')
		return "have nothing but a port behind the host";
	if (!web_parse_port(host + len, authority - len, to))
		return "have a port from 1 to 65535";
	return web_parse_host(host, len, to);
}

void
web_address_write(const WebAddress *address, char text[WEB_ADDRESS_SIZE])
{
	bool ipv6 = strchr(address->host, ':') != NULL;
	char port[8] = "";

	if (address->port != (address->tls ? 443 : 80))
		snprintf(port, sizeof(port), ":%d", address->port);
	snprintf(text, WEB_ADDRESS_SIZE, "http%s://%s%s%s%s%s%s", address->tls ? "s" : "", ipv6 ? "[" : "", address->host,
			 ipv6 ? "]" : "", port, address->path[0] == '/' ? "" : "/", address->path);
}
