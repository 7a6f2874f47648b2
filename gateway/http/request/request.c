/*
 * request.c - one HTTP request: its life, its queries and its arguments.
 *
 * Life: READING -> RUNNING -> ANSWERED -> WRITING -> GONE. An error is answered from READING at once. GONE follows any
 * state if the connection ends.
 */
#include "http/request/request.h"

#include "core/gateway.h"
#include "core/metrics.h"
#include "http/server/forwarded.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- life ---- */

Request *
request_create(Conn *conn, bool admin)
{
	Request *request = calloc(1, sizeof(Request));

	if (request == NULL)
		return NULL;
	request->conn = conn;
	request->admin = admin;
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
	if (request->own != NULL)
		request->free_own(request->own);
	request_free_body(request);
	buf_free(&request->answer);
	buf_free(&request->headers);
	buf_free(&request->data);
	free(request->secret);
	free(request->head_bytes);
	free(request);
}

void
request_enter(Request *request, RequestState state)
{
	request->state = state;
	switch (state)
	{
		case REQUEST_READING:
		case REQUEST_RUNNING:
			break;
		case REQUEST_ANSWERED:
			request->close |= request->body_comes; /* the rest of the body must not be read as a request */
			metrics.http_errors += request->status >= 500;
			conn_answer(request->conn, request->close);
			break;
		case REQUEST_WRITING:
			if (request->steps == 0)
				request_free_body(request); /* writing may take long */
			break;
		case REQUEST_GONE:
			trace_end(request);
			if (request->steps == 0)
				request_free(request);
			break;
	}
}

void
request_gone(Request *request)
{
	request_enter(request, REQUEST_GONE);
}

static Method
request_find_method(const char *name)
{
	for (Method method = METHOD_GET; method < METHOD_OTHER; method++)
	{
		if (strcmp(trace_method_name(method), name) == 0)
			return method;
	}
	return METHOD_OTHER;
}

bool
request_begin(Request *request, const char *head, size_t len)
{
	HeadError error;

	request->head_bytes = malloc(2 * len + 2);
	if (request->head_bytes == NULL)
	{
		request_refuse(request, 503, "out of memory");
		return false;
	}
	memcpy(request->head_bytes, head, len);
	if (!head_parse(&request->head, request->head_bytes, len, (size_t) gateway.config.max_url_bytes, &error))
	{
		request_refuse(request, error.status, error.reason);
		return false;
	}
	request->method = request_find_method(request->head.method);
	/* a client that keeps a connection to a gateway that stops would lose it later */
	request->close = request->head.close || gateway.leaving;
	request->body_comes = request->head.chunked || request->head.content_length > 0;
	if (!forwarded_peer(&request->head, gateway.config.trusted_proxies, request->peer))
		strcpy(request->peer, REQUEST_NOBODY);
	trace_begin(request, head_field(&request->head, "x-request-id"));
	if (!place_set_client(conn_place(request->conn), request->peer))
	{
		metrics.connections_refused++;
		request->close = true;
		request_error_later(request, 429, REQUEST_FULL_S, "too many connections from your address");
		return false;
	}
	return true;
}

void
request_refuse(Request *request, int status, const char *reason)
{
	if (request->trace.began == 0)
		trace_begin(request, NULL);
	request->close = true;
	if (status == 503)
		request_out_of_memory(request);
	else
		request_error(request, status, reason);
}

bool
request_check_coding(Request *request)
{
	const Head *head = &request->head;

	for (int i = 0; i < head->field_count && request->body_comes; i++)
	{
		if (strcmp(head->fields[i].name, "content-encoding") != 0 || head->fields[i].value[0] == '\0' ||
			strcasecmp(head->fields[i].value, "identity") == 0)
			continue;
		request_add_header(request, "Accept-Encoding", "identity");
		request_error(request, 415, "the body must be sent as it is, without Content-Encoding");
		return false;
	}
	return true;
}

/* ---- steps ---- */

void
request_begin_step(Request *request)
{
	request->steps++;
}

void
request_end_step(Request *request)
{
	if (--request->steps == 0 && request_is_gone(request))
		request_free(request);
}

void *
request_own(Request *request, size_t size, void (*free_own)(void *own))
{
	request->own = calloc(1, size);
	request->free_own = free_own;
	if (request->own == NULL)
		request_out_of_memory(request);
	return request->own;
}

PgParam
request_int64(Request *request, int64_t value)
{
	return pgparam_int64(request->int64s[request->int64_count++ % REQUEST_INT64S], value);
}

PgParam
request_uid(Request *request)
{
	return request_int64(request, request->claims.uid);
}

PgParam
request_sheet(Request *request)
{
	return request_int64(request, request->sheet_id);
}

PgParam
request_digest(Request *request, const char *key)
{
	return pgparam_text(digest_of(key, request->digest));
}

static void
request_answered(void *arg, PGresult *res)
{
	Request *request = arg;

	if (!request_is_gone(request) || (request->begins && request_succeeded(res)))
	{
		request->begins = false;
		if (request->raw || request_succeeded(res))
			request->step(request, res);
		else
			request_sql_error(request, res);
	}
	request_end_step(request);
}

static void
request_give_row(void *arg, PGresult *row)
{
	Request *request = arg;

	if (!request_is_gone(request))
		request->row(request, row);
}

/* sent: the database has taken the query, and will call request_answered(). */
static void
request_sent(Request *request, bool sent)
{
	if (sent)
		return;
	if (request_is_answered(request) && !request_is_gone(request))
		conn_abort(request->conn); /* a part of the answer has been written: the client sees that it is not whole */
	else
		request_too_busy(request);
	request_end_step(request);
}

void
request_query(Request *request, DatabaseClass class, const char *sql, int nparams, const PgParam *params,
			  RequestResult result, RequestStep step)
{
	request->step = step;
	request->raw = result == REQUEST_TEXT_RAW || result == REQUEST_BINARY_RAW;
	request_begin_step(request);
	request_sent(request,
				 database_query(class, request->claims.uid, sql, nparams, params,
								result == REQUEST_BINARY || result == REQUEST_BINARY_RAW, request_answered, request));
}

void
request_stream(Request *request, const char *sql, int nparams, const PgParam *params, RequestStep row, RequestStep step)
{
	request->row = row;
	request->step = step;
	request->raw = true;
	request_begin_step(request);
	request_sent(request, database_stream(DATABASE_LONG, request->claims.uid, request_is_answered(request), sql,
										  nparams, params, 0, request_give_row, request_answered, request));
}

/* ---- arguments ---- */

bool
request_arg(const Request *request, const char *name, char *to, size_t size)
{
	return head_query_arg(request->head.query, name, to, size);
}

bool
request_has_arg(const Request *request, const char *name)
{
	return head_query_has(request->head.query, name);
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

const char *
request_text(const Request *request, const char *name)
{
	const char *value = "";

	(void) request_string(request, name, &value);
	return value;
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

bool
request_arg_flag(Request *request, const char *name, bool *flag)
{
	char text[8] = "false", reason[64];

	if (request_has_arg(request, name) && !request_arg(request, name, text, sizeof(text)))
		text[0] = '\0';
	*flag = strcmp(text, "true") == 0;
	if (*flag || strcmp(text, "false") == 0)
		return true;
	snprintf(reason, sizeof(reason), "%s is true or false", name);
	request_error(request, 400, reason);
	return false;
}

bool
request_arg_id(const Request *request, const char *name, int64_t *value)
{
	char text[24];

	return request_arg(request, name, text, sizeof(text)) && request_parse_id(text, value);
}
