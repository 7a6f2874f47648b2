/*
 * health.c - whether this gateway can take new editors, and what systemd is told; see health.h.
 *
 * A connection may be up while the server is paused or the network drops everything. Therefore a query is sent once a
 * second, on the connection for accounts, where no statement waits for a lock or takes long.
 */
#include "core/health.h"

#include "core/database.h"
#include "core/gateway.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HEALTH_STALE_MS 3000

static uint64_t health_answered; /* ms of the loop's clock; 0: never */
static bool health_asking;

static void
health_on_answer(void *arg, PGresult *res)
{
	health_asking = false;
	if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK)
		health_answered = uv_now(&gateway.loop);
}

void
health_tick(void)
{
	static const char sql[] = "SELECT 1";

	if (!health_asking && pgpool_is_up(database_pool(DATABASE_ACCOUNTS)))
		health_asking = database_query(DATABASE_ACCOUNTS, 0, sql, 0, NULL, 0, health_on_answer, NULL);
}

bool
health_database_answers(void)
{
	if (health_answered == 0)
		health_tick(); /* at the start, do not wait for the next second */
	return pgconn_is_up(gateway.group) && pgpool_is_up(database_pool(DATABASE_ACCOUNTS)) && health_answered != 0 &&
		   uv_now(&gateway.loop) - health_answered <= HEALTH_STALE_MS;
}

bool
health_is_ready(Buf *reasons)
{
	const struct
	{
		bool wrong;
		const char *reason;
	} table[] = {
		{gateway.leaving || gateway.draining, "draining"},
		{!health_database_answers(), "the database does not answer"},
		{!gateway.ready, "the gateways have not found each other yet"},
		{gateway.away, "the database did not answer: other gateways have the sheets for some more seconds"},
		{gateway.suspended, "contact with the coordinator is lost"},
	};
	bool ready = true;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
	{
		if (!table[i].wrong)
			continue;
		if (reasons != NULL && !ready)
			buf_puts(reasons, ",");
		if (reasons != NULL)
			buf_puts_json(reasons, table[i].reason);
		ready = false;
	}
	return ready;
}

void
health_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len;
	int fd;

	if (path == NULL || (path[0] != '/' && path[0] != '@') || (len = strlen(path)) >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, len);
	if (path[0] == '@') /* the abstract namespace */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void) !sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *) &address,
				   (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

void
health_notify_alive(const char *status)
{
	static char last[128];
	char state[192];

	if (getenv("WATCHDOG_USEC") != NULL)
		health_notify("WATCHDOG=1");
	if (strcmp(status, last) == 0)
		return;
	snprintf(last, sizeof(last), "%s", status);
	snprintf(state, sizeof(state), "STATUS=%s", status);
	health_notify(state);
}
