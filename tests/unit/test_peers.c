/*
 * test_peers.c - who has a place among the connections, and who makes room for whom.
 */
#include "http/server/peers.h"

#include "core/gateway.h"
#include "core/metrics.h"
#include "tap.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

Metrics metrics;
Gateway gateway; /* of which the loop's clock, the limits and the number of connections are used */

typedef struct Client
{
	Place *place;
	PlaceUse use;
	bool ended;
} Client;

static PlaceUse
client_use(const void *owner)
{
	return ((const Client *) owner)->use;
}

static void
client_end(void *owner)
{
	((Client *) owner)->ended = true;
}

static const PlaceOwner client_owner = {client_use, client_end};
static PlaceRefusal refusal;

static bool
take_as(Client *client, const char *address, bool is_operator)
{
	struct sockaddr_in from4 = {.sin_family = AF_INET};
	struct sockaddr_in6 from6 = {.sin6_family = AF_INET6};
	bool is4 = inet_pton(AF_INET, address, &from4.sin_addr) == 1;
	char text[PEERS_ADDRESS_MAX];

	if (!is4)
		inet_pton(AF_INET6, address, &from6.sin6_addr);
	*client = (Client){0};
	client->place =
		place_take(is4 ? (struct sockaddr *) &from4 : (struct sockaddr *) &from6, is_operator, text, &refusal);
	if (client->place == NULL)
		return false;
	place_set_owner(client->place, &client_owner, client);
	return strcmp(text, address) == 0 && strcmp(place_address(client->place), address) == 0;
}

static bool
take(Client *client, const char *address)
{
	return take_as(client, address, false);
}

static int
count_ended(const Client *clients, int n)
{
	int count = 0;

	for (int i = 0; i < n; i++)
		count += clients[i].ended;
	return count;
}

static void
leave_all(Client *clients, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (clients[i].place != NULL)
			place_give_up(clients[i].place);
	}
	memset(clients, 0, (size_t) n * sizeof(Client));
}

#define FULL 40
static Client crowd[FULL], others[FULL];

static void
test_full(void)
{
	char address[32];
	bool taken = true;

	for (int i = 0; i < FULL; i++)
	{
		snprintf(address, sizeof(address), "10.0.0.%d", 1 + i % 4);
		taken &= take(&crowd[i], address);
	}
	TAP_OK(taken && gateway.connections == FULL && count_ended(crowd, FULL) == 0, "all places are taken");
	TAP_OK(take(&others[0], "10.0.1.1") && count_ended(crowd, FULL) == 1 && gateway.connections == FULL,
		   "another address gets a place of those that have ten");
	for (int i = 1; i < 8; i++)
		taken &= take(&others[i], "10.0.1.1");
	TAP_OK(taken && count_ended(others, FULL) == 0 && count_ended(crowd, FULL) == 8,
		   "and more of them, up to as many as each of the others");
	for (int i = 0; i < 1000; i++)
	{
		Client again;

		taken &= take(&again, "10.0.0.1");
		place_give_up(again.place);
	}
	TAP_OK(taken && count_ended(others, FULL) <= 2, "who comes again and again takes places of his own address");
	leave_all(crowd, FULL);
	leave_all(others, FULL);
	TAP_OK(gateway.connections == 0, "all have left");
}

static void
test_idle(void)
{
	for (int i = 0; i < FULL; i++)
	{
		(void) take(&crowd[i], "10.0.0.1");
		crowd[i].use = i == 5 ? PLACE_IDLE : i == 0 ? PLACE_SERVED : PLACE_BUSY;
	}
	TAP_OK(take(&others[0], "10.0.1.1") && crowd[5].ended, "an idle connection ends before busy ones");
	TAP_OK(take(&others[1], "10.0.1.1") && crowd[1].ended, "then the oldest");
	leave_all(crowd, FULL);
	leave_all(others, FULL);
}

