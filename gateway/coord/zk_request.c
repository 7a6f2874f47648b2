/*
 * zk_request.c - requests to ZooKeeper, and the messages that bring replies and events to the loop.
 *
 * The library calls completions and watches in a thread of its own. Each call becomes a message; the loop handles the
 * messages in order. A request has the memory for its reply. Without memory for a request or for an event, the session
 * ends (zk_client_starve()), since it would be waited for in vain.
 */
#include "coord/zk_private.h"

#include <stdlib.h>
#include <string.h>

/* Given to the library with each request. The completion makes it a message, or zk_request_lose_all() does, or
 * zk_request_free_all() frees it: the library forgets some requests when it is closed while a server is away. */
struct ZkRequest
{
	ZkMessage reply; /* must be first: zk_message_free() frees the request */
	TAILQ_ENTRY(ZkRequest) entry;
	ZkClient *client;
	zoo_op_result_t results[3]; /* of zk_create_pair(): the library writes them before it calls the completion */
};

typedef struct ZkRequest ZkRequest;

/* ---- messages ---- */

void
zk_message_push_event(ZkClient *client, ZkMessageKind kind, int rc, const char *path)
{
	ZkMessage *message = calloc(1, sizeof(*message));

	if (message != NULL && path != NULL)
		message->reply.path = strdup(path);
	if (message == NULL || (path != NULL && message->reply.path == NULL))
	{
		free(message);
		zk_client_starve(client);
		return;
	}
	message->kind = kind;
	message->reply.rc = rc;
	zk_message_push(client, message);
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
	if (client->last != NULL)
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

/* Returns NULL when there is no memory: the session ends, and fn is not called. */
static ZkRequest *
request_new(ZkClient *client, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = malloc(sizeof(*request));

	if (request == NULL)
	{
		zk_client_starve(client);
		return NULL;
	}
	uv_mutex_lock(&client->queue_lock);
	*request = (ZkRequest){.reply = {.kind = ZK_MESSAGE_REPLY, .fn = fn, .arg = arg}, .client = client};
	TAILQ_INSERT_TAIL(&client->requests, request, entry);
	uv_mutex_unlock(&client->queue_lock);
	return request;
}

static void
request_remove(ZkRequest *request)
{
	ZkClient *client = request->client;

	uv_mutex_lock(&client->queue_lock);
	TAILQ_REMOVE(&client->requests, request, entry);
	uv_mutex_unlock(&client->queue_lock);
}

void
zk_request_free_all(ZkClient *client)
{
	ZkRequest *request;

	while ((request = TAILQ_FIRST(&client->requests)) != NULL)
	{
		request_remove(request);
		free(request);
	}
}

/* Makes the request its reply. complete: there was memory for what rc ZOK brings. */
static void
request_reply(ZkRequest *request, int rc, bool complete)
{
	request_remove(request);
	request->reply.reply.rc = complete ? rc : ZSYSTEMERROR;
	zk_message_push(request->client, &request->reply);
}

static void
on_void(int rc, const void *data)
{
	request_reply((ZkRequest *) data, rc, true);
}

void
zk_request_lose_all(ZkClient *client)
{
	while (!TAILQ_EMPTY(&client->requests))
		on_void(ZCONNECTIONLOSS, TAILQ_FIRST(&client->requests));
}

static void
on_synced(int rc, const char *path, const void *data)
{
	on_void(rc, data);
}

static void
on_stat(int rc, const struct Stat *stat, const void *data)
{
	ZkRequest *request = (ZkRequest *) data;

	if (rc == ZOK)
		request->reply.reply.version = stat->version;
	request_reply(request, rc, true);
}

static void
on_created(int rc, const char *path, const struct Stat *stat, const void *data)
{
	ZkRequest *request = (ZkRequest *) data;
	ZkReply *reply = &request->reply.reply;

	if (rc == ZOK)
	{
		reply->path = strdup(path);
		reply->czxid = stat->czxid;
	}
	request_reply(request, rc, rc != ZOK || reply->path != NULL);
}

static void
on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
	ZkRequest *request = (ZkRequest *) data;
	ZkReply *reply = &request->reply.reply;

	if (rc == ZOK)
	{
		reply->data = strndup(value != NULL && len > 0 ? value : "", len > 0 ? (size_t) len : 0);
		reply->czxid = stat->czxid;
		reply->version = stat->version;
		reply->session = stat->ephemeralOwner;
	}
	request_reply(request, rc, rc != ZOK || reply->data != NULL);
}

