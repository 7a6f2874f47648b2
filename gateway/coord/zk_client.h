/*
 * zk_client.h - one ZooKeeper session on the libuv loop.
 *
 * libzookeeper-mt runs its own two threads; their callbacks only copy what they are told into a queue, and everything
 * else happens on the loop. Each client is one session: when it is over, close it and open another. On top of
 * the library it knows how fresh the contact is, because the library tells nobody that a session has expired while it
 * is cut off (ZOOKEEPER-4508): it sends 24 heartbeats of its own in a session time, and contact is dated by when the
 * last answered one was *sent*, so it is never thought fresher than the server's own clock of the session.
 *
 *   up    connected, and a heartbeat was answered       (told again after each `down`)
 *   down  disconnected, or no contact for T/3: the session is moved to another server
 *   over  no contact for 5T/6, the session has expired, or the loop has stood still for T: nothing follows this
 *
 * Watches are gone, and what was read may be outdated, at each `up`. 5T/6 is 2T/3, for which all servers may be away
 * while the session lives, and T/6 for the age of the last heartbeat and for connecting again.
 *
 * A loop that stands still would keep its session for ever, since the library's thread goes on with its pings: a
 * watchdog thread closes the session then, so that other gateways get the sheets.
 */
#ifndef ZK_CLIENT_H
#define ZK_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include <zookeeper/zookeeper.h>

typedef struct ZkClient ZkClient;

typedef struct ZkReply
{
	int rc;			  /* ZOK, ZNONODE ... */
	const char *path; /* zk_create: the name that was made */
	const char *data; /* zk_get; NUL-terminated, "" when the node holds nothing */
	char *const *children;
	int child_count;
	int64_t czxid;
	int version;	 /* zk_get, zk_set */
	int64_t session; /* zk_get: whose ephemeral node it is; 0: nobody's */
} ZkReply;

/* Called on the loop, once for each request; never after zk_close(). */
typedef void (*ZkReplyFn)(void *arg, const ZkReply *reply);

typedef struct ZkEvents
{
	void *arg;
	void (*up)(void *arg);
	void (*down)(void *arg);
	void (*over)(void *arg, const char *reason);
	/* A watch has fired: the node, or its children, changed. */
	void (*changed)(void *arg, const char *path);
} ZkEvents;

/* Connects in the background, for as long as it takes. Returns NULL when there is no memory. */
extern ZkClient *zk_open(uv_loop_t *loop, const char *hosts, unsigned session_ms, const ZkEvents *events);
/* Ends the session at once; done runs on the loop when client is freed. Unanswered requests are forgotten. */
extern void zk_close(ZkClient *client, void (*done)(void *arg), void *arg);

/*
 * The same for a session that is over. If the contact was lost, waits until a server answers, because only then the end
 * of the session, which removes its nodes, can be told; at most until the session must have expired. May be followed by
 * zk_close().
 */
extern void zk_abandon(ZkClient *client, void (*done)(void *arg), void *arg);

extern bool zk_is_up(const ZkClient *client);
extern int64_t zk_session(const ZkClient *client);	   /* its id, while up */
extern unsigned zk_session_ms(const ZkClient *client); /* as negotiated, while up */
/* May the same request succeed later in this session, or was its outcome lost with the connection? */
extern bool zk_is_connection_loss(int rc);

/* flags: ZOO_EPHEMERAL and so on */
extern void zk_create(ZkClient *client, const char *path, const char *data, int flags, ZkReplyFn fn, void *arg);
/* Makes both nodes or neither, and neither unless the guard, a node, has this version (ZBADVERSION). Sequential nodes
 * get consecutive numbers; the reply does not tell their names. */
extern void zk_create_pair(ZkClient *client, const char *guard, int version, const char *first, const char *second,
						   const char *data, int flags, ZkReplyFn fn, void *arg);
/* Requests that are sent after it see what the leader had proposed before it, also by a connection that is cut now. */
extern void zk_sync(ZkClient *client, const char *path, ZkReplyFn fn, void *arg);
extern void zk_set(ZkClient *client, const char *path, const char *data, int version, ZkReplyFn fn, void *arg);
extern void zk_delete(ZkClient *client, const char *path, ZkReplyFn fn, void *arg);
extern void zk_get(ZkClient *client, const char *path, bool watch, ZkReplyFn fn, void *arg);
extern void zk_get_children(ZkClient *client, const char *path, bool watch, ZkReplyFn fn, void *arg);

#endif
