/*
 * sim_libzookeeper.c - the functions of libzookeeper that gateway/coord/ calls; see sim.h.
 *
 * A handle has one connection at a time. When it breaks, all unanswered requests are answered by ZCONNECTIONLOSS, and
 * the next server is tried. A server that does not answer, also to the first request of a connection, is given up after
 * two thirds of the session time (zookeeper_interest() in zookeeper.c). A new handle begins with any server, has seen
 * no transaction and knows no watch, also when it continues a session. zookeeper_close() ends the session if the
 * handle is connected.
 */
#include "sim_zookeeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int ZOO_EPHEMERAL = 1, ZOO_EPHEMERAL_SEQUENTIAL = 3, ZOO_CONTAINER = 4, ZOO_SEQUENCE = 2;
const int ZOO_EXPIRED_SESSION_STATE = -112, ZOO_AUTH_FAILED_STATE = -113, ZOO_CONNECTING_STATE = 1,
		  ZOO_CONNECTED_STATE = 3;
const int ZOO_CHANGED_EVENT = 3, ZOO_DELETED_EVENT = 2, ZOO_CHILD_EVENT = 4, ZOO_SESSION_EVENT = -1;
struct ACL_vector ZOO_OPEN_ACL_UNSAFE;

static void
complete(zhandle_t *handle, Request *request, int rc)
{
	const Answer *answer = &request->answer;
	struct Stat stat = {
		.czxid = answer->node.czxid, .version = answer->node.version, .ephemeralOwner = answer->node.session};
	char *names[256];
	struct String_vector children = {answer->child_count, names};

	if (rc == ZOK && request->watch)
		watch_add(&handle->watches, request->path, request->kind == CHILDREN);
	for (int i = 0; i < answer->child_count; i++)
		names[i] = answer->children[i];
	if (request->on_void)
		request->on_void(rc, request->data);
	else if (request->on_stat)
		request->on_stat(rc, &stat, request->data);
	else if (request->on_data)
		request->on_data(rc, answer->node.data, (int) strlen(answer->node.data), &stat, request->data);
	else if (request->on_children)
		request->on_children(rc, rc == ZOK ? &children : NULL, request->data);
	else if (request->on_created)
		request->on_created(rc, answer->node.path, &stat, request->data);
	else if (request->on_synced)
		request->on_synced(rc, request->path, request->data);
}

static void
complete_all(zhandle_t *handle, int rc)
{
	while (handle->first)
	{
		Request *request = handle->first;

		handle->first = request->next;
		complete(handle, request, rc);
	}
}

static void
client_closes(zhandle_t *handle)
{
	Connection *connection = handle->connection;

	handle->connection = NULL;
	handle->connected = false;
	if (!connection)
		return;
	connection->handle = NULL;
	send_end_to_server(connection);
}

static void
client_tries_next(zhandle_t *handle)
{
	do
		handle->server = (handle->server + 1) % SIM_SERVERS;
	while (!handle->may_try[handle->server]);
}

static void
client_loses(zhandle_t *handle)
{
	bool was_connected = handle->connected;

	sim_trace("gateway %d loses server %d", handle->process->number, handle->server);
	client_closes(handle);
	complete_all(handle, ZCONNECTIONLOSS);
	client_tries_next(handle);
	handle->began = sim_now + sim_random(300) * SIM_MS;
	if (was_connected)
		handle->watcher(handle, ZOO_SESSION_EVENT, ZOO_CONNECTING_STATE, "", handle->context);
}

static Request *
request_new(zhandle_t *handle, RequestKind kind, const char *path, const void *data)
{
	Request *request = keep(sizeof(*request));

	request->kind = kind;
	request->session = handle->id.client_id;
	request->data = data;
	strcpy(request->path, path);
	return request;
}

static void
client_sends(zhandle_t *handle, Request *request)
{
	request->connection = handle->connection;
	request->session = handle->id.client_id;
	handle->sent = sim_now;
	send_to_server(request);
}

static void
client_connect(zhandle_t *handle)
{
	Connection *connection = keep(sizeof(*connection));
	Request *request = request_new(handle, CONNECT, "", NULL);

	connection_add(connection);
	connection->number = handle->server;
	connection->process = handle->process;
	connection->handle = handle;
	connection->open = !servers[handle->server].down;
	connection->session = handle->id.client_id;
	request->zxid = handle->zxid;
	request->timeout = handle->timeout;
	handle->connection = connection;
	handle->began = sim_now;
	client_sends(handle, request);
}

