/*
 * account.c - whose request it is: the token, and the account that it names.
 */
#include "auth/jwt.h"
#include "core/gateway.h"
#include "http/request/request.h"
#include "ws/cache/accounts.h"
#include "ws/cache/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char account_get_sql[] = "SELECT name, token_generation FROM sheet.account_get($1)";

static bool
account_cookie(const Request *request, char *to, size_t size)
{
	size_t name = strlen(request->cookie);

	for (const char *p = head_field(&request->head, "cookie"); p != NULL && *p != '\0'; p += strspn(p, "; "))
	{
		size_t len = strcspn(p, ";");

		if (len > name && strncmp(p, request->cookie, name) == 0 && p[name] == '=' && len - name - 1 < size)
		{
			snprintf(to, size, "%.*s", (int) (len - name - 1), p + name + 1);
			return true;
		}
		p += len;
	}
	return false;
}

bool
request_token(const Request *request, char *to, size_t size)
{
	const char *token = request->form_token;
	char header[JWT_MAX + 16];

	if (!request_string(request, "token", &token) && token == NULL)
	{
		if (request_arg(request, "token", to, size))
			return true;
		if (!request_header(request, "authorization", header, sizeof(header)) ||
			strncasecmp(header, "Bearer ", 7) != 0 || strlen(header + 7) >= size)
			return request->cookie != NULL && account_cookie(request, to, size);
		token = header + 7;
	}
	if (strlen(token) >= size)
		return false;
	strcpy(to, token);
	return true;
}

static void
account_set_cookie(Request *request, const char *name, const char *token, const char *path)
{
	Buf value = {NULL, 0, 0};

	buf_printf(&value, "%s=%s; Path=%s; HttpOnly; SameSite=Strict%s%s", name, token, path,
			   strcmp(gateway_http_scheme(), "https") == 0 ? "; Secure" : "", token[0] == '\0' ? "; Max-Age=0" : "");
	request_add_header_buf(request, "Set-Cookie", &value);
}

void
request_set_cookies(Request *request, const char *token)
{
	account_set_cookie(request, COOKIE_FILES, token, "/getchunk");
	account_set_cookie(request, COOKIE_SESSION, token, "/v2/session");
}

static void
account_refuse_token(Request *request)
{
	request_deny(request, MSG_INVALID_TOKEN, 401, "a valid token is needed (Authorization: Bearer)");
}

static void
account_check_generation(Request *request)
{
	const Account *account = accounts_find(request->claims.uid);

	if (account == NULL || account->generation != request->claims.generation)
	{
		account_refuse_token(request);
		return;
	}
	request->user_name = account->name;
	request->next(request);
}

static void account_query(Request *request);

static void
account_answered(Request *request, PGresult *res)
{
	if (changes_since(-request->claims.uid, request->asked))
	{
		account_query(request); /* res may be older than the change */
		return;
	}
	if (PQntuples(res) == 1)
		accounts_put(request->claims.uid, PQgetvalue(res, 0, 0), atoll(PQgetvalue(res, 0, 1)), request->asked);
	else
		changes_register(-request->claims.uid);
	account_check_generation(request);
}

static void
account_query(Request *request)
{
	request->asked = changes_now();
	request_query(request, DATABASE_ACCOUNTS, account_get_sql, PARAMS(request_uid(request)), REQUEST_TEXT,
				  account_answered);
}

void
request_authenticate(Request *request, RequestNext next)
{
	char token[JWT_MAX];
	const cJSON *item = request_member(request, "token");

	request->next = next;
	if (item != NULL && !cJSON_IsString(item))
		request_error(request, 400, "token is needed, as a string");
	else if (!request_token(request, token, sizeof(token)) ||
			 jwt_verify_cached(&gateway.keys, token, strlen(token), gateway_now(), &request->claims) != JWT_OK)
		account_refuse_token(request);
	else if (accounts_is_fresh(accounts_find(request->claims.uid)))
		account_check_generation(request);
	else
		account_query(request);
}
