/*
 * zk_private.h - what zk_client.c (the session), zk_handle.c and zk_socket.c (the library's handle) and zk_request.c
 * (requests and their replies) share.
 */
#ifndef ZK_PRIVATE_H
#define ZK_PRIVATE_H

#include "coord/zk_client.h"

#include <sys/queue.h>
#include <stdatomic.h>

typedef enum ZkMessageKind
{
	ZK_MESSAGE_REPLY,
	ZK_MESSAGE_STATE,	/* rc is the library's state */
	ZK_MESSAGE_CHANGED, /* path */
	ZK_MESSAGE_STALLED, /* from the watchdog */
} ZkMessageKind;

typedef struct ZkMessage
{
	struct ZkMessage *next;
	ZkMessageKind kind;
	ZkReplyFn fn;
	void *arg;
	ZkReply reply; /* its strings are owned by the message */
} ZkMessage;

struct ZkClient
{
	uv_loop_t *loop;
	ZkEvents events;
	char *hosts;
	unsigned asked_ms;

	uv_mutex_t handle_lock;
	zhandle_t *handle;	 /* NULL before it is open and after it is closed */
	bool handle_refused; /* the watchdog has ended the session, or it is closed: there may be no other handle */

	uv_mutex_t queue_lock;
	ZkMessage *first, *last;
	TAILQ_HEAD(, ZkRequest) requests; /* that have no reply yet; queue_lock guards it as well */
	uv_async_t wake;

	uv_work_t work; /* opening, leaving, closing */
	bool working;
	bool opened;		/* there is a handle, or the watchdog has taken it */
	bool left;			/* leaving has closed it */
	char silent[128];	/* the server that was left last */
	uint64_t reopen_at; /* ms: after a name was not found */
	bool closing;
	bool is_over;
	bool lost_contact; /* the reason why it is over */
	bool abandoned;	   /* closed as soon as a server has heard of us, or the session must have expired */
	void (*done)(void *arg);
	void *done_arg;

	uv_timer_t timer;
	int open_handles;
	bool connected; /* by the library's word */
	bool up;
	bool established; /* was up once */
	unsigned session_ms;
	clientid_t id;		 /* of the session, once established */
	uint64_t contact;	 /* ms: when the last answered heartbeat was sent */
	uint64_t round_trip; /* ms: of heartbeats; follows shorter ones at once, longer ones slowly */
	uint64_t waited;	 /* ms without progress: a heartbeat answered, connected, disconnected, a new handle */
	uint64_t last_warning;
	uint64_t last_name_warning; /* 0: none yet */

	uv_thread_t watchdog;
	bool has_watchdog;
	bool watchdog_ends;
	uv_cond_t watchdog_wake; /* used with queue_lock */
	atomic_bool starved;	 /* the session is to end for want of memory */
	atomic_uint iterations;	 /* of the timer: it shows that the loop runs */
};

/* Takes the handle away from the others. Returns NULL if there is none. for_good: a new one is closed at once. */
extern zhandle_t *zk_handle_take(ZkClient *client, bool for_good);
/* Blocks, in a worker: opens a handle, of the session if there is one. Sets `opened`. */
extern void zk_handle_open(ZkClient *client);
/* Blocks, in a worker: closes the handle without ending its session. Sets `left`. */
extern void zk_handle_leave(ZkClient *client);
/* What the library writes to its server afterwards goes nowhere. */
extern void zk_socket_shut_down(zhandle_t *handle);
/* Called by any thread: hands the message to the loop, which frees it. */
extern void zk_message_push(ZkClient *client, ZkMessage *message);
/* Called by any thread: the same with a message of this kind. Its path is copied. */
extern void zk_message_push_event(ZkClient *client, ZkMessageKind kind, int rc, const char *path);
/* Called by any thread: there is no memory for a request or an event. The loop ends the session. */
extern void zk_client_starve(ZkClient *client);
extern void zk_message_free(ZkMessage *message);
/* All messages that have been pushed, in order; the caller frees them. */
extern ZkMessage *zk_message_take_all(ZkClient *client);
/* Sends a heartbeat. Its reply is a message without a function, whose arg is `sent`. */
extern void zk_request_beat(ZkClient *client, uint64_t sent);
/* Frees the requests that the library has forgotten. The handle is closed. */
extern void zk_request_free_all(ZkClient *client);
/* Answers them by ZCONNECTIONLOSS instead, in their order. */
extern void zk_request_lose_all(ZkClient *client);

#endif
