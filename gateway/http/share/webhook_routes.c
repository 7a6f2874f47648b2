/*
 * webhook_routes.c - /v2/sheets/ID/webhooks and /v2/sheets/ID/webhooks/WEBHOOK: the webhooks of a sheet, which its
 * owners list, create, change, test and delete. gateway/webhooks sends what they are for.
 *
 * The secret of a webhook is in the answer that creates it, and nowhere else.
 */
#include "common/web_address.h"
#include "core/gateway.h"
#include "http/routes/routes.h"
#include "http/share/share.h"
#include "support/network.h"

#include <stdlib.h>
#include <string.h>

static const char webhooks_list_sql[] =
	"SELECT webhook_id, url, state, delivered_seq, failures, next_at, sent_at, status, error, disabled_reason, "
	"created_by, created_at FROM sheet.webhooks($1, $2)";
static const char webhook_create_sql[] = "SELECT webhook_id, secret FROM sheet.create_webhook($1, $2, $3)";
/* Only a webhook of the sheet of the path. */
static const char webhook_change_sql[] =
	"SELECT sheet.change_webhook(w.webhook_id, $4, $5, $2) FROM sheet.webhooks($1, $2) w WHERE w.webhook_id = $3";
static const char webhook_test_sql[] =
	"SELECT sheet.test_webhook(w.webhook_id, $2) FROM sheet.webhooks($1, $2) w WHERE w.webhook_id = $3";
static const char webhook_delete_sql[] =
	"SELECT sheet.delete_webhook(w.webhook_id, $2) FROM sheet.webhooks($1, $2) w WHERE w.webhook_id = $3";

/* ---- arguments ---- */

/* An address that no request of this gateway may go to is refused early. Names are looked up when something is sent. */
static bool
webhook_check_url(Request *request, const char *url)
{
	char reason[128] = "";
	WebAddress address;
	const char *problem = web_address_parse(url, &address);

	if (problem != NULL)
		snprintf(reason, sizeof(reason), "the address must %s", problem);
	else if (address.literal && network_is_special(address.host) &&
			 !network_list_contains(gateway.config.webhook_networks, address.host))
		snprintf(reason, sizeof(reason), "the address is in a private or special network");
	if (reason[0] != '\0')
		request_error(request, 400, reason);
	return reason[0] == '\0';
}

bool
check_create_webhook(Request *request)
{
	const char *url;

	if (!request_string(request, "url", &url))
		request_error(request, 400, "url is needed, as a string");
	else
		return webhook_check_url(request, url);
	return false;
}

bool
check_change_webhook(Request *request)
{
	const cJSON *url = request_member(request, "url"), *active = request_member(request, "active");

	if (url != NULL && !cJSON_IsString(url))
		request_error(request, 400, "url is a string");
	else if (active != NULL && !cJSON_IsBool(active))
		request_error(request, 400, "active is true or false");
	else
		return url == NULL || webhook_check_url(request, url->valuestring);
	return false;
}

/* False: answered. */
static bool
webhook_number(Request *request)
{
	if (request_parse_id(request->part, &request->number))
		return true;
	request_error(request, 404, "no such webhook");
	return false;
}

/* ---- answers ---- */

/* False: answered. */
static bool
webhook_succeeded(Request *request, const PGresult *res)
{
	if (strcmp(pgresult_sqlstate(res), "55000") == 0)
		request_error(request, 409, "the webhook is not active");
	else if (strcmp(pgresult_sqlstate(res), "54000") == 0)
		request_error(request, 409, PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
	else if (!request_succeeded(res))
		request_sql_error(request, res);
	else if (PQntuples(res) == 0)
		request_error(request, 404, "no such webhook");
	else
		return true;
	return false;
}

static void
webhook_created(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};
	char url[WEB_ADDRESS_SIZE];
	WebAddress address;

	if (!webhook_succeeded(request, res))
		return;
	(void) web_address_parse(request_text(request, "url"), &address);
	web_address_write(&address, url);
	buf_printf(&body, "{\"webhook\":%s", PQgetvalue(res, 0, 0));
	routes_put_member(&body, "url", url);
	routes_put_member(&body, "secret", PQgetvalue(res, 0, 1));
	buf_puts(&body, "}");
	request->no_store = true;
	request_json(request, 201, &body);
}

void
route_create_webhook(Request *request)
{
	request_query(request, DATABASE_LONG, webhook_create_sql,
				  PARAMS(request_sheet(request), pgparam_text(request_text(request, "url")), request_uid(request)),
				  REQUEST_TEXT_RAW, webhook_created);
}

static void
webhook_changed(Request *request, PGresult *res)
{
	if (webhook_succeeded(request, res))
		request_nothing(request);
}

void
route_change_webhook(Request *request)
{
	const cJSON *active = request_member(request, "active");
	const char *url = NULL;

	if (!webhook_number(request))
		return;
	(void) request_string(request, "url", &url);
	request_query(request, DATABASE_LONG, webhook_change_sql,
				  PARAMS(request_sheet(request), request_uid(request), request_int64(request, request->number),
						 pgparam_text(url),
						 active == NULL ? pgparam_null() : pgparam_text(cJSON_IsTrue(active) ? "true" : "false")),
				  REQUEST_TEXT_RAW, webhook_changed);
}

static void
webhook_query(Request *request, const char *sql)
{
	request_query(request, DATABASE_LONG, sql,
				  PARAMS(request_sheet(request), request_uid(request), request_int64(request, request->number)),
				  REQUEST_TEXT_RAW, webhook_changed);
}

void
route_delete_webhook(Request *request)
{
	if (webhook_number(request))
		webhook_query(request, webhook_delete_sql);
}

void
route_test_webhook(Request *request)
{
	if (webhook_number(request))
		webhook_query(request, webhook_test_sql);
}

/* ---- the list ---- */

static void
webhooks_listed(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	buf_puts(&body, "{\"webhooks\":[");
	for (int i = 0; i < PQntuples(res); i++)
	{
		buf_printf(&body, "%s{\"webhook\":%s", i > 0 ? "," : "", PQgetvalue(res, i, 0));
		routes_put_member(&body, "url", PQgetvalue(res, i, 1));
		routes_put_member(&body, "state", PQgetvalue(res, i, 2));
		routes_put_number(&body, "deliveredSeq", PQgetvalue(res, i, 3));
		routes_put_number(&body, "failures", PQgetvalue(res, i, 4));
		routes_put_optional(&body, res, i, 5, "nextAt", routes_put_time_member);
		routes_put_optional(&body, res, i, 6, "sentAt", routes_put_time_member);
		routes_put_optional(&body, res, i, 7, "status", routes_put_number);
		routes_put_optional(&body, res, i, 8, "error", routes_put_member);
		routes_put_optional(&body, res, i, 9, "disabledReason", routes_put_member);
		routes_put_optional(&body, res, i, 10, "createdBy", routes_put_member);
		routes_put_time_member(&body, "createdAt", PQgetvalue(res, i, 11));
		buf_puts(&body, "}");
	}
	buf_puts(&body, "]}");
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, &body);
}

void
route_webhooks(Request *request)
{
	request_query(request, DATABASE_READS, webhooks_list_sql, PARAMS(request_sheet(request), request_uid(request)),
				  REQUEST_TEXT, webhooks_listed);
}
