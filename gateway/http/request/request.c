/*
 * request.c - one HTTP request: reading its parts, asking the database step by step, answering.
 */
#include "http/request/request.h"

#include "ws/room/accounts.h"
#include "http/server/conn.h"
#include "coord/coord.h"
#include "http/request/download.h"
#include "ws/room/follow.h"
#include "http/server/forwarded.h"
#include "core/gateway.h"
#include "support/log.h"
#include "http/routes/log_stream.h"
#include "core/metrics.h"
#include "support/network.h"
#include "db/pgresult.h"
#include "http/server/tls.h"
#include "http/request/upload.h"
#include "http/routes/whole_sheet.h"
#include "ws/cells/window.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REQUEST_WRITE_BYTES 65536

#define REQUEST_MAX_PROXIES 32 /* one behind the other */

/*
 * The last address in the header that is not a proxy which we trust: what stands before it is the client's own
 * invention. Empty when that item names no address; when all are proxies, the first of them.
 */
static void
request_find_forwarded(const Request *request, const char *name, bool rfc7239, char address[FORWARDED_ADDRESS_MAX])
{
	int proxies = 0;

	for (int i = request->head.field_count - 1; i >= 0; i--)
	{
		const HeadField *field = &request->head.fields[i];
		ssize_t len = (ssize_t) strlen(field->value);

		while (strcmp(field->name, name) == 0 && len >= 0)
		{
			forwarded_take_last(field->value, &len, rfc7239, address);
			if (!network_list_contains(gateway.config.trusted_proxies, address))
				return;
			if (++proxies < REQUEST_MAX_PROXIES)
				continue;
			address[0] = '\0';
			return;
		}
	}
}

/*
 * Who asks: the other end of the connection or, when that is a proxy that we trust, the address for which it forwards.
 * A request for which that cannot be read is from nobody; so is one whose two headers differ, since the proxy sets one
 * of them, and passes on whatever the client says in the other.
 */
void
request_find_peer(Request *request)
{
	bool has_list = head_field(&request->head, "x-forwarded-for") != NULL;
	bool has_forwarded = head_field(&request->head, "forwarded") != NULL;
	char listed[FORWARDED_ADDRESS_MAX] = "", forwarded[FORWARDED_ADDRESS_MAX] = "";

	if ((!has_list && !has_forwarded) || !network_list_contains(gateway.config.trusted_proxies, request->peer))
		return;
	if (has_list)
		request_find_forwarded(request, "x-forwarded-for", false, listed);
	if (has_forwarded)
		request_find_forwarded(request, "forwarded", true, forwarded);
	if (has_list && has_forwarded && strcmp(listed, forwarded) != 0)
		listed[0] = forwarded[0] = '\0';
	snprintf(request->peer, sizeof(request->peer), "%s", has_list ? listed : forwarded);
	if (request->peer[0] == '\0')
		strcpy(request->peer, REQUEST_NOBODY);
}

Request *
request_create(struct Conn *conn)
{
	Request *request = calloc(1, sizeof(Request));

	if (request == NULL)
		return NULL;
	request->conn = conn;
	request->method = METHOD_GET;
	request->path = "";
	request->content_length = -1;
	snprintf(request->peer, sizeof(request->peer), "%s", conn_address(conn));
	metrics.http_requests++;
	return request;
}

static void
request_free_body(Request *request)
{
	cJSON_Delete(request->json);
	request->json = NULL;
	if (request->body.data != NULL)
		OPENSSL_cleanse(request->body.data, request->body.len); /* passwords */
	buf_free(&request->body);
}

static void
request_free(Request *request)
{
	upload_free(request->upload);
	download_free(request->download);
	log_stream_free(request->log);
	window_release(request->window);
	whole_sheet_free(request->whole);
	request_free_body(request);
	buf_free(&request->answer);
	buf_free(&request->headers);
	buf_free(&request->data);
	free(request->secret);
	free(request->head_bytes);
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
	if (--request->steps == 0 && request->conn == NULL)
		request_free(request);
}

void
request_gone(Request *request)
{
	trace_end(request);
	request->conn = NULL;
	request->steps++;
	request_end_step(request);
}

/* ---- answers ---- */

void
request_add_header(Request *request, const char *name, const char *value)
{
	if (value == NULL)
	{
		buf_fail(&request->headers);
		return;
	}
	for (const char *p = value; *p != '\0'; p++)
	{
		if ((unsigned char) *p < 0x20 || *p == 0x7F)
			return; /* would end the line, and begin one of the client's choice */
	}
	buf_puts(&request->headers, name);
	buf_puts(&request->headers, ": ");
	buf_puts(&request->headers, value);
	buf_puts(&request->headers, "\r\n");
}

/* In place of an answer that could not be built, with its headers. What there is no memory for either ends the
 * connection (conn.c). */