static void
client_ticks(void *arg)
{
	zhandle_t *handle = arg;
	uint64_t timeout = (uint64_t) handle->timeout * SIM_MS;

	handle->tick = sim_after(handle->process, 50 * SIM_MS, client_ticks, handle);
	if (handle->expired)
		return;
	if (!handle->connection)
	{
		if (sim_now >= handle->began)
			client_connect(handle);
	}
	else if (sim_now - (handle->connected ? handle->heard : handle->began) > timeout * 2 / 3 ||
			 (!handle->connected && servers[handle->connection->number].down))
		client_loses(handle);
	else if (handle->connected && sim_now - handle->sent >= timeout / 3)
		client_sends(handle, request_new(handle, PING, "", NULL));
}

static void
client_is_connected(zhandle_t *handle, const Request *request)
{
	if (request->answer.rc != ZOK)
	{
		handle->expired = true;
		client_closes(handle);
		complete_all(handle, ZSESSIONEXPIRED);
		handle->watcher(handle, ZOO_SESSION_EVENT, ZOO_EXPIRED_SESSION_STATE, "", handle->context);
		return;
	}
	sim_trace("gateway %d is connected to server %d, session %lld", handle->process->number, handle->server,
			  (long long) request->answer.session);
	handle->id.client_id = request->answer.session;
	handle->connected = true;
	for (Request *waiting = handle->first; waiting; waiting = waiting->next)
		client_sends(handle, waiting);
	handle->watcher(handle, ZOO_SESSION_EVENT, ZOO_CONNECTED_STATE, "", handle->context);
}

void
client_gets(void *arg)
{
	Message *message = arg;
	Request *request = message->request;
	zhandle_t *handle = message->connection->handle;

	if (!handle || message->connection->process->dead)
		return;
	handle->heard = sim_now;
	if (message->zxid > handle->zxid)
		handle->zxid = message->zxid;
	if (!request && message->event == 0)
		client_loses(handle);
	else if (!request)
	{
		if (watch_take(&handle->watches, message->path, message->event == ZOO_CHILD_EVENT) ||
			(message->event == ZOO_DELETED_EVENT && watch_take(&handle->watches, message->path, true)))
			handle->watch_fn(handle, message->event, ZOO_CONNECTED_STATE, message->path, handle->watch_context);
	}
	else if (request->kind == CONNECT)
		client_is_connected(handle, request);
	else if (request->kind != PING)
	{
		handle->first = request->next;
		complete(handle, request, request->answer.rc);
		if (request->answer.rc == ZSESSIONMOVED)
			client_loses(handle);
	}
}

zhandle_t *
zookeeper_init2(const char *hosts, watcher_fn fn, int timeout, const clientid_t *id, void *context, int flags,
				log_callback_fn log)
{
	zhandle_t *handle = calloc(1, sizeof(*handle));

	handle->process = sim_process_now();
	handle->watcher = fn;
	handle->context = context;
	handle->timeout = timeout;
	if (id)
		handle->id = *id;
	for (int i = 0; i < SIM_SERVERS; i++)
	{
		char name[16];

		snprintf(name, sizeof(name), "server%d:", i);
		handle->may_try[i] = strstr(hosts, name) != NULL;
	}
	handle->server = (int) sim_random(SIM_SERVERS);
	client_tries_next(handle);
	handle->tick = sim_after(handle->process, 0, client_ticks, handle);
	return handle;
}

int
zookeeper_close(zhandle_t *handle)
{
	if (handle->connected && !handle->process->dead)
		client_sends(handle, request_new(handle, END_SESSION, "", NULL));
	if (handle->connected)
		complete_all(handle, ZCLOSING);
	client_closes(handle);
	sim_cancel(handle->tick);
	free(handle);
	return ZOK;
}

const char *
zoo_get_current_server(zhandle_t *handle)
{
	static char name[16];

	snprintf(name, sizeof(name), "server%d:1", handle->server);
	return name;
}

/* In place of gateway/coord/zk_socket.c. The handle is closed next, so it connects to no other server. */
void
zk_socket_shut_down(zhandle_t *handle)
{
	client_closes(handle);
}

const clientid_t *
zoo_client_id(zhandle_t *handle)
{
	return &handle->id;
}

