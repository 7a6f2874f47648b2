/*
 * client.h - requests of the gateway itself, by libwebsockets' HTTP client; see client.c. Nothing here blocks.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ClientCall ClientCall;

#define CLIENT_PROBLEM_MAX 128

typedef struct ClientAnswer
{
	int status;						  /* 0: there was no answer; problem tells why */
	int retry_after;				  /* seconds, of the header Retry-After; 0: none */
	char problem[CLIENT_PROBLEM_MAX]; /* "" if there was an answer */
} ClientAnswer;

typedef void (*ClientFn)(void *arg, const ClientAnswer *answer);

typedef struct ClientHeader
{
	const char *name; /* in lower case, with its colon */
	const char *value;
} ClientHeader;

/* A request to post a body. client_post() keeps pointers to the body and the headers, which must live until fn is
 * called; it copies the rest. */
typedef struct ClientRequest
{
	bool tls;
	const char *address; /* an IP address: this one is connected to */
	int port;
	const char *host; /* the header Host; without its port, for SNI and the certificate */
	const char *path;
	const ClientHeader *headers;
	size_t header_count;
	const char *body;
	size_t length;
	int timeout_ms; /* for everything, from the connection to the head of the answer */
	ClientFn fn;	/* called once, in a later iteration of the loop; it may free what it was given */
	void *arg;
} ClientRequest;

/* Before the first request, after transport_start(). False: no memory, or the system's certificates cannot be read. */
extern bool client_start(void);
/* Ends all requests. fn is not called. Before transport_stop(). */
extern void client_stop(void);
/* Posts. NULL: no memory; fn is not called. */
extern ClientCall *client_post(const ClientRequest *request);

#endif
