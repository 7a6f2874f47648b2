/*
 * peers.c - the connected addresses, and the number of connections of each.
 *
 * An IPv6 user can choose any address of a /64, so a /64 counts as one address. An entry exists while it has
 * connections: max-connections bounds the table.
 */
#include "http/server/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS_BUCKETS 4096

static Peer *peers_table[PEERS_BUCKETS];

static void
peers_name(const struct sockaddr *from, char *address, char *key)
{
	strcpy(address, "?");
	if (from->sa_family == AF_INET)
		(void) inet_ntop(AF_INET, &((const struct sockaddr_in *) from)->sin_addr, address, 48);
	else if (from->sa_family == AF_INET6)
	{
		struct in6_addr network = ((const struct sockaddr_in6 *) from)->sin6_addr;

		(void) inet_ntop(AF_INET6, &network, address, 48);
		if (!IN6_IS_ADDR_V4MAPPED(&network))
		{
			memset(network.s6_addr + 8, 0, 8);
			(void) inet_ntop(AF_INET6, &network, key, 48);
			return;
		}
	}
	strcpy(key, address);
}

static Peer **
peers_bucket(const char *key)
{
	uint32_t hash = 2166136261u;

	for (; *key != '\0'; key++)
		hash = (hash ^ (unsigned char) *key) * 16777619u;
	return &peers_table[hash % PEERS_BUCKETS];
}

Peer *
peers_enter(const struct sockaddr *from, char *address)
{
	char key[48];
	Peer **bucket;
	Peer *peer;

	peers_name(from, address, key);
	bucket = peers_bucket(key);
	for (peer = *bucket; peer != NULL && strcmp(peer->key, key) != 0; peer = peer->next)
		;
	if (peer == NULL)
	{
		peer = calloc(1, sizeof(Peer));
		if (peer == NULL)
			return NULL;
		strcpy(peer->key, key);
		peer->next = *bucket;
		*bucket = peer;
	}
	peer->connections++;
	return peer;
}

void
peers_leave(Peer *peer)
{
	Peer **link = peers_bucket(peer->key);

	if (--peer->connections > 0)
		return;
	while (*link != peer)
		link = &(*link)->next;
	*link = peer->next;
	free(peer);
}
