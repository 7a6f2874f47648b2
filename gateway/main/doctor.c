/*
 * doctor.c - logs what sheet.doctor() finds wrong with the database, once after the start: a line for each finding.
 *
 * Nothing is decided by it. A query that fails, as on a connection that breaks, is repeated a few times.
 */
#include "main/doctor.h"

#include "core/database.h"
#include "db/pgresult.h"
#include "support/log.h"

#define DOCTOR_ATTEMPTS	 5
#define DOCTOR_MAX_LINES 50

static int doctor_attempts;
static bool doctor_under_way, doctor_done;

static void
doctor_on_answer(void *arg, PGresult *res)
{
	doctor_under_way = false;
	doctor_done = pgresult_succeeded(res);
	if (!doctor_done)
	{
		if (doctor_attempts == DOCTOR_ATTEMPTS)
			log_event(LOG_WARN, "sheet.doctor() could not be asked",
					  LOG_STR("reason", res != NULL ? pgresult_reason(res) : "the connection broke"));
		return;
	}
	for (int i = 0; i < PQntuples(res) && i < DOCTOR_MAX_LINES; i++)
		log_event(strcmp(PQgetvalue(res, i, 0), "error") == 0 ? LOG_ERROR : LOG_WARN, "sheet.doctor() has a finding",
				  LOG_STR("what", PQgetvalue(res, i, 1)), LOG_STR("detail", PQgetvalue(res, i, 2)),
				  LOG_STR("advice", PQgetvalue(res, i, 3)));
}

void
doctor_tick(void)
{
	static const char doctor_sql[] = "SELECT severity, what, detail, advice FROM sheet.doctor()";

	if (doctor_done || doctor_under_way || doctor_attempts == DOCTOR_ATTEMPTS ||
		!pgpool_is_up(database_pool(DATABASE_ACCOUNTS)))
		return;
	doctor_attempts++;
	doctor_under_way = database_query(DATABASE_LONG, 0, doctor_sql, 0, NULL, 0, doctor_on_answer, NULL);
}
