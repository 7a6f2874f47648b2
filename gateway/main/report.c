/*
 * report.c - tells the database the state and the load of this gateway, for the view sheet.gateways.
 *
 * One row for each gateway, in an unlogged table. Nothing is decided by it: who owns a sheet is the coordinator's word.
 */
#include "main/report.h"

#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "db/pgresult.h"
#include "ws/room/members.h"
#include "ws/room/room.h"

#include <stdio.h>
#include <string.h>

#define REPORT_S 5

static int report_wait;		  /* seconds until the next report is due */
static uint64_t report_edits; /* metrics.edits_committed, at the last report */
static bool report_under_way;

static const char *
report_state(void)
{
	if (gateway.leaving)
		return "stopping";
	if (gateway.draining)
		return "draining";
	if (gateway.away)
		return "away";
	return gateway.ready && !gateway.suspended ? "serving" : "suspended";
}

/* Where other machines reach admin-address: if it is on every interface, at the host by which they know this gateway.
 */
static const char *
report_admin_url(char *to, size_t size)
{
	const Config *config = &gateway.config;
	const char *address = config->admin_address;
	const char *named = config->peer_address[0] != '\0' ? config->peer_address : config->public_address;
	int host = (int) (strrchr(address, ':') - address);

	if (strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0)
		snprintf(to, size, "http%s://%.*s%s", config_admin_is_plain(config) ? "" : "s",
				 (int) (strrchr(named, ':') - named), named, address + host);
	else
		snprintf(to, size, "http%s://%s", config_admin_is_plain(config) ? "" : "s", address);
	return to;
}

static void
report_on_answer(void *arg, PGresult *res)
{
	report_under_way = false;
	if (!pgresult_succeeded(res))
		report_wait = 0;
}

void
report_tick(void)
{
	static const char sql[] = "SELECT sheet.report_gateway($1, $2, $3, $4, $5, $6, $7)";
	char weight[24], sheets[24], sessions[24], rate[24], admin[300];
	PgParam params[] = {pgparam_text(gateway.config.public_address),
						pgparam_int64(weight, gateway.config.weight),
						pgparam_text(report_state()),
						pgparam_int64(sheets, (int64_t) room_count()),
						pgparam_int64(sessions, (int64_t) members_count()),
						pgparam_int64(rate, (int64_t) (metrics.edits_committed - report_edits) / REPORT_S),
						pgparam_text(report_admin_url(admin, sizeof(admin)))};

	if (report_wait > 0)
		report_wait--;
	if (report_wait > 0 || report_under_way || !pgpool_is_up(database_pool(DATABASE_ACCOUNTS)))
		return;
	report_wait = REPORT_S;
	report_edits = metrics.edits_committed;
	report_under_way = database_query(DATABASE_ACCOUNTS, 0, sql, 7, params, 0, report_on_answer, NULL);
}
