/*
 * routes_account.c - login, registration and the account itself.
 *
 * An unknown user costs the same time, and gets the same answer, as a wrong password.
 */
#include "http/routes/account_steps.h"
#include "ws/cache/changes.h"
#include "support/log.h"
#include "db/pgresult.h"
#include "http/routes/routes.h"

#include <stdlib.h>
#include <string.h>

static const char account_find_sql[] = "SELECT uid, name, password_hash, token_generation FROM sheet.account_find($1)";
/* A new account's token generation is 0. (A look at it in the same statement would not see the account yet.) */
static const char account_create_sql[] = "SELECT sheet.account_create($1, $2, $3), 0";
static const char account_sheets_sql[] =
	"SELECT sheet_id, trashed, name, versions, cols, owner, created_at, updated_at, place "
	"FROM sheet.account_sheets($1, $2, $3)";
static const char account_rename_sql[] = "SELECT sheet.account_rename($1, $2)";

#define ACCOUNT_LOGIN_SHEETS 200
#define ACCOUNT_PAGE_SHEETS	 1000

/* Asks for a page of the sheets of claims.uid; request->number says how large it is. */
static void
account_ask_sheets(Request *request, int64_t limit, const char *after, RequestStep step)
{
	char uid[24], rows[24];
	PgParam params[] = {pgparam_int64(uid, request->claims.uid), pgparam_int64(rows, limit), pgparam_text(after)};

	request->number = limit;
	request_query(request, DATABASE_ACCOUNTS, account_sheets_sql, 3, params, 0, step);
}

/* ---- /login ---- */

static void
login_sheets(Request *request, PGresult *res)
{
	Buf *data = &request->data;

	routes_put_sheets(data, res, (int) request->number, false);
	buf_puts(data, "}}");
	request_data(request, MSG_LOGIN, data);
}

static void
login_verified(Request *request)
{
	Buf info;

	if (request->number == 0)
	{
		log_event(LOG_INFO, "login refused", LOG_STR("request", request->trace.id), LOG_STR("peer", request->peer));
		request_msg(request, MSG_LOGIN_WRONG);
		return;
	}
	account_forgive(request);
	info = buf_take(&request->data);
	buf_puts(&request->data, "{\"token\":");
	if (!account_put_token(request, &request->data, request->claims.uid, request->claims.generation))
	{
		buf_free(&info);
		request_error(request, 500, "no token could be made");
		return;
	}
	buf_puts(&request->data, ",\"info\":");
	buf_put_buf(&request->data, &info);
	buf_free(&info);
	account_ask_sheets(request, ACCOUNT_LOGIN_SHEETS, NULL, login_sheets);
}

static void
login_found(Request *request, PGresult *res)
{
	const char *password = "";
	bool found = PQntuples(res) == 1;
	Buf *data = &request->data;

	(void) request_string(request, "password", &password);
	request->claims.uid = found ? atoll(PQgetvalue(res, 0, 0)) : 0;
	request->claims.generation = found ? atoll(PQgetvalue(res, 0, 3)) : 0;
	if (found)
		account_find_device(request, request->claims.generation);
	if (!account_may_try(request))
		return;
	if (found)
	{
		buf_printf(data, "{\"uid\":%lld,\"username\":", (long long) request->claims.uid);
		buf_puts_json(data, PQgetvalue(res, 0, 1));
		buf_puts(data, ",\"sheets\":");
	}
	account_compare(request, password, found ? PQgetvalue(res, 0, 2) : NULL, login_verified);
}

void
route_login(Request *request)
{
	const char *name;
	const char *password;
	PgParam param;

	if (!request_string(request, "username", &name) || !request_string(request, "password", &password))
	{
		request_error(request, 400, "username and password are needed, as strings");
		return;
	}
	if (!account_may_come(request))
		return;
	param = pgparam_text(name);
	request_query(request, DATABASE_ACCOUNTS, account_find_sql, 1, &param, 0, login_found);
}

/* ---- /register ---- */

