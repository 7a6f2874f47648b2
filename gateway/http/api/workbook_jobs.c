/*
 * workbook_jobs.c - conversions of workbooks that requests wait for. A program beside the gateways (calc) does them;
 * the database has a row for each, which is removed with the request (docs/design/workbooks.md).
 *
 * The gateway asks for the state of each job every WORKBOOK_TICK_MS. So the database also knows that somebody waits. If
 * the database does not answer, it is asked again: what was made meanwhile is there, and a client that is told to try
 * again would make it twice.
 */
#include "http/api/workbooks.h"

#include "core/gateway.h"

#include <stdlib.h>
#include <string.h>

#define WORKBOOK_TICK_MS	 100
#define WORKBOOK_PATIENCE_MS 60000 /* without an answer of the database */

static const char workbook_state_sql[] = "SELECT done, status, answer, name, bytes FROM sheet.workbook_state($1)";
static const char workbook_end_sql[] = "SELECT sheet.workbook_end($1)";

static WorkbookJob *waiting;
static uv_timer_t timer; /* runs while there are jobs */

void
workbook_end(WorkbookJob *job)
{
	char id[24];
	PgParam param = pgparam_int64(id, job->id);

	if (job->id != 0)
		(void) database_query(DATABASE_WRITES, 0, workbook_end_sql, 1, &param, 0, NULL, NULL);
	job->id = 0;
}

/* The request waits no longer. It may be freed. */
static void
workbook_leave(WorkbookJob *job)
{
	WorkbookJob **link = &waiting;

	while (*link != job)
		link = &(*link)->next;
	*link = job->next;
	request_end_step(job->request);
}

static void
workbook_stated(void *arg, PGresult *res)
{
	WorkbookJob *job = arg;
	Request *request = job->request;
	uint64_t now = uv_now(&gateway.loop);
	bool heard = request_succeeded(res);

	job->asking = false;
	if (heard)
		job->heard = now;
	if (!request_is_answered(request))
	{
		if (heard ? PQgetvalue(res, 0, WORKBOOK_DONE)[0] == 'f' : now - job->heard < WORKBOOK_PATIENCE_MS)
			return;
		if (!heard)
			request_sql_error(request, res);
		else if (PQgetisnull(res, 0, WORKBOOK_ANSWER) && atoi(PQgetvalue(res, 0, WORKBOOK_STATUS)) >= 400)
			request_error_code(request, 503, "workbook_unserved",
							   "the program that converts workbooks has ended: try again");
		else
			job->done(request, res);
	}
	workbook_leave(job);
}

/* If the class has too much to do, the job is asked for at the next tick. */
static void
workbook_ask_state(WorkbookJob *job)
{
	char id[24];
	PgParam param = pgparam_int64(id, job->id);

	job->asking = database_query(DATABASE_READS, job->request->claims.uid, workbook_state_sql, 1, &param, 0,
								 workbook_stated, job);
	if (!job->asking && uv_now(&gateway.loop) - job->heard >= WORKBOOK_PATIENCE_MS)
	{
		request_too_busy(job->request);
		workbook_leave(job);
	}
}

static void
workbook_on_timer(uv_timer_t *handle)
{
	for (WorkbookJob *job = waiting, *next; job != NULL; job = next)
	{
		next = job->next;
		if (job->asking)
			continue;
		if (request_is_answered(job->request)) /* its client has gone */
			workbook_leave(job);
		else
			workbook_ask_state(job);
	}
	if (waiting == NULL)
		uv_timer_stop(handle);
}

void
workbook_wait(Request *request, RequestStep done)
{
	WorkbookJob *job = request->own;

	job->request = request;
	job->done = done;
	job->heard = uv_now(&gateway.loop);
	job->next = waiting;
	waiting = job;
	request_begin_step(request);
	if (timer.loop == NULL)
	{
		uv_timer_init(&gateway.loop, &timer);
		uv_unref((uv_handle_t *) &timer);
	}
	uv_timer_start(&timer, workbook_on_timer, WORKBOOK_TICK_MS, WORKBOOK_TICK_MS);
}

bool
workbook_begun(Request *request, const PGresult *res)
{
	WorkbookJob *job = request->own;
	const char *state = pgresult_sqlstate(res);

	if (request_succeeded(res))
	{
		job->id = atoll(PQgetvalue(res, 0, 0));
		return !request_is_answered(request);
	}
	if (strcmp(state, "55000") == 0)
		request_error_code(request, 503, "workbook_unserved",
						   "no program runs that converts workbooks: pg_sheet_calc has to be started");
	else if (strcmp(state, "53400") == 0)
		request_error(request, 429, PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
	else
		request_sql_error(request, res);
	return false;
}
