/*
 * zk_request.c - requests to ZooKeeper, and the messages that bring replies and events to the loop.
 *
 * The library calls completions and watches in a thread of its own. Each call becomes a message; the loop handles the
 * messages in order.
 */
#include "coord/zk_private.h"

#include <stdlib.h>
#include <string.h>

#include "support/log.h"

/* Given to the library with each request. The completion frees it, or zk_request_free_all() or zk_request_lose_all()
 * does: the library forgets some requests when it is closed while a server is away. */
struct ZkRequest
{
	struct ZkRequest *next, *prev;
	ZkClient *client;
	ZkReplyFn fn;
	void *arg;
	zoo_op_result_t results[3]; /* of zk_create_pair(): the library writes them before it calls the completion */
};

typedef struct ZkRequest ZkRequest;

static char *
copy_text(const char *text)
{
	return text ? must_have(strdup(text)) : NULL;
}

/* ---- messages ---- */

ZkMessage *
zk_message_new(ZkMessageKind kind, int rc, const char *path)
{
	ZkMessage *message = must_have(calloc(1, sizeof(*message)));

	message->kind = kind;
	message->reply.rc = rc;
	message->reply.path = copy_text(path);
	return message;
}

void
zk_message_free(ZkMessage *message)
{
	free((char *) message->reply.path);
	free((char *) message->reply.data);
	for (int i = 0; i < message->reply.child_count; i++)
		free(message->reply.children[i]);
	free((void *) message->reply.children);
	free(message);
}

void
zk_message_push(ZkClient *client, ZkMessage *message)
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

ZkMessage *
zk_message_take_all(ZkClient *client)
{
	ZkMessage *first;

	uv_mutex_lock(&client->queue_lock);
	first = client->first;
	client->first = client->last = NULL;
	uv_mutex_unlock(&client->queue_lock);
	return first;
}

/* ---- requests ---- */

static ZkRequest *
request_new(ZkClient *client, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = must_have(malloc(sizeof(*request)));

	uv_mutex_lock(&client->queue_lock);
	*request = (ZkRequest){.next = client->requests, .client = client, .fn = fn, .arg = arg};
	if (client->requests)
		client->requests->prev = request;
	client->requests = request;
	uv_mutex_unlock(&client->queue_lock);
	return request;
}

static void
request_free(ZkRequest *request)
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

void
zk_request_free_all(ZkClient *client)
{
	while (client->requests)
		request_free(client->requests);
}

/* A message that is the reply to the request, which it frees. */
static ZkMessage *
reply_new(const void *data, int rc, ZkClient **client)
{
	ZkRequest *request = (ZkRequest *) data;
	ZkMessage *message = zk_message_new(ZK_MESSAGE_REPLY, rc, NULL);

	message->fn = request->fn;
	message->arg = request->arg;
	*client = request->client;
	request_free(request);
	return message;
}

static void
on_void(int rc, const void *data)
{
	ZkClient *client;
	ZkMessage *message = reply_new(data, rc, &client);

	zk_message_push(client, message);
}

void
zk_request_lose_all(ZkClient *client)
{
	ZkRequest *oldest = client->requests, *later;

	while (oldest && oldest->next)
		oldest = oldest->next;
	for (; oldest; oldest = later)
	{
		later = oldest->prev;
		on_void(ZCONNECTIONLOSS, oldest);
	}
}

static void
on_synced(int rc, const char *path, const void *data)
{
	on_void(rc, data);
}

static void
on_stat(int rc, const struct Stat *stat, const void *data)
{
	ZkClient *client;
	ZkMessage *message = reply_new(data, rc, &client);

	if (rc == ZOK)
		message->reply.version = stat->version;
	zk_message_push(client, message);
}

static void
on_created(int rc, const char *path, const struct Stat *stat, const void *data)
{
	ZkClient *client;
	ZkMessage *message = reply_new(data, rc, &client);

	if (rc == ZOK)
	{
		message->reply.path = copy_text(path);
		message->reply.czxid = stat->czxid;
	}
	zk_message_push(client, message);
}

