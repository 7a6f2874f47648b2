/*
 * zk_handle.c - the library's handle of a session: opening it, leaving a server, and who has it (see zk_client.c).
 *
 * The loop, the watchdog and a worker take the handle under handle_lock; who has taken it closes it.
 */
#include "coord/zk_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
on_session(zhandle_t *handle, int type, int state, const char *path, void *context)
{
	if (type == ZOO_SESSION_EVENT)
		zk_message_push_event(context, ZK_MESSAGE_STATE, state, NULL);
}

/* The library logs many lines while a server is away. The events report what matters. */
static void
ignore_log(const char *message)
{
}

zhandle_t *
zk_handle_take(ZkClient *client, bool for_good)
{
	zhandle_t *handle;

	uv_mutex_lock(&client->handle_lock);
	handle = client->handle;
	client->handle = NULL;
	client->handle_refused = client->handle_refused || for_good;
	uv_mutex_unlock(&client->handle_lock);
	return handle;
}

/* Returns whether the watchdog has not taken the handle away meanwhile. */
static bool
give_handle(ZkClient *client, zhandle_t *handle)
{
	bool refused;

	uv_mutex_lock(&client->handle_lock);
	refused = client->handle_refused;
	if (!refused)
		client->handle = handle;
	uv_mutex_unlock(&client->handle_lock);
	return !refused;
}

/* The hosts but the silent one, or all if there is no other; to be freed. A host that is a name is not recognised.
 * Returns NULL when there is no memory. */
static char *
hosts_to_try(const ZkClient *client)
{
	char *hosts = calloc(1, strlen(client->hosts) + 1), *end = hosts;
	const char *host = client->hosts;

	if (hosts == NULL)
		return NULL;
	while (*host)
	{
		size_t len = strcspn(host, ",");

		if (strlen(client->silent) != len || strncmp(client->silent, host, len) != 0)
			end += sprintf(end, "%s%.*s", end > hosts ? "," : "", (int) len, host);
		host += len + (host[len] == ',');
	}
	if (end == hosts)
		strcpy(hosts, client->hosts);
	return hosts;
}

void
zk_handle_open(ZkClient *client)
{
	char *hosts = hosts_to_try(client);
	zhandle_t *handle = NULL;

	if (hosts != NULL)
		handle = zookeeper_init2(hosts, on_session, (int) (client->established ? client->session_ms : client->asked_ms),
								 client->established ? &client->id : NULL, client, ZOO_NO_LOG_CLIENTENV, ignore_log);
	free(hosts);
	client->opened = handle != NULL;
	if (handle != NULL && !give_handle(client, handle))
		zookeeper_close(handle);
}

/*
 * Closing a connected handle would end the session, perhaps when a stopped server continues. So its socket is shut down
 * before.
 */
void
zk_handle_leave(ZkClient *client)
{
	zhandle_t *handle = zk_handle_take(client, false);

	client->left = handle != NULL;
	if (handle == NULL)
		return;
	snprintf(client->silent, sizeof(client->silent), "%s", zoo_get_current_server(handle));
	zk_socket_shut_down(handle);
	zookeeper_close(handle);
}
