/*
 * coord_zookeeper.c - coordination of several gateways by ZooKeeper: the life of the session (see coord.h, zk_coord.h).
 *
 *   no session --up--> members settled --> ready --> serving --down--> suspended --up--> all settled --> resumed
 *                                                       |                  |
 *                                                       +------- over -----+--> lost for every held sheet
 *
 * After `over` the session is closed and a new one begins. If contact was lost, the old session is closed when a server
 * answers: its nodes, among them the member's name, go at once instead of when the session expires.
 *
 * What was asked for and not yet granted is asked for again in the new session. A gateway that is cut off never
 * gives up connecting; it serves nothing live in that time.
 */
#include "coord/zk_coord.h"

#include "support/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void open_session(ZkCoord *self);

bool
zk_coord_is_up(const ZkCoord *self)
{
	return self->client != NULL && !self->coord.closing && zk_is_up(self->client);
}

static void
on_retry(uv_timer_t *timer)
{
	ZkCoord *self = timer->data;

	if (self->client == NULL && self->ending == NULL)
		open_session(self);
	zk_members_step(self);
	if (self->serving)
		zk_locks_step_all(self);
}

void
zk_coord_retry_later(ZkCoord *self)
{
	if (!self->coord.closing && !uv_is_active((uv_handle_t *) &self->retry))
		uv_timer_start(&self->retry, on_retry, ZK_RETRY_MS, 0);
}

void
zk_coord_settled(ZkCoord *self)
{
	if (!zk_coord_is_up(self) || !zk_members_settled(self))
		return;
	if (!self->serving)
	{
		self->serving = true;
		self->suspended = false;
		zk_locks_step_all(self);
		coord_tell_ready(&self->coord);
	}
	else if (self->suspended && zk_locks_settled(self))
	{
		self->suspended = false;
		coord_tell_resumed(&self->coord);
	}
}

static void
on_up(void *arg)
{
	ZkCoord *self = arg;

	/* also what an answer has settled that came after `down`: its watch may have been left with a server */
	zk_members_suspend(self);
	zk_locks_suspend(self);
	zk_members_step(self);
	if (self->serving)
		zk_locks_step_all(self);
	zk_coord_settled(self);
}

static void
on_down(void *arg)
{
	ZkCoord *self = arg;

	zk_members_suspend(self);
	zk_locks_suspend(self);
	if (!self->serving || self->suspended)
		return;
	self->suspended = true;
	coord_tell_suspended(&self->coord);
}

static void
finish(ZkCoord *self)
{
	void (*done)(void *arg) = self->done;
	void *arg = self->done_arg;

	if (!self->done_with_client || !self->done_with_timer)
		return;
	zk_members_end(self);
	zk_locks_free(self);
	free(self->hosts);
	free(self->root);
	coord_free(&self->coord);
	if (done != NULL)
		done(arg);
}

static void
on_client_closed(void *arg)
{
	ZkCoord *self = arg;

	self->ending = NULL;
	if (!self->coord.closing)
	{
		open_session(self);
		return;
	}
	self->done_with_client = true;
	finish(self);
}

static void
on_over(void *arg, const char *reason)
{
	ZkCoord *self = arg;
	ZkClient *client = self->client;

	self->client = NULL;
	self->serving = false;
	zk_members_end(self);
	/* the goodbye comes first: what the gateway does in `lost` must not delay it */
	self->ending = client;
	zk_abandon(client, on_client_closed, self);
	zk_locks_end(self, reason);
	zk_holder_end(self);
}

static void
on_changed(void *arg, const char *path)
{
	ZkCoord *self = arg;

	if (!zk_members_changed(self, path))
		zk_locks_changed(self, path);
}

static void
open_session(ZkCoord *self)
{
	ZkEvents events = {self, on_up, on_down, on_over, on_changed};

	self->client = zk_open(self->coord.loop, self->hosts, self->session_ms, &events);
	if (self->client == NULL)
		zk_coord_retry_later(self);
}

static void
zookeeper_set_state(Coord *coord, CoordState state)
{
	ZkCoord *self = (ZkCoord *) coord;

	self->members.state = state;
	zk_members_step(self);
}

static bool
zookeeper_acquire(Coord *coord, int64_t sheet_id)
{
	return zk_locks_acquire((ZkCoord *) coord, sheet_id);
}

static void
zookeeper_release(Coord *coord, int64_t sheet_id)
{
	zk_locks_release((ZkCoord *) coord, sheet_id);
}

static void
on_timer_closed(uv_handle_t *handle)
{
	ZkCoord *self = handle->data;

	self->done_with_timer = true;
	finish(self);
}

/* Closing the session removes all its nodes at once. */
static bool
zookeeper_ask_holder(Coord *coord, int64_t sheet_id, CoordHolderFn fn, void *arg)
{
	return zk_holder_ask((ZkCoord *) coord, sheet_id, fn, arg);
}

static void
zookeeper_close_coord(Coord *coord, void (*done)(void *arg), void *arg)
{
	ZkCoord *self = (ZkCoord *) coord;
	ZkClient *client = self->client != NULL ? self->client : self->ending;

	self->done = done;
	self->done_arg = arg;
	self->client = NULL;
	uv_close((uv_handle_t *) &self->retry, on_timer_closed);
	zk_holder_end(self);
	if (client != NULL)
		zk_close(client, on_client_closed, self);
	else
		self->done_with_client = true;
}

Coord *
coord_zookeeper_open(uv_loop_t *loop, const CoordConfig *config, const CoordEvents *events)
{
	static const CoordOps ops = {zookeeper_set_state, zookeeper_close_coord, zookeeper_acquire, zookeeper_release,
								 zookeeper_ask_holder};
	ZkCoord *self = must_have(calloc(1, sizeof(*self)));
	unsigned char random[16];

	if (uv_random(NULL, NULL, random, sizeof(random), 0, NULL) != 0)
		abort();
	coord_init(&self->coord, &ops, loop, config, events);
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(self->nonce + 2 * i, 3, "%02x", random[i]);
	self->hosts = must_have(strdup(config->zk_hosts));
	self->root = must_have(strdup(config->zk_root));
	self->session_ms = config->zk_session_ms;
	uv_timer_init(loop, &self->retry);
	self->retry.data = self;
	open_session(self);
	return &self->coord;
}
