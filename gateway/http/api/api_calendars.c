/*
 * api_calendars.c - /v2/calendars: the calendars of the account, what takes place in them, and their tasks. The rows of
 * a calendar's sheet are the tasks (docs/design/calendar.md), so every gateway may change them, as cells. The database
 * makes the JSON of the answers.
 */
#include "core/gateway.h"
#include "http/api/api.h"

#include <stdio.h>
#include <string.h>

#define ENTRIES_SHEETS_BYTES 1024 /* of the list of calendars in a query */
#define TIME_ARG_BYTES		 64
#define REMINDERS_BYTES		 2048 /* of their list in a query: 100 ids */

static const char calendars_list_sql[] =
	"SELECT json_build_object('calendars', coalesce(json_agg(json_build_object('id', c.sheet_id, 'name', c.name, "
	"'owner', c.owner, 'role', c.role, 'zone', c.zone, 'colour', c.colour)), '[]')) FROM sheet.calendars($1) c";
static const char calendars_create_sql[] = "SELECT sheet.create_calendar($1, $2, $3)";
static const char calendars_choose_sql[] = "SELECT sheet.choose_calendar($1, $2, NULL, $3)";
static const char calendars_set_sql[] = "SELECT sheet.set_calendar($1, true, $2), sheet.refresh_calendar($1, $2)";
/* Of entries of whole days the dates in their zone; the end is exclusive. Each list is cut after 5000. */
static const char calendars_entries_sql[] =
	"SELECT json_build_object('entries', coalesce(json_agg(x.entry) FILTER (WHERE NOT x.own), '[]'), "
	"'agenda', coalesce(json_agg(x.entry) FILTER (WHERE x.own), '[]'), 'states', "
	"coalesce((SELECT json_agg(json_build_object('id', s.sheet_id, 'seq', c.seq, 'expandedTo', CASE WHEN c.expanded_to "
	"< 'infinity' THEN to_char(c.expanded_to AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') END)) "
	"FROM (SELECT DISTINCT unnest($1::int8[])) s (sheet_id), sheet.calendar_state(s.sheet_id, $4) c), '[]')) "
	"FROM (SELECT e.own, "
	"json_strip_nulls(json_build_object('calendar', e.sheet_id, 'uid', e.task_uid, "
	"'instance', to_char(e.instance, 'YYYY-MM-DD\"T\"HH24:MI:SS'), "
	"'start', CASE WHEN e.all_day THEN to_char(e.starts_at AT TIME ZONE e.zone, 'YYYY-MM-DD') "
	"ELSE to_char(e.starts_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') END, "
	"'end', CASE WHEN e.all_day THEN to_char(e.ends_at AT TIME ZONE e.zone, 'YYYY-MM-DD') "
	"ELSE to_char(e.ends_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') END, 'allDay', e.all_day, "
	"'zone', e.zone, 'title', e.title, 'place', e.place, 'persons', e.persons, 'answer', e.answer)) AS entry "
	"FROM ((SELECT false AS own, s.sheet_id, n.*, NULL AS answer FROM (SELECT DISTINCT unnest($1::int8[])) s "
	"(sheet_id), "
	"sheet.calendar_entries(s.sheet_id, $2, $3, $4) n ORDER BY n.starts_at LIMIT 5000) UNION ALL "
	"(SELECT true, a.sheet_id, a.task_uid, a.instance, a.starts_at, a.ends_at, a.all_day, a.zone, a.title, a.place, "
	"NULL, a.answer FROM sheet.agenda($4, $2, $3) a LIMIT 5000)) e) x";
static const char calendars_dots_sql[] = "SELECT json_build_object('days', coalesce(json_agg(d ORDER BY d), '[]')) "
										 "FROM sheet.month_dots($1, ($2 || '-01')::date, $3) d";
