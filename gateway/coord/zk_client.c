/*
 * zk_client.c - one ZooKeeper session on the libuv loop (see zk_client.h).
 *
 * Threads: the library's (its callbacks end in zk_message_push), the watchdog's, a worker for zookeeper_init and
 * zookeeper_close (both block: name lookup, the goodbye), and the loop. Two locks, neither held while calling out:
 * queue_lock guards the messages; handle_lock guards the handle (zk_handle.c), which the watchdog may take away.
 *
 * The library tries another server at once when a connection is refused or ends. But it waits two thirds of the
 * session time for a server that accepts a connection and does not answer: one that is starting or stopped, or behind a
 * network that drops packets. And if the number of addresses is even, it tries each second one only. So a handle that
 * has no contact in time is replaced by another one, which continues the session and tries the other servers, in a new
 * order:
 *
 *   leave (worker: the handle is disconnected and closed) -> its requests are answered -> open (worker)
 *
 * A new handle knows neither the watches of the old one nor the newest transaction that it has seen. `up` therefore
 * means that everything has to be looked at again, and the first request of each connection is a sync.
 */
#include "coord/zk_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/log.h"

#define WATCHDOG_QUARTERS 4	 /* quarters of the session time without an iteration of the loop */
#define TICKS			  24 /* of the timer in a session time */
#define WARN_MS			  10000
#define REOPEN_MS		  1000

/* The time limit of an attempt is the largest of: ATTEMPT_MS, the time without contact divided by ATTEMPT_SHARE, and
 * ATTEMPT_ROUND_TRIPS of earlier heartbeats (TCP's handshake, the session's, the sync, the question to the leader). */
#define ATTEMPT_MS			250
#define ATTEMPT_SHARE		8
#define ATTEMPT_ROUND_TRIPS 4

#define ZK_FAREWELL_SESSIONS 2 /* session times without contact after which no server knows the session */

static void on_timer(uv_timer_t *timer);
static void start_open(ZkClient *client);
static void start_leave(ZkClient *client);
static void start_close(ZkClient *client);

static uint64_t
now_ms(void)
{
	return uv_hrtime() / 1000000;
}

/* ---- the watchdog ---- */

/*
 * Counts the quarters of the session time in which the loop made no iteration. It does not read the clock: a process
 * that was stopped and continued, with all of its threads, is not a loop that hangs.
 */
static void
watchdog_run(void *arg)
{
	ZkClient *client = arg;
	unsigned seen = atomic_load(&client->iterations);
	int still = 0;

	uv_mutex_lock(&client->queue_lock);
	while (!client->watchdog_ends && still < WATCHDOG_QUARTERS)
	{
		unsigned iterations;

		uv_cond_timedwait(&client->watchdog_wake, &client->queue_lock, (uint64_t) client->session_ms * 1000000 / 4);
		iterations = atomic_load(&client->iterations);
		still = iterations == seen ? still + 1 : 0;
		seen = iterations;
	}
	uv_mutex_unlock(&client->queue_lock);
	if (still >= WATCHDOG_QUARTERS)
	{
		zhandle_t *handle = zk_handle_take(client, true);

		if (handle != NULL)
			zookeeper_close(handle);
		zk_message_push_event(client, ZK_MESSAGE_STALLED, 0, NULL);
	}
}

/* ---- contact ---- */

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

static void
start_timer(ZkClient *client)
{
	uint64_t tick = client->session_ms / TICKS;

	uv_timer_start(&client->timer, on_timer, tick < 20 ? 20 : tick, tick < 20 ? 20 : tick);
}

static void
go_up(ZkClient *client)
{
	if (client->up || !client->connected || client->is_over)
		return;
	uv_mutex_lock(&client->handle_lock);
	if (client->handle != NULL)
	{
		client->id = *zoo_client_id(client->handle);
		client->session_ms = (unsigned) zoo_recv_timeout(client->handle);
	}
	uv_mutex_unlock(&client->handle_lock);
	start_timer(client);
	if (!client->has_watchdog)
		client->has_watchdog = uv_thread_create(&client->watchdog, watchdog_run, client) == 0;
	if (!client->established)
		log_event(LOG_INFO, "zookeeper session", LOG_INT("id", client->id.client_id),
				  LOG_INT("session_ms", client->session_ms));
	client->up = true;
	client->established = true;
	client->events.up(client->events.arg);
}

/* Handles the reply to the heartbeat that was sent at `sent`. */
static void
heard_beat(ZkClient *client, uint64_t sent)
{
	uint64_t now = now_ms(), took = now - sent;

	client->waited = 0;
	client->round_trip = took < client->round_trip ? took : client->round_trip + (took - client->round_trip) / 8;
	if (sent > client->contact)
		client->contact = sent;
	if (now - client->contact <= client->session_ms / 3)
		go_up(client);
}