static void
request_replace_answer(Request *request)
{
	static const char text[] = "{\"success\":false,\"msg\":0,\"data\":\"out of memory\"}";

	buf_free(&request->answer);
	buf_free(&request->headers);
	buf_printf(&request->headers, "Retry-After: %d\r\n", REQUEST_BUSY_S);
	request->status = 503;
	request->type = "application/json";
	request->fill = NULL;
	request->unmeasured = false;
	request->constant = text;
	request->length = sizeof(text) - 1;
}

void
request_answer(Request *request, int status, const char *type, Buf *body)
{
	if (request->conn == NULL || request->status != 0)
	{
		if (body != NULL)
			buf_free(body);
		return;
	}
	if (request->body_comes)
		request->close = true; /* the rest of the body must not be read as a request */
	request->status = status;
	request->type = type;
	if (body != NULL)
		request->answer = buf_take(body);
	if (buf_failed(&request->answer) || buf_failed(&request->headers))
		request_replace_answer(request);
	if (request->constant == NULL)
	{
		request->constant = request->answer.data;
		request->length = request->answer.len;
	}
	if (request->status >= 500)
		metrics.http_errors++;
	if (status == 307)
		metrics.redirects++;
	conn_wake(request->conn);
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
	if (data != NULL && (data->len > 0 || buf_failed(data)))
		buf_put_buf(&body, data);
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

void
request_error_later(Request *request, int status, int seconds, const char *reason)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", seconds);
	request_add_header(request, "Retry-After", text);
	request_error(request, status, reason);
}

void
request_out_of_memory(Request *request)
{
	request_error_later(request, 503, REQUEST_BUSY_S, "out of memory");
}

/*
 * Whether a page of another origin asks. A browser that follows a redirect of such a request forgets who asks (it sends
 * `Origin: null`), and drops Authorization, so that the other gateway would have to refuse it.
 */
static bool
request_is_cross_origin(const Request *request)
{
	const char *origin = head_field(&request->head, "origin");
	const char *host = head_field(&request->head, "host");
	const char *name = origin != NULL ? strstr(origin, "://") : NULL;

	return origin != NULL && (name == NULL || host == NULL || strcmp(name + 3, host) != 0);
}

bool
request_redirect(Request *request, int64_t sheet_id)
{
	const char *owner = coord_owner_of(gateway.coord, sheet_id);
	Buf location = {NULL, 0, 0};

	if (owner == NULL)
	{
		request_error(request, 503, "the gateways have not found each other yet");
		return true;
	}
	if (coord_is_mine(gateway.coord, sheet_id) || request_is_cross_origin(request))
		return false;
	buf_printf(&location, "%s://%s%s", gateway_http_scheme(), owner, request->head.target);
	request_add_header(request, "Location", location.data);
	buf_free(&location);
	request_error(request, 307, "the sheet is served by another gateway");
	return true;
}

/* ---- the database ---- */

/* What v1 says with status 200 has a status of its own for others. */
static void
request_refuse(Request *request, Msg msg, int status, const char *reason)
{
	if (!request->by_status)
	{
		request_msg(request, msg);
		return;
	}
	if (status == 401)
		request_add_header(request, "WWW-Authenticate", "Bearer");
	request_error(request, status, reason);
}

void
request_sql_error(Request *request, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);
	const char *reason = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	if (strcmp(state, "55P03") == 0)
		request_error_later(request, 503, REQUEST_BUSY_S, "another transaction holds the sheet: try again");
	else if (strcmp(state, "57014") == 0)
		request_error_later(request, 503, REQUEST_BUSY_S, "the request took too long, and was cancelled");
	else if (res == NULL || strncmp(state, "57", 2) == 0 || strncmp(state, "08", 2) == 0)
		request_error_later(request, 503, REQUEST_BUSY_S, "the database does not answer");
	else if (strcmp(state, "53200") == 0 || pgresult_is_libpq_error(res))
		request_out_of_memory(request);
	else if (strcmp(state, "42704") == 0)
		request_refuse(request, MSG_NO_SHEET, 404, "no such sheet");
	else if (strcmp(state, "42501") == 0)
		request_refuse(request, MSG_NO_PERMISSION, 403, "the sheet is not shared with you");
	else if (strcmp(state, "ST001") == 0)
		request_refuse(request, MSG_IN_TRASH, 410, "the sheet is in the trash");
	else if (strcmp(state, "SQ001") == 0)
		request_error(request, 507, reason);
	else if (strncmp(state, "22", 2) == 0 || strncmp(state, "54", 2) == 0)
		request_error(request, 400, reason != NULL ? reason : "invalid value");
	else if (strcmp(state, "SF001") == 0 || strcmp(state, "SB001") == 0 || strncmp(state, "40", 2) == 0)
		request_error_later(request, 503, REQUEST_BUSY_S, "the sheet is busy or moving: try again");
	else
	{
		log_event(LOG_ERROR, "request failed", LOG_STR("request", request->trace.id), LOG_STR("path", request->path),
				  LOG_STR("sqlstate", state), LOG_STR("reason", reason));
		request_error(request, 500, "the request failed in the database");
	}
}

