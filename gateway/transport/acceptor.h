/*
 * acceptor.h - the listening sockets; see acceptor.c.
 */
#ifndef ACCEPTOR_H
#define ACCEPTOR_H

#include <stdbool.h>
#include <sys/socket.h>

typedef struct uv_loop_s uv_loop_t;

/* Takes ownership of fd, which does not block. */
typedef void (*AcceptFn)(int fd, const struct sockaddr *from, void *arg);

typedef struct AcceptorError
{
	const char *reason;
	int number; /* errno; 0: the address is not known */
} AcceptorError;

/* Listens on one more address. Returns false and sets *error if that fails. */
extern bool acceptor_open(uv_loop_t *loop, const char *address, const char *port, AcceptFn accept, void *arg,
						  AcceptorError *error);
extern void acceptor_close_all(void);

#endif
