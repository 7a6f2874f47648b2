/*
 * account.c - whose request it is: the token, and the account that it names.
 */
#include "auth/access_token.h"
#include "auth/base64.h"
#include "auth/jwt.h"
#include "core/gateway.h"
#include "http/request/request.h"
#include "ws/cache/accounts.h"
#include "ws/cache/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char account_get_sql[] =
	"SELECT name, token_generation, sheet.account_token_revoked($1, $2) FROM sheet.account_get($1)";

static bool
account_has_tls(void)
{
	return strcmp(gateway_http_scheme(), "https") == 0;
}

static void
account_cookie_name(const char *name, char to[64])
{
	snprintf(to, 64, "%s%s", account_has_tls() ? "__Host-" : "", name);
}

static bool
account_cookie(const Request *request, const char *cookie, char *to, size_t size)
{
	char name[64];
	size_t name_len;

	account_cookie_name(cookie, name);
	name_len = strlen(name);
	for (const char *p = head_field(&request->head, "cookie"); p != NULL && *p != '\0'; p += strspn(p, "; "))
	{
		size_t len = strcspn(p, ";");

		if (len > name_len && strncmp(p, name, name_len) == 0 && p[name_len] == '=' && len - name_len - 1 < size)
		{
			snprintf(to, size, "%.*s", (int) (len - name_len - 1), p + name_len + 1);
			return true;
		}
		p += len;
	}
	return false;
}

bool
request_cookie(const Request *request, char *to, size_t size)
{
	return account_cookie(request, request->cookie, to, size);
}

/* The password of Basic (RFC 7617), which calendar programs send. The name is not looked at. */
static bool
account_basic_password(const char *text, char *to, size_t size)
{
	char decoded[JWT_MAX + 256];
	size_t len = strlen(text);
	const char *colon;

	while (len > 0 && text[len - 1] == '=')
		len--;
	if (!base64_decode(BASE64_STANDARD, text, len, decoded, sizeof(decoded) - 1, &len))
		return false;
	decoded[len] = '\0';
	colon = strchr(decoded, ':');
	if (colon == NULL || strlen(decoded) != len || strlen(colon + 1) >= size)
		return false;
	strcpy(to, colon + 1);
	return true;
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
		if (request->basic && request_header(request, "authorization", header, sizeof(header)) &&
			strncasecmp(header, "Basic ", 6) == 0)
			return account_basic_password(header + 6, to, size);
		if (!request_header(request, "authorization", header, sizeof(header)) ||
			strncasecmp(header, "Bearer ", 7) != 0 || strlen(header + 7) >= size)
			return request->cookie != NULL && request_cookie(request, to, size);
		token = header + 7;
	}
	if (strlen(token) >= size)
		return false;
	strcpy(to, token);
	return true;
}

/* path: without TLS. max_age: seconds; -1: until the browser ends. */
static void
account_set_cookie(Request *request, const char *cookie, const char *token, const char *path, int64_t max_age)
{
	Buf value = {NULL, 0, 0};
	char name[64];
	bool tls = account_has_tls();

	account_cookie_name(cookie, name);
	buf_printf(&value, "%s=%s; Path=%s; HttpOnly; SameSite=Strict%s", name, token, tls ? "/" : path,
			   tls ? "; Secure" : "");
	if (max_age >= 0)
		buf_printf(&value, "; Max-Age=%lld", (long long) max_age);
	request_add_header_buf(request, "Set-Cookie", &value);
	request->no_store = true;
}

static void
account_set_files_cookie(Request *request, const char *token, int64_t expires_at)
{
	int64_t left = expires_at - gateway_now();

	account_set_cookie(request, COOKIE_FILES, token, "/", left > 0 ? left : 0);
}

/* Forms of any page can send other types, and older browsers do not tell whose page it is. */
static bool
account_is_json(const Request *request)
{
	const char *type = head_field(&request->head, "content-type");
	size_t len = type != NULL ? strcspn(type, "; \t") : 0;

	return len == 16 && strncasecmp(type, "application/json", len) == 0;
}

bool
request_is_own(const Request *request)
{
	return request->origin == ORIGIN_SAME || (request->origin == ORIGIN_UNKNOWN && account_is_json(request));
}

static bool
account_may_set_cookies(const Request *request)
{
	return request->origin == ORIGIN_ALLOWED || request_is_own(request);
}

