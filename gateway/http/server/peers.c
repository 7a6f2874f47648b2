/*
 * peers.c - who has how many of the gateway's connections, and who makes room for whom.
 *
 * A connection belongs to an address until it has shown a valid token, and then to the token's account. When a limit is
 * reached, the party with the most connections gives one up.
 *
 * - When max-connections is reached, a new connection takes the place of one without a token, of the address that has
 *   the most of these; if all have shown one, of the account that has the most, if that has several. Only if each has
 *   one is the new connection refused.
 * - When an address has max-connections-per-address, with or without tokens, a new connection of the address takes the
 *   place of one without a token that has been there for PEERS_SETTLED_MS, or is refused. So a client that opens many
 *   connections behind an address cannot keep others of that address from signing in. A connection that waits for an
 *   answer, as after many wrong passwords, is not ended for that.
 * - An account has at most an eighth of either limit. Its further connections count as connections without a token.
 * - Connections of operators are not among these: they have PEERS_OPERATORS places of their own, and make room for each
 *   other.
 *
 * Idle connections go first, then the oldest. An IPv6 user can choose any address of a /64, so a /64 counts as one
 * address. Behind a trusted proxy, a connection belongs to the client of its last request; clients that the proxy does
 * not tell are one address. max-connections-per-address does not apply to the proxy itself.
 *
 * All operations take constant time, but for the search for an idle connection, which looks at PEERS_LOOKS of them, and
 * at PEERS_SPARED that wait for an answer.
 */
#include "http/server/peers.h"

#include "core/gateway.h"
#include "core/metrics.h"
#include "support/log.h"
#include "support/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define PEERS_BUCKETS	 4096
#define PEERS_LOOKS		 16
#define PEERS_SPARED	 1000
#define PEERS_SETTLED_MS 2000
#define PEERS_SHARE		 8 /* an account has this part of a limit */
#define PEERS_OPERATORS	 32

typedef enum PartyKind
{
	PARTY_ADDRESS,
	PARTY_ACCOUNT,
	PARTY_OPERATORS, /* of which there is one */
	PARTY_KINDS
} PartyKind;

/* An address or an account whose connections are counted. It is freed with its last connection. */
typedef struct Party
{
	struct Party *next; /* in the table */
	char key[PEERS_ADDRESS_MAX];
	PartyKind kind;
	int connections;			  /* of an address, with and without tokens; of an account, as in `places` */
	int count;					  /* of `places` */
	TAILQ_HEAD(, Place) places;	  /* without a token, or of the account, oldest first */
	struct Party *before, *after; /* a ring of those with the same count */
} Party;

struct Place
{
	TAILQ_ENTRY(Place) entry; /* in the party */
	Party *address;			  /* NULL: it was taken away, and its connection is ending */
	Party *account;			  /* NULL: without a token */
	const PlaceOwner *owner;
	void *arg;
	uint64_t since; /* ms: when it came to its party */
	char from[PEERS_ADDRESS_MAX];
};

/* The parties of one kind by their counts. */
typedef struct Ranking
{
	Party **by_count; /* up to the most places; the one that has had its count for longest, and the ring behind it */
	int most;
} Ranking;

static Party *peers_table[PEERS_BUCKETS];
static Ranking rankings[PARTY_KINDS];

/* ---- parties ---- */

static Party **
party_bucket(const char *key)
{
	uint32_t hash = 2166136261u;

	for (; *key != '\0'; key++)
		hash = (hash ^ (unsigned char) *key) * 16777619u;
	return &peers_table[hash % PEERS_BUCKETS];
}

/* Counts a connection. Returns NULL when there is no memory. */
static Party *
party_enter(const char *key, PartyKind kind)
{
	Party **bucket = party_bucket(key);
	Ranking *ranking = &rankings[kind];
	Party *party = *bucket;

	if (ranking->by_count == NULL)
		ranking->by_count = calloc((size_t) gateway.config.max_connections + PEERS_OPERATORS, sizeof(Party *));
	if (ranking->by_count == NULL)
		return NULL;
	while (party != NULL && strcmp(party->key, key) != 0)
		party = party->next;
	if (party == NULL)
	{
		party = calloc(1, sizeof(Party));
		if (party == NULL)
			return NULL;
		snprintf(party->key, sizeof(party->key), "%s", key);
		party->kind = kind;
		TAILQ_INIT(&party->places);
		party->before = party->after = party;
		party->next = *bucket;
		*bucket = party;
	}
	party->connections++;
	return party;
}