static void
register_created(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) != 1)
	{
		if (strcmp(pgresult_sqlstate(res), "23505") == 0)
			request_msg(request, MSG_USER_EXISTS);
		else
			request_sql_error(request, res);
		return;
	}
	if (account_put_token(request, &data, atoll(PQgetvalue(res, 0, 0)), atoll(PQgetvalue(res, 0, 1))))
		request_data(request, MSG_REGISTERED, &data);
	else
		request_error(request, 500, "no token could be made");
}

static void
register_hashed(Request *request)
{
	const char *name = "";
	const char *email = "";
	PgParam params[3];

	if (request->number == 0)
	{
		request_error(request, 500, "the password could not be hashed");
		return;
	}
	(void) request_string(request, "username", &name);
	(void) request_string(request, "email", &email);
	params[0] = pgparam_text(name);
	params[1] = pgparam_text(email);
	params[2] = pgparam_text(request->secret);
	request_query(request, DATABASE_WRITES, account_create_sql, 3, params, REQUEST_RAW_TEXT, register_created);
}

void
route_register(Request *request)
{
	const char *name;
	const char *password;
	const char *email;

	if (!request_string(request, "username", &name) || !request_string(request, "password", &password) ||
		(request_member(request, "email") != NULL && !request_string(request, "email", &email)))
	{
		request_error(request, 400, "username, password and email are needed, as strings");
		return;
	}
	if (account_password_acceptable(request, password) && account_may_come(request))
		account_hash(request, password, register_hashed);
}

/* ---- /getuser ---- */

static void
user_sheets(Request *request, PGresult *res)
{
	Buf *data = &request->data;

	routes_put_sheets(data, res, (int) request->number,
					  cJSON_HasObjectItem(request->json, "limit") || cJSON_HasObjectItem(request->json, "after"));
	buf_puts(data, "}");
	request_data(request, MSG_USER, data);
}

static void
user_authenticated(Request *request)
{
	int64_t limit = ACCOUNT_PAGE_SHEETS;
	const char *after = NULL;
	Buf *data = &request->data;

	(void) request_number(request, "limit", 1, ACCOUNT_PAGE_SHEETS, &limit);
	(void) request_string(request, "after", &after);
	/* now, since the account may be forgotten while the database is asked */
	buf_printf(data, "{\"uid\":%lld,\"username\":", (long long) request->claims.uid);
	buf_puts_json(data, request->user_name);
	buf_puts(data, ",\"sheets\":");
	account_ask_sheets(request, limit, after, user_sheets);
}

void
route_get_user(Request *request)
{
	const cJSON *limit = cJSON_GetObjectItemCaseSensitive(request->json, "limit");
	const cJSON *after = cJSON_GetObjectItemCaseSensitive(request->json, "after");
	int64_t number;

	if ((limit != NULL && !request_number(request, "limit", 1, ACCOUNT_PAGE_SHEETS, &number)) ||
		(after != NULL && !cJSON_IsNull(after) && !cJSON_IsString(after)))
		request_error(request, 400, "limit is a number from 1 to 1000, after what an answer had as next");
	else
		request_authenticate(request, user_authenticated);
}

/* ---- /modifyuser ---- */

static void
user_renamed(Request *request, PGresult *res)
{
	if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK)
	{
		changes_register(-request->claims.uid);
		request_msg(request, MSG_USER_MODIFIED);
	}
	else if (strcmp(pgresult_sqlstate(res), "23505") == 0)
		request_msg(request, MSG_DUPLICATE_NAME);
	else
		request_sql_error(request, res);
}

static void
user_rename(Request *request)
{
	const char *name = "";
	char uid[24];
	PgParam params[2];

	(void) request_string(request, "username", &name);
	params[0] = pgparam_int64(uid, request->claims.uid);
	params[1] = pgparam_text(name);
	request_query(request, DATABASE_WRITES, account_rename_sql, 2, params, REQUEST_RAW_TEXT, user_renamed);
}

void
route_modify_user(Request *request)
{
	const char *name;

	if (request_string(request, "username", &name))
		request_authenticate(request, user_rename);
	else
		request_error(request, 400, "username is needed, as a string");
}