static void
request_answered(void *arg, PGresult *res)
{
	Request *request = arg;
	RequestStep step = request->step;

	if (request->conn == NULL)
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

	if (request->conn != NULL)
		request->step(request, res);
	request_end_step(request);
}

static void
request_not_asked(Request *request)
{
	request_error_later(request, 503, REQUEST_BUSY_S, "too many requests of this kind are under way: try again");
	request_end_step(request);
}

void
request_query(Request *request, DatabaseClass class, const char *sql, int nparams, const PgParam *params, int format,
			  RequestStep step)
{
	PgResultFn fn = format < 0 ? request_answered_raw : request_answered;

	request->step = step;
	request_begin_step(request);
	if (!database_query(class, request->claims.uid, sql, nparams, params, format == 1 || format == REQUEST_RAW, fn,
						request))
		request_not_asked(request);
}

static void
request_give_row(void *arg, PGresult *row)
{
	Request *request = arg;

	if (request->conn != NULL)
		request->row(request, row);
}

void
request_stream(Request *request, const char *sql, int nparams, const PgParam *params, RequestStep row, RequestStep step)
{
	request->row = row;
	request->step = step;
	request_begin_step(request);
	if (!database_stream(DATABASE_LONG, request->claims.uid, sql, nparams, params, 0, request_give_row,
						 request_answered_raw, request))
		request_not_asked(request);
}

/* ---- who asks ---- */

#define REQUEST_COOKIE "pg_sheet_files"