static void
beat(ZkClient *client)
{
	zk_request_beat(client, now_ms());
}

static void
on_greeted(void *arg, const ZkReply *reply)
{
}

/* A new connection must not read an older state than the one before it has read: it begins with a sync. */
static void
greet(ZkClient *client)
{
	client->waited = 0;
	zk_sync(client, "/", on_greeted, NULL);
	beat(client);
}

static void
handle_state(ZkClient *client, int state)
{
	if (state == ZOO_CONNECTED_STATE)
	{
		if (!client->opened)
			return; /* the last word of a server that is being left */
		client->connected = true;
		uv_mutex_lock(&client->handle_lock);
		if (client->handle != NULL)
			client->session_ms = (unsigned) zoo_recv_timeout(client->handle);
		uv_mutex_unlock(&client->handle_lock);
		greet(client);
		return;
	}
	client->connected = false;
	client->waited = 0;
	if (state == ZOO_EXPIRED_SESSION_STATE)
		go_over(client, "the ZooKeeper session has expired");
	else if (state == ZOO_AUTH_FAILED_STATE)
		go_over(client, "ZooKeeper refused the authentication");
	else
		go_down(client);
}

static void
handle_message(ZkClient *client, const ZkMessage *message)
{
	switch (message->kind)
	{
		case ZK_MESSAGE_REPLY:
			if (zk_is_connection_loss(message->reply.rc))
				go_down(client); /* the library tells it after the replies */
			if (message->fn)
				message->fn(message->arg, &message->reply);
			else if (message->reply.rc == ZOK)
				heard_beat(client, (uint64_t) (uintptr_t) message->arg);
			break;
		case ZK_MESSAGE_STATE:
			handle_state(client, message->reply.rc);
			break;
		case ZK_MESSAGE_CHANGED:
			client->events.changed(client->events.arg, message->reply.path != NULL ? message->reply.path : "");
			break;
		case ZK_MESSAGE_STALLED:
			go_over(client, "the event loop of this gateway stood still for longer than its session");
			break;
	}
}

/* Handles a message after the session was over; true when it can be closed: a server answers, or has ended it. */
static bool
is_farewell(ZkClient *client, const ZkMessage *message)
{
	if (message->kind == ZK_MESSAGE_REPLY)
		return !message->fn && message->reply.rc == ZOK && client->opened;
	if (message->kind == ZK_MESSAGE_CHANGED)
		return false;
	client->connected = message->kind == ZK_MESSAGE_STATE && message->reply.rc == ZOO_CONNECTED_STATE && client->opened;
	if (client->connected)
		greet(client);
	return message->kind == ZK_MESSAGE_STALLED || message->reply.rc == ZOO_EXPIRED_SESSION_STATE ||
		   message->reply.rc == ZOO_AUTH_FAILED_STATE;
}

/* Handles all messages in order. A message may close the client; the rest is then dropped. */
static void
drain(ZkClient *client)
{
	ZkMessage *message = zk_message_take_all(client), *next;

	if (atomic_exchange(&client->starved, false))
		go_over(client, "out of memory");
	for (; message != NULL; message = next)
	{
		next = message->next;
		if (!client->closing && !client->is_over)
			handle_message(client, message);
		else if (!client->closing && client->abandoned && is_farewell(client, message))
			zk_close(client, client->done, client->done_arg);
		zk_message_free(message);
	}
}

void
zk_client_starve(ZkClient *client)
{
	atomic_store(&client->starved, true);
	uv_async_send(&client->wake);
}

static void
on_wake(uv_async_t *wake)
{
	ZkClient *client = wake->data;

	if (!client->working) /* on_opened() and on_left() drain what came before them */
		drain(client);
}

/* For how long no progress may be made before another handle is tried. */
static uint64_t
patience(const ZkClient *client, uint64_t now)
{
	uint64_t longest = client->session_ms / 3, wanted = ATTEMPT_MS;

	if (!client->established)
		return longest;
	if (wanted < (now - client->contact) / ATTEMPT_SHARE)
		wanted = (now - client->contact) / ATTEMPT_SHARE;
	if (wanted < client->round_trip * ATTEMPT_ROUND_TRIPS)
		wanted = client->round_trip * ATTEMPT_ROUND_TRIPS;
	return wanted < longest ? wanted : longest;
}

/* Opens the handle, sends a heartbeat, or leaves the server. */
static void
step(ZkClient *client, uint64_t now)
{
	if (!client->opened)
	{
		if (now >= client->reopen_at)
			start_open(client);
		return;
	}
	if (client->connected)
		beat(client);
	/* ticks are counted, so that a loop that was late does not blame the server for it */
	client->waited += uv_timer_get_repeat(&client->timer);
	if (!client->up && client->waited > patience(client, now))
		start_leave(client);
}

