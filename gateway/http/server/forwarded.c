/*
 * forwarded.c - the elements of X-Forwarded-For and Forwarded; see forwarded.h.
 *
 * An element of X-Forwarded-For is a node: 192.0.2.1, 2001:db8::1 or [2001:db8::1], with or without a port (an IPv6
 * address then needs brackets), or something that is no address, as `unknown`. It has no quotes. An element of
 * Forwarded is a list of parameters, for=192.0.2.1;proto=https, whose `for` is a node; semicolons within quotes do not
 * separate.
 *
 * A proxy appends a comma and its element to what the client has sent. If that ends within quotes, the proxy's element
 * seems to be a part of them, and the client's own the last one. So each line is read from its beginning, strictly; no
 * element of a malformed header counts; and a comma within quotes, which RFC 9110 permits, is malformed here.
 */
#include "http/server/forwarded.h"

#include "support/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NODE_MAX   512 /* bytes of a parameter's value */
#define NAME_CHARS "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-"

/* ---- nodes ---- */

/* ":" and a port, an obfuscated one (RFC 7239 6.3), or nothing. */
static bool
is_port(const char *text)
{
	size_t digits = *text == ':' ? strspn(text + 1, "0123456789") : 0;

	if (*text == '\0')
		return true;
	if (digits > 0 && digits <= 5 && text[1 + digits] == '\0')
		return atoi(text + 1) <= 65535;
	return text[0] == ':' && text[1] == '_' && text[2] != '\0' && text[2 + strspn(text + 2, NAME_CHARS)] == '\0';
}

/* The node's address, or "" if it hides it, or is none. Changes the text. */
static void
read_node(char *text, char address[FORWARDED_ADDRESS_MAX])
{
	char *end = strchr(text, ':');

	address[0] = '\0';
	if (text[0] == '[')
	{
		end = strchr(text, ']');
		if (end == NULL || !is_port(end + 1) || strcspn(text, ":") > (size_t) (end - text))
			return;
		text++;
	}
	else if (end != NULL && strchr(end + 1, ':') != NULL)
		end = text + strlen(text); /* IPv6 without a port */
	else if (end != NULL && !is_port(end))
		return;
	if (end != NULL)
		*end = '\0';
	if (strlen(text) < FORWARDED_ADDRESS_MAX && network_is_address(text))
		strcpy(address, text);
}

/* ---- lines ---- */

static void
skip_blanks(const char **at)
{
	*at += strspn(*at, " \t");
}

static char *
next_address(ForwardedList *list)
{
	char *address = list->addresses[list->count++ % FORWARDED_PROXIES_MAX];

	address[0] = '\0';
	return address;
}

/* An element without quotes, up to the comma behind it. */
static bool
read_plain_element(const char **at, char address[FORWARDED_ADDRESS_MAX])
{
	char node[NODE_MAX];
	size_t len = strcspn(*at, ",");
	int used = (int) len;

	while (used > 0 && ((*at)[used - 1] == ' ' || (*at)[used - 1] == '\t'))
		used--;
	snprintf(node, sizeof(node), "%.*s", used, *at);
	*at += len;
	if (used < NODE_MAX)
		read_node(node, address);
	return memchr(*at - len, '"', len) == NULL;
}

/* A quoted string (RFC 9110 5.6.4) without commas, or the characters of an unquoted value: of a token, a port or a
 * path. */
static bool
read_value(const char **at, char value[NODE_MAX])
{
	bool quoted = **at == '"';
	size_t len = 0;

	*at += quoted;
	for (; quoted ? **at != '"' : head_is_token_char(**at) || (**at != '\0' && strchr(":[]/", **at)); (*at)++)
	{
		if (quoted && **at == '\\')
			(*at)++;
		if (**at == '\0' || **at == ',' || len == NODE_MAX - 1)
			return false;
		value[len++] = **at;
	}
	*at += quoted;
	value[len] = '\0';
	return quoted || len > 0;
}

/* NAME=VALUE, or nothing. Sets the address if it is `for`, of which an element has one. */
static bool
read_parameter(const char **at, int *nodes, char address[FORWARDED_ADDRESS_MAX])
{
	const char *name = *at;
	char value[NODE_MAX];
	size_t len;

	while (head_is_token_char(**at))
		(*at)++;
	if (*at == name)
		return true;
	len = (size_t) (*at - name);
	if (*(*at)++ != '=' || !read_value(at, value))
		return false;
	if (len == 3 && strncasecmp(name, "for", 3) == 0)
	{
		read_node(value, address);
		if (++*nodes > 1)
			address[0] = '\0';
	}
	return true;
}

/* An element of Forwarded, up to the comma behind it. */
static bool
read_element(const char **at, char address[FORWARDED_ADDRESS_MAX])
{
	int nodes = 0;

	for (;; (*at)++)
	{
		skip_blanks(at);
		if (!read_parameter(at, &nodes, address))
			return false;
		skip_blanks(at);
		if (**at != ';')
			return **at == ',' || **at == '\0';
	}
}

bool
forwarded_read(ForwardedList *list, const char *value, bool rfc7239)
{
	for (;; value++)
	{
		skip_blanks(&value);
		if (!(rfc7239 ? read_element : read_plain_element)(&value, next_address(list)))
			return false;
		if (*value == '\0')
			return true;
	}
}

/* ---- requests ---- */

bool
forwarded_has_signs(const Head *head)
{
	static const char *const names[] = {"via",
										"forwarded",
										"client-ip",
										"true-client-ip",
										"x-real-ip",
										"x-client-ip",
										"x-cluster-client-ip",
										"x-proxyuser-ip",
										"x-remote-addr",
										"x-remote-ip",
										"fastly-client-ip",
										"cf-connecting-ip",
										"x-azure-clientip",
										"x-appengine-user-ip"};
	static const char *const prefixes[] = {"x-forwarded", "x-original-", "x-envoy-"};
	bool found = false;

	for (int i = 0; i < head->field_count && !found; i++)
	{
		const char *name = head->fields[i].name;

		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			found |= strcmp(name, names[k]) == 0;
		for (size_t k = 0; k < sizeof(prefixes) / sizeof(prefixes[0]); k++)
			found |= strncmp(name, prefixes[k], strlen(prefixes[k])) == 0;
	}
	return found;
}

/*
 * The last address in the header that is not a trusted proxy: the client may have invented those before it. If all are
 * proxies, the first of them. Empty if that element has no address, or the header is malformed.
 */
static void
forwarded_find(const Head *head, const char *name, bool rfc7239, const char *trusted,
			   char address[FORWARDED_ADDRESS_MAX])
{
	ForwardedList list = {.count = 0};
	size_t kept;

	address[0] = '\0';
	for (int i = 0; i < head->field_count; i++)
		if (strcmp(head->fields[i].name, name) == 0 && !forwarded_read(&list, head->fields[i].value, rfc7239))
			return;
	kept = list.count < FORWARDED_PROXIES_MAX ? list.count : FORWARDED_PROXIES_MAX;
	for (size_t i = 1; i <= kept; i++)
	{
		const char *one = list.addresses[(list.count - i) % FORWARDED_PROXIES_MAX];

		if (i == list.count || !network_list_contains(trusted, one))
		{
			strcpy(address, one);
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

	if (!network_list_contains(trusted, peer) || !forwarded_has_signs(head))
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
