/*
 * routes_account.c - login, registration and the account itself.
 *
 * An unknown user costs the same time, and gets the same answer, as a wrong password.
 */
#include "http/routes/account_steps.h"
#include "http/routes/routes.h"
#include "support/log.h"
#include "ws/cache/changes.h"

#include <stdlib.h>
#include <string.h>

static const char account_find_sql[] = "SELECT uid, name, password_hash, token_generation FROM sheet.account_find($1)";
/* The token generation of a new account is 0; the same statement could not read it, as it does not see the account. */
static const char account_create_sql[] = "SELECT sheet.account_create($1, $2, $3), 0";
static const char account_sheets_sql[] =
	"SELECT sheet_id, trashed, name, versions, cols, owner, created_at, updated_at, place "
	"FROM sheet.account_sheets($1, $2, $3)";
static const char account_rename_sql[] = "SELECT sheet.account_rename($1, $2)";

#define ACCOUNT_LOGIN_SHEETS 200
#define ACCOUNT_PAGE_SHEETS	 1000

/* Begins the answer's object of an account, and queries a page of its sheets; request->number is its size. */
static void
account_query_sheets(Request *request, int64_t limit, const char *after, RequestStep step)
{
	request->number = limit;
	request_query(request, DATABASE_ACCOUNTS, account_sheets_sql,
				  PARAMS(request_uid(request), request_int64(request, limit), pgparam_text(after)), REQUEST_TEXT, step);
}

static void
account_put_user(Request *request, const char *name)
{
	buf_printf(&request->data, "{\"uid\":%lld,\"username\":", (long long) request->claims.uid);
	buf_puts_json(&request->data, name);
	buf_puts(&request->data, ",\"sheets\":");
}

/* The statement failed because the name is another account's. */
static bool
account_name_is_taken(const PGresult *res)
{
	return strcmp(pgresult_sqlstate(res), "23505") == 0;
}

/* ---- /login {username, password} ---- */

static void
login_sheets(Request *request, PGresult *res)
{
	routes_put_sheets(&request->data, res, (int) request->number, false);
	buf_puts(&request->data, "}}");
	request_data(request, MSG_LOGIN, &request->data);
}

static void
login_compared(Request *request)
{
	Buf info;

	if (request->number == 0)
	{
		log_event(LOG_INFO, "login refused", LOG_STR("request", request->trace.id), LOG_STR("peer", request->peer));
		request_msg(request, MSG_LOGIN_WRONG);
		return;
	}
	account_forgive(request);
	account_remember(request, request->claims.uid, request_text(request, "username"));
	info = buf_take(&request->data);
	buf_puts(&request->data, "{\"token\":");
	if (account_put_token(request, &request->data, request->claims.uid, request->claims.generation))
	{
		buf_puts(&request->data, ",\"info\":");
		buf_put_buf(&request->data, &info);
		account_query_sheets(request, ACCOUNT_LOGIN_SHEETS, NULL, login_sheets);
	}
	buf_free(&info);
}

static void
login_found(Request *request, PGresult *res)
{
	bool found = PQntuples(res) == 1;

	request->claims.uid = found ? atoll(PQgetvalue(res, 0, 0)) : 0;
	request->claims.generation = found ? atoll(PQgetvalue(res, 0, 3)) : 0;
	if (found)
		account_find_device(request);
	if (account_shows_token(request) && !account_may_sign_in(request))
		return;
	if (!account_may_try(request))
		return;
	if (found)
		account_put_user(request, PQgetvalue(res, 0, 1));
	account_compare(request, request_text(request, "password"), found ? PQgetvalue(res, 0, 2) : NULL, login_compared);
}

void
route_login(Request *request)
{
	const char *name;
	const char *password;

	request->cookie = COOKIE_DEVICE;
	if (!request_string(request, "username", &name) || !request_string(request, "password", &password))
		request_error(request, 400, "username and password are needed, as strings");
	/* With a token, the attempt counts after it is known whether the token is of this account. */
	else if (account_shows_token(request) || account_may_sign_in(request))
		request_query(request, DATABASE_ACCOUNTS, account_find_sql, PARAMS(pgparam_text(name)), REQUEST_TEXT,
					  login_found);
}

