/*
 * calendars.c - SQL functions of calendars: who may ask or change what. What they ask and change is in
 * sql/install/75-calendar.sql and the parts behind it; docs/design/calendar.md has the whole.
 *
 * A transaction that has edited a calendar adds a row to sheet.calendar_edit before it commits, and an entry of the
 * timer: the worker then has the agendas follow the cells. Only adding rows, a commit never waits for the worker.
 */
#include "postgres.h"

#include "access/xact.h"
#include "api/programs/calendars.h"
#include "api/scan/cells.h"
#include "catalog/pg_type.h"
#include "common/value.h"
#include "journal/follow/follow.h"
#include "journal/journal.h"
#include "journal/write/writer.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "support/stoppoint.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_set_calendar);
PG_FUNCTION_INFO_V1(sheet_refresh_calendar);
PG_FUNCTION_INFO_V1(sheet_tasks);
PG_FUNCTION_INFO_V1(sheet_is_text);
PG_FUNCTION_INFO_V1(sheet_calendar_columns);
PG_FUNCTION_INFO_V1(sheet_calendar_end);
PG_FUNCTION_INFO_V1(sheet_calendar_entries);
PG_FUNCTION_INFO_V1(sheet_agenda);
PG_FUNCTION_INFO_V1(sheet_month_dots);
PG_FUNCTION_INFO_V1(sheet_busy);
PG_FUNCTION_INFO_V1(sheet_answer);
PG_FUNCTION_INFO_V1(sheet_lock_calendar);
PG_FUNCTION_INFO_V1(sheet_calendars);
PG_FUNCTION_INFO_V1(sheet_task_info);
PG_FUNCTION_INFO_V1(sheet_calendar_state);
PG_FUNCTION_INFO_V1(sheet_reminders);
PG_FUNCTION_INFO_V1(sheet_dismiss_reminders);
PG_FUNCTION_INFO_V1(sheet_publish_reminders);

static CatalogQuery calendars_edited = {
	"WITH e AS (INSERT INTO sheet.calendar_edit (sheet_id, task_uid) VALUES ($1, $2) RETURNING edit_id) "
	"INSERT INTO sheet.timer (kind, id, at) SELECT 'calendar edit', e.edit_id, clock_timestamp() FROM e",
	{INT8OID, TEXTOID}};
static CatalogQuery calendars_header = {
	"SELECT count(*) FROM sheet.calendar_header($1) h WHERE h.name IN ('title', 'start')", {INT8OID}};
static CatalogQuery calendars_columns = {
	"SELECT h.name, h.letters, sheet.calendar_zone($1) FROM sheet.calendar_header($1) h", {INT8OID}};
static CatalogQuery calendars_set = {"UPDATE sheet.sheet SET calendar = $2 WHERE sheet_id = $1", {INT8OID, BOOLOID}};
static CatalogQuery calendars_forget = {"SELECT sheet.forget_calendar($1)", {INT8OID}};
/* Null: there is more to do. */
static CatalogQuery calendars_refresh = {"SELECT CASE r.at WHEN 'infinity' THEN 0 ELSE 1 END FROM "
										 "sheet.refresh_calendar_now($1, sheet.calendar_soon(), 1000) r (at)"
										 " WHERE r.at IS NOT NULL",
										 {INT8OID}};
#define TASKS_SQL(condition)                                                                                           \
	"SELECT t.row_no, t.task_uid, t.instance, t.title, t.place, s.starts, s.lasts, s.all_day, s.zone, s.rule, "        \
	"s.until_at, t.cells, t.problem FROM sheet.task t LEFT JOIN sheet.series s ON s.series_id = t.series_id "          \
	"WHERE t.sheet_id = $1" condition " ORDER BY t.row_no"
static CatalogQuery calendars_tasks = {TASKS_SQL(""), {INT8OID}};
static CatalogQuery calendars_task_rows = {TASKS_SQL(" AND t.task_uid = $2"), {INT8OID, TEXTOID}};
/* OFFSET 0 as in list_page (api/functions/list.c). */
static CatalogQuery calendars_list = {
	"SELECT l.sheet_id, l.name, (SELECT a.name FROM sheet.account a WHERE a.uid = l.owner_uid), l.role, "
	"coalesce((SELECT c.zone FROM sheet.calendar c WHERE c.sheet_id = l.sheet_id), 'UTC'), "
	"sheet.calendar_token(l.sheet_id), coalesce(o.address, l.sheet_id::text), o.colour "
	"FROM (SELECT m.sheet_id FROM sheet.sheet h JOIN sheet.member m ON m.sheet_id = h.sheet_id AND m.uid = $1 "
	"WHERE h.calendar AND h.trashed_at IS NULL AND (m.role IS NOT NULL OR m.link_no IS NOT NULL) LIMIT 1000) m "
	"CROSS JOIN LATERAL (SELECT s.* FROM sheet.listed s WHERE s.uid = $1 AND s.sheet_id = m.sheet_id OFFSET 0) l "
	"LEFT JOIN LATERAL (SELECT c.* FROM sheet.calendar_choice c WHERE c.uid = $1 AND c.sheet_id = m.sheet_id OFFSET 0) "
	"o "
	"ON true "
	"ORDER BY l.name, l.sheet_id",
	{INT8OID}};
