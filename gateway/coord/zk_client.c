/*
 * zk_client.c - one ZooKeeper session on the libuv loop (see zk_client.h).
 *
 * Threads: the library's (its callbacks end in queue_push), the watchdog's, a worker for zookeeper_init and
 * zookeeper_close (both block: name lookup, the goodbye), and the loop. Two locks, neither held while calling out:
 * queue_lock guards the messages; handle_lock guards the handle, which the watchdog may take away.
 */
#include "coord/zk_client.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/log.h"

#define WATCHDOG_TURNS 4 /* quarters of the session time without a turn of the loop */
#define WARN_MS		   10000
#define REOPEN_MS	   1000

typedef enum MessageKind
{
	MESSAGE_REPLY,
	MESSAGE_STATE,	 /* rc is the library's state */
	MESSAGE_CHANGED, /* path */
	MESSAGE_STALLED, /* from the watchdog */
} MessageKind;

typedef struct Message
{
	struct Message *next;
	MessageKind kind;
	ZkReplyFn fn;
	void *arg;
	ZkReply reply; /* its strings are owned by the message */
} Message;

/* Given to the library with each request; freed by its completion, or with the client: the library, which is closed
 * while a server is away, forgets some that are under way. */
typedef struct Request
{
	struct Request *next, *prev;
	ZkClient *client;
	ZkReplyFn fn;
	void *arg;
} Request;

struct ZkClient
{
	uv_loop_t *loop;
	ZkEvents events;
	char *hosts;
	unsigned asked_ms;

	uv_mutex_t handle_lock;
	zhandle_t *handle; /* NULL before it is open and after it is closed */

	uv_mutex_t queue_lock;
	Message *first, *last;
	Request *requests; /* under way; with queue_lock, too */
	uv_async_t wake;

	uv_work_t work; /* opening, closing */
	zhandle_t *opened;
	bool working;
	bool closing;
	bool is_over;
	void (*done)(void *arg);
	void *done_arg;

	uv_timer_t timer;
	int open_handles;
	bool connected; /* by the library's word */
	bool up;
	bool established; /* was up once */
	unsigned session_ms;
	int64_t session;
	uint64_t contact; /* ms: when the last answered heartbeat was sent */
	uint64_t last_warning;
	uint64_t last_beat; /* ms: when the last heartbeat was sent */

	uv_thread_t watchdog;
	bool has_watchdog;
	bool watchdog_ends;
	uv_cond_t watchdog_wake; /* with queue_lock */
	atomic_uint turns;		 /* of the timer: the loop lives */
};

static void on_timer(uv_timer_t *timer);
static void on_opened(uv_work_t *work, int status);
static void on_closed(uv_work_t *work, int status);
static void open_in_worker(uv_work_t *work);
static void close_in_worker(uv_work_t *work);

static uint64_t
now_ms(void)
{
	return uv_hrtime() / 1000000;
}

static char *
copy_text(const char *text)
{
	return text ? must_have(strdup(text)) : NULL;
}

/* --- messages: any thread -> the loop ---------------------------------------------------------------------------- */

static void
message_free(Message *message)
{
	free((char *) message->reply.path);
	free((char *) message->reply.data);
	for (int i = 0; i < message->reply.child_count; i++)
		free(message->reply.children[i]);
	free((void *) message->reply.children);
	free(message);
}

static void
queue_push(ZkClient *client, Message *message)
{
	uv_mutex_lock(&client->queue_lock);
	if (client->last)
		client->last->next = message;
	else
		client->first = message;
	client->last = message;
	uv_mutex_unlock(&client->queue_lock);
	uv_async_send(&client->wake);
}

static Message *
queue_take(ZkClient *client)
{
	Message *first;

	uv_mutex_lock(&client->queue_lock);
	first = client->first;
	client->first = client->last = NULL;
	uv_mutex_unlock(&client->queue_lock);
	return first;
}

