/*
 * routes_share.c - sharing sheets with accounts and by links.
 */
#include "http/routes/routes.h"
#include "ws/cache/changes.h"

#include <string.h>

static const char sheet_share_sql[] = "SELECT sheet.share($1, $2, $3, $4)";
static const char sheet_unshare_sql[] = "SELECT sheet.unshare($1, $2, $3)";
static const char sheet_share_link_sql[] = "SELECT sheet.share_link($1, $2, $3)";
static const char sheet_access_sql[] =
	"SELECT i.name, i.owner, i.trashed, i.role, i.created_at, i.updated_at, i.link_role, m.uid, m.name, m.role, "
	"m.by_link "
	"FROM sheet.info($1, $2) i LEFT JOIN LATERAL sheet.access($1, $3, $4, $2) m ON i.role IS NOT NULL ORDER BY m.uid";
const char sheet_open_link_sql[] = "SELECT sheet.open_link_digest($1, $2, $3)";

/* role: a string; null or absent ends the sharing. */
static bool
share_role_is_valid(const Request *request)
{
	const cJSON *role = request_member(request, "role");

	return role == NULL || cJSON_IsNull(role) || cJSON_IsString(role);
}

/* ---- /sharesheet {fid, username, role | null} ---- */

bool
check_share(Request *request)
{
	const char *name;

	if (request_string(request, "username", &name) && share_role_is_valid(request))
		return check_fid(request);
	request_error(request, 400, "username is needed as a string, role as a string or null");
	return false;
}

static void
share_answered(Request *request, PGresult *res)
{
	const char *reason = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	changes_register(request->sheet_id);
	if (request_succeeded(res))
		request_msg(request, MSG_SHEET);
	else if (reason != NULL && strcmp(pgresult_sqlstate(res), "42704") == 0 && strncmp(reason, "account", 7) == 0)
		request_error_code(request, 404, "no_account", reason); /* 42704 may mean the sheet or the account */
	else if (reason != NULL && strstr(reason, "is the owner of the sheet") != NULL)
		request_error_code(request, 400, "owner", reason);
	else
		request_sql_error(request, res);
}

void
route_share_sheet(Request *request)
{
	PgParam name = pgparam_text(request_text(request, "username"));
	const char *role;

	if (request_string(request, "role", &role))
		request_query(request, DATABASE_LONG, sheet_share_sql,
					  PARAMS(request_sheet(request), name, pgparam_text(role), request_uid(request)), REQUEST_TEXT_RAW,
					  share_answered);
	else
		request_query(request, DATABASE_LONG, sheet_unshare_sql,
					  PARAMS(request_sheet(request), name, request_uid(request)), REQUEST_TEXT_RAW, share_answered);
}

/* ---- /sharelink {fid, role | null}: the key of the new link, or null ---- */

bool
check_share_link(Request *request)
{
	if (share_role_is_valid(request))
		return check_fid(request);
	request_error(request, 400, "role is a string or null");
	return false;
}

static void
share_link_answered(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	if (!request_succeeded(res) || PQgetisnull(res, 0, 0))
	{
		share_answered(request, res);
		return;
	}
	changes_register(request->sheet_id);
	buf_puts_json(&data, PQgetvalue(res, 0, 0));
	request_data(request, MSG_SHEET, &data);
}

void
route_share_link(Request *request)
{
	const char *role = NULL;

	(void) request_string(request, "role", &role);
	request_query(request, DATABASE_LONG, sheet_share_link_sql,
				  PARAMS(request_sheet(request), pgparam_text(role), request_uid(request)), REQUEST_TEXT_RAW,
				  share_link_answered);
}

/* ---- POST /v2/sheets/ID/open {link} ---- */

bool
check_open_link(Request *request)
{
	const char *link;

	if (request_string(request, "link", &link))
		return true;
	request_error(request, 400, "link is needed, as a string");
	return false;
}

static void
open_link_answered(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	buf_puts(&body, "{\"role\":");
	buf_puts_json(&body, PQgetvalue(res, 0, 0));
	buf_puts(&body, "}");
	request_json(request, 200, &body);
}

void
route_open_link(Request *request)
{
	request_query(
		request, DATABASE_WRITES, sheet_open_link_sql,
		PARAMS(request_sheet(request), request_digest(request, request_text(request, "link")), request_uid(request)),
		REQUEST_TEXT, open_link_answered);
}

/* ---- GET /v2/sheets/ID/access: who may open the sheet, in pages ---- */

#define ACCESS_PAGE 200

enum
{
	ACCESS_LINK_ROLE = INFO_UPDATED_AT + 1,
	ACCESS_UID,
	ACCESS_NAME,
	ACCESS_ROLE,
	ACCESS_BY_LINK
};

static void
access_answered(Request *request, PGresult *res)
{
	int rows = PQntuples(res), shown = 0;
	Buf body = {NULL, 0, 0};

	if (!sheet_is_open(request, res))
		return;
	buf_puts(&body, "{\"role\":");
	buf_puts_json(&body, PQgetvalue(res, 0, INFO_ROLE));
	routes_put_member(&body, "owner", PQgetvalue(res, 0, INFO_OWNER));
	buf_puts(&body, ",\"link\":");
	if (PQgetisnull(res, 0, ACCESS_LINK_ROLE))
		buf_puts(&body, "null");
	else
		buf_puts_json(&body, PQgetvalue(res, 0, ACCESS_LINK_ROLE));
	buf_puts(&body, ",\"members\":[");
	for (int i = 0; i < rows; i++)
	{
		if (PQgetisnull(res, i, ACCESS_NAME) || PQgetisnull(res, i, ACCESS_ROLE))
			continue; /* it can no longer see the sheet */
		buf_printf(&body, "%s{\"uid\":%s", shown++ > 0 ? "," : "", PQgetvalue(res, i, ACCESS_UID));
		routes_put_member(&body, "username", PQgetvalue(res, i, ACCESS_NAME));
		routes_put_member(&body, "role", PQgetvalue(res, i, ACCESS_ROLE));
		buf_printf(&body, ",\"byLink\":%s}", PQgetvalue(res, i, ACCESS_BY_LINK)[0] == 't' ? "true" : "false");
	}
	buf_printf(&body, "],\"next\":%s}", rows == ACCESS_PAGE ? PQgetvalue(res, rows - 1, ACCESS_UID) : "null");
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, &body);
}

void
route_sheet_access(Request *request)
{
	int64_t after = 0;

	if (request_has_arg(request, "after") && !request_arg_id(request, "after", &after))
		request_error(request, 400, "after is a number");
	else
		request_query(request, DATABASE_READS, sheet_access_sql,
					  PARAMS(request_sheet(request), request_uid(request), request_int64(request, ACCESS_PAGE),
							 request_int64(request, after)),
					  REQUEST_TEXT, access_answered);
}