static CatalogQuery calendars_state = {
	"SELECT c.done_seq, (SELECT coalesce(min(r.expanded_to), 'infinity') FROM sheet.series r WHERE r.sheet_id = $1 "
	"AND r.expanded_to < 'infinity') FROM sheet.calendar c WHERE c.sheet_id = $1",
	{INT8OID}};
static CatalogQuery calendars_task = {
	"SELECT s.starts, s.all_day, s.zone, s.rule IS NOT NULL OR s.dates IS NOT NULL, t.cells, o.cells, t.problem, "
	"(SELECT jsonb_agg(jsonb_build_object('name', a.name, 'answer', sheet.answer_of($1, $2, a.uid, "
	"coalesce($3, '-infinity'))) ORDER BY a.name) FROM sheet.guest_list l, sheet.account a "
	"WHERE l.list_id = coalesce(os.list_id, s.list_id) AND a.uid = ANY (l.uids) "
	"AND coalesce(coalesce(o.cells, t.cells)->>'who', '') <> '') "
	"FROM sheet.task t LEFT JOIN sheet.series s ON s.series_id = t.series_id "
	"LEFT JOIN sheet.task o ON o.sheet_id = $1 AND o.task_uid = $2 AND o.instance = $3 "
	"LEFT JOIN sheet.series os ON os.series_id = o.series_id "
	"WHERE t.sheet_id = $1 AND t.task_uid = $2 AND t.instance IS NULL LIMIT 1",
	{INT8OID, TEXTOID, TIMESTAMPOID}};
static CatalogQuery calendars_entries = {"SELECT * FROM sheet.read_entries($1, $2, $3)",
										 {INT8OID, TIMESTAMPTZOID, TIMESTAMPTZOID}};
static CatalogQuery calendars_agenda = {"SELECT * FROM sheet.read_agenda($1, $2, $3)",
										{INT8OID, TIMESTAMPTZOID, TIMESTAMPTZOID}};
static CatalogQuery calendars_dots = {"SELECT * FROM sheet.read_dots($1, $2, $3)", {INT8OID, DATEOID, TEXTOID}};
static CatalogQuery calendars_busy = {"SELECT * FROM sheet.read_busy($1, $2, $3)",
									  {INT8ARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID}};
/* The first of the accounts $1 that shares no calendar of its own with the account $2. */
static CatalogQuery calendars_stranger = {
	"SELECT u.uid FROM unnest($1) u (uid) WHERE u.uid <> $2 AND NOT EXISTS (SELECT FROM sheet.member a "
	"JOIN sheet.sheet s ON s.sheet_id = a.sheet_id WHERE a.uid = $2 AND s.owner = u.uid AND a.role IS NOT NULL "
	"AND s.calendar AND s.trashed_at IS NULL) LIMIT 1",
	{INT8ARRAYOID, INT8OID}};
/* No row: the account is not invited. */
static CatalogQuery calendars_answer = {"SELECT g FROM sheet.give_answer($1, $2, $3, $4, $5) g WHERE g IS NOT NULL",
										{INT8OID, TEXTOID, INT8OID, TIMESTAMPOID, TEXTOID}};
static CatalogQuery calendars_reminders = {
	"SELECT n.outbox_id, n.sheet_id, n.task_uid, n.starts_at, n.ends_at, n.all_day, n.zone, n.title, n.place FROM "
	"(SELECT * FROM sheet.notice WHERE uid = $1 ORDER BY outbox_id DESC LIMIT 100) n "
	"WHERE n.created_at > now() - interval '7 days' ORDER BY n.outbox_id DESC",
	{INT8OID}};
static CatalogQuery calendars_dismiss = {"DELETE FROM sheet.notice n WHERE n.uid = $1 AND n.outbox_id = ANY ($2)",
										 {INT8OID, INT8ARRAYOID}};

/* ---- edits ---- */

static void
calendars_note_edit(int64 sheet_id)
{
	NullableDatum args[] = {CATALOG_INT64(sheet_id), CATALOG_NULL};

	/* The commit has no snapshot of its own. */
	PushActiveSnapshot(GetTransactionSnapshot());
	catalog_execute(&calendars_edited, args);
	PopActiveSnapshot();
}