static const char calendars_task_sql[] =
	"SELECT json_build_object('start', to_char(t.starts, 'YYYY-MM-DD\"T\"HH24:MI:SS'), 'allDay', t.all_day, 'zone', "
	"t.zone, 'repeats', t.repeats, 'cells', t.cells, 'own', t.own_cells, 'problem', t.problem, 'persons', "
	"coalesce(t.persons, '[]')) FROM sheet.task_info($1, $2, $3, $4) t";
static const char calendars_add_sql[] = "SELECT json_build_object('uid', sheet.add_task($1, $2, $3))";
static const char calendars_change_sql[] =
	"SELECT json_build_object('uid', sheet.change_task($1, $2, $3, $4, $5, $6, $7))";
static const char calendars_delete_sql[] = "SELECT sheet.delete_task($1, $2, $3, $4, $5)";
static const char reminders_list_sql[] =
	"SELECT json_build_object('reminders', coalesce(json_agg(json_build_object('id', r.reminder_id, 'calendar', "
	"r.sheet_id, 'uid', r.task_uid, "
	"'start', CASE WHEN r.all_day THEN to_char(r.starts_at AT TIME ZONE r.zone, 'YYYY-MM-DD') "
	"ELSE to_char(r.starts_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') END, "
	"'end', CASE WHEN r.all_day THEN to_char(r.ends_at AT TIME ZONE r.zone, 'YYYY-MM-DD') "
	"ELSE to_char(r.ends_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') END, "
	"'allDay', r.all_day, 'title', r.title, 'place', r.place)), '[]')) FROM sheet.reminders($1) r";
static const char reminders_dismiss_sql[] = "SELECT sheet.dismiss_reminders($1, $2)";
static const char calendars_answer_sql[] = "SELECT sheet.answer($1, $2, $3, $4, $5)";

/* ---- errors ---- */

/* Errors about a cell begin with the name of its column. */
static const char *
calendar_code(const char *reason)
{
	static const struct
	{
		const char *begins, *code;
	} codes[] = {{"Start: ", "start"},	   {"End: ", "end"},
				 {"Repeats: ", "repeats"}, {"invalid recurrence rule", "repeats"},
				 {"Who: ", "who"},		   {"Reminder: ", "reminder"},
				 {"Dates: ", "dates"},	   {"Except: ", "except"},
				 {"time zone ", "zone"},   {"the calendar has no column ", "column"}};

	for (size_t i = 0; reason != NULL && i < sizeof(codes) / sizeof(codes[0]); i++)
	{
		if (strncmp(reason, codes[i].begins, strlen(codes[i].begins)) == 0)
			return codes[i].code;
	}
	return NULL;
}

static void
calendar_sql_error(Request *request, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);
	const char *reason = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	const char *detail = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL) : NULL;

	if (strcmp(state, "42809") == 0)
		request_error_code(request, 409, "no_calendar", "the sheet is not a calendar");
	else if (strcmp(state, "SM001") == 0 && reason != NULL)
		request_error_code(request, 412, "changed", reason);
	else if (strcmp(state, "42704") == 0 && reason != NULL && strstr(reason, "sheet") == NULL)
		request_error_code(request, 404, "no_task", reason);
	else if (strncmp(state, "22", 2) == 0 && calendar_code(reason) != NULL)
		request_error_code(request, 400, calendar_code(reason),
						   strncmp(reason, "invalid recurrence", 18) == 0 && detail != NULL ? detail : reason);
	else
		api_sql_error(request, res);
}

/* ---- answers ---- */

static void
calendar_give(Request *request, const PGresult *res, int status)
{
	Buf body = {NULL, 0, 0};

	if (!request_succeeded(res))
	{
		calendar_sql_error(request, res);
		return;
	}
	if (PQntuples(res) == 0)
	{
		request_error_code(request, 404, "no_task", "the calendar has no such task");
		return;
	}
	buf_puts(&body, PQgetvalue(res, 0, 0));
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, status, &body);
}

