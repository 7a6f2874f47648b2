/*
 * health.c - may this gateway get work? See health.h.
 *
 * A connection that is up says little: a server that is paused, or a network that drops everything, leaves it up. So a
 * question is asked on the connection for accounts, where nothing waits for a lock or takes long.
 */
#include "core/health.h"

#include "core/database.h"
#include "core/gateway.h"

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
		health_tick(); /* at the start nobody waits for the next second */
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
