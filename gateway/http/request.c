/*
 * request.c - one HTTP request: reading its parts, asking the database step by step, answering.
 */
#include "request.h"

#include "accounts.h"
#include "coord.h"
#include "download.h"
#include "gateway.h"
#include "log.h"
#include "metrics.h"
#include "network.h"
#include "upload.h"

#include <libwebsockets.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_WRITE_BYTES 65536

/*
 * Who asks: the other end of the connection or, when that is a proxy that we trust, the last address in X-Forwarded-For
 * that is not one. What stands before it is the client's own invention.
 */
static void
request_find_peer(Request *request)
{
	char forwarded[1024];
	char *comma;

	lws_get_peer_simple(request->wsi, request->peer, sizeof(request->peer));
	if (!network_list_contains(gateway.config.trusted_proxies, request->peer) ||
		!request_header(request, WSI_TOKEN_X_FORWARDED_FOR, forwarded, sizeof(forwarded)))
		return;
	do
	{
		const char *item;

		comma = strrchr(forwarded, ',');
		item = comma != NULL ? comma + 1 : forwarded;
		item += strspn(item, " ");
		if (!network_is_address(item))
			return;
		snprintf(request->peer, sizeof(request->peer), "%s", item);
		if (comma != NULL)
			*comma = '\0';
	} while (comma != NULL && network_list_contains(gateway.config.trusted_proxies, request->peer));
}

Request *
request_create(struct lws *wsi, Method method, const char *path)
{
	Request *request = calloc(1, sizeof(Request));

	if (request == NULL)
		return NULL;
	request->wsi = wsi;
	request->method = method;
	request->content_length = -1;
	snprintf(request->path, sizeof(request->path), "%s", path);
	request_find_peer(request);
	metrics.http_requests++;
	return request;
}

static void
request_free(Request *request)
{
	upload_free(request->upload);
	download_free(request->download);
	cJSON_Delete(request->json);
	if (request->body.data != NULL)
		OPENSSL_cleanse(request->body.data, request->body.len); /* passwords */
	buf_free(&request->body);
	buf_free(&request->answer);
	buf_free(&request->data);
	free(request->secret);
	free(request);
}

void
request_begin_step(Request *request)
{
	request->steps++;
}

void
request_end_step(Request *request)
{
	if (--request->steps == 0 && request->wsi == NULL)
		request_free(request);
}

void
request_gone(Request *request)
{
	request->wsi = NULL;
	request->steps++;
	request_end_step(request);
}

/* ---- answers ---- */

void
request_add_header(Request *request, const char *name, const char *value)
{
	size_t used = strlen(request->headers);

	for (const char *p = value; *p != '\0'; p++)
	{
		if ((unsigned char) *p < 0x20 || *p == 0x7F)
			return; /* would end the line, and begin one of the client's choice */
	}
	snprintf(request->headers + used, sizeof(request->headers) - used, "%s: %s\r\n", name, value);
}

void
request_answer(Request *request, int status, const char *type, Buf *body)
{
	if (request->wsi == NULL || request->status != 0)
	{
		if (body != NULL)
			buf_free(body);
		return;
	}
	if (request->received < request->content_length)
		request->close = true; /* the rest of the body must not be read as a request */
	request->status = status;
	request->type = type;
	if (body != NULL)
		request->answer = buf_take(body);
	if (request->constant == NULL)
	{
		request->constant = request->answer.data;
		request->length = request->answer.len;
	}
	if (status >= 500)
		metrics.http_errors++;
	if (status == 307)
		metrics.redirects++;
	lws_callback_on_writable(request->wsi);
}