static Request *
request_new(ZkClient *client, ZkReplyFn fn, void *arg)
{
	Request *request = must_have(malloc(sizeof(*request)));

	uv_mutex_lock(&client->queue_lock);
	*request = (Request){client->requests, NULL, client, fn, arg};
	if (client->requests)
		client->requests->prev = request;
	client->requests = request;
	uv_mutex_unlock(&client->queue_lock);
	return request;
}

static void
request_free(Request *request)
{
	ZkClient *client = request->client;

	uv_mutex_lock(&client->queue_lock);
	if (request->prev)
		request->prev->next = request->next;
	else
		client->requests = request->next;
	if (request->next)
		request->next->prev = request->prev;
	uv_mutex_unlock(&client->queue_lock);
	free(request);
}

/* A new message for the request's answer; frees the request. */
static Message *
reply_new(const void *data, int rc)
{
	Request *request = (Request *) data;
	Message *message = must_have(calloc(1, sizeof(*message)));

	message->kind = MESSAGE_REPLY;
	message->fn = request->fn;
	message->arg = request->arg;
	message->reply.rc = rc;
	request_free(request);
	return message;
}

static void
send_reply(const void *data, int rc)
{
	ZkClient *client = ((const Request *) data)->client;

	queue_push(client, reply_new(data, rc));
}

static void
on_created(int rc, const char *path, const struct Stat *stat, const void *data)
{
	ZkClient *client = ((const Request *) data)->client;
	Message *message = reply_new(data, rc);

	if (rc == ZOK)
	{
		message->reply.path = copy_text(path);
		message->reply.czxid = stat->czxid;
	}
	queue_push(client, message);
}

static void
on_void(int rc, const void *data)
{
	send_reply(data, rc);
}

static void
on_stat(int rc, const struct Stat *stat, const void *data)
{
	send_reply(data, rc);
}

static void
on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
	ZkClient *client = ((const Request *) data)->client;
	Message *message = reply_new(data, rc);

	if (rc == ZOK)
	{
		message->reply.data = must_have(strndup(value && len > 0 ? value : "", len > 0 ? (size_t) len : 0));
		message->reply.czxid = stat->czxid;
		message->reply.session = stat->ephemeralOwner;
	}
	queue_push(client, message);
}

static void
on_children(int rc, const struct String_vector *strings, const void *data)
{
	ZkClient *client = ((const Request *) data)->client;
	Message *message = reply_new(data, rc);

	if (rc == ZOK && strings)
	{
		char **children = must_have(calloc((size_t) strings->count + 1, sizeof(*children)));

		for (int i = 0; i < strings->count; i++)
			children[i] = copy_text(strings->data[i]);
		message->reply.children = children;
		message->reply.child_count = strings->count;
	}
	queue_push(client, message);
}

static void
on_session(zhandle_t *handle, int type, int state, const char *path, void *context)
{
	Message *message;

	if (type != ZOO_SESSION_EVENT)
		return;
	message = must_have(calloc(1, sizeof(*message)));
	message->kind = MESSAGE_STATE;
	message->reply.rc = state;
	queue_push(context, message);
}

/* The watches of all requests: they need no context of their own, the path says it all. Session events come here too.
 */
static void
on_watch(zhandle_t *handle, int type, int state, const char *path, void *context)
{
	Message *message;

	if (type == ZOO_SESSION_EVENT)
		return;
	message = must_have(calloc(1, sizeof(*message)));
	message->kind = MESSAGE_CHANGED;
	message->reply.path = copy_text(path);
	queue_push(context, message);
}

/* The library writes lines by the dozen while a server is away; what matters is told by the events. */
static void
ignore_log(const char *message)
{
}

/* --- the watchdog ------------------------------------------------------------------------------------------------ */

/* Takes the handle away from the loop; NULL when there is none. */
static zhandle_t *
take_handle(ZkClient *client)
{
	zhandle_t *handle;

	uv_mutex_lock(&client->handle_lock);
	handle = client->handle;
	client->handle = NULL;
	uv_mutex_unlock(&client->handle_lock);
	return handle;
}

