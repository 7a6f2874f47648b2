/*
 * forwarded.c - the items of X-Forwarded-For and Forwarded, from the last to the first; see forwarded.h.
 *
 * An item of X-Forwarded-For is an address: 192.0.2.1, 2001:db8::1 or [2001:db8::1], with or without a port (an IPv6
 * address then needs brackets). An item of Forwarded is a list of parameters, for=192.0.2.1;proto=https, whose `for` is
 * an address as above, or a quoted one; commas and semicolons within quotes do not separate.
 */
#include "http/server/forwarded.h"

#include "support/network.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void
trim(const char **text, size_t *len)
{
	while (*len > 0 && is_blank(**text))
	{
		(*text)++;
		(*len)--;
	}
	while (*len > 0 && is_blank((*text)[*len - 1]))
		(*len)--;
}

/* Start of the part that ends at len: after the last separator outside of quotes. */
static size_t
part_start(const char *value, size_t len, char separator, bool quotes)
{
	size_t start = 0;
	bool quoted = false;

	for (size_t i = 0; i < len; i++)
	{
		if (quotes && value[i] == '"')
			quoted = !quoted;
		else if (quoted && value[i] == '\\')
			i++;
		else if (!quoted && value[i] == separator)
			start = i + 1;
	}
	return start;
}

/* :PORT, or an obfuscated one (RFC 7239 6.3): characters of a name only. */
static bool
is_port(const char *text, size_t len)
{
	if (len == 0)
		return true;
	if (len < 2 || len > 64 || text[0] != ':')
		return false;
	for (size_t i = 1; i < len; i++)
		if (strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-", text[i]) == NULL)
			return false;
	return true;
}

/* Copies the address of a node without brackets and port. Leaves it empty if there is none. */
static void
node_address(const char *text, size_t len, char address[FORWARDED_ADDRESS_MAX])
{
	const char *end = len > 0 ? memchr(text, ']', len) : NULL;
	const char *colon = len > 0 ? memchr(text, ':', len) : NULL;
	size_t host = len;

	if (len > 0 && text[0] == '[')
	{
		if (end == NULL || !is_port(end + 1, (size_t) (text + len - end - 1)))
			return;
		text++;
		host = (size_t) (end - text);
	}
	else if (colon != NULL && memchr(colon + 1, ':', (size_t) (text + len - colon - 1)) == NULL)
	{
		if (!is_port(colon, (size_t) (text + len - colon)))
			return;
		host = (size_t) (colon - text);
	}
	if (host >= FORWARDED_ADDRESS_MAX || memchr(text, '\0', host) != NULL)
		return;
	snprintf(address, FORWARDED_ADDRESS_MAX, "%.*s", (int) host, text);
	if (!network_is_address(address))
		address[0] = '\0';
}

/* The value of a parameter without its quotes; false if it is malformed or too long. */
static bool
unquote(const char **text, size_t *len, char buffer[64])
{
	size_t to = 0;

	if (*len == 0 || **text != '"')
		return memchr(*text, '"', *len) == NULL;
	if (*len < 2 || (*text)[*len - 1] != '"')
		return false;
	for (size_t i = 1; i < *len - 1; i++)
	{
		if ((*text)[i] == '\\' && ++i == *len - 1)
			return false;
		if (to == 64)
			return false;
		buffer[to++] = (*text)[i];
	}
	*text = buffer;
	*len = to;
	return true;
}

/* The address of an element of Forwarded, which must have one `for`. */
static void
element_address(const char *text, size_t len, char address[FORWARDED_ADDRESS_MAX])
{
	const char *node = NULL;
	size_t node_len = 0;
	char buffer[64];

	while (len > 0)
	{
		size_t start = part_start(text, len, ';', true);
		const char *part = text + start;
		size_t part_len = len - start;

		trim(&part, &part_len);
		if (part_len >= 4 && strncasecmp(part, "for=", 4) == 0)
		{
			if (node != NULL)
				return;
			node = part + 4;
			node_len = part_len - 4;
		}
		len = start > 0 ? start - 1 : 0;
	}
	if (node != NULL && unquote(&node, &node_len, buffer))
		node_address(node, node_len, address);
}

void
forwarded_take_last(const char *value, ssize_t *len, bool rfc7239, char address[FORWARDED_ADDRESS_MAX])
{
	size_t start = part_start(value, (size_t) *len, ',', rfc7239);
	const char *item = value + start;
	size_t item_len = (size_t) *len - start;

	address[0] = '\0';
	*len = (ssize_t) start - 1;
	trim(&item, &item_len);
	if (rfc7239)
		element_address(item, item_len, address);
	else
		node_address(item, item_len, address);
}

#define FORWARDED_PROXIES_MAX 32 /* one behind the other */

/*
 * The last address in the header that is not a trusted proxy: the client may have invented those before it. Empty if
 * that item has no address. If all are proxies, the first of them.
 */
static void
forwarded_find(const Head *head, const char *name, bool rfc7239, const char *trusted,
			   char address[FORWARDED_ADDRESS_MAX])
{
	int proxies = 0;

	for (int i = head->field_count - 1; i >= 0; i--)
	{
		const HeadField *field = &head->fields[i];
		ssize_t len = (ssize_t) strlen(field->value);

		while (strcmp(field->name, name) == 0 && len >= 0)
		{
			forwarded_take_last(field->value, &len, rfc7239, address);
			if (!network_list_contains(trusted, address))
				return;
			if (++proxies < FORWARDED_PROXIES_MAX)
				continue;
			address[0] = '\0';
			return;
		}
	}
}

bool
forwarded_peer(const Head *head, const char *trusted, char peer[FORWARDED_ADDRESS_MAX])
{
	bool has_list = head_field(head, "x-forwarded-for") != NULL;
	bool has_forwarded = head_field(head, "forwarded") != NULL;
	char listed[FORWARDED_ADDRESS_MAX] = "", forwarded[FORWARDED_ADDRESS_MAX] = "";

	if ((!has_list && !has_forwarded) || !network_list_contains(trusted, peer))
		return true;
	if (has_list)
		forwarded_find(head, "x-forwarded-for", false, trusted, listed);
	if (has_forwarded)
		forwarded_find(head, "forwarded", true, trusted, forwarded);
	/* The proxy sets one of the two headers, and passes on the client's other one. */
	if (has_list && has_forwarded && strcmp(listed, forwarded) != 0)
		return false;
	strcpy(peer, has_list ? listed : forwarded);
	return peer[0] != '\0';
}