static bool
msg_is_success(Msg msg)
{
	switch (msg)
	{
		case MSG_LOGIN:
		case MSG_REGISTERED:
		case MSG_USER_MODIFIED:
		case MSG_PASSWORD_MODIFIED:
		case MSG_USER:
		case MSG_SHEET_NEW:
		case MSG_SHEET:
		case MSG_SHEET_DELETED:
		case MSG_DESTINATION:
		case MSG_VERSION:
		case MSG_LOG:
		case MSG_RECOVERED:
		case MSG_COMMITTED:
		case MSG_ROLLED_BACK:
		case MSG_UPLOADED:
		case MSG_FILES:
			return true;
		default:
			return false;
	}
}

void
request_data(Request *request, Msg msg, Buf *data)
{
	Buf body = {NULL, 0, 0};

	buf_printf(&body, "{\"success\":%s,\"msg\":%d,\"data\":", msg_is_success(msg) ? "true" : "false", msg);
	if (data != NULL && data->len > 0)
		buf_put(&body, data->data, data->len);
	else
		buf_puts(&body, "null");
	buf_puts(&body, "}");
	if (data != NULL)
		buf_free(data);
	request_answer(request, 200, "application/json", &body);
}

void
request_msg(Request *request, Msg msg)
{
	request_data(request, msg, NULL);
}

void
request_error(Request *request, int status, const char *reason)
{
	Buf body = {NULL, 0, 0};

	buf_puts(&body, "{\"success\":false,\"msg\":0,\"data\":");
	buf_puts_json(&body, reason);
	buf_puts(&body, "}");
	request_answer(request, status, "application/json", &body);
}

bool
request_redirect(Request *request, int64_t sheet_id)
{
	const char *owner = coord_owner_of(gateway.coord, sheet_id);
	char location[2304];
	char query[1024] = "";

	if (owner == NULL)
	{
		request_error(request, 503, "the gateways have not found each other yet");
		return true;
	}
	if (coord_is_mine(gateway.coord, sheet_id))
		return false;
	if (request->wsi != NULL)
		(void) lws_hdr_copy(request->wsi, query, sizeof(query), WSI_TOKEN_HTTP_URI_ARGS);
	snprintf(location, sizeof(location), "http://%s%s%s%s", owner, request->path, query[0] != '\0' ? "?" : "", query);
	if (strlen(location) < sizeof(request->headers) - 256)
		request_add_header(request, "Location", location);
	request_error(request, 307, "the sheet is served by another gateway");
	return true;
}

/* ---- the database ---- */

void
request_sql_error(Request *request, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);
	const char *reason = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	if (res == NULL || strncmp(state, "57", 2) == 0 || strncmp(state, "08", 2) == 0)
		request_error(request, 503, "the database does not answer");
	else if (strcmp(state, "42704") == 0)
		request_msg(request, MSG_NO_SHEET);
	else if (strcmp(state, "42501") == 0)
		request_msg(request, MSG_NO_PERMISSION);
	else if (strcmp(state, "ST001") == 0)
		request_msg(request, MSG_IN_TRASH);
	else if (strncmp(state, "22", 2) == 0 || strncmp(state, "54", 2) == 0)
		request_error(request, 400, reason != NULL ? reason : "invalid value");
	else if (strcmp(state, "SF001") == 0 || strcmp(state, "SB001") == 0 || strncmp(state, "40", 2) == 0)
		request_error(request, 503, "the sheet is busy or moving: try again");
	else
	{
		log_event(LOG_ERROR, "request failed", LOG_STR("path", request->path), LOG_STR("sqlstate", state),
				  LOG_STR("reason", reason));
		request_error(request, 500, "the request failed in the database");
	}
}

static void
request_answered(void *arg, PGresult *res)
{
	Request *request = arg;
	RequestStep step = request->step;

	if (request->wsi == NULL)
		;
	else if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK)
		request_sql_error(request, res);
	else
		step(request, res);
	request_end_step(request);
}

/* For steps that look at errors themselves. */
static void
request_answered_raw(void *arg, PGresult *res)
{
	Request *request = arg;

	if (request->wsi != NULL)
		request->step(request, res);
	request_end_step(request);
}