static void
calendar_answered(Request *request, PGresult *res)
{
	calendar_give(request, res, 200);
}

/* Of the cells of a sheet, or of what is not in them. */
static void
calendar_done(Request *request, PGresult *res)
{
	if (request->sheet_id != 0)
		cached_range_invalidate(request->sheet_id);
	if (request_succeeded(res))
		request_answer(request, 204, NULL, NULL);
	else
		calendar_sql_error(request, res);
}

/* ---- arguments ---- */

/* A time in the query; absent: an empty text. False: answered. */
static bool
calendar_arg(Request *request, const char *name, char to[TIME_ARG_BYTES])
{
	to[0] = '\0';
	if (!request_has_arg(request, name) || request_arg(request, name, to, TIME_ARG_BYTES))
		return true;
	request_error(request, 400, "an argument of the query is too long");
	return false;
}

static PgParam
calendar_text(const char *text)
{
	return pgparam_text(text != NULL && text[0] != '\0' ? text : NULL);
}

/* An optional string of the body. */
static bool
calendar_is_string(Request *request, const char *name)
{
	const cJSON *value = request_member(request, name);
	char reason[48];

	if (value == NULL || cJSON_IsNull(value) || cJSON_IsString(value))
		return true;
	snprintf(reason, sizeof(reason), "%s is a string", name);
	request_error(request, 400, reason);
	return false;
}

/* Ids with a comma between each two. */
static bool
calendar_is_list(const char *list)
{
	for (;;)
	{
		char id[24];
		size_t len = strcspn(list, ",");
		int64_t number;

		if (len >= sizeof(id))
			return false;
		snprintf(id, sizeof(id), "%.*s", (int) len, list);
		if (!request_parse_id(id, &number))
			return false;
		list += len;
		if (*list++ == '\0')
			return true;
	}
}

/* ---- GET, POST /v2/calendars; PUT, PATCH /v2/calendars/ID ---- */

void
route_list_calendars(Request *request)
{
	request_query(request, DATABASE_READS, calendars_list_sql, PARAMS(request_uid(request)), REQUEST_TEXT_RAW,
				  calendar_answered);
}

bool
check_create_calendar(Request *request)
{
	const char *name;

	if (request_string(request, "name", &name))
		return calendar_is_string(request, "zone");
	request_error(request, 400, "name is needed, as a string");
	return false;
}

static void
calendar_created(Request *request, PGresult *res)
{
	if (calendar_code(PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY)) != NULL)
		calendar_sql_error(request, res);
	else
		api_created(request, res);
}

void
route_create_calendar(Request *request)
{
	const char *zone = request_text(request, "zone");

	request_query(request, DATABASE_LONG, calendars_create_sql,
				  PARAMS(pgparam_text(request_text(request, "name")), pgparam_text(zone[0] != '\0' ? zone : "UTC"),
						 request_uid(request)),
				  REQUEST_TEXT_RAW, calendar_created);
}

/* Nothing of the sheet has changed. */
static void
calendar_chosen(Request *request, PGresult *res)
{
	if (request_succeeded(res))
		request_answer(request, 204, NULL, NULL);
	else
		calendar_sql_error(request, res);
}

static void
calendar_set(Request *request, PGresult *res)
{
	if (strcmp(pgresult_sqlstate(res), "22023") == 0)
		request_error_code(request, 409, "no_calendar", "the first row of a calendar has the cells Title and Start");
	else
		calendar_done(request, res);
}

void
route_set_calendar(Request *request)
{
	request_query(request, DATABASE_LONG, calendars_set_sql, PARAMS(request_sheet(request), request_uid(request)),
				  REQUEST_TEXT_RAW, calendar_set);
}

bool
check_choose_calendar(Request *request)
{
	if (request_member(request, "colour") != NULL)
		return calendar_is_string(request, "colour");
	request_error(request, 400, "colour is needed: as #1d5fbf, or null for none");
	return false;
}