/*
 * Counts quarters of the session time in which the loop made no turn. Counting, and not looking at the clock, keeps a
 * process that was stopped and continued (all threads together) from being taken for a loop that hangs.
 */
static void
watchdog_run(void *arg)
{
	ZkClient *client = arg;
	unsigned seen = atomic_load(&client->turns);
	int still = 0;

	uv_mutex_lock(&client->queue_lock);
	while (!client->watchdog_ends && still < WATCHDOG_TURNS)
	{
		unsigned turns;

		uv_cond_timedwait(&client->watchdog_wake, &client->queue_lock, (uint64_t) client->session_ms * 1000000 / 4);
		turns = atomic_load(&client->turns);
		still = turns == seen ? still + 1 : 0;
		seen = turns;
	}
	uv_mutex_unlock(&client->queue_lock);
	if (still >= WATCHDOG_TURNS)
	{
		zhandle_t *handle = take_handle(client);
		Message *message = must_have(calloc(1, sizeof(*message)));

		if (handle)
			zookeeper_close(handle);
		message->kind = MESSAGE_STALLED;
		queue_push(client, message);
	}
}

/* --- contact ----------------------------------------------------------------------------------------------------- */

static void
go_down(ZkClient *client)
{
	if (!client->up)
		return;
	client->up = false;
	if (!client->is_over)
		client->events.down(client->events.arg);
}

static void
go_over(ZkClient *client, const char *reason)
{
	if (client->is_over || client->closing)
		return;
	go_down(client);
	if (client->is_over || client->closing)
		return;
	client->is_over = true;
	log_event(LOG_WARN, "zookeeper session over", LOG_STR("reason", reason));
	client->events.over(client->events.arg, reason);
}

/* Twelve turns in a session: for its sixth (heartbeat) and third (down) to be met well enough. */
static void
start_timer(ZkClient *client)
{
	uint64_t tick = client->session_ms / 12;

	uv_timer_start(&client->timer, on_timer, tick < 20 ? 20 : tick, tick < 20 ? 20 : tick);
}

static void
go_up(ZkClient *client)
{
	if (client->up || !client->connected || client->is_over)
		return;
	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
	{
		client->session = zoo_client_id(client->handle)->client_id;
		client->session_ms = (unsigned) zoo_recv_timeout(client->handle);
	}
	uv_mutex_unlock(&client->handle_lock);
	start_timer(client);
	if (!client->has_watchdog)
		client->has_watchdog = uv_thread_create(&client->watchdog, watchdog_run, client) == 0;
	if (!client->established)
		log_event(LOG_INFO, "zookeeper session", LOG_INT("id", client->session),
				  LOG_INT("session_ms", client->session_ms));
	client->up = true;
	client->established = true;
	client->events.up(client->events.arg);
}

/* The answer of a heartbeat; its message carries no function, and as arg when it was sent. */
static void
heard_beat(ZkClient *client, uint64_t sent)
{
	if (sent > client->contact)
		client->contact = sent;
	if (now_ms() - client->contact <= client->session_ms / 3)
		go_up(client);
}

static void
send_beat(ZkClient *client)
{
	uint64_t now = now_ms();
	int rc = ZINVALIDSTATE;

	client->last_beat = now;
	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
	{
		Request *request = request_new(client, NULL, (void *) (uintptr_t) now);

		rc = zoo_aexists(client->handle, "/", 0, on_stat, request);
		if (rc != ZOK)
			request_free(request);
	}
	uv_mutex_unlock(&client->handle_lock);
}

static void
handle_state(ZkClient *client, int state)
{
	if (state == ZOO_CONNECTED_STATE)
	{
		client->connected = true;
		uv_mutex_lock(&client->handle_lock);
		if (client->handle)
			client->session_ms = (unsigned) zoo_recv_timeout(client->handle);
		uv_mutex_unlock(&client->handle_lock);
		send_beat(client);
		return;
	}
	client->connected = false;
	if (state == ZOO_EXPIRED_SESSION_STATE)
		go_over(client, "the ZooKeeper session has expired");
	else if (state == ZOO_AUTH_FAILED_STATE)
		go_over(client, "ZooKeeper refused the authentication");
	else
		go_down(client);
}