static void
on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
	ZkClient *client;
	ZkMessage *message = reply_new(data, rc, &client);

	if (rc == ZOK)
	{
		message->reply.data = must_have(strndup(value && len > 0 ? value : "", len > 0 ? (size_t) len : 0));
		message->reply.czxid = stat->czxid;
		message->reply.version = stat->version;
		message->reply.session = stat->ephemeralOwner;
	}
	zk_message_push(client, message);
}

static void
on_children(int rc, const struct String_vector *strings, const void *data)
{
	ZkClient *client;
	ZkMessage *message = reply_new(data, rc, &client);

	if (rc == ZOK && strings)
	{
		char **children = must_have(calloc((size_t) strings->count + 1, sizeof(*children)));

		for (int i = 0; i < strings->count; i++)
			children[i] = copy_text(strings->data[i]);
		message->reply.children = children;
		message->reply.child_count = strings->count;
	}
	zk_message_push(client, message);
}

/* The watch of all requests: the path tells which one fired. Session events come here as well. */
static void
on_watch(zhandle_t *handle, int type, int state, const char *path, void *context)
{
	if (type != ZOO_SESSION_EVENT)
		zk_message_push(context, zk_message_new(ZK_MESSAGE_CHANGED, 0, path));
}

/* Ends the sending of a request, which began with locking the handle. If it failed, the reply is its error; otherwise
 * its completion may have freed the request already. */
static void
request_sent(ZkClient *client, ZkRequest *request, int rc)
{
	uv_mutex_unlock(&client->handle_lock);
	if (rc != ZOK)
		on_void(rc, request);
}

void
zk_create(ZkClient *client, const char *path, const char *data, int flags, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_acreate2(client->handle, path, data, (int) strlen(data), &ZOO_OPEN_ACL_UNSAFE, flags, on_created,
						  request);
	request_sent(client, request, rc);
}

void
zk_create_pair(ZkClient *client, const char *guard, int version, const char *first, const char *second,
			   const char *data, int flags, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	zoo_op_t ops[3];
	int rc = ZINVALIDSTATE;

	zoo_check_op_init(&ops[0], guard, version);
	zoo_create_op_init(&ops[1], first, data, (int) strlen(data), &ZOO_OPEN_ACL_UNSAFE, flags, NULL, 0);
	zoo_create_op_init(&ops[2], second, data, (int) strlen(data), &ZOO_OPEN_ACL_UNSAFE, flags, NULL, 0);
	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_amulti(client->handle, 3, ops, request->results, on_void, request);
	request_sent(client, request, rc);
}

void
zk_sync(ZkClient *client, const char *path, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_async(client->handle, path, on_synced, request);
	request_sent(client, request, rc);
}

void
zk_set(ZkClient *client, const char *path, const char *data, int version, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_aset(client->handle, path, data, (int) strlen(data), version, on_stat, request);
	request_sent(client, request, rc);
}

void
zk_delete(ZkClient *client, const char *path, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_adelete(client->handle, path, -1, on_void, request);
	request_sent(client, request, rc);
}

void
zk_get(ZkClient *client, const char *path, bool watch, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_awget(client->handle, path, watch ? on_watch : NULL, watch ? client : NULL, on_data, request);
	request_sent(client, request, rc);
}

void
zk_get_children(ZkClient *client, const char *path, bool watch, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_awget_children(client->handle, path, watch ? on_watch : NULL, watch ? client : NULL, on_children,
								request);
	request_sent(client, request, rc);
}

void
zk_request_beat(ZkClient *client, uint64_t sent)
{
	ZkRequest *request = request_new(client, NULL, (void *) (uintptr_t) sent);
	int rc = ZINVALIDSTATE;

	uv_mutex_lock(&client->handle_lock);
	if (client->handle)
		rc = zoo_aexists(client->handle, "/", 0, on_stat, request);
	request_sent(client, request, rc);
}