static void
test_accounts(void)
{
	char address[32];
	bool taken = true;

	for (int i = 0; i < FULL; i++)
	{
		snprintf(address, sizeof(address), "10.0.0.%d", 1 + i % 4);
		(void) take(&crowd[i], address);
		if (i < FULL / 2)
			place_sign_in(crowd[i].place, 1 + i % 10);
	}
	for (int i = 0; i < FULL / 2; i++)
	{
		taken &= take(&others[i], "10.0.1.1");
		place_sign_in(others[i].place, 100 + i);
	}
	TAP_OK(taken && count_ended(crowd, FULL / 2) == 0 && count_ended(crowd, FULL) == FULL / 2,
		   "who has shown a token keeps the place while there are others");
	TAP_OK(take(&others[20], "10.0.2.1") && count_ended(crowd, FULL / 2) == 1 && count_ended(others, FULL) == 0,
		   "then an account that has two of them loses one");
	place_sign_in(others[20].place, 200);
	for (int i = 21; i < 30; i++)
	{
		taken &= take(&others[i], "10.0.2.1");
		place_sign_in(others[i].place, 200 + i);
	}
	TAP_OK(taken && count_ended(crowd, FULL / 2) == 10 && gateway.connections == FULL, "until each account has one");
	TAP_OK(!take(&others[30], "10.0.2.1") && refusal == PLACE_GATEWAY_FULL && gateway.connections == FULL,
		   "then the gateway is full");
	leave_all(crowd, FULL);
	leave_all(others, FULL);
}

static void
test_one_account(void)
{
	char address[32];
	bool taken = true;

	for (int i = 0; i < FULL; i++)
	{
		snprintf(address, sizeof(address), "10.0.0.%d", i);
		(void) take(&crowd[i], address);
		place_sign_in(crowd[i].place, 7);
		place_sign_in(crowd[i].place, 7);
	}
	for (int i = 0; i < FULL; i++)
	{
		snprintf(address, sizeof(address), "10.0.1.%d", i);
		taken &= take(&others[i], address);
	}
	TAP_OK(taken && count_ended(crowd, FULL / 8) == 0 && count_ended(crowd, FULL) > FULL / 2,
		   "an account keeps an eighth of the places against others");
	leave_all(crowd, FULL);
	leave_all(others, FULL);
}

static void
test_address(void)
{
	bool taken = true;

	gateway.config.max_connections_per_address = 8;
	for (int i = 0; i < 8; i++)
		taken &= take(&crowd[i], "2001:db8::1");
	TAP_OK(taken && !take(&others[0], "2001:db8::2") && refusal == PLACE_ADDRESS_FULL,
		   "an address has its limit, and a /64 is one");
	TAP_OK(take(&others[1], "2001:db8:0:1::2"), "another one has its own");
	place_sign_in(crowd[0].place, 1);
	gateway.loop.time += 10000;
	TAP_OK(take(&others[0], "2001:db8::2") && crowd[1].ended && !crowd[0].ended,
		   "who says nothing for a while makes room for others of the address");
	leave_all(crowd, FULL);
	leave_all(others, FULL);
	for (int i = 0; i < 8; i++)
	{
		(void) take(&crowd[i], "10.0.0.1");
		place_sign_in(crowd[i].place, 1 + i);
	}
	gateway.loop.time += 10000;
	TAP_OK(!take(&others[0], "10.0.0.1") && refusal == PLACE_ADDRESS_FULL, "who has shown a token does not");
	leave_all(crowd, FULL);
	for (int i = 0; i < 8; i++)
	{
		(void) take(&crowd[i], "10.0.0.1");
		place_sign_in(crowd[i].place, 1);
	}
	gateway.loop.time += 10000;
	for (int i = 0; i < 8; i++)
		place_sign_in(crowd[i].place, 1);
	for (int i = 0; i < 7; i++)
		taken &= take(&others[i], "10.0.0.1");
	TAP_OK(taken && !crowd[0].ended && count_ended(crowd, 8) == 7,
		   "beyond an account's share, its requests do not renew its places");
	leave_all(crowd, FULL);
	leave_all(others, FULL);
	for (int i = 0; i < 8; i++)
	{
		(void) take(&crowd[i], "10.0.0.1");
		crowd[i].use = i == 7 ? PLACE_BUSY : PLACE_SERVED;
	}
	gateway.loop.time += 10000;
	TAP_OK(take(&others[0], "10.0.0.1") && crowd[7].ended && !take(&others[1], "10.0.0.1") &&
			   refusal == PLACE_ADDRESS_FULL && count_ended(crowd, 8) == 1,
		   "who waits for an answer does not lose it to others of the address");
	leave_all(crowd, FULL);
	leave_all(others, FULL);
}

