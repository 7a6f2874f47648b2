/*
 * peers.h - who has how many of the gateway's connections, and who makes room for whom; see peers.c.
 */
#ifndef PEERS_H
#define PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define PEERS_ADDRESS_MAX 48

/* The place of a connection among the others. */
typedef struct Place Place;

typedef enum PlaceUse
{
	PLACE_IDLE, /* nothing is lost if the connection ends now */
	PLACE_BUSY,
	PLACE_SERVED /* a whole request waits for its answer */
} PlaceUse;

/* What a connection does for its place. */
typedef struct PlaceOwner
{
	PlaceUse (*use)(const void *owner); /* NULL: it is always busy */
	/* Another one needs the place: the connection ends soon, and gives the place up then. */
	void (*end)(void *owner);
} PlaceOwner;

typedef enum PlaceRefusal
{
	PLACE_TAKEN, /* not refused */
	PLACE_NO_MEMORY,
	PLACE_GATEWAY_FULL,
	PLACE_ADDRESS_FULL
} PlaceRefusal;

/* Takes a place for a new connection, and sets its address as text (PEERS_ADDRESS_MAX). NULL: *refusal says why.
 * is_operator: it is one of those at admin-address, which are not among the others. */
extern Place *place_take(const struct sockaddr *from, bool is_operator, char *address, PlaceRefusal *refusal);
extern void place_give_up(Place *place);
/* The address at the other end of the connection: a client's, or a proxy's. */
extern const char *place_address(const Place *place);
extern void place_set_owner(Place *place, const PlaceOwner *owner, void *arg);
/* A trusted proxy names the client of the connection's next request. Returns false if that client has too many. */
extern bool place_set_client(Place *place, const char *address);
/* The connection has shown a valid token of this account. */
extern void place_sign_in(Place *place, int64_t uid);

#endif