int
zoo_recv_timeout(zhandle_t *handle)
{
	return handle->timeout;
}

void
zoo_set_debug_level(ZooLogLevel level)
{
}

static int
client_asks(zhandle_t *handle, Request *request)
{
	Request **end = &handle->first;

	if (handle->expired)
		return ZINVALIDSTATE;
	for (; *end; end = &(*end)->next)
		;
	*end = request;
	if (handle->connected)
		client_sends(handle, request);
	return ZOK;
}

static void
change_add(Request *request, ChangeKind kind, const char *path, const char *data, int len, int flags, int version)
{
	Change *change = &request->changes[request->change_count++];

	change->kind = kind;
	change->flags = flags;
	change->version = version;
	snprintf(change->path, PATH_SIZE, "%s", path);
	snprintf(change->data, DATA_SIZE, "%.*s", len, data);
}

int
zoo_acreate2(zhandle_t *handle, const char *path, const char *data, int len, const struct ACL_vector *acl, int flags,
			 string_stat_completion_t fn, const void *arg)
{
	Request *request = request_new(handle, WRITE, "", arg);

	request->on_created = fn;
	change_add(request, CREATE, path, data, len, flags, -1);
	return client_asks(handle, request);
}

void
zoo_create_op_init(zoo_op_t *op, const char *path, const char *data, int len, const struct ACL_vector *acl, int flags,
				   char *name, int name_len)
{
	op->type = CREATE;
	op->create_op.path = path;
	op->create_op.data = data;
	op->create_op.datalen = len;
	op->create_op.flags = flags;
}

void
zoo_check_op_init(zoo_op_t *op, const char *path, int version)
{
	op->type = CHECK;
	op->check_op.path = path;
	op->check_op.version = version;
}

int
zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *ops, zoo_op_result_t *results, void_completion_t fn,
		   const void *arg)
{
	Request *request = request_new(handle, WRITE, "", arg);

	request->on_void = fn;
	for (int i = 0; i < count; i++)
		if (ops[i].type == CHECK)
			change_add(request, CHECK, ops[i].check_op.path, "", 0, 0, ops[i].check_op.version);
		else
			change_add(request, CREATE, ops[i].create_op.path, ops[i].create_op.data, ops[i].create_op.datalen,
					   ops[i].create_op.flags, -1);
	return client_asks(handle, request);
}

int
zoo_aset(zhandle_t *handle, const char *path, const char *data, int len, int version, stat_completion_t fn,
		 const void *arg)
{
	Request *request = request_new(handle, WRITE, "", arg);

	request->on_stat = fn;
	change_add(request, SET, path, data, len, 0, version);
	return client_asks(handle, request);
}

int
zoo_adelete(zhandle_t *handle, const char *path, int version, void_completion_t fn, const void *arg)
{
	Request *request = request_new(handle, WRITE, "", arg);

	request->on_void = fn;
	change_add(request, DELETE, path, "", 0, 0, version);
	return client_asks(handle, request);
}

static Request *
read_new(zhandle_t *handle, RequestKind kind, const char *path, watcher_fn watch, void *context, const void *arg)
{
	Request *request = request_new(handle, kind, path, arg);

	request->watch = watch != NULL;
	if (watch)
	{
		handle->watch_fn = watch;
		handle->watch_context = context;
	}
	return request;
}

int
zoo_awget(zhandle_t *handle, const char *path, watcher_fn watch, void *context, data_completion_t fn, const void *arg)
{
	Request *request = read_new(handle, GET, path, watch, context, arg);

	request->on_data = fn;
	return client_asks(handle, request);
}

int
zoo_awget_children(zhandle_t *handle, const char *path, watcher_fn watch, void *context, strings_completion_t fn,
				   const void *arg)
{
	Request *request = read_new(handle, CHILDREN, path, watch, context, arg);

	request->on_children = fn;
	return client_asks(handle, request);
}

int
zoo_aexists(zhandle_t *handle, const char *path, int watch, stat_completion_t fn, const void *arg)
{
	Request *request = read_new(handle, EXISTS, path, NULL, NULL, arg);

	request->on_stat = fn;
	return client_asks(handle, request);
}

int
zoo_async(zhandle_t *handle, const char *path, string_completion_t fn, const void *arg)
{
	Request *request = request_new(handle, SYNC, path, arg);

	request->on_synced = fn;
	return client_asks(handle, request);
}