/* ---- /register {username, password, email} ---- */

static void
register_created(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	if (account_name_is_taken(res))
		request_msg(request, MSG_USER_EXISTS);
	else if (request_sql_error_code(request, res, "account"))
		return;
	else if (!request_succeeded(res) || PQntuples(res) != 1)
		request_sql_error(request, res);
	else if (account_put_token(request, &data, atoll(PQgetvalue(res, 0, 0)), atoll(PQgetvalue(res, 0, 1))))
	{
		account_remember(request, atoll(PQgetvalue(res, 0, 0)), request_text(request, "username"));
		request_data(request, MSG_REGISTERED, &data);
	}
}

static void
register_hashed(Request *request)
{
	request_query(request, DATABASE_WRITES, account_create_sql,
				  PARAMS(pgparam_text(request_text(request, "username")), pgparam_text(request_text(request, "email")),
						 pgparam_text(request->secret)),
				  REQUEST_TEXT_RAW, register_created);
}

void
route_register(Request *request)
{
	const char *name;
	const char *password;
	const char *email;

	if (!request_string(request, "username", &name) || !request_string(request, "password", &password) ||
		(request_member(request, "email") != NULL && !request_string(request, "email", &email)))
		request_error(request, 400, "username, password and email are needed, as strings");
	else if (account_password_acceptable(request, password) && account_may_come(request))
		account_hash(request, password, register_hashed);
}

/* ---- /getuser {limit, after} ---- */

bool
check_user(Request *request)
{
	const cJSON *limit = cJSON_GetObjectItemCaseSensitive(request->json, "limit");
	const cJSON *after = cJSON_GetObjectItemCaseSensitive(request->json, "after");
	int64_t number;

	if ((limit == NULL || request_number(request, "limit", 1, ACCOUNT_PAGE_SHEETS, &number)) &&
		(after == NULL || cJSON_IsNull(after) || cJSON_IsString(after)))
		return true;
	request_error(request, 400, "limit is a number from 1 to 1000, after what an answer had as next");
	return false;
}

static void
user_sheets(Request *request, PGresult *res)
{
	routes_put_sheets(&request->data, res, (int) request->number,
					  cJSON_HasObjectItem(request->json, "limit") || cJSON_HasObjectItem(request->json, "after"));
	buf_puts(&request->data, "}");
	request_data(request, MSG_USER, &request->data);
}

void
route_get_user(Request *request)
{
	int64_t limit = ACCOUNT_PAGE_SHEETS;
	const char *after = NULL;

	(void) request_number(request, "limit", 1, ACCOUNT_PAGE_SHEETS, &limit);
	(void) request_string(request, "after", &after);
	account_put_user(request, request->user_name); /* which is valid until the next step */
	account_query_sheets(request, limit, after, user_sheets);
}

/* ---- /modifyuser {username} ---- */

bool
check_username(Request *request)
{
	const char *name;

	if (request_string(request, "username", &name))
		return true;
	request_error(request, 400, "username is needed, as a string");
	return false;
}

static void
user_renamed(Request *request, PGresult *res)
{
	if (account_name_is_taken(res))
		request_msg(request, MSG_DUPLICATE_NAME);
	else if (request_sql_error_code(request, res, "user_name"))
		return;
	else if (request_succeeded(res))
	{
		changes_register(changes_of_uid(request->claims.uid));
		request_msg(request, MSG_USER_MODIFIED);
	}
	else
		request_sql_error(request, res);
}

void
route_modify_user(Request *request)
{
	request_query(request, DATABASE_WRITES, account_rename_sql,
				  PARAMS(request_uid(request), pgparam_text(request_text(request, "username"))), REQUEST_TEXT_RAW,
				  user_renamed);
}