static void
calendars_xact_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT)
		journal_each_edited_calendar(calendars_note_edit);
}

void
calendars_init(void)
{
	RegisterXactCallback(calendars_xact_callback, NULL);
}

/* set_calendar(sheet_id, calendar, as_uid) */
Datum
sheet_set_calendar(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), found = 0;

	catalog_require_arg(fcinfo, 1, "calendar");
	permission_require(sheet_id, catalog_arg_int64(fcinfo, 2, 0), ROLE_OWNER, false);
	journal_lock_sheet(sheet_id);
	if (PG_GETARG_BOOL(1) && (!catalog_find_int64(&calendars_header, fcinfo->args, false, &found) || found < 2))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("sheet " INT64_FORMAT " has not the header of a calendar", sheet_id),
						errdetail("The first row of a calendar has at least the cells Title and Start."),
						errhint("sheet.create_calendar() makes a sheet with such a header.")));
	catalog_execute(&calendars_set, fcinfo->args);
	if (!PG_GETARG_BOOL(1))
		catalog_execute(&calendars_forget, fcinfo->args);
	journal_forget(sheet_id);
	follow_register_status(sheet_id);
	PG_RETURN_VOID();
}

/* refresh_calendar(sheet_id, as_uid) */
Datum
sheet_refresh_calendar(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), is_calendar = 0;

	permission_require(sheet_id, catalog_arg_int64(fcinfo, 1, 0), ROLE_EDITOR, false);
	journal_lock_sheet(sheet_id);
	while (!catalog_find_int64(&calendars_refresh, fcinfo->args, false, &is_calendar))
		CHECK_FOR_INTERRUPTS();
	if (!is_calendar)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("sheet " INT64_FORMAT " is not a calendar", sheet_id),
				 errhint("sheet.set_calendar() makes it one.")));
	PG_RETURN_VOID();
}

/* lock_calendar(sheet_id, nowait): the sheet lock */
Datum
sheet_lock_calendar(PG_FUNCTION_ARGS)
{
	STOP_POINT("calendar-lock");
	if (PG_GETARG_BOOL(1))
		PG_RETURN_BOOL(writer_try_lock_sheet(PG_GETARG_INT64(0)));
	journal_lock_sheet(PG_GETARG_INT64(0));
	PG_RETURN_BOOL(true);
}

/* ---- reading ---- */

/* tasks(sheet_id, task, as_uid) */
Datum
sheet_tasks(PG_FUNCTION_ARGS)
{
	permission_require(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 2, 0), ROLE_VIEWER, false);
	return catalog_return_rows(fcinfo, PG_ARGISNULL(1) ? &calendars_tasks : &calendars_task_rows, fcinfo->args, true);
}

/* calendar_columns(sheet_id, as_uid) */
Datum
sheet_calendar_columns(PG_FUNCTION_ARGS)
{
	permission_require(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0), ROLE_VIEWER, false);
	return catalog_return_rows(fcinfo, &calendars_columns, fcinfo->args, true);
}

/* calendar_end(sheet_id, as_uid) */
Datum
sheet_calendar_end(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);

	permission_require(sheet_id, catalog_arg_int64(fcinfo, 1, 0), ROLE_VIEWER, false);
	PG_RETURN_INT32((int32) cells_next_row(sheet_id, false));
}

/* calendars(as_uid) */
Datum
sheet_calendars(PG_FUNCTION_ARGS)
{
	NullableDatum args[] = {CATALOG_INT64(permission_uid(catalog_arg_int64(fcinfo, 0, 0)))};

	return catalog_return_rows(fcinfo, &calendars_list, args, true);
}

/* calendar_state(sheet_id, as_uid) */
Datum
sheet_calendar_state(PG_FUNCTION_ARGS)
{
	permission_require(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0), ROLE_VIEWER, false);
	return catalog_return_rows(fcinfo, &calendars_state, fcinfo->args, true);
}

/* task_info(sheet_id, task_uid, instance, as_uid) */
Datum
sheet_task_info(PG_FUNCTION_ARGS)
{
	permission_require(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 3, 0), ROLE_VIEWER, false);
	catalog_require_arg(fcinfo, 1, "task");
	return catalog_return_rows(fcinfo, &calendars_task, fcinfo->args, true);
}

static void
calendars_require_span(FunctionCallInfo fcinfo, int arg)
{
	catalog_require_arg(fcinfo, arg, "beginning");
	catalog_require_arg(fcinfo, arg + 1, "end");
}