void
request_set_cookies(Request *request, const char *token, int64_t expires_at)
{
	request->no_store = true;
	request->renews = false;
	if (!account_may_set_cookies(request))
		return;
	account_set_files_cookie(request, token, expires_at);
	account_set_cookie(request, COOKIE_SESSION, token, "/v2/session", -1);
	account_set_cookie(request, COOKIE_DEVICE, token, "/login", -1);
}

void
request_remove_cookies(Request *request)
{
	request->renews = false;
	account_set_cookie(request, COOKIE_FILES, "", "/", 0);
	account_set_cookie(request, COOKIE_SESSION, "", "/v2/session", 0);
}

/*
 * Pictures are loaded by the cookie, and clients keep tokens for longer than browsers keep cookies. So whoever proves
 * who they are gets it again, if it is missing, has expired, or has another token of the account. The one of another
 * account stays: somebody signed in there later.
 */
static bool
account_lacks_files_cookie(const Request *request)
{
	char token[JWT_MAX], cookie[JWT_MAX];
	JwtClaims claims;

	return account_may_set_cookies(request) && request_token(request, token, sizeof(token)) &&
		   (!account_cookie(request, COOKIE_FILES, cookie, sizeof(cookie)) ||
			jwt_verify_cached(&gateway.keys, cookie, strlen(cookie), gateway_now(), &claims) != JWT_OK ||
			(claims.uid == request->claims.uid && strcmp(cookie, token) != 0));
}

void
request_renew_cookie(Request *request)
{
	char token[JWT_MAX];

	if (request->renews && request_token(request, token, sizeof(token)))
		account_set_files_cookie(request, token, request->claims.expires_at);
}

void
request_refuse_token(Request *request)
{
	request_deny(request, MSG_INVALID_TOKEN, 401,
				 request->basic ? "the password is an access token of the account"
								: "a valid token is needed (Authorization: Bearer)");
}

static void
account_check_revoked(Request *request)
{
	const Account *account = accounts_find(request->claims.uid);

	if (account == NULL || account->generation != request->claims.generation ||
		!accounts_has_token(account, jwt_token_id(&request->claims)))
	{
		request_refuse_token(request);
		return;
	}
	place_sign_in(conn_place(request->conn), request->claims.uid);
	request->user_name = account->name;
	request->renews = request->claims.uid > 0 && account_lacks_files_cookie(request);
	request->no_store |= request->renews;
	request->next(request);
}

static void account_query(Request *request);

static void
account_answered(Request *request, PGresult *res)
{
	if (changes_since(changes_of_uid(request->claims.uid), request->asked))
	{
		account_query(request); /* res may be older than the change */
		return;
	}
	if (PQntuples(res) == 1)
	{
		accounts_put(request->claims.uid, PQgetvalue(res, 0, 0), atoll(PQgetvalue(res, 0, 1)), request->asked);
		if (PQgetvalue(res, 0, 2)[0] == 'f')
			accounts_put_token(request->claims.uid, jwt_token_id(&request->claims));
	}
	else
		changes_register(changes_of_uid(request->claims.uid));
	account_check_revoked(request);
}

static void
account_query(Request *request)
{
	request->asked = changes_now();
	request_query(request, DATABASE_ACCOUNTS, account_get_sql,
				  PARAMS(request_uid(request), request_int64(request, jwt_token_id(&request->claims))), REQUEST_TEXT,
				  account_answered);
}

void
request_authenticate(Request *request, RequestNext next)
{
	char token[JWT_MAX];
	const cJSON *item = request_member(request, "token");
	const Account *account;

	request->next = next;
	if (item != NULL && !cJSON_IsString(item))
		request_error(request, 400, "token is needed, as a string");
	else if (!request_token(request, token, sizeof(token)))
		request_refuse_token(request);
	else if (access_token_is(token, strlen(token)))
		request_authenticate_program(request, token);
	else if (jwt_verify_cached(&gateway.keys, token, strlen(token), gateway_now(), &request->claims) != JWT_OK)
		request_refuse_token(request);
	else if (request->claims.uid < 0 && !request->guests)
		request_error(request, 403, "guests of a link have no account");
	else if (accounts_is_fresh(account = accounts_find(request->claims.uid)) &&
			 (account->generation != request->claims.generation ||
			  accounts_has_token(account, jwt_token_id(&request->claims))))
		account_check_revoked(request);
	else
		account_query(request);
}