void
request_query(Request *request, const char *sql, int nparams, const PgParam *params, int format, RequestStep step)
{
	PgResultFn fn = format < 0 ? request_answered_raw : request_answered;

	request->step = step;
	request_begin_step(request);
	if (!pgconn_query(gateway.reads, sql, nparams, params, format == 1 || format == REQUEST_RAW,
					  (unsigned) gateway.config.database_deadline_ms, fn, request))
	{
		request_error(request, 503, "the gateway is busy");
		request_end_step(request);
	}
}

/* ---- who asks ---- */

static bool
request_token(const Request *request, char *to, size_t size)
{
	const cJSON *token = cJSON_GetObjectItemCaseSensitive(request->json, "token");
	char header[JWT_MAX + 16];

	if (cJSON_IsString(token) && strlen(token->valuestring) < size)
	{
		strcpy(to, token->valuestring);
		return true;
	}
	if (upload_token(request->upload) != NULL)
	{
		snprintf(to, size, "%s", upload_token(request->upload));
		return true;
	}
	if (request_arg(request, "token", to, size))
		return true;
	if (!request_header(request, WSI_TOKEN_HTTP_AUTHORIZATION, header, sizeof(header)) ||
		strncasecmp(header, "Bearer ", 7) != 0 || strlen(header + 7) >= size)
		return false;
	strcpy(to, header + 7);
	return true;
}

static void
request_check_generation(Request *request)
{
	const Account *account = accounts_find(request->claims.uid);

	if (account == NULL || account->generation != request->claims.generation)
	{
		request_msg(request, MSG_INVALID_TOKEN);
		return;
	}
	request->user_name = account->name;
	request->next(request);
}

static void
request_account_answered(Request *request, PGresult *res)
{
	if (PQntuples(res) == 1)
		accounts_put(request->claims.uid, PQgetvalue(res, 0, 0), atoll(PQgetvalue(res, 0, 1)));
	else
		accounts_forget(request->claims.uid);
	request_check_generation(request);
}

static const char request_account_sql[] = "SELECT name, token_generation FROM sheet.account_get($1)";

void
request_authenticate(Request *request, RequestNext next)
{
	char token[JWT_MAX];
	char uid[24];
	PgParam param;
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(request->json, "token");

	request->next = next;
	if (item != NULL && !cJSON_IsString(item))
	{
		request_error(request, 400, "token is needed, as a string");
		return;
	}
	if (!request_token(request, token, sizeof(token)) ||
		jwt_verify(&gateway.keys, token, strlen(token), gateway_now(), &request->claims) != JWT_OK)
	{
		request_msg(request, MSG_INVALID_TOKEN);
		return;
	}
	if (accounts_is_fresh(accounts_find(request->claims.uid)))
	{
		request_check_generation(request);
		return;
	}
	param = pgparam_int64(uid, request->claims.uid);
	request_query(request, request_account_sql, 1, &param, 0, request_account_answered);
}

/* ---- what came ---- */

bool
request_arg(const Request *request, const char *name, char *to, size_t size)
{
	char fragment[JWT_MAX + 64];
	size_t name_len = strlen(name);

	if (request->wsi == NULL)
		return false;
	for (int i = 0; lws_hdr_copy_fragment(request->wsi, fragment, sizeof(fragment), WSI_TOKEN_HTTP_URI_ARGS, i) >= 0;
		 i++)
	{
		if (strncmp(fragment, name, name_len) != 0 || fragment[name_len] != '=')
			continue;
		if (strlen(fragment + name_len + 1) >= size)
			return false;
		strcpy(to, fragment + name_len + 1);
		return true;
	}
	return false;
}

bool
request_header(const Request *request, int token, char *to, size_t size)
{
	return request->wsi != NULL && lws_hdr_total_length(request->wsi, (enum lws_token_indexes) token) > 0 &&
		   lws_hdr_copy(request->wsi, to, (int) size, (enum lws_token_indexes) token) > 0;
}

