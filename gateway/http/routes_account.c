/*
 * routes_account.c - login, registration and the account itself.
 *
 * Password hashes burn CPU on purpose: they are made and compared by libuv's worker threads. An unknown user costs the
 * same time, and gets the same answer, as a wrong password.
 */
#include "accounts.h"
#include "gateway.h"
#include "log.h"
#include "password.h"
#include "routes.h"

#include <libwebsockets.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

static const char account_find_sql[] = "SELECT uid, name, password_hash, token_generation FROM sheet.account_find($1)";
/* A new account's token generation is 0. (A look at it in the same statement would not see the account yet.) */
static const char account_create_sql[] = "SELECT sheet.account_create($1, $2, $3), 0";
static const char account_sheets_sql[] =
	"SELECT sheet_id, trashed, name, versions, cols, owner, created_at, updated_at FROM sheet.account_sheets($1)";
static const char account_rename_sql[] = "SELECT sheet.account_rename($1, $2)";
static const char account_password_sql[] = "SELECT sheet.account_set_password($1, $2)";

/* ---- work for a thread ---- */

typedef struct PasswordWork
{
	uv_work_t work;
	Request *request;
	RequestNext next;
	char *password;
	size_t password_len;
	char *stored; /* to compare with; NULL: unknown user */
	bool compare;
	bool ok;
	char hash[PASSWORD_HASH_MAX];
} PasswordWork;

static void
password_do(uv_work_t *work)
{
	PasswordWork *job = work->data;

	if (job->compare)
		job->ok = password_verify(job->password, job->password_len, job->stored);
	else
		job->ok = password_hash(job->password, job->password_len, job->hash);
}

static void
password_done(uv_work_t *work, int status)
{
	PasswordWork *job = work->data;
	Request *request = job->request;

	request->number = job->ok && status == 0;
	free(request->secret);
	request->secret = job->compare ? NULL : strdup(job->hash);
	OPENSSL_cleanse(job->password, job->password_len);
	if (request->wsi != NULL)
		job->next(request);
	request_end_step(request);
	free(job->password);
	free(job->stored);
	free(job);
}

/* request->number tells the result; request->secret the new hash. */
static void
password_begin(Request *request, const char *password, const char *stored, bool compare, RequestNext next)
{
	PasswordWork *job = calloc(1, sizeof(PasswordWork));

	if (job == NULL)
		abort();
	job->work.data = job;
	job->request = request;
	job->next = next;
	job->password = strdup(password);
	job->password_len = strlen(password);
	job->stored = stored != NULL ? strdup(stored) : NULL;
	job->compare = compare;
	request_begin_step(request);
	if (uv_queue_work(&gateway.loop, &job->work, password_do, password_done) != 0)
		password_done(&job->work, -1);
}

/* A password that may be set; otherwise answered. */
static bool
password_acceptable(Request *request, const char *password)
{
	if (password[0] != '\0' && strlen(password) <= PASSWORD_MAX)
		return true;
	request_error(request, 400, "a password of 1 to 1024 bytes is needed");
	return false;
}

/* ---- tokens ---- */

static bool
account_put_token(Buf *to, int64_t uid, int64_t generation)
{
	JwtClaims claims = {.uid = uid,
						.generation = generation,
						.issued_at = gateway_now(),
						.expires_at = gateway_now() + (int64_t) gateway.config.token_minutes * 60};
	char token[JWT_MAX];

	if (!jwt_sign(&gateway.keys, &claims, token, sizeof(token)))
		return false;
	buf_puts_json(to, token);
	return true;
}

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
		log_event(LOG_INFO, "login refused", LOG_STR("peer", request->peer));
		request_msg(request, MSG_LOGIN_WRONG);
		return;
	}
	request_query(request, account_sheets_sql, 1, &param, 0, login_sheets);
}

static void
login_found(Request *request, PGresult *res)
{
	const char *password = "";
	bool found = PQntuples(res) == 1;
	Buf *data = &request->data;

	(void) request_string(request, "password", &password);
	if (found)
	{
		request->claims.uid = atoll(PQgetvalue(res, 0, 0));
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
	password_begin(request, password, found ? PQgetvalue(res, 0, 2) : NULL, true, login_verified);
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
	if (password_acceptable(request, password))
		password_begin(request, password, NULL, false, register_hashed);
}

/* ---- /getuser ---- */

static void
user_sheets(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};
	const Account *account = accounts_find(request->claims.uid);

	buf_printf(&data, "{\"uid\":%lld,\"username\":", (long long) request->claims.uid);
	buf_puts_json(&data, account != NULL ? account->name : "");
	buf_puts(&data, ",\"sheets\":");
	routes_put_sheets(&data, res);
	buf_puts(&data, "}");
	request_data(request, MSG_USER, &data);
}

static void
user_authenticated(Request *request)
{
	char uid[24];
	PgParam param = pgparam_int64(uid, request->claims.uid);

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
		accounts_forget(request->claims.uid);
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

/* ---- /modifyuserauth ---- */

static void
password_stored(Request *request, PGresult *res)
{
	accounts_forget(request->claims.uid);
	log_event(LOG_INFO, "password changed", LOG_INT("uid", request->claims.uid), LOG_STR("peer", request->peer));
	request_msg(request, MSG_PASSWORD_MODIFIED);
}

static void
password_hashed(Request *request)
{
	char uid[24];
	PgParam params[2];

	if (request->number == 0)
	{
		request_error(request, 500, "the password could not be hashed");
		return;
	}
	params[0] = pgparam_int64(uid, request->claims.uid);
	params[1] = pgparam_text(request->secret);
	request_query(request, account_password_sql, 2, params, 0, password_stored);
}

static void
password_authenticated(Request *request)
{
	const char *password = "";

	(void) request_string(request, "password", &password);
	password_begin(request, password, NULL, false, password_hashed);
}

void
route_modify_password(Request *request)
{
	const char *password;

	if (!request_string(request, "password", &password))
		request_error(request, 400, "password is needed, as a string");
	else if (password_acceptable(request, password))
		request_authenticate(request, password_authenticated);
}
