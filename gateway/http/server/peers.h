/*
 * peers.h - the connected addresses, and the number of connections of each; see peers.c.
 */
#ifndef PEERS_H
#define PEERS_H

#include <sys/socket.h>

typedef struct Peer
{
	struct Peer *next;
	char key[48];
	int connections;
} Peer;

/* Counts a connection. address: at least 48 bytes for the address as text. NULL: out of memory. */
extern Peer *peers_enter(const struct sockaddr *from, char *address);
extern void peers_leave(Peer *peer);

#endif
