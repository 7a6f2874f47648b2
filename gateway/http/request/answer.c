/*
 * answer.c - answers of requests: in the forms of both protocols, and as bytes.
 */
#include "core/gateway.h"
#include "core/metrics.h"
#include "http/request/error_page.h"
#include "support/log.h"
#include "transport/certificate.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define ANSWER_WRITE_BYTES 65536

void
request_add_header(Request *request, const char *name, const char *value)
{
	if (request->no_store && strcmp(name, "Cache-Control") == 0)
		return;
	for (const char *p = value; *p != '\0'; p++)
	{
		if ((unsigned char) *p < 0x20 || *p == 0x7F)
			return;
	}
	buf_puts(&request->headers, name);
	buf_puts(&request->headers, ": ");
	buf_puts(&request->headers, value);
	buf_puts(&request->headers, "\r\n");
}

void
request_add_header_buf(Request *request, const char *name, Buf *value)
{
	buf_put(value, "", 1);
	if (buf_failed(value))
		buf_fail(&request->headers);
	else
		request_add_header(request, name, value->data);
	buf_free(value);
}

/* Replaces an answer that could not be built. Without memory for this one the connection ends (conn.c). */
static void
answer_replace(Request *request)
{
	static const char text[] = "{\"success\":false,\"msg\":0,\"data\":\"out of memory\"}";

	buf_free(&request->answer);
	buf_free(&request->headers);
	request->status = 503;
	request->type = "application/json";
	request->fill = NULL;
	request->unmeasured = false;
	request->text = text;
	request->length = sizeof(text) - 1;
}

void
request_answer(Request *request, int status, const char *type, Buf *body)
{
	if (request_is_answered(request))
	{
		if (body != NULL)
			buf_free(body);
		return;
	}
	request->status = status;
	request->type = type;
	request_renew_cookie(request);
	if (body != NULL)
	{
		request->answer = buf_take(body);
		request->text = request->answer.data;
		request->length = request->answer.len;
	}
	if (buf_failed(&request->answer) || buf_failed(&request->headers))
		answer_replace(request);
	request_enter(request, REQUEST_ANSWERED);
}

void
request_json(Request *request, int status, Buf *body)
{
	request_answer(request, status, "application/json", body);
}

void
request_nothing(Request *request)
{
	Buf body = {NULL, 0, 0};

	buf_puts(&body, "{}");
	request_json(request, 200, &body);
}

void
request_done(Request *request, const PGresult *res)
{
	if (request_succeeded(res))
		request_nothing(request);
	else
		request_sql_error(request, res);
}

#define MSG_BIT(msg) (1ULL << (msg))

/* Messages that tell of a failure. */
static const uint64_t msg_failures =
	MSG_BIT(MSG_INVALID_FORMAT) | MSG_BIT(MSG_INVALID_TOKEN) | MSG_BIT(MSG_LOGIN_WRONG) | MSG_BIT(MSG_USER_EXISTS) |
	MSG_BIT(MSG_DUPLICATE_NAME) | MSG_BIT(MSG_NO_PERMISSION) | MSG_BIT(MSG_NO_SHEET) | MSG_BIT(MSG_IN_TRASH) |
	MSG_BIT(MSG_REDIRECT) | MSG_BIT(MSG_NO_VERSION) | MSG_BIT(MSG_NO_LOG) | MSG_BIT(MSG_NOT_IN_TRASH) |
	MSG_BIT(MSG_NOTHING_TO_COMMIT) | MSG_BIT(MSG_NO_FILE) | MSG_BIT(MSG_BAD_FORM);

void
request_data(Request *request, Msg msg, Buf *data)
{
	Buf body = {NULL, 0, 0};

	buf_printf(&body, "{\"success\":%s,\"msg\":%d,\"data\":", msg_failures & MSG_BIT(msg) ? "false" : "true", msg);
	buf_put_buf(&body, data);
	buf_puts(&body, "}");
	buf_free(data);
	request_json(request, 200, &body);
}

void
request_msg(Request *request, Msg msg)
{
	Buf data = {NULL, 0, 0};

	buf_puts(&data, "null");
	request_data(request, msg, &data);
}

void
request_error_code(Request *request, int status, const char *code, const char *reason)
{
	Buf body = {NULL, 0, 0};

	if (error_page_answer(request, status, reason))
		return;
	buf_puts(&body, "{\"success\":false,\"msg\":0,\"data\":");
	buf_puts_json(&body, reason);
	if (code != NULL)
		buf_printf(&body, ",\"code\":\"%s\"", code);
	buf_puts(&body, "}");
	request_json(request, status, &body);
}

void
request_error(Request *request, int status, const char *reason)
{
	request_error_code(request, status, NULL, reason);
}

void
request_error_later(Request *request, int status, int seconds, const char *reason)
{
	request->retry_after = seconds;
	request_error(request, status, reason);
}

void
request_too_busy(Request *request)
{
	request_error(request, 503, "too many requests of this kind are under way: try again");
}

void
request_out_of_memory(Request *request)
{
	request_error(request, 503, "out of memory");
}

void
request_deny(Request *request, Msg msg, int status, const char *reason)
{
	if (!request->by_status)
	{
		request_msg(request, msg);
		return;
	}
	if (status == 401)
		request_add_header(request, "WWW-Authenticate", request->basic ? "Basic realm=\"pg_sheet\"" : "Bearer");
	request_error(request, status, reason);
}

