/* connection.h - a load generator's connection: bytes to be sent, bytes that have come, and its place in an epoll. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Connection
{
	int fd, poller;
	int number;	 /* of the user, for messages */
	void *owner; /* what the poller's events name */
	bool wants_write;
	char *out;
	size_t out_len, out_sent;
	char *in;
	size_t in_len, in_size;
	int64_t last_read;
} Connection;

extern void connection_init(Connection *connection, int number, size_t out_size, size_t in_size);
/* From now on the poller's events name the owner when there is something to read. fd is set. */
extern void connection_watch(Connection *connection, int poller, void *owner);
/* Reads what is there, behind what is in `in`; how much that was. A connection that has ended ends the program. */
extern size_t connection_receive(Connection *connection);
/* Takes so many bytes away from the front of `in`. */
extern void connection_consume(Connection *connection, size_t len);
/* Sends what the socket takes; the buffer is empty again when all has gone. */
extern void connection_send(Connection *connection);
/* Whether the poller is to say that the socket takes bytes again. */
extern void connection_poll_for(Connection *connection, bool write);

#endif
