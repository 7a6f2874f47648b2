/*
 * workbook_jobs.c - conversions of workbooks that requests wait for. A program beside the gateways (calc) does them;
 * the database has a row for each, which is removed with the request (docs/design/workbooks.md).
 *
 * The gateway asks for the state of each job every WORKBOOK_TICK_MS. So the database also knows that somebody waits.
 */
#include "http/api/workbooks.h"

#include "core/gateway.h"

#include <stdlib.h>
#include <string.h>

#define WORKBOOK_TICK_MS 100

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
workbook_stated(Request *request, PGresult *res)
{
	WorkbookJob *job = request->own;

	job->asking = false;
	if (request_succeeded(res) && PQgetvalue(res, 0, 0)[0] == 'f')
		return;
	if (!request_succeeded(res))
		request_sql_error(request, res);
	else if (PQgetisnull(res, 0, WORKBOOK_ANSWER) && atoi(PQgetvalue(res, 0, WORKBOOK_STATUS)) >= 400)
		request_error_code(request, 503, "workbook_unserved",
						   "the program that converts workbooks has ended: try again");
	else
		job->done(request, res);
	workbook_leave(job);
}

static void
workbook_on_timer(uv_timer_t *handle)
{
	for (WorkbookJob *job = waiting, *next; job != NULL; job = next)
	{
		Request *request = job->request;

		next = job->next;
		if (request_is_answered(request)) /* its client has gone, or the database has too much to do */
			workbook_leave(job);
		else if (!job->asking)
		{
			job->asking = true;
			request_query(request, DATABASE_READS, workbook_state_sql, PARAMS(request_int64(request, job->id)),
						  REQUEST_TEXT_RAW, workbook_stated);
		}
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