bool
request_string(const Request *request, const char *name, const char **value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(request->json, name);

	if (!cJSON_IsString(item))
		return false;
	*value = item->valuestring;
	return true;
}

bool
request_number(const Request *request, const char *name, int64_t min, int64_t max, int64_t *value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(request->json, name);

	if (!cJSON_IsNumber(item) || !(item->valuedouble >= (double) min && item->valuedouble <= (double) max) ||
		item->valuedouble != (double) (int64_t) item->valuedouble)
		return false;
	*value = (int64_t) item->valuedouble;
	return true;
}

bool
request_parse_id(const char *text, int64_t *value)
{
	int64_t result = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++)
	{
		if (*text < '0' || *text > '9' || result > 900719925474098)
			return false;
		result = result * 10 + (*text - '0');
	}
	*value = result;
	return result > 0;
}

/* ---- writing ---- */

static bool
request_put_header(struct lws *wsi, const char *name, const char *value, unsigned char **p, unsigned char *end)
{
	return lws_add_http_header_by_name(wsi, (const unsigned char *) name, (const unsigned char *) value,
									   (int) strlen(value), p, end) == 0;
}

/* The lines of request->headers. */
static bool
request_put_headers(Request *request, unsigned char **p, unsigned char *end)
{
	char *line = request->headers;
	char *next;

	for (; (next = strstr(line, "\r\n")) != NULL; line = next + 2)
	{
		char name[64];
		char *colon = strchr(line, ':');

		if (colon == NULL || colon > next)
			continue;
		*next = '\0';
		snprintf(name, sizeof(name), "%.*s", (int) (colon - line + 1), line);
		if (!request_put_header(request->wsi, name, colon + 2, p, end))
			return false;
	}
	return true;
}

static bool
request_write_head(Request *request)
{
	unsigned char buffer[LWS_PRE + 8192];
	unsigned char *start = buffer + LWS_PRE;
	unsigned char *p = start;
	unsigned char *end = buffer + sizeof(buffer) - 1;
	struct lws *wsi = request->wsi;

	if (lws_add_http_header_status(wsi, (unsigned) request->status, &p, end) != 0)
		return false;
	if (request->type != NULL && !request_put_header(wsi, "content-type:", request->type, &p, end))
		return false;
	if (!request_put_header(wsi, "x-content-type-options:", "nosniff", &p, end) ||
		(request->close && !request_put_header(wsi, "connection:", "close", &p, end)) ||
		!request_put_headers(request, &p, end))
		return false;
	if (request->status != 204 && request->status != 304 &&
		lws_add_http_header_content_length(wsi, request->length, &p, end) != 0)
		return false;
	request->head_written = true;
	return lws_finalize_write_http_header(wsi, start, &p, end) == 0;
}

/* The end of the exchange: the connection goes on with the next request, or closes. */
int
request_complete(Request *request)
{
	struct lws *wsi = request->wsi;
	bool close = request->close;
	void **user = lws_wsi_user(wsi);

	*user = NULL;
	request_gone(request);
	if (lws_http_transaction_completed(wsi) != 0 || close)
		return -1;
	return 0;
}

int
request_write(Request *request)
{
	size_t piece;

	if (request->status == 0)
		return 0;
	if (!request->head_written)
	{
		if (!request_write_head(request))
			return -1;
		if (request->method == METHOD_HEAD || request->length == 0)
			return request_complete(request);
		lws_callback_on_writable(request->wsi);
		return 0;
	}
	if (request->streamed)
		return download_fill(request) ? download_write(request) : 0; /* 0: the next part is being fetched */
	piece = request->length - request->written;
	if (piece > REQUEST_WRITE_BYTES)
		piece = REQUEST_WRITE_BYTES;
	if (lws_write(request->wsi, (unsigned char *) request->constant + request->written, piece,
				  request->written + piece == request->length ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < 0)
		return -1;
	request->written += piece;
	if (request->written == request->length)
		return request_complete(request);
	lws_callback_on_writable(request->wsi);
	return 0;
}
