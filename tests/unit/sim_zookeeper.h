/*
 * sim_zookeeper.h - what sim_zookeeper.c (the servers and the network) and sim_libzookeeper.c (the client's end) share.
 */
#ifndef SIM_ZOOKEEPER_H
#define SIM_ZOOKEEPER_H

#include "sim.h"

#include <zookeeper/zookeeper.h>

#define PATH_SIZE	  96
#define DATA_SIZE	  64
#define PROCESSES_MAX 8
#define SESSIONS_MAX  512

typedef struct Node
{
	char path[PATH_SIZE], data[DATA_SIZE];
	int64_t czxid, mzxid, pzxid, session;
	bool container;
	int version;
	int sequence; /* of its next child */
} Node;

typedef struct Tree
{
	Node *nodes;
	int count, room;
	int64_t zxid;
} Tree;

typedef enum RequestKind
{
	WRITE,
	END_SESSION,
	SYNC,
	GET,
	CHILDREN,
	EXISTS,
	/* These have no completion: */
	CONNECT,
	PING
} RequestKind;

typedef enum ChangeKind
{
	CREATE,
	DELETE,
	SET,
	CHECK
} ChangeKind;

typedef struct Change
{
	ChangeKind kind;
	char path[PATH_SIZE], data[DATA_SIZE]; /* path: with its number, when the leader has proposed it */
	int flags;
	int version; /* SET, CHECK: that the node must have */
} Change;

/* A server's answer to a request of a client, or its event. */
typedef struct Answer
{
	int rc;
	Node node;
	char (*children)[PATH_SIZE];
	int child_count;
	int64_t session, zxid;
} Answer;

typedef struct Watch
{
	struct Watch *next;
	char path[PATH_SIZE];
	bool child;
} Watch;

typedef struct Connection
{
	struct Connection *next; /* of the world */
	int number;				 /* of the server */
	SimProcess *process;
	zhandle_t *handle; /* NULL: closed at the client's end */
	bool open;		   /* at the server's end */
	int64_t session;
	uint64_t to_server, to_client; /* when the last message arrives */
	Watch *watches;
} Connection;

typedef struct Request
{
	struct Request *next;  /* of the handle */
	struct Request *after; /* of the session at its server */
	RequestKind kind;
	Connection *connection;
	int64_t session, zxid;
	unsigned epoch; /* of the leader */
	int timeout;	/* CONNECT: ms */
	bool forwarded;
	Change changes[3];
	int change_count;
	char path[PATH_SIZE];
	bool watch;
	Answer answer;
	void_completion_t on_void;
	stat_completion_t on_stat;
	data_completion_t on_data;
	strings_completion_t on_children;
	string_stat_completion_t on_created;
	string_completion_t on_synced;
	const void *data;
} Request;

typedef struct Transaction
{
	Request *request; /* NULL: the servers' own */
	int server;		  /* that answers it */
	Change changes[3];
	int change_count;
	int64_t ended; /* session */
	int rc;
} Transaction;

typedef struct Server
{
	SimProcess process;
	bool down;
	uint64_t hangs_since;
	Tree tree;
	int applied; /* transactions */
	uint64_t applies, to_leader;
	Request *first[SESSIONS_MAX]; /* the unanswered requests of each session, in order */
} Server;

typedef struct Session
{
	int server; /* that may send writes; -1: any */
	bool ended;
	uint64_t timeout, ends;
} Session;

struct _zhandle
{
	SimProcess *process;
	watcher_fn watcher, watch_fn;
	void *context, *watch_context;
	clientid_t id;
	int timeout; /* ms */
	int server;
	bool connected, expired;
	bool may_try[SIM_SERVERS];
	Connection *connection;
	uint64_t began, heard, sent;
	int64_t zxid;
	Request *first, *last; /* unanswered */
	Watch *watches;
	struct SimEvent *tick;
};

/* On its way to a client. */
typedef struct Message
{
	Connection *connection;
	Request *request; /* the answer to it; NULL: a watch fires, or the connection ends */
	int event;		  /* 0: the connection ends */
	char path[PATH_SIZE];
	int64_t zxid;
} Message;

extern Server servers[SIM_SERVERS];

/* Memory of the world, zeroed, and freed at its end. */
extern void *keep(size_t size);
/* Sends the request to the server of its connection. */
extern void send_to_server(Request *request);
/* The client closes the connection; the server learns of it later. */
extern void send_end_to_server(Connection *connection);
/* A Message arrives: in sim_libzookeeper.c. */
extern void client_gets(void *arg);
/* Adds a watch, unless the list has it. */
extern void watch_add(Watch **list, const char *path, bool child);
/* Removes a watch. Returns false if the list does not have it. */
extern bool watch_take(Watch **list, const char *path, bool child);
extern void connection_add(Connection *connection);

#endif
