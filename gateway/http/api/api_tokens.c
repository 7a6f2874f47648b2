/*
 * api_tokens.c - /v2/tokens: access tokens of the account. Only a sign-in makes, lists and revokes them: a program
 * cannot give itself more time or more scopes.
 */
#include "http/api/api.h"
#include "support/log.h"
#include "ws/cache/changes.h"

#include <string.h>

#define TOKEN_DAYS		 90
#define TOKEN_DAYS_MAX	 36500
#define TOKEN_SCOPES_MAX 16

static const char token_create_sql[] =
	"SELECT t.token, f.token_id, f.scopes, f.expires_at FROM (SELECT sheet.create_token($1, $2::text[], "
	"pg_catalog.now() + pg_catalog.make_interval(days => $3::integer), $4) AS token OFFSET 0) t, "
	"LATERAL sheet.token_find(pg_catalog.sha256(pg_catalog.convert_to(t.token, 'UTF8'))) f";
static const char token_list_sql[] =
	"SELECT token_id, label, scopes, created_at, expires_at, last_used FROM sheet.tokens($1)";
static const char token_revoke_sql[] = "SELECT sheet.revoke_token($1, $2)";

static void
token_log(const Request *request, const char *event, const char *token_id)
{
	log_event(LOG_INFO, event, LOG_STR("request", request->trace.id), LOG_INT("uid", request->claims.uid),
			  LOG_STR("token", token_id), LOG_STR("peer", request->peer));
}

/* ---- JSON ---- */

/* A member that is an array of strings: `array` is "{read,edit}", of words without quotes. */
static void
token_put_scopes(Buf *to, const char *array)
{
	const char *separator = "";

	buf_puts(to, ",\"scopes\":[");
	for (array += strspn(array, "{,}"); *array != '\0'; array += strspn(array, "{,}"))
	{
		size_t len = strcspn(array, "{,}");

		buf_puts(to, separator);
		buf_put_json(to, array, len);
		separator = ",";
		array += len;
	}
	buf_puts(to, "]");
}

/* ---- POST /v2/tokens {label, scopes, days | null} ---- */

static bool
token_scopes_are_strings(const cJSON *scopes)
{
	const cJSON *item;

	if (!cJSON_IsArray(scopes) || cJSON_GetArraySize(scopes) > TOKEN_SCOPES_MAX)
		return false;
	cJSON_ArrayForEach(item, scopes)
	{
		if (!cJSON_IsString(item))
			return false;
	}
	return true;
}

/* days: how long the token is valid; null: without end. */
bool
check_create_token(Request *request)
{
	const cJSON *scopes = request_member(request, "scopes"), *days = request_member(request, "days");
	const char *label;

	request->number = TOKEN_DAYS;
	if (!request_string(request, "label", &label))
		request_error(request, 400, "label is needed, as a string");
	else if (scopes != NULL && !token_scopes_are_strings(scopes))
		request_error(request, 400, "scopes is a list of strings: read, edit, upload, admin");
	else if (days != NULL && !cJSON_IsNull(days) &&
			 !request_number(request, "days", 1, TOKEN_DAYS_MAX, &request->number))
		request_error(request, 400, "days is a number from 1 to 36500, or null for a token without end");
	else
		return true;
	return false;
}

static void
token_created(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	if (!request_succeeded(res) || PQntuples(res) != 1)
	{
		if (strcmp(pgresult_sqlstate(res), "54000") == 0)
			request_error_code(request, 409, "tokens", PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
		else
			request_sql_error(request, res);
		return;
	}
	token_log(request, "access token created", PQgetvalue(res, 0, 1));
	buf_printf(&body, "{\"id\":%s", PQgetvalue(res, 0, 1));
	routes_put_member(&body, "token", PQgetvalue(res, 0, 0));
	routes_put_member(&body, "label", request_text(request, "label"));
	token_put_scopes(&body, PQgetvalue(res, 0, 2));
	routes_put_optional(&body, res, 0, 3, "expiresAt", routes_put_time_member);
	buf_puts(&body, "}");
	request->no_store = true;
	request_json(request, 201, &body);
}

/* An array in PostgreSQL's text form. Each name is quoted; the database refuses unknown ones. */
static void
token_put_array(Buf *to, const cJSON *scopes)
{
	const char *separator = "";
	const cJSON *item;

	buf_puts(to, "{");
	cJSON_ArrayForEach(item, scopes)
	{
		buf_puts(to, separator);
		buf_puts(to, "\"");
		for (const char *c = item->valuestring; *c != '\0'; c++)
		{
			if (*c == '"' || *c == '\\')
				buf_puts(to, "\\");
			buf_put(to, c, 1);
		}
		buf_puts(to, "\"");
		separator = ",";
	}
	buf_puts(to, "}");
	buf_put(to, "", 1);
}

void
route_create_token(Request *request)
{
	const cJSON *scopes = request_member(request, "scopes");
	Buf array = {NULL, 0, 0};

	if (scopes != NULL)
		token_put_array(&array, scopes);
	if (buf_failed(&array))
		request_out_of_memory(request);
	else
		request_query(request, DATABASE_WRITES, token_create_sql,
					  PARAMS(pgparam_text(request_text(request, "label")),
							 pgparam_text(scopes != NULL ? array.data : "{read}"),
							 cJSON_IsNull(request_member(request, "days")) ? pgparam_null()
																		   : request_int64(request, request->number),
							 request_uid(request)),
					  REQUEST_TEXT_RAW, token_created);
	buf_free(&array);
}

/* ---- GET /v2/tokens ---- */

static void
tokens_listed(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	buf_puts(&body, "{\"tokens\":[");
	for (int i = 0; i < PQntuples(res); i++)
	{
		buf_printf(&body, "%s{\"id\":%s", i > 0 ? "," : "", PQgetvalue(res, i, 0));
		routes_put_member(&body, "label", PQgetvalue(res, i, 1));
		token_put_scopes(&body, PQgetvalue(res, i, 2));
		routes_put_time_member(&body, "createdAt", PQgetvalue(res, i, 3));
		routes_put_optional(&body, res, i, 4, "expiresAt", routes_put_time_member);
		routes_put_optional(&body, res, i, 5, "lastUsed", routes_put_time_member);
		buf_puts(&body, "}");
	}
	buf_puts(&body, "]}");
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, &body);
}

void
route_list_tokens(Request *request)
{
	request_query(request, DATABASE_READS, token_list_sql, PARAMS(request_uid(request)), REQUEST_TEXT, tokens_listed);
}

/* ---- DELETE /v2/tokens/ID ---- */

static void
token_revoked(Request *request, PGresult *res)
{
	changes_register(-request->claims.uid);
	if (strcmp(pgresult_sqlstate(res), "42704") == 0)
		request_error(request, 404, "no such token");
	else
	{
		if (request_succeeded(res))
			token_log(request, "access token revoked", request->part);
		api_done(request, res);
	}
}

void
route_revoke_token(Request *request)
{
	if (request_parse_id(request->part, &request->number))
		request_query(request, DATABASE_WRITES, token_revoke_sql,
					  PARAMS(request_int64(request, request->number), request_uid(request)), REQUEST_TEXT_RAW,
					  token_revoked);
	else
		request_error(request, 404, "no such token");
}
