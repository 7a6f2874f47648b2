/*
 * links.c - /v2/sheets/ID/links and /v2/sheets/ID/links/LINK: the share links of a sheet, which its owners list,
 * create, change and revoke.
 *
 * The key of a link is in the answer that creates it, and nowhere else. The database gets a hash of the password.
 */
#include "auth/password.h"
#include "core/gateway.h"
#include "http/api/api.h"
#include "http/routes/account_steps.h"
#include "http/routes/routes.h"
#include "http/share/share.h"
#include "ws/cache/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char links_list_sql[] = "SELECT link_id, role, label, expires_at, ref, "
									 "has_password, state, uses, last_used, "
									 "created_by, created_at, embed, index_ok FROM sheet.links($1, $2)";
static const char link_create_sql[] =
	"SELECT link_id, key FROM sheet.create_link($1, $2, CASE $3::text WHEN '' THEN now() + interval '7 days' "
	"ELSE $3::text::timestamptz END, $4, $5, $6, $8, $9, $10, $7)";
/* Only a link of the sheet of the path. */
static const char link_change_sql[] = "SELECT sheet.change_link($3, $4, $5, $6, $7, $8, $9, $10, as_uid => $2) "
									  "WHERE sheet.has_link($1, $3, $2)";
static const char link_revoke_sql[] = "SELECT sheet.revoke_link($3, $2) WHERE sheet.has_link($1, $3, $2)";

/* ---- arguments ---- */

/* The member is absent, null, or a string. */
static bool
link_is_text(const Request *request, const char *name)
{
	const cJSON *item = request_member(request, name);

	return item == NULL || cJSON_IsNull(item) || cJSON_IsString(item);
}

/* The member is absent, true or false. */
static bool
link_is_choice(const Request *request, const char *name)
{
	const cJSON *item = request_member(request, name);

	return item == NULL || cJSON_IsBool(item);
}

/* The end: absent, null (none), or a time of RFC 3339. The database checks its numbers. */
static bool
link_is_time(const Request *request)
{
	const cJSON *item = request_member(request, "expires");
	const char *zone;
	int time = 0, offset = 0;

	if (item == NULL || cJSON_IsNull(item))
		return true;
	if (!cJSON_IsString(item))
		return false;
	(void) sscanf(item->valuestring, "%*4[0-9]-%*2[0-9]-%*2[0-9]T%*2[0-9]:%*2[0-9]:%*2[0-9]%n", &time);
	if (time != 19)
		return false;
	zone = item->valuestring + time;
	if (*zone == '.')
		zone += 1 + strspn(zone + 1, "0123456789");
	(void) sscanf(zone, "%*1[+-]%*2[0-9]:%*2[0-9]%n", &offset);
	return strcmp(zone, "Z") == 0 || (offset == 6 && zone[6] == '\0');
}

bool
check_link_values(Request *request)
{
	const char *password;

	if (!link_is_text(request, "role") || !link_is_text(request, "label") || !link_is_text(request, "ref") ||
		!link_is_text(request, "password") || !link_is_text(request, "embed"))
		request_error(request, 400, "role, label, ref, password and embed are strings");
	else if (!link_is_choice(request, "index"))
		request_error(request, 400, "index is true or false");
	else if (!link_is_time(request))
		request_error(request, 400, "expires is the end, as 2026-12-31T23:00:00Z, or null for none");
	else if (request_string(request, "password", &password) && strlen(password) > PASSWORD_MAX)
		request_error(request, 400, "a password has at most 1024 bytes");
	else
		return true;
	return false;
}

bool
check_link_number(Request *request)
{
	if (request_parse_id(request->part, &request->number))
		return true;
	request_error(request, 404, "no such link");
	return false;
}

bool
check_link_change(Request *request)
{
	if (!check_link_number(request) || !check_link_values(request))
		return false;
	if (link_is_choice(request, "blocked"))
		return true;
	request_error(request, 400, "blocked is true or false");
	return false;
}

static bool
link_text_is_given(const Request *request, const char *name)
{
	return cJSON_IsString(request_member(request, name));
}

/* NULL if the member is absent or null. */
static PgParam
link_text(const Request *request, const char *name)
{
	const char *text = NULL;

	(void) request_string(request, name, &text);
	return pgparam_text(text);
}

static PgParam
link_choice(const Request *request, const char *name)
{
	const cJSON *item = request_member(request, name);

	return item == NULL ? pgparam_null() : pgparam_text(cJSON_IsTrue(item) ? "true" : "false");
}

/* The hash of the password; "" for none. Null: the member is absent. */
static PgParam
link_password(const Request *request)
{
	return pgparam_text(request_member(request, "password") == NULL ? NULL
						: request->secret == NULL					? ""
																	: request->secret);
}

/* Calls next, with the hash in request->secret if the password is not empty. */
static void
link_hash_password(Request *request, RequestNext next)
{
	const char *password;

	if (request_string(request, "password", &password) && password[0] != '\0')
		account_hash(request, password, next);
	else
		next(request);
}

/* absent: if the member is absent. */
static PgParam
link_time(Request *request, const char *none, const char *absent)
{
	const cJSON *item = request_member(request, "expires");

	return pgparam_text(item == NULL ? absent : cJSON_IsString(item) ? item->valuestring : none);
}

/* ---- answers ---- */