static void
test_operators(void)
{
	bool taken = true;

	gateway.config.max_connections_per_address = 8;
	taken &= take_as(&others[0], "127.0.0.1", true);
	place_sign_in(others[0].place, 1);
	taken &= place_set_client(others[0].place, "10.0.0.1");
	for (int i = 0; i < FULL; i++)
	{
		char address[32];

		snprintf(address, sizeof(address), "10.0.0.%d", 1 + i);
		taken &= take(&crowd[i], address);
		place_sign_in(crowd[i].place, 1 + i);
	}
	TAP_OK(taken && !others[0].ended && gateway.connections == FULL, "operators are not among the others");
	for (int i = 1; i < 32; i++)
		taken &= take_as(&others[i], "127.0.0.1", true);
	TAP_OK(taken && count_ended(crowd, FULL) + count_ended(others, FULL) == 0, "of whom they displace none");
	for (int i = 0; i < 32; i++)
		others[i].use = i == 3 ? PLACE_IDLE : PLACE_BUSY;
	TAP_OK(take_as(&others[32], "127.0.0.1", true) && others[3].ended && count_ended(others, FULL) == 1 &&
			   count_ended(crowd, FULL) == 0,
		   "many of them make room for each other");
	leave_all(others, FULL);
	leave_all(crowd, FULL);
	TAP_OK(gateway.connections == 0, "all have left");
}

static void
test_proxy(void)
{
	bool taken = true;

	gateway.config.trusted_proxies = "10.9.0.0/16";
	for (int i = 0; i < 20; i++)
		taken &= take(&crowd[i], "10.9.0.1");
	TAP_OK(taken, "a trusted proxy has no limit");
	for (int i = 0; i < 8; i++)
		taken &= place_set_client(crowd[i].place, "192.0.2.1") && place_set_client(crowd[i].place, "192.0.2.1");
	TAP_OK(taken && !place_set_client(crowd[8].place, "192.0.2.1"), "the clients that it names have");
	TAP_OK(place_set_client(crowd[8].place, "192.0.2.2") && strcmp(place_address(crowd[8].place), "10.9.0.1") == 0,
		   "a connection counts for the client of its last request");
	for (int i = 9; i < 17; i++)
		taken &= place_set_client(crowd[i].place, "unknown");
	TAP_OK(taken && !place_set_client(crowd[17].place, "unknown"), "clients that it does not tell are one");
	place_sign_in(crowd[8].place, 1);
	TAP_OK(place_set_client(crowd[8].place, "10.9.0.1") && place_set_client(crowd[0].place, "192.0.2.1"),
		   "nothing else has moved");
	leave_all(crowd, FULL);
	TAP_OK(gateway.connections == 0, "all have left");
}

int
main(void)
{
	gateway.loop.time = 100000;
	gateway.config.max_connections = FULL;
	gateway.config.trusted_proxies = "";
	test_full();
	test_idle();
	test_accounts();
	test_one_account();
	test_address();
	test_operators();
	test_proxy();
	return tap_done();
}