/* calendar_entries(sheet_id, from, to, as_uid) */
Datum
sheet_calendar_entries(PG_FUNCTION_ARGS)
{
	permission_require(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 3, 0), ROLE_VIEWER, false);
	calendars_require_span(fcinfo, 1);
	return catalog_return_rows(fcinfo, &calendars_entries, fcinfo->args, true);
}

/* The account of argument 0, or the caller's own. */
static void
calendars_person(FunctionCallInfo fcinfo)
{
	int64 own = permission_uid(0), uid = catalog_arg_int64(fcinfo, 0, own);

	if (uid != own)
		permission_require_gateway();
	if (uid == 0)
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the current role acts as no account"),
						errhint("Name the account by its uid.")));
	fcinfo->args[0] = CATALOG_INT64(uid);
}

/* agenda(uid, from, to) */
Datum
sheet_agenda(PG_FUNCTION_ARGS)
{
	calendars_person(fcinfo);
	calendars_require_span(fcinfo, 1);
	return catalog_return_rows(fcinfo, &calendars_agenda, fcinfo->args, true);
}

/* month_dots(uid, month, zone) */
Datum
sheet_month_dots(PG_FUNCTION_ARGS)
{
	calendars_person(fcinfo);
	catalog_require_arg(fcinfo, 1, "month");
	catalog_require_arg(fcinfo, 2, "time zone");
	return catalog_return_rows(fcinfo, &calendars_dots, fcinfo->args, true);
}

/* busy(uids, from, to) */
Datum
sheet_busy(PG_FUNCTION_ARGS)
{
	catalog_require_arg(fcinfo, 0, "accounts");
	calendars_require_span(fcinfo, 1);
	if (TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(1)) || TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(2)))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the span of time must be finite")));
	if (!permission_is_gateway_role(GetUserId()))
	{
		int64 stranger;
		NullableDatum args[] = {fcinfo->args[0], CATALOG_INT64(permission_uid(0))};

		if (catalog_find_int64(&calendars_stranger, args, true, &stranger))
			ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
							errmsg("permission denied for the calendars of account " INT64_FORMAT, stranger),
							errdetail("It shares no calendar of its own with the current role's account.")));
	}
	return catalog_return_rows(fcinfo, &calendars_busy, fcinfo->args, true);
}

/* answer(sheet_id, task_uid, answer, instance, as_uid) */
Datum
sheet_answer(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), uid = permission_uid(catalog_arg_int64(fcinfo, 4, 0));
	NullableDatum args[] = {CATALOG_INT64(sheet_id), fcinfo->args[1], CATALOG_INT64(uid), fcinfo->args[3],
							fcinfo->args[2]};

	catalog_require_arg(fcinfo, 1, "task");
	if (!PG_ARGISNULL(2))
	{
		char *answer = text_to_cstring(PG_GETARG_TEXT_PP(2));

		if (strcmp(answer, "accepted") != 0 && strcmp(answer, "declined") != 0 && strcmp(answer, "tentative") != 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("an answer is accepted, declined or tentative, not \"%.40s\"", answer)));
	}
	if (catalog_execute(&calendars_answer, args) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("there is no such invitation"),
						errdetail("Sheet " INT64_FORMAT
								  " has no task with that UID, or no such occurrence, to which the account is invited.",
								  sheet_id)));
	/* Programs see it in the calendar object. The worker changes that, so that an answer waits for nobody. */
	catalog_execute(&calendars_edited, args);
	PG_RETURN_VOID();
}

/* ---- reminders ---- */

/* reminders(as_uid) */
Datum
sheet_reminders(PG_FUNCTION_ARGS)
{
	NullableDatum args[] = {CATALOG_INT64(permission_uid(catalog_arg_int64(fcinfo, 0, 0)))};

	return catalog_return_rows(fcinfo, &calendars_reminders, args, true);
}

/* dismiss_reminders(ids, as_uid) */
Datum
sheet_dismiss_reminders(PG_FUNCTION_ARGS)
{
	int64 uid = permission_uid(catalog_arg_int64(fcinfo, 1, 0));
	NullableDatum args[] = {CATALOG_INT64(uid), fcinfo->args[0]};

	catalog_require_arg(fcinfo, 0, "reminders");
	if (catalog_execute(&calendars_dismiss, args) > 0)
		follow_register_reminders(uid);
	PG_RETURN_VOID();
}

/* publish_reminders(uid). A reminder that somebody has seen is on the disk, though the worker's commits do not wait for
 * it otherwise. A setting would end with the statement: see catalog_end(). */
Datum
sheet_publish_reminders(PG_FUNCTION_ARGS)
{
	ForceSyncCommit();
	follow_register_reminders(PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

/* is_text(content) */
Datum
sheet_is_text(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!value_is_no_text(text_to_cstring(PG_GETARG_TEXT_PP(0))));
}