bool
request_sql_error_code(Request *request, const PGresult *res, const char *code)
{
	if (strncmp(pgresult_sqlstate(res), "22", 2) != 0)
		return false;
	request_error_code(request, 400, code, PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
	return true;
}

void
request_sql_error(Request *request, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);
	const char *reason = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	if (strcmp(state, "55P03") == 0)
		request_error(request, 503, "another transaction holds the sheet: try again");
	else if (strcmp(state, "57014") == 0)
		request_error(request, 503, "the request took too long, and was cancelled");
	else if (res == NULL || strncmp(state, "57", 2) == 0 || strncmp(state, "08", 2) == 0)
		request_error(request, 503, "the database does not answer");
	else if (strcmp(state, "53200") == 0 || pgresult_is_libpq_error(res))
		request_out_of_memory(request);
	/* Guests do not learn which sheets there are. */
	else if (strcmp(state, "42704") == 0 || (request->claims.uid < 0 && strcmp(state, "42501") == 0))
		request_deny(request, MSG_NO_SHEET, 404, "no such sheet");
	else if (strcmp(state, "42501") == 0)
		request_deny(request, MSG_NO_PERMISSION, 403, "the sheet is not shared with you");
	else if (strcmp(state, "ST001") == 0)
		request_deny(request, MSG_IN_TRASH, 410, "the sheet is in the trash");
	else if (strcmp(state, "23505") == 0 && PQresultErrorField(res, PG_DIAG_CONSTRAINT_NAME) == NULL)
		request_error_code(request, 409, "name_taken", reason);
	else if (strcmp(state, "55000") == 0)
		request_error(request, 409, reason);
	/* The access method has six slots a block for deletions that older snapshots must tell apart. */
	else if (strcmp(state, "55006") == 0)
		request_error_code(request, 503, "in_use",
						   "too much has been deleted for good while an older transaction, such as a backup, is open: "
						   "try again when it has ended");
	else if (strcmp(state, "SQ001") == 0)
		request_error(request, 507, reason);
	else if (strncmp(state, "22", 2) == 0 || strncmp(state, "54", 2) == 0)
		request_error(request, 400, reason != NULL ? reason : "invalid value");
	else if (strcmp(state, "SF001") == 0 || strcmp(state, "SB001") == 0 || strncmp(state, "40", 2) == 0)
		request_error(request, 503, "the sheet is busy or moving: try again");
	else
	{
		log_event(LOG_ERROR, "request failed", LOG_STR("request", request->trace.id),
				  LOG_STR("path", trace_path(request)), LOG_STR("sqlstate", state), LOG_STR("reason", reason));
		request_error(request, 500, "the request failed in the database");
	}
}

/* ---- bytes ---- */

static const char *
answer_status_text(int status)
{
	static const struct
	{
		int status;
		const char *text;
	} texts[] = {{200, "OK"},
				 {201, "Created"},
				 {204, "No Content"},
				 {206, "Partial Content"},
				 {207, "Multi-Status"},
				 {301, "Moved Permanently"},
				 {304, "Not Modified"},
				 {307, "Temporary Redirect"},
				 {400, "Bad Request"},
				 {401, "Unauthorized"},
				 {403, "Forbidden"},
				 {404, "Not Found"},
				 {405, "Method Not Allowed"},
				 {408, "Request Timeout"},
				 {409, "Conflict"},
				 {410, "Gone"},
				 {411, "Length Required"},
				 {412, "Precondition Failed"},
				 {413, "Content Too Large"},
				 {414, "URI Too Long"},
				 {415, "Unsupported Media Type"},
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

/* RFC 9110 5.6.7; formatted once a second. */
static const char *
answer_date(void)
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

/* The status line and the headers of every answer. buf_printf() would make a request that is answered from memory a
 * third more expensive. */
static void
answer_put_head(const Request *request, Buf *to)
{
	(void) buf_reserve(to, 512 + request->headers.len);
	buf_puts(to, "HTTP/1.1 ");
	buf_put_number(to, request->status);
	buf_puts(to, " ");
	buf_puts(to, answer_status_text(request->status));
	buf_puts(to, "\r\nDate: ");
	buf_puts(to, answer_date());
	if (request->type != NULL)
	{
		buf_puts(to, "\r\nContent-Type: ");
		buf_puts(to, request->type);
	}
	buf_puts(to, "\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n");
	if (certificate_is_loaded() && gateway.config.hsts_seconds > 0)
		buf_printf(to, "Strict-Transport-Security: max-age=%d\r\n", gateway.config.hsts_seconds);
	if (request->status == 503 || request->status == 429)
	{
		buf_puts(to, "Retry-After: ");
		buf_put_number(to, request->retry_after > 0 ? request->retry_after : REQUEST_BUSY_S);
		buf_puts(to, "\r\n");
	}
	if (request->no_store || (request->method >= METHOD_POST && request->method <= METHOD_DELETE))
		buf_puts(to, "Cache-Control: no-store\r\n");
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
	size_t piece;

	if (request->state == REQUEST_ANSWERED)
	{
		answer_put_head(request, to);
		request_enter(request, REQUEST_WRITING);
	}
	if (request->method == METHOD_HEAD || request->status == 204 || request->status == 304)
		return true;
	if (request->fill != NULL)
		return request->fill(request, to);
	piece = request->length - request->written;
	if (rest == NULL && piece > ANSWER_WRITE_BYTES)
		piece = ANSWER_WRITE_BYTES;
	if (rest != NULL)
		*rest = (struct iovec){(void *) (request->text + request->written), piece};
	else
		buf_put(to, request->text + request->written, piece);
	request->written += piece;
	return request->written == request->length;
}