static void
party_leave(Party *party)
{
	Party **link = party_bucket(party->key);

	if (--party->connections > 0)
		return;
	while (*link != party)
		link = &(*link)->next;
	*link = party->next;
	free(party);
}

/* Moves the party in its ranking, behind the others with the same count. */
static void
party_add_count(Party *party, int change)
{
	Ranking *ranking = &rankings[party->kind];
	Party **head;

	head = &ranking->by_count[party->count];
	if (*head == party)
		*head = party->after != party ? party->after : NULL;
	party->before->after = party->after;
	party->after->before = party->before;
	party->before = party->after = party;
	party->count += change;
	head = &ranking->by_count[party->count];
	if (party->count > 0 && *head == NULL)
		*head = party;
	else if (party->count > 0)
	{
		party->after = *head;
		party->before = (*head)->before;
		party->before->after = party->after->before = party;
	}
	if (party->count > ranking->most)
		ranking->most = party->count;
	while (ranking->most > 0 && ranking->by_count[ranking->most] == NULL)
		ranking->most--;
}

/* ---- places ---- */

static Party *
place_party(const Place *place)
{
	return place->account != NULL ? place->account : place->address;
}

static void
place_add(Place *place)
{
	Party *party = place_party(place);

	TAILQ_INSERT_TAIL(&party->places, place, entry);
	place->since = uv_now(&gateway.loop);
	party_add_count(party, 1);
}

static void
place_remove(Place *place)
{
	Party *party = place_party(place);

	TAILQ_REMOVE(&party->places, place, entry);
	party_add_count(party, -1);
}

/* The place counts no more. */
static void
place_leave(Place *place)
{
	place_remove(place);
	if (place->account != NULL)
		party_leave(place->account);
	gateway.connections -= place->address->kind == PARTY_ADDRESS;
	party_leave(place->address);
	place->address = place->account = NULL;
}

/* Takes a place of the party away, of those that came before `until`; that of a connection that waits for an answer
 * only if `until` is UINT64_MAX. Returns false if there is none. */
static bool
party_make_room(const Party *party, uint64_t until)
{
	Place *found = NULL;
	PlaceUse least = PLACE_SERVED;
	int looks = 0, spared = 0;

	for (Place *place = TAILQ_FIRST(&party->places); place != NULL && place->since <= until && looks < PEERS_LOOKS &&
													 spared < PEERS_SPARED && (found == NULL || least > PLACE_IDLE);
		 place = TAILQ_NEXT(place, entry))
	{
		PlaceUse use = place->owner != NULL && place->owner->use != NULL ? place->owner->use(place->arg) : PLACE_BUSY;

		if (use == PLACE_SERVED && until != UINT64_MAX)
		{
			spared++;
			continue;
		}
		if (place->owner != NULL && (found == NULL || use < least))
		{
			found = place;
			least = use;
		}
		looks++;
	}
	if (found == NULL)
		return false;
	log_event(LOG_DEBUG, "connection makes room", LOG_STR("peer", found->from));
	metrics.connections_displaced++;
	place_leave(found);
	found->owner->end(found->arg);
	return true;
}

static bool
peers_make_room(void)
{
	for (PartyKind kind = PARTY_ADDRESS; kind <= PARTY_ACCOUNT; kind++)
	{
		const Ranking *ranking = &rankings[kind];

		if (ranking->most > (kind == PARTY_ADDRESS ? 0 : 1) &&
			party_make_room(ranking->by_count[ranking->most], UINT64_MAX))
			return true;
	}
	return false;
}