static void
on_timer(uv_timer_t *timer)
{
	ZkClient *client = timer->data;
	uint64_t now;

	atomic_fetch_add(&client->iterations, 1);
	if (client->closing)
		return;
	if (!client->working)
		drain(client);
	if (client->closing || (client->is_over && !client->abandoned))
		return;
	now = now_ms();
	if (client->abandoned && now - client->contact > client->session_ms * ZK_FAREWELL_SESSIONS)
	{
		zk_close(client, client->done, client->done_arg);
		return;
	}
	if (!client->established && now - client->last_warning > WARN_MS)
	{
		client->last_warning = now;
		log_event(LOG_WARN, "zookeeper is not reachable; trying on", LOG_STR("hosts", client->hosts));
	}
	if (!client->is_over && client->established && now - client->contact > (uint64_t) client->session_ms * 5 / 6)
	{
		client->lost_contact = true;
		go_over(client, "there was no contact with ZooKeeper for five sixths of the session time");
		return;
	}
	if (now - client->contact > client->session_ms / 3)
		go_down(client);
	if (!client->working && !client->closing)
		step(client, now);
}

/* ---- opening, leaving and closing ---- */

static void
open_in_worker(uv_work_t *work)
{
	zk_handle_open(work->data);
}

static void
leave_in_worker(uv_work_t *work)
{
	zk_handle_leave(work->data);
}

static void
on_opened(uv_work_t *work, int status)
{
	ZkClient *client = work->data;

	client->working = false;
	client->waited = 0;
	if (client->closing)
	{
		start_close(client);
		return;
	}
	if (!client->opened)
	{
		uint64_t now = now_ms();

		if (client->last_name_warning == 0 || now - client->last_name_warning > WARN_MS)
		{
			client->last_warning = client->last_name_warning = now; /* this one says more */
			log_event(LOG_WARN, "a name among the zookeeper hosts cannot be looked up; trying again",
					  LOG_STR("hosts", client->hosts));
		}
		client->reopen_at = now + REOPEN_MS;
	}
	if (!uv_is_active((uv_handle_t *) &client->timer))
		start_timer(client);
	uv_async_send(&client->wake);
}

static void
start_open(ZkClient *client)
{
	client->working = true;
	uv_queue_work(client->loop, &client->work, open_in_worker, on_opened);
}

static void
on_left(uv_work_t *work, int status)
{
	ZkClient *client = work->data;

	client->working = false;
	if (client->closing)
	{
		start_close(client);
		return;
	}
	if (!client->left)
	{
		client->opened = true; /* the watchdog has the handle, and closes it just now */
		return;
	}
	zk_request_lose_all(client);
	drain(client);
	if (!client->closing)
		start_open(client);
}

static void
start_leave(ZkClient *client)
{
	client->connected = client->opened = false;
	client->working = true;
	uv_queue_work(client->loop, &client->work, leave_in_worker, on_left);
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
	handle = zk_handle_take(client, true);
	if (handle != NULL)
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

	drain(client); /* only frees messages: the library has answered the requests that it remembers by ZCLOSING */
	zk_request_free_all(client);
	uv_close((uv_handle_t *) &client->timer, on_handle_closed);
	uv_close((uv_handle_t *) &client->wake, on_handle_closed);
}

static void
start_close(ZkClient *client)
{
	client->working = true;
	uv_timer_stop(&client->timer);
	uv_queue_work(client->loop, &client->work, close_in_worker, on_closed);
}

ZkClient *
zk_open(uv_loop_t *loop, const char *hosts, unsigned session_ms, const ZkEvents *events)
{
	ZkClient *client = calloc(1, sizeof(*client));
	char *copy = strdup(hosts);

	if (client == NULL || copy == NULL)
	{
		free(client);
		free(copy);
		return NULL;
	}
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	client->loop = loop;
	client->events = *events;
	client->hosts = copy;
	TAILQ_INIT(&client->requests);
	client->asked_ms = client->session_ms = session_ms;
	client->contact = client->last_warning = now_ms();
	client->round_trip = session_ms;
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

void
zk_abandon(ZkClient *client, void (*done)(void *arg), void *arg)
{
	client->done = done;
	client->done_arg = arg;
	client->abandoned = client->lost_contact;
	if (!client->abandoned)
		zk_close(client, done, arg);
}

/* ---- requests ---- */

bool
zk_is_up(const ZkClient *client)
{
	return client->up;
}

int64_t
zk_session(const ZkClient *client)
{
	return client->id.client_id;
}

unsigned
zk_session_ms(const ZkClient *client)
{
	return client->session_ms;
}

bool
zk_is_connection_loss(int rc)
{
	return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONMOVED || rc == ZCLOSING;
}