void
route_choose_calendar(Request *request)
{
	request_query(request, DATABASE_WRITES, calendars_choose_sql,
				  PARAMS(request_sheet(request), pgparam_text(request_text(request, "colour")), request_uid(request)),
				  REQUEST_TEXT_RAW, calendar_chosen);
}

/* ---- GET /v2/calendars/entries?from=&to=&calendars=, GET /v2/calendars/dots?month=&zone= ---- */

void
route_calendar_entries(Request *request)
{
	char from[TIME_ARG_BYTES], to[TIME_ARG_BYTES], list[ENTRIES_SHEETS_BYTES] = "", sheets[ENTRIES_SHEETS_BYTES + 2];

	if (!calendar_arg(request, "from", from) || !calendar_arg(request, "to", to))
		return;
	if ((request_has_arg(request, "calendars") && !request_arg(request, "calendars", list, sizeof(list))) ||
		(list[0] != '\0' && !calendar_is_list(list)))
		request_error(request, 400, "calendars is a list of the numbers of calendars, as 7,12, of at most 1023 bytes");
	else if (from[0] == '\0' || to[0] == '\0')
		request_error(request, 400, "from and to are needed, as 2027-01-31T00:00:00Z");
	else
	{
		snprintf(sheets, sizeof(sheets), "{%s}", list);
		request_query(request, DATABASE_LONG, calendars_entries_sql,
					  PARAMS(pgparam_text(sheets), pgparam_text(from), pgparam_text(to), request_uid(request)),
					  REQUEST_TEXT_RAW, calendar_answered);
	}
}

void
route_calendar_dots(Request *request)
{
	char month[TIME_ARG_BYTES], zone[TIME_ARG_BYTES];

	if (!calendar_arg(request, "month", month) || !calendar_arg(request, "zone", zone))
		return;
	if (strlen(month) != 7 || month[4] != '-')
		request_error(request, 400, "month is needed, as 2027-01");
	else
		request_query(request, DATABASE_READS, calendars_dots_sql,
					  PARAMS(request_uid(request), pgparam_text(month), pgparam_text(zone[0] != '\0' ? zone : "UTC")),
					  REQUEST_TEXT_RAW, calendar_answered);
}

/* ---- /v2/calendars/ID/tasks: POST {cells}; /UID: PATCH {cells, scope, instance, seen}, GET, DELETE ---- */

/* JSON of the body. */
typedef struct TaskTexts
{
	char *cells, *seen; /* seen is NULL if the request has none */
} TaskTexts;

static void
task_texts_free(void *own)
{
	TaskTexts *texts = own;

	cJSON_free(texts->cells);
	cJSON_free(texts->seen);
}

/* NULL: answered. */
static const TaskTexts *
task_texts(Request *request)
{
	const cJSON *seen = request_member(request, "seen");
	TaskTexts *texts = request_own(request, sizeof(TaskTexts), task_texts_free);

	if (texts == NULL)
		return NULL;
	texts->cells = cJSON_PrintUnformatted(request_member(request, "cells"));
	if (cJSON_IsObject(seen))
		texts->seen = cJSON_PrintUnformatted(seen);
	if (texts->cells != NULL && (texts->seen != NULL || !cJSON_IsObject(seen)))
		return texts;
	request_out_of_memory(request);
	return NULL;
}

bool
check_add_task(Request *request)
{
	if (cJSON_IsObject(request_member(request, "cells")))
		return true;
	request_error(request, 400, "cells is needed: an object of texts by the names of columns");
	return false;
}

bool
check_change_task(Request *request)
{
	const cJSON *seen = request_member(request, "seen");

	if (!check_add_task(request) || !calendar_is_string(request, "scope") || !calendar_is_string(request, "instance"))
		return false;
	if (seen == NULL || cJSON_IsNull(seen) || cJSON_IsObject(seen))
		return true;
	request_error(request, 400, "seen is an object of texts by the names of columns");
	return false;
}

