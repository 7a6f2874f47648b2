/*
 * webhooks.c - SQL functions by which owners name addresses to which gateways post the changes of a sheet. What
 * gateways do with them is in sql/install/48-webhooks.sql; docs/design/webhooks.md has the whole.
 *
 * Nothing here is called by an edit: a sheet's edits neither read nor write its webhooks.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "common/web_address.h"
#include "funcapi.h"
#include "journal/follow/follow.h"
#include "journal/store/history.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(sheet_webhook_changed);
PG_FUNCTION_INFO_V1(sheet_create_webhook);
PG_FUNCTION_INFO_V1(sheet_webhooks);
PG_FUNCTION_INFO_V1(sheet_change_webhook);
PG_FUNCTION_INFO_V1(sheet_test_webhook);
PG_FUNCTION_INFO_V1(sheet_delete_webhook);
PG_FUNCTION_INFO_V1(sheet_last_seq);

#define WEBHOOKS_MAX		 10 /* of a sheet */
#define WEBHOOK_COLUMN_SHEET 2	/* of sheet.webhook */

/* Purging deletes the sheet's row first, so no webhook is inserted after that. Creations for a sheet follow each other,
 * so that the bound is exact. */
static CatalogQuery webhooks_sheet = {"SELECT sheet_id FROM sheet.sheet WHERE sheet_id = $1 FOR NO KEY UPDATE",
									  {INT8OID}};
static CatalogQuery webhooks_count = {"SELECT count(*) FROM sheet.webhook WHERE sheet_id = $1", {INT8OID}};
/* The secret is a default of the table: auto_explain logs parameters. */
static CatalogQuery webhooks_insert = {
	"INSERT INTO sheet.webhook (sheet_id, url, created_by, delivered_seq) VALUES ($1, $2, $3, $4) "
	"RETURNING webhook_id, secret",
	{INT8OID, TEXTOID, INT8OID, INT8OID}};
static CatalogQuery webhooks_list = {
	"SELECT w.webhook_id, w.url, w.state, w.delivered_seq, w.failures, w.next_at, w.sent_at, w.status, w.error, "
	"w.disabled_reason, (SELECT a.name FROM sheet.account a WHERE a.uid = w.created_by), w.created_at "
	"FROM sheet.webhook w WHERE w.sheet_id = $1 ORDER BY w.webhook_id DESC",
	{INT8OID}};
static CatalogQuery webhooks_find = {"SELECT sheet_id FROM sheet.webhook WHERE webhook_id = $1", {INT8OID}};
/* While a gateway sends, the next attempt waits for the end of its lease. */
#define WEBHOOK_SOON "greatest(clock_timestamp(), leased_until)"
static CatalogQuery webhooks_change = {
	"UPDATE sheet.webhook SET url = coalesce($2, url), "
	"state = CASE WHEN $3 THEN 'active' WHEN NOT $3 THEN 'paused' ELSE state END, "
	"next_at = CASE WHEN $3 THEN " WEBHOOK_SOON " WHEN NOT $3 THEN NULL ELSE next_at END, "
	"failures = CASE WHEN $3 THEN 0 ELSE failures END, failing_since = CASE WHEN $3 THEN NULL ELSE failing_since END, "
	"disabled_reason = CASE WHEN $3 IS NULL THEN disabled_reason END WHERE webhook_id = $1",
	{INT8OID, TEXTOID, BOOLOID}};
static CatalogQuery webhooks_test = {"UPDATE sheet.webhook SET ping = true, next_at = " WEBHOOK_SOON
									 " WHERE webhook_id = $1 AND state = 'active'",
									 {INT8OID}};
static CatalogQuery webhooks_delete = {"DELETE FROM sheet.webhook WHERE webhook_id = $1", {INT8OID}};

/* ---- for gateways ---- */

/* webhook_changed(): the trigger, after INSERT and UPDATE of each row */
Datum
sheet_webhook_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	bool isnull;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
						errmsg("sheet.webhook_changed() is a trigger for rows")));
	follow_register_status(DatumGetInt64(
		heap_getattr(trigger->tg_trigtuple, WEBHOOK_COLUMN_SHEET, RelationGetDescr(trigger->tg_relation), &isnull)));
	return PointerGetDatum(NULL);
}

/* last_seq(sheet_id): by the snapshot of the statement that calls it. A later one may have changed it. */
Datum
sheet_last_seq(PG_FUNCTION_ARGS)
{
	HistoryLast last;

	history_last_edit(catalog_arg_sheet(fcinfo, 0), GetActiveSnapshot(), &last);
	PG_RETURN_INT64(last.found ? last.last_seq : 0);
}