static void
on_children(int rc, const struct String_vector *strings, const void *data)
{
	ZkRequest *request = (ZkRequest *) data;
	ZkReply *reply = &request->reply.reply;
	char **children = NULL;
	bool complete = true;

	if (rc == ZOK && strings != NULL)
	{
		children = calloc((size_t) strings->count + 1, sizeof(*children));
		complete = children != NULL;
		while (complete && reply->child_count < strings->count)
		{
			children[reply->child_count] = strdup(strings->data[reply->child_count]);
			complete = children[reply->child_count++] != NULL;
		}
		reply->children = children;
	}
	request_reply(request, rc, complete);
}

/* The watch of all requests: the path tells which one fired. Session events come here as well. */
static void
on_watch(zhandle_t *handle, int type, int state, const char *path, void *context)
{
	if (type != ZOO_SESSION_EVENT)
		zk_message_push_event(context, ZK_MESSAGE_CHANGED, 0, path);
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

	if (request == NULL)
		return;
	uv_mutex_lock(&client->handle_lock);
	if (client->handle != NULL)
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

	if (request == NULL)
		return;
	zoo_check_op_init(&ops[0], guard, version);
	zoo_create_op_init(&ops[1], first, data, (int) strlen(data), &ZOO_OPEN_ACL_UNSAFE, flags, NULL, 0);
	zoo_create_op_init(&ops[2], second, data, (int) strlen(data), &ZOO_OPEN_ACL_UNSAFE, flags, NULL, 0);
	uv_mutex_lock(&client->handle_lock);
	if (client->handle != NULL)
		rc = zoo_amulti(client->handle, 3, ops, request->results, on_void, request);
	request_sent(client, request, rc);
}

void
zk_sync(ZkClient *client, const char *path, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	if (request == NULL)
		return;
	uv_mutex_lock(&client->handle_lock);
	if (client->handle != NULL)
		rc = zoo_async(client->handle, path, on_synced, request);
	request_sent(client, request, rc);
}

void
zk_set(ZkClient *client, const char *path, const char *data, int version, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	if (request == NULL)
		return;
	uv_mutex_lock(&client->handle_lock);
	if (client->handle != NULL)
		rc = zoo_aset(client->handle, path, data, (int) strlen(data), version, on_stat, request);
	request_sent(client, request, rc);
}

void
zk_delete(ZkClient *client, const char *path, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	if (request == NULL)
		return;
	uv_mutex_lock(&client->handle_lock);
	if (client->handle != NULL)
		rc = zoo_adelete(client->handle, path, -1, on_void, request);
	request_sent(client, request, rc);
}

void
zk_get(ZkClient *client, const char *path, bool watch, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	if (request == NULL)
		return;
	uv_mutex_lock(&client->handle_lock);
	if (client->handle != NULL)
		rc = zoo_awget(client->handle, path, watch ? on_watch : NULL, watch ? client : NULL, on_data, request);
	request_sent(client, request, rc);
}

void
zk_get_children(ZkClient *client, const char *path, bool watch, ZkReplyFn fn, void *arg)
{
	ZkRequest *request = request_new(client, fn, arg);
	int rc = ZINVALIDSTATE;

	if (request == NULL)
		return;
	uv_mutex_lock(&client->handle_lock);
	if (client->handle != NULL)
		rc = zoo_awget_children(client->handle, path, watch ? on_watch : NULL, watch ? client : NULL, on_children,
								request);
	request_sent(client, request, rc);
}

void
zk_request_beat(ZkClient *client, uint64_t sent)
{
	ZkRequest *request = request_new(client, NULL, (void *) (uintptr_t) sent);
	int rc = ZINVALIDSTATE;

	if (request == NULL)
		return;
	uv_mutex_lock(&client->handle_lock);
	if (client->handle != NULL)
		rc = zoo_aexists(client->handle, "/", 0, on_stat, request);
	request_sent(client, request, rc);
}