static bool
request_cookie(const Request *request, char *to, size_t size)
{
	const char *cookies = head_field(&request->head, "cookie");
	size_t name = sizeof(REQUEST_COOKIE) - 1;

	for (const char *p = cookies; p != NULL && *p != '\0'; p += strspn(p, "; "))
	{
		size_t len = strcspn(p, ";");

		if (len > name && strncmp(p, REQUEST_COOKIE, name) == 0 && p[name] == '=' && len - name - 1 < size)
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
	const cJSON *token = request_member(request, "token");
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
	if (!request_header(request, "authorization", header, sizeof(header)) || strncasecmp(header, "Bearer ", 7) != 0 ||
		strlen(header + 7) >= size)
		return request->by_cookie && request_cookie(request, to, size);
	strcpy(to, header + 7);
	return true;
}

void
request_set_cookie(Request *request, const char *token)
{
	Buf value = {NULL, 0, 0};

	buf_printf(&value, REQUEST_COOKIE "=%s; Path=/getchunk; HttpOnly; SameSite=Strict%s", token,
			   strcmp(gateway_http_scheme(), "https") == 0 ? "; Secure" : "");
	request_add_header(request, "Set-Cookie", value.data);
	buf_free(&value);
}

static void
request_refuse_token(Request *request)
{
	request_refuse(request, MSG_INVALID_TOKEN, 401, "a valid token is needed (Authorization: Bearer)");
}

static void
request_check_generation(Request *request)
{
	const Account *account = accounts_find(request->claims.uid);

	if (account == NULL || account->generation != request->claims.generation)
	{
		request_refuse_token(request);
		return;
	}
	request->user_name = account->name;
	request->next(request);
}

static void request_ask_account(Request *request);

static void
request_account_answered(Request *request, PGresult *res)
{
	if (follow_has_changed(-request->claims.uid, request->asked))
	{
		request_ask_account(request); /* this may be what has changed */
		return;
	}
	if (PQntuples(res) == 1)
		accounts_put(request->claims.uid, PQgetvalue(res, 0, 0), atoll(PQgetvalue(res, 0, 1)), request->asked);
	else
		accounts_forget(request->claims.uid);
	request_check_generation(request);
}

static const char request_account_sql[] = "SELECT name, token_generation FROM sheet.account_get($1)";

static void
request_ask_account(Request *request)
{
	char uid[24];
	PgParam param = pgparam_int64(uid, request->claims.uid);

	request->asked = follow_changes();
	request_query(request, DATABASE_ACCOUNTS, request_account_sql, 1, &param, 0, request_account_answered);
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
		request_refuse_token(request);
	else if (accounts_is_fresh(accounts_find(request->claims.uid)))
		request_check_generation(request);
	else
		request_ask_account(request);
}

/* ---- what came ---- */

bool
request_arg(const Request *request, const char *name, char *to, size_t size)
{
	return request->head.query != NULL && head_query_arg(request->head.query, name, to, size);
}

bool
request_has_arg(const Request *request, const char *name)
{
	return request->head.query != NULL && head_query_has(request->head.query, name);
}

bool
request_header(const Request *request, const char *name, char *to, size_t size)
{
	size_t len = 0;

	*to = '\0';
	for (int i = 0; i < request->head.field_count; i++)
	{
		const HeadField *field = &request->head.fields[i];

		if (strcmp(field->name, name) != 0)
			continue;
		len += (size_t) snprintf(to + len, size - len, "%s%s", len > 0 ? ", " : "", field->value);
		if (len >= size)
			return false;
	}
	return len > 0;
}

const cJSON *
request_member(const Request *request, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(request->json, name);

	return item != NULL ? item : cJSON_GetObjectItem(request->json, name);
}

bool
request_string(const Request *request, const char *name, const char **value)
{
	const cJSON *item = request_member(request, name);

	if (!cJSON_IsString(item))
		return false;
	*value = item->valuestring;
	return true;
}

bool
request_number(const Request *request, const char *name, int64_t min, int64_t max, int64_t *value)
{
	const cJSON *item = request_member(request, name);

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

static const char *
request_status_text(int status)
{
	static const struct
	{
		int status;
		const char *text;
	} texts[] = {{200, "OK"},
				 {204, "No Content"},
				 {206, "Partial Content"},
				 {304, "Not Modified"},
				 {307, "Temporary Redirect"},
				 {400, "Bad Request"},
				 {401, "Unauthorized"},
				 {403, "Forbidden"},
				 {404, "Not Found"},
				 {405, "Method Not Allowed"},
				 {408, "Request Timeout"},
				 {410, "Gone"},
				 {411, "Length Required"},
				 {412, "Precondition Failed"},
				 {413, "Content Too Large"},
				 {414, "URI Too Long"},
				 {416, "Range Not Satisfiable"},
				 {417, "Expectation Failed"},
				 {426, "Upgrade Required"},
				 {429, "Too Many Requests"},
				 {431, "Request Header Fields Too Large"},
				 {500, "Internal Server Error"},
				 {501, "Not Implemented"},
				 {503, "Service Unavailable"},
				 {505, "HTTP Version Not Supported"},
				 {507, "Insufficient Storage"}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		if (texts[i].status == status)
			return texts[i].text;
	}
	return "";
}

/* RFC 9110 5.6.7; the same text for a second. */
static const char *
request_date(void)
{
	static time_t at;
	static char text[64];
	time_t now = time(NULL);
	struct tm tm;

	if (now != at && gmtime_r(&now, &tm) != NULL)
		(void) strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	at = now;
	return text;
}

/* The first line and what all answers have; written word by word, as this is done for each. */
static void
request_put_head(const Request *request, Buf *to)
{
	(void) buf_reserve(to, 512 + request->headers.len);
	buf_puts(to, "HTTP/1.1 ");
	buf_put_number(to, request->status);
	buf_puts(to, " ");
	buf_puts(to, request_status_text(request->status));
	buf_puts(to, "\r\nDate: ");
	buf_puts(to, request_date());
	if (request->type != NULL)
	{
		buf_puts(to, "\r\nContent-Type: ");
		buf_puts(to, request->type);
	}
	buf_puts(to, "\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n");
	if (tls_is_on() && gateway.config.hsts_seconds > 0)
		buf_printf(to, "Strict-Transport-Security: max-age=%d\r\n", gateway.config.hsts_seconds);
	buf_put_buf(to, &request->headers);
	if (request->unmeasured && request->head.minor > 0)
		buf_puts(to, "Transfer-Encoding: chunked\r\n");
	else if (!request->unmeasured && request->status != 204 && request->status != 304)
	{
		buf_puts(to, "Content-Length: ");
		buf_put_number(to, (int64_t) request->length);
		buf_puts(to, "\r\n");
	}
	if (request->close)
		buf_puts(to, "Connection: close\r\n");
	else if (request->head.minor == 0)
		buf_puts(to, "Connection: keep-alive\r\n");
	buf_puts(to, "\r\n");
}

bool
request_fill(Request *request, Buf *to, struct iovec *rest)
{
	bool has_body = request->method != METHOD_HEAD && request->status != 204 && request->status != 304;
	size_t piece;

	if (!request->head_written)
	{
		request_put_head(request, to);
		if (request->steps == 0)
			request_free_body(request); /* its answer may take long to be read */
	}
	request->head_written = true;
	if (!has_body)
		return true;
	if (request->fill != NULL)
		return request->fill(request, to);
	piece = request->length - request->written;
	if (rest != NULL)
		*rest = (struct iovec){(void *) (request->constant + request->written), piece};
	else
	{
		if (piece > REQUEST_WRITE_BYTES)
			piece = REQUEST_WRITE_BYTES;
		buf_put(to, request->constant + request->written, piece);
	}
	request->written += piece;
	return request->written == request->length;
}