static void
calendar_task_written(Request *request, PGresult *res)
{
	cached_range_invalidate(request->sheet_id);
	calendar_give(request, res, request->method == METHOD_POST ? 201 : 200);
}

void
route_add_task(Request *request)
{
	const TaskTexts *texts = task_texts(request);

	if (texts != NULL)
		request_query(request, DATABASE_LONG, calendars_add_sql,
					  PARAMS(request_sheet(request), pgparam_text(texts->cells), request_uid(request)),
					  REQUEST_TEXT_RAW, calendar_task_written);
}

void
route_change_task(Request *request)
{
	const TaskTexts *texts = task_texts(request);
	const char *scope = request_text(request, "scope");

	if (texts != NULL)
		request_query(request, DATABASE_LONG, calendars_change_sql,
					  PARAMS(request_sheet(request), pgparam_text(request->part), pgparam_text(texts->cells),
							 pgparam_text(scope[0] != '\0' ? scope : "all"),
							 calendar_text(request_text(request, "instance")), calendar_text(texts->seen),
							 request_uid(request)),
					  REQUEST_TEXT_RAW, calendar_task_written);
}

void
route_describe_task(Request *request)
{
	char instance[TIME_ARG_BYTES];

	if (calendar_arg(request, "instance", instance))
		request_query(
			request, DATABASE_READS, calendars_task_sql,
			PARAMS(request_sheet(request), pgparam_text(request->part), calendar_text(instance), request_uid(request)),
			REQUEST_TEXT_RAW, calendar_answered);
}

void
route_delete_task(Request *request)
{
	char instance[TIME_ARG_BYTES], scope[TIME_ARG_BYTES];

	if (calendar_arg(request, "instance", instance) && calendar_arg(request, "scope", scope))
		request_query(request, DATABASE_LONG, calendars_delete_sql,
					  PARAMS(request_sheet(request), pgparam_text(request->part),
							 pgparam_text(scope[0] != '\0' ? scope : "all"), calendar_text(instance),
							 request_uid(request)),
					  REQUEST_TEXT_RAW, calendar_done);
}

/* ---- PUT /v2/calendars/ID/answers/UID {answer, instance} ---- */

bool
check_answer_task(Request *request)
{
	if (request_member(request, "answer") != NULL)
		return calendar_is_string(request, "answer") && calendar_is_string(request, "instance");
	request_error(request, 400, "answer is needed: accepted, declined or tentative, or null for none");
	return false;
}

void
route_answer_task(Request *request)
{
	request_query(request, DATABASE_WRITES, calendars_answer_sql,
				  PARAMS(request_sheet(request), pgparam_text(request->part),
						 calendar_text(request_text(request, "answer")),
						 calendar_text(request_text(request, "instance")), request_uid(request)),
				  REQUEST_TEXT_RAW, calendar_done);
}

/* ---- GET /v2/reminders; DELETE /v2/reminders?ids=7,12 ---- */

void
route_reminders(Request *request)
{
	request_query(request, DATABASE_READS, reminders_list_sql, PARAMS(request_uid(request)), REQUEST_TEXT_RAW,
				  calendar_answered);
}

void
route_dismiss_reminders(Request *request)
{
	char list[REMINDERS_BYTES], ids[REMINDERS_BYTES + 2];

	if (!request_arg(request, "ids", list, sizeof(list)) || !calendar_is_list(list))
	{
		request_error(request, 400,
					  "ids is needed: a list of the numbers of reminders, as 7,12, of at most 2047 bytes");
		return;
	}
	snprintf(ids, sizeof(ids), "{%s}", list);
	request_query(request, DATABASE_WRITES, reminders_dismiss_sql, PARAMS(pgparam_text(ids), request_uid(request)),
				  REQUEST_TEXT_RAW, calendar_done);
}