/* ---- for owners ---- */

/* The one form of the address, as it is stored: gateways count deliveries by its host. */
static char *
webhooks_take_url(const char *url)
{
	WebAddress address;
	const char *problem = web_address_parse(url, &address);
	char *written = palloc(WEB_ADDRESS_SIZE);

	if (problem != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the address of a webhook must %s", problem)));
	web_address_write(&address, written);
	return written;
}

/* Returns the sheet of the webhook, of which the caller is an owner. Others must not learn the ids of sheets. */
static int64
webhooks_require_owner(FunctionCallInfo fcinfo, int as_uid)
{
	int64 uid = catalog_arg_int64(fcinfo, as_uid, 0), sheet_id;

	catalog_require_arg(fcinfo, 0, "webhook");
	if (!catalog_find_int64(&webhooks_find, fcinfo->args, false, &sheet_id) ||
		permission_role(sheet_id, uid) < ROLE_OWNER)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("webhook " INT64_FORMAT " does not exist", PG_GETARG_INT64(0)),
						errdetail("Or it is of a sheet of somebody else.")));
	permission_require(sheet_id, uid, ROLE_OWNER, true);
	return sheet_id;
}

static int64
webhooks_latest_seq(int64 sheet_id)
{
	HistoryLast last;
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());

	history_last_edit(sheet_id, snapshot, &last);
	UnregisterSnapshot(snapshot);
	return last.found ? last.last_seq : 0;
}

/* create_webhook(sheet_id, url, as_uid) */
Datum
sheet_create_webhook(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), uid, count = 0, latest;
	char *url = catalog_arg_string(fcinfo, 1, "address"), *secret;
	CatalogScope scope;
	Datum values[2];
	bool nulls[2] = {false, false};

	url = webhooks_take_url(url);
	uid = permission_require(sheet_id, catalog_arg_int64(fcinfo, 2, 0), ROLE_OWNER, false);
	if (catalog_arg_int64(fcinfo, 2, 0) == 0 && superuser())
		uid = 0; /* who need not be an owner, so that this cannot end */
	if (catalog_execute(&webhooks_sheet, &CATALOG_INT64(sheet_id)) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	(void) catalog_find_int64(&webhooks_count, &CATALOG_INT64(sheet_id), false, &count);
	if (count >= WEBHOOKS_MAX)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("sheet " INT64_FORMAT " has %d webhooks, which is the maximum", sheet_id, WEBHOOKS_MAX),
						errhint("Delete those that are not needed with sheet.delete_webhook().")));
	latest = webhooks_latest_seq(sheet_id);
	catalog_begin(&scope);
	(void) catalog_run(
		&webhooks_insert,
		(NullableDatum[]){CATALOG_INT64(sheet_id), CATALOG_TEXT(url), CATALOG_INT64(uid), CATALOG_INT64(latest)},
		false);
	values[0] = Int64GetDatum(catalog_int64(1, 0));
	secret = catalog_string(&scope, 2);
	catalog_end(&scope);
	values[1] = CStringGetTextDatum(secret);
	return catalog_return_row(fcinfo, values, nulls);
}

/* webhooks(sheet_id, as_uid) */
Datum
sheet_webhooks(PG_FUNCTION_ARGS)
{
	permission_require(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0), ROLE_OWNER, true);
	return catalog_return_rows(fcinfo, &webhooks_list, fcinfo->args, true);
}

/* change_webhook(webhook_id, url, active, as_uid) */
Datum
sheet_change_webhook(PG_FUNCTION_ARGS)
{
	webhooks_require_owner(fcinfo, 3);
	if (!PG_ARGISNULL(1))
		fcinfo->args[1] = CATALOG_TEXT(webhooks_take_url(text_to_cstring(PG_GETARG_TEXT_PP(1))));
	catalog_execute(&webhooks_change, fcinfo->args);
	PG_RETURN_VOID();
}

/* test_webhook(webhook_id, as_uid) */
Datum
sheet_test_webhook(PG_FUNCTION_ARGS)
{
	webhooks_require_owner(fcinfo, 1);
	if (catalog_execute(&webhooks_test, fcinfo->args) == 0)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("webhook " INT64_FORMAT " is not active", PG_GETARG_INT64(0)),
						errhint("Set it to active with sheet.change_webhook().")));
	PG_RETURN_VOID();
}

/* delete_webhook(webhook_id, as_uid) */
Datum
sheet_delete_webhook(PG_FUNCTION_ARGS)
{
	webhooks_require_owner(fcinfo, 1);
	catalog_execute(&webhooks_delete, fcinfo->args);
	PG_RETURN_VOID();
}