/* False: answered. */
static bool
link_succeeded(Request *request, const PGresult *res)
{
	changes_register(request->sheet_id);
	changes_register(changes_of_uid(-request->number)); /* the label */
	if (request_sql_error_code(request, res, "link"))
		return false;
	if (strcmp(pgresult_sqlstate(res), "55000") == 0)
		request_error_code(request, 409, "revoked", "the link has been revoked");
	else if (!request_succeeded(res))
		api_sql_error(request, res);
	else if (PQntuples(res) == 0)
		request_error(request, 404, "no such link");
	else
		return true;
	return false;
}

/* A link for viewers without a password is a published view. */
static bool
link_is_published(const Request *request)
{
	const char *role = "viewer", *password = "";

	(void) request_string(request, "role", &role);
	(void) request_string(request, "password", &password);
	return strcmp(role, "viewer") == 0 && password[0] == '\0';
}

static void
link_created(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	if (!link_succeeded(request, res))
		return;
	buf_printf(&body, "{\"link\":%s", PQgetvalue(res, 0, 0));
	routes_put_member(&body, "key", PQgetvalue(res, 0, 1));
	/* Behind a # it is in no log of a server. Who may see a rectangle need not learn of which sheet. */
	if (link_text_is_given(request, "ref"))
		buf_puts(&body, ",\"url\":\"/");
	else
		buf_printf(&body, ",\"url\":\"/?id=%lld", (long long) request->sheet_id);
	buf_printf(&body, "#link=%s\"", PQgetvalue(res, 0, 1));
	if (link_is_published(request))
		buf_printf(&body, ",\"published\":\"/s/%s\"", PQgetvalue(res, 0, 1));
	buf_puts(&body, "}");
	request->no_store = true;
	request_json(request, 200, &body);
}

static void
link_create(Request *request)
{
	const char *role = "viewer";
	bool conditional;
	int64_t seq = 0;

	if (!api_if_match(request, &conditional, &seq))
		return;
	(void) request_string(request, "role", &role);
	request_query(request, DATABASE_LONG, link_create_sql,
				  PARAMS(request_sheet(request), pgparam_text(role), link_time(request, NULL, ""),
						 link_text(request, "ref"), link_password(request), link_text(request, "label"),
						 request_uid(request), link_text(request, "embed"), link_choice(request, "index"),
						 conditional ? request_int64(request, seq) : pgparam_null()),
				  REQUEST_TEXT_RAW, link_created);
}

void
route_create_link(Request *request)
{
	link_hash_password(request, link_create);
}

static void
link_changed(Request *request, PGresult *res)
{
	if (link_succeeded(request, res))
		request_nothing(request);
}

/* A member that is null is removed. */
static PgParam
link_removable(const Request *request, const char *name)
{
	return cJSON_IsNull(request_member(request, name)) ? pgparam_text("") : link_text(request, name);
}

static void
link_change(Request *request)
{
	(void) request_parse_id(request->part, &request->number); /* hashing a password has changed it */
	request_query(request, DATABASE_LONG, link_change_sql,
				  PARAMS(request_sheet(request), request_uid(request), request_int64(request, request->number),
						 link_text(request, "role"), link_time(request, "infinity", NULL), link_password(request),
						 link_text(request, "label"), link_choice(request, "blocked"), link_removable(request, "embed"),
						 link_choice(request, "index")),
				  REQUEST_TEXT_RAW, link_changed);
}

void
route_change_link(Request *request)
{
	link_hash_password(request, link_change);
}

void
route_revoke_link(Request *request)
{
	request_query(request, DATABASE_LONG, link_revoke_sql,
				  PARAMS(request_sheet(request), request_uid(request), request_int64(request, request->number)),
				  REQUEST_TEXT_RAW, link_changed);
}

/* ---- the list ---- */

static void
links_listed(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	buf_puts(&body, "{\"links\":[");
	for (int i = 0; i < PQntuples(res); i++)
	{
		buf_printf(&body, "%s{\"link\":%s", i > 0 ? "," : "", PQgetvalue(res, i, 0));
		routes_put_member(&body, "role", PQgetvalue(res, i, 1));
		routes_put_member(&body, "label", PQgetvalue(res, i, 2));
		routes_put_optional(&body, res, i, 3, "expires", routes_put_time_member);
		routes_put_optional(&body, res, i, 4, "ref", routes_put_member);
		buf_printf(&body, ",\"password\":%s", PQgetvalue(res, i, 5)[0] == 't' ? "true" : "false");
		routes_put_member(&body, "state", PQgetvalue(res, i, 6));
		routes_put_number(&body, "uses", PQgetvalue(res, i, 7));
		routes_put_optional(&body, res, i, 8, "lastUsed", routes_put_time_member);
		routes_put_optional(&body, res, i, 9, "createdBy", routes_put_member);
		routes_put_time_member(&body, "createdAt", PQgetvalue(res, i, 10));
		routes_put_optional(&body, res, i, 11, "embed", routes_put_member);
		buf_printf(&body, ",\"index\":%s", PQgetvalue(res, i, 12)[0] == 't' ? "true" : "false");
		buf_puts(&body, "}");
	}
	buf_puts(&body, "]}");
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, &body);
}

void
route_links(Request *request)
{
	request_query(request, DATABASE_READS, links_list_sql, PARAMS(request_sheet(request), request_uid(request)),
				  REQUEST_TEXT, links_listed);
}