static void
handle_message(ZkClient *client, const Message *message)
{
	switch (message->kind)
	{
		case MESSAGE_REPLY:
			if (message->fn)
				message->fn(message->arg, &message->reply);
			else if (message->reply.rc == ZOK)
				heard_beat(client, (uint64_t) (uintptr_t) message->arg);
			break;
		case MESSAGE_STATE:
			handle_state(client, message->reply.rc);
			break;
		case MESSAGE_CHANGED:
			client->events.changed(client->events.arg, message->reply.path ? message->reply.path : "");
			break;
		case MESSAGE_STALLED:
			go_over(client, "the event loop of this gateway stood still for longer than its session");
			break;
	}
}

/* Everything that came, in order. A message may close the client: the rest is dropped then. */
static void
drain(ZkClient *client)
{
	Message *message = queue_take(client), *next;

	for (; message; message = next)
	{
		next = message->next;
		if (!client->closing && !client->is_over)
			handle_message(client, message);
		message_free(message);
	}
}

static void
on_wake(uv_async_t *wake)
{
	ZkClient *client = wake->data;

	if (!client->working) /* what comes before on_opened() waits for it */
		drain(client);
}

static void
on_timer(uv_timer_t *timer)
{
	ZkClient *client = timer->data;
	uint64_t now;

	atomic_fetch_add(&client->turns, 1);
	if (client->working || client->closing || client->is_over)
		return;
	drain(client);
	if (client->closing || client->is_over)
		return;
	now = now_ms();
	if (!client->established && now - client->last_warning > WARN_MS)
	{
		client->last_warning = now;
		log_event(LOG_WARN, "zookeeper is not reachable; trying on", LOG_STR("hosts", client->hosts));
	}
	if (client->established && now - client->contact > client->session_ms * 2 / 3)
	{
		go_over(client, "there was no contact with ZooKeeper for two thirds of the session time");
		return;
	}
	if (now - client->contact > client->session_ms / 3)
		go_down(client);
	if (client->connected && now - client->last_beat >= client->session_ms / 6)
		send_beat(client);
}

/* --- opening and closing ----------------------------------------------------------------------------------------- */

static void
open_in_worker(uv_work_t *work)
{
	ZkClient *client = work->data;

	client->opened = zookeeper_init2(client->hosts, on_session, (int) client->asked_ms, NULL, client,
									 ZOO_NO_LOG_CLIENTENV, ignore_log);
}

static void
start_open(ZkClient *client)
{
	client->working = true;
	uv_queue_work(client->loop, &client->work, open_in_worker, on_opened);
}

static void
on_reopen(uv_timer_t *timer)
{
	start_open(timer->data);
}

static void
start_close(ZkClient *client)
{
	client->working = true;
	uv_timer_stop(&client->timer);
	uv_queue_work(client->loop, &client->work, close_in_worker, on_closed);
}

static void
on_opened(uv_work_t *work, int status)
{
	ZkClient *client = work->data;

	client->working = false;
	uv_mutex_lock(&client->handle_lock);
	client->handle = client->opened;
	uv_mutex_unlock(&client->handle_lock);
	if (client->closing)
		start_close(client);
	else if (!client->opened)
	{
		log_event(LOG_WARN, "a name among the zookeeper hosts cannot be looked up; trying again",
				  LOG_STR("hosts", client->hosts));
		uv_timer_start(&client->timer, on_reopen, REOPEN_MS, 0);
	}
	else
	{
		client->contact = client->last_warning = now_ms();
		start_timer(client);
		uv_async_send(&client->wake);
	}
}

