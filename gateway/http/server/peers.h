/*
 * peers.h - the addresses that are connected, and how many connections each has; see peers.c.
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

/* Counts a connection; address: at least 48 bytes for the address as text. */
extern Peer *peers_enter(const struct sockaddr *from, char *address);
extern void peers_leave(Peer *peer);

#endif