/* The address has more than its limit, and no place was given up. */
static bool
peers_address_is_full(const Party *party)
{
	int allowed = gateway.config.max_connections_per_address;
	uint64_t now = uv_now(&gateway.loop);

	if (party->kind == PARTY_OPERATORS)
		return party->connections > PEERS_OPERATORS && !party_make_room(party, UINT64_MAX);
	return allowed > 0 && party->connections > allowed &&
		   !network_list_contains(gateway.config.trusted_proxies, party->key) &&
		   (now < PEERS_SETTLED_MS || !party_make_room(party, now - PEERS_SETTLED_MS));
}

static void
peers_name(const struct sockaddr *from, char *address)
{
	strcpy(address, "?");
	if (from->sa_family == AF_INET)
		(void) inet_ntop(AF_INET, &((const struct sockaddr_in *) from)->sin_addr, address, PEERS_ADDRESS_MAX);
	else if (from->sa_family == AF_INET6)
		(void) inet_ntop(AF_INET6, &((const struct sockaddr_in6 *) from)->sin6_addr, address, PEERS_ADDRESS_MAX);
}

Place *
place_take(const struct sockaddr *from, bool is_operator, char *address, PlaceRefusal *refusal)
{
	Place *place = calloc(1, sizeof(Place));
	char key[NETWORK_NAME_MAX];

	peers_name(from, address);
	network_holder(address, key);
	*refusal = PLACE_NO_MEMORY;
	if (is_operator)
		strcpy(key, "operators");
	if (place == NULL || (place->address = party_enter(key, is_operator ? PARTY_OPERATORS : PARTY_ADDRESS)) == NULL)
	{
		free(place);
		return NULL;
	}
	if (peers_address_is_full(place->address))
		*refusal = PLACE_ADDRESS_FULL;
	else if (!is_operator && gateway.connections >= gateway.config.max_connections && !peers_make_room())
		*refusal = PLACE_GATEWAY_FULL;
	else
	{
		*refusal = PLACE_TAKEN;
		strcpy(place->from, address);
		place_add(place);
		gateway.connections += !is_operator;
		return place;
	}
	party_leave(place->address);
	free(place);
	return NULL;
}

void
place_give_up(Place *place)
{
	if (place->address != NULL)
		place_leave(place);
	free(place);
}

const char *
place_address(const Place *place)
{
	return place->from;
}

void
place_set_owner(Place *place, const PlaceOwner *owner, void *arg)
{
	place->owner = owner;
	place->arg = arg;
}

bool
place_set_client(Place *place, const char *address)
{
	char key[NETWORK_NAME_MAX];
	Party *party;

	network_holder(address, key);
	if (place->address == NULL || place->address->kind == PARTY_OPERATORS || strcmp(place->address->key, key) == 0)
		return true;
	party = party_enter(key, PARTY_ADDRESS);
	if (party == NULL)
		return true; /* it counts where it has counted */
	place_remove(place);
	if (place->account != NULL)
		party_leave(place->account);
	party_leave(place->address);
	place->account = NULL;
	place->address = party;
	place_add(place);
	return !peers_address_is_full(party);
}

void
place_sign_in(Place *place, int64_t uid)
{
	int allowed = gateway.config.max_connections_per_address;
	int limit = gateway.config.max_connections;
	char key[PEERS_ADDRESS_MAX];
	Party *party;

	snprintf(key, sizeof(key), "account %lld", (long long) uid);
	if (place->address == NULL || place->address->kind == PARTY_OPERATORS ||
		(place->account != NULL && strcmp(place->account->key, key) == 0))
		return;
	party = party_enter(key, PARTY_ACCOUNT);
	if (party == NULL)
		return;
	if (allowed > 0 && allowed < limit)
		limit = allowed;
	if (party->connections > (limit >= PEERS_SHARE ? limit / PEERS_SHARE : 1))
	{
		party_leave(party);
		party = NULL;
	}
	if (party == place->account)
		return; /* it goes on without: each of its requests comes here, and must not make it a new one */
	place_remove(place);
	if (place->account != NULL)
		party_leave(place->account);
	place->account = party;
	place_add(place);
}