static void
close_in_worker(uv_work_t *work)
{
	ZkClient *client = work->data;
	zhandle_t *handle;

	uv_mutex_lock(&client->queue_lock);
	client->watchdog_ends = true;
	uv_cond_signal(&client->watchdog_wake);
	uv_mutex_unlock(&client->queue_lock);
	if (client->has_watchdog)
		uv_thread_join(&client->watchdog);
	handle = take_handle(client);
	if (handle)
		zookeeper_close(handle);
}

static void
on_handle_closed(uv_handle_t *handle)
{
	ZkClient *client = handle->data;
	void (*done)(void *arg) = client->done;
	void *arg = client->done_arg;

	if (--client->open_handles > 0)
		return;
	uv_mutex_destroy(&client->handle_lock);
	uv_mutex_destroy(&client->queue_lock);
	uv_cond_destroy(&client->watchdog_wake);
	free(client->hosts);
	free(client);
	done(arg);
}

static void
on_closed(uv_work_t *work, int status)
{
	ZkClient *client = work->data;

	drain(client); /* only frees: the library has answered with ZCLOSING what it has not forgotten */
	while (client->requests)
		request_free(client->requests);
	uv_close((uv_handle_t *) &client->timer, on_handle_closed);
	uv_close((uv_handle_t *) &client->wake, on_handle_closed);
}

ZkClient *
zk_open(uv_loop_t *loop, const char *hosts, unsigned session_ms, const ZkEvents *events)
{
	ZkClient *client = must_have(calloc(1, sizeof(*client)));

	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	client->loop = loop;
	client->events = *events;
	client->hosts = copy_text(hosts);
	client->asked_ms = client->session_ms = session_ms;
	if (uv_mutex_init(&client->handle_lock) || uv_mutex_init(&client->queue_lock) ||
		uv_cond_init(&client->watchdog_wake) || uv_async_init(loop, &client->wake, on_wake))
		abort();
	uv_timer_init(loop, &client->timer);
	client->open_handles = 2;
	client->wake.data = client->timer.data = client->work.data = client;
	start_open(client);
	return client;
}

void
zk_close(ZkClient *client, void (*done)(void *arg), void *arg)
{
	client->closing = true;
	client->up = false;
	client->done = done;
	client->done_arg = arg;
	if (!client->working)
		start_close(client);
}

/* --- requests ---------------------------------------------------------------------------------------------------- */

bool
zk_is_up(const ZkClient *client)
{
	return client->up;
}

int64_t
zk_session(const ZkClient *client)
{
	return client->session;
}

unsigned
zk_session_ms(const ZkClient *client)
{
	return client->session_ms;
}

bool
zk_is_connection_loss(int rc)
{
	return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONMOVED;
}

void
zk_create(ZkClient *client, const char *path, const char *data, int flags, ZkReplyFn fn, void *arg)
{
	Request *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_acreate2(client->handle, path, data, (int) strlen(data), &ZOO_OPEN_ACL_UNSAFE, flags, on_created,
						  request);
	uv_mutex_unlock(&client->handle_lock);
	if (rc != ZOK)
		send_reply(request, rc);
}

void
zk_delete(ZkClient *client, const char *path, ZkReplyFn fn, void *arg)
{
	Request *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_adelete(client->handle, path, -1, on_void, request);
	uv_mutex_unlock(&client->handle_lock);
	if (rc != ZOK)
		send_reply(request, rc);
}

void
zk_get(ZkClient *client, const char *path, bool watch, ZkReplyFn fn, void *arg)
{
	Request *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_awget(client->handle, path, watch ? on_watch : NULL, watch ? client : NULL, on_data, request);
	uv_mutex_unlock(&client->handle_lock);
	if (rc != ZOK)
		send_reply(request, rc);
}

void
zk_get_children(ZkClient *client, const char *path, bool watch, ZkReplyFn fn, void *arg)
{
	Request *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_awget_children(client->handle, path, watch ? on_watch : NULL, watch ? client : NULL, on_children,
								request);
	uv_mutex_unlock(&client->handle_lock);
	if (rc != ZOK)
		send_reply(request, rc);
}
