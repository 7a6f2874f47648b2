/*
 * routes_account.c - login, registration and the account itself.
 *
 * An unknown user costs the same time, and gets the same answer, as a wrong password.
 */
#include "account_steps.h"
#include "follow.h"
#include "log.h"
#include "pgresult.h"
#include "routes.h"

#include <stdlib.h>
#include <string.h>

static const char account_find_sql[] = "SELECT uid, name, password_hash, token_generation FROM sheet.account_find($1)";
/* A new account's token generation is 0. (A look at it in the same statement would not see the account yet.) */
static const char account_create_sql[] = "SELECT sheet.account_create($1, $2, $3), 0";
static const char account_sheets_sql[] =
	"SELECT sheet_id, trashed, name, versions, cols, owner, created_at, updated_at FROM sheet.account_sheets($1)";
static const char account_rename_sql[] = "SELECT sheet.account_rename($1, $2)";

/* ---- /login ---- */

static void
login_sheets(Request *request, PGresult *res)
{
	Buf *data = &request->data;

	routes_put_sheets(data, res);
	buf_puts(data, "}}");
	request_data(request, MSG_LOGIN, data);
}

static void
login_verified(Request *request)
{
	char uid[24];
	PgParam param = pgparam_int64(uid, request->claims.uid);

	if (request->number == 0)
	{
		log_event(LOG_INFO, "login refused", LOG_STR("request", request->trace.id), LOG_STR("peer", request->peer));
		request_msg(request, MSG_LOGIN_WRONG);
		return;
	}
	account_forgive(request);
	request_query(request, account_sheets_sql, 1, &param, 0, login_sheets);
}

static void
login_found(Request *request, PGresult *res)
{
	const char *password = "";
	bool found = PQntuples(res) == 1;
	Buf *data = &request->data;

	(void) request_string(request, "password", &password);
	request->claims.uid = found ? atoll(PQgetvalue(res, 0, 0)) : 0;
	if (!account_may_try(request))
		return;
	if (found)
	{
		buf_puts(data, "{\"token\":");
		if (!account_put_token(data, request->claims.uid, atoll(PQgetvalue(res, 0, 3))))
		{
			request_error(request, 500, "no token could be made");
			return;
		}
		buf_printf(data, ",\"info\":{\"uid\":%lld,\"username\":", (long long) request->claims.uid);
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
	request_query(request, account_find_sql, 1, &param, 0, login_found);
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
	if (account_put_token(&data, atoll(PQgetvalue(res, 0, 0)), atoll(PQgetvalue(res, 0, 1))))
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
	request_query(request, account_create_sql, 3, params, REQUEST_RAW_TEXT, register_created);
}

void
route_register(Request *request)
{
	const char *name;
	const char *password;
	const char *email;

	if (!request_string(request, "username", &name) || !request_string(request, "password", &password) ||
		(cJSON_HasObjectItem(request->json, "email") && !request_string(request, "email", &email)))
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

	routes_put_sheets(data, res);
	buf_puts(data, "}");
	request_data(request, MSG_USER, data);
}

static void
user_authenticated(Request *request)
{
	char uid[24];
	PgParam param = pgparam_int64(uid, request->claims.uid);
	Buf *data = &request->data;

	/* now, since the account may be forgotten while the database is asked */
	buf_printf(data, "{\"uid\":%lld,\"username\":", (long long) request->claims.uid);
	buf_puts_json(data, request->user_name);
	buf_puts(data, ",\"sheets\":");
	request_query(request, account_sheets_sql, 1, &param, 0, user_sheets);
}

void
route_get_user(Request *request)
{
	request_authenticate(request, user_authenticated);
}

/* ---- /modifyuser ---- */

static void
user_renamed(Request *request, PGresult *res)
{
	if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK)
	{
		follow_changed(-request->claims.uid);
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
	request_query(request, account_rename_sql, 2, params, REQUEST_RAW_TEXT, user_renamed);
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
