/* network.c - lists of networks; see network.h. */
#include "support/network.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPPED_BITS 96 /* of ::ffff:0:0/96 */

/* An address of 128 bits. IPv4 is mapped to ::ffff:0:0/96. */
typedef struct Network
{
	unsigned char bytes[16];
	int bits;
} Network;

static const unsigned char mapped[12] = {[10] = 0xFF, [11] = 0xFF}; /* prefix of mapped IPv4 addresses */

static bool
network_parse_address(const char *text, Network *to)
{
	if (inet_pton(AF_INET6, text, to->bytes) == 1)
		return true;
	memcpy(to->bytes, mapped, sizeof(mapped));
	return inet_pton(AF_INET, text, to->bytes + sizeof(mapped)) == 1;
}

/* Parses an item of a list, without its comma. */
static bool
network_parse(const char *item, size_t len, Network *to)
{
	char text[64];
	char *slash, *end;
	long bits;
	bool ipv4;

	while (len > 0 && *item == ' ')
	{
		item++;
		len--;
	}
	while (len > 0 && item[len - 1] == ' ')
		len--;
	if (len == 0 || len >= sizeof(text))
		return false;
	memcpy(text, item, len);
	text[len] = '\0';
	ipv4 = strchr(text, ':') == NULL;
	slash = strchr(text, '/');
	to->bits = 128;
	if (slash != NULL)
	{
		*slash = '\0';
		bits = strtol(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end != '\0' || bits < 0 || bits > (ipv4 ? 32 : 128))
			return false;
		to->bits = (int) bits + (ipv4 ? MAPPED_BITS : 0);
	}
	return network_parse_address(text, to);
}

static bool
network_has(const Network *network, const Network *address)
{
	int whole = network->bits / 8, rest = network->bits % 8;

	if (memcmp(network->bytes, address->bytes, (size_t) whole) != 0)
		return false;
	return rest == 0 || (network->bytes[whole] ^ address->bytes[whole]) >> (8 - rest) == 0;
}

/* Parses the first item of *list and advances *list behind it; to NULL at the end. Returns false if it is malformed. */
static bool
network_next(const char **list, Network *to)
{
	size_t len = strcspn(*list, ",");
	bool valid = network_parse(*list, len, to);

	*list = (*list)[len] != '\0' ? *list + len + 1 : NULL;
	return valid;
}

bool
network_list_is_valid(const char *list)
{
	Network network;
	bool valid = true;

	if (*list == '\0')
		return true;
	while (valid && list != NULL)
		valid = network_next(&list, &network);
	return valid;
}

bool
network_is_address(const char *text)
{
	Network address;

	return network_parse_address(text, &address);
}

bool
network_list_contains(const char *list, const char *address)
{
	Network network, one;
	bool found = false;

	if (!network_parse(address, strlen(address), &one) || one.bits != 128)
		return false;
	while (!found && list != NULL)
		found = network_next(&list, &network) && network_has(&network, &one);
	return found;
}

/* https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry. */
#define NETWORK_SPECIAL_IPV4                                                                                           \
	"0.0.0.0/8,10.0.0.0/8,100.64.0.0/10,127.0.0.0/8,169.254.0.0/16,172.16.0.0/12,192.0.0.0/24,192.0.2.0/24,"           \
	"192.31.196.0/24,192.52.193.0/24,192.88.99.0/24,192.168.0.0/16,192.175.48.0/24,198.18.0.0/15,198.51.100.0/24,"     \
	"203.0.113.0/24,224.0.0.0/3"
#define NETWORK_GLOBAL_IPV6	 "2000::/3"
#define NETWORK_SPECIAL_IPV6 "2001::/23,2001:db8::/32,2002::/16,2620:4f:8000::/48,3fff::/20"
#define NETWORK_NAT64		 "64:ff9b::/96"

bool
network_is_special(const char *address)
{
	Network network;
	char embedded[INET_ADDRSTRLEN];

	if (!network_parse_address(address, &network))
		return true;
	if (network_list_contains(NETWORK_NAT64, address) || memcmp(network.bytes, mapped, sizeof(mapped)) == 0)
	{
		inet_ntop(AF_INET, network.bytes + sizeof(mapped), embedded, sizeof(embedded));
		return network_list_contains(NETWORK_SPECIAL_IPV4, embedded);
	}
	return !network_list_contains(NETWORK_GLOBAL_IPV6, address) || network_list_contains(NETWORK_SPECIAL_IPV6, address);
}

const char *
network_split(const char *address, char host[NETWORK_HOST_MAX])
{
	const char *colon = strrchr(address, ':');
	bool brackets = address[0] == '[' && colon > address && colon[-1] == ']';

	if (colon == NULL || colon - address < 1 + 2 * brackets || colon - address >= NETWORK_HOST_MAX)
		return NULL;
	snprintf(host, NETWORK_HOST_MAX, "%.*s", (int) (colon - address) - 2 * brackets, address + brackets);
	return colon + 1;
}

void
network_holder(const char *address, char to[NETWORK_NAME_MAX])
{
	Network network;

	if (!network_parse_address(address, &network))
		snprintf(to, NETWORK_NAME_MAX, "%s", address);
	else if (memcmp(network.bytes, mapped, sizeof(mapped)) == 0)
		inet_ntop(AF_INET, network.bytes + sizeof(mapped), to, NETWORK_NAME_MAX);
	else
	{
		memset(network.bytes + 8, 0, 8);
		inet_ntop(AF_INET6, network.bytes, to, NETWORK_NAME_MAX);
	}
}
