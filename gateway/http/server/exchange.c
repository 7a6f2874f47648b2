/*
 * exchange.c - from the head of a request to its route: what is refused at once, and who takes the body.
 */
#include "http/server/exchange.h"

#include "core/gateway.h"
#include "http/server/head.h"
#include "http/server/origin.h"
#include "http/request/request.h"
#include "http/routes/routes.h"
#include "http/request/upload.h"

#include <stdlib.h>
#include <string.h>

static Method
exchange_method(const char *name)
{
	static const char *const names[] = {
		[METHOD_GET] = "GET", [METHOD_HEAD] = "HEAD", [METHOD_POST] = "POST", [METHOD_OPTIONS] = "OPTIONS"};

	for (int i = 0; i < METHOD_OTHER; i++)
	{
		if (strcmp(names[i], name) == 0)
			return (Method) i;
	}
	return METHOD_OTHER;
}

/* Headers that let an allowed page of another origin read the answer. */
static void
exchange_allow_origin(Request *request)
{
	const char *origin = head_field(&request->head, "origin");
	const char *host = head_field(&request->head, "host");

	if (origin == NULL)
		return;
	request_add_header(request, "Vary", "Origin");
	if (!origin_is_allowed(origin, host != NULL ? host : ""))
		return;
	request_add_header(request, "Access-Control-Allow-Origin", origin);
	request_add_header(request, "Access-Control-Allow-Credentials", "true");
	request_add_header(request, "Access-Control-Expose-Headers",
					   "etag, content-range, location, retry-after, x-request-id");
}

/* The announced body is acceptable; answered otherwise, and the connection ends. */
static bool
exchange_check_length(Request *request)
{
	if (request->method != METHOD_POST && (request->content_length > 0 || request->head.chunked))
		request_error(request, 400, "a request of this method has no body here");
	else if (request->method != METHOD_POST)
		return true;
	else if (request->content_length == -1 && !request->head.chunked)
		request_error(request, 411, "Content-Length is needed, or the body in chunks");
	else if (request->content_length > router_body_limit(request->path))
		request_error(request, 413, "the body is too large");
	else
		return true;
	request->close = true;
	return false;
}

Exchange
exchange_begin(Request *request, const char *head, size_t len, Ticket **ticket)
{
	HeadError error;

	request->head_bytes = malloc(2 * len + 2);
	if (request->head_bytes == NULL)
	{
		request->close = true;
		trace_begin(request, NULL);
		request_out_of_memory(request);
		return EXCHANGE_GOES_ON;
	}
	memcpy(request->head_bytes, head, len);
	if (!head_parse(&request->head, request->head_bytes, len, (size_t) gateway.config.max_url_bytes, &error))
	{
		request->close = true;
		trace_begin(request, NULL);
		request_error(request, error.status, error.reason);
		return EXCHANGE_GOES_ON;
	}
	request->path = request->head.path;
	request->method = exchange_method(request->head.method);
	request->content_length = request->head.content_length;
	/* who keeps a connection to a gateway that stops would lose it later */
	request->close = request->head.close || gateway.leaving;
	request->body_comes = request->head.chunked || request->content_length > 0;
	request_find_peer(request);
	trace_begin(request, head_field(&request->head, "x-request-id"));
	exchange_allow_origin(request);
	if (head_field(&request->head, "upgrade") != NULL && (*ticket = upgrade_check(request)) != NULL)
	{
		request->status = 101; /* server.c answers */
		return EXCHANGE_UPGRADE;
	}
	if (request->status != 0 || !router_check_method(request) || !exchange_check_length(request))
		return EXCHANGE_GOES_ON;
	if (request->method != METHOD_POST)
		router_dispatch(request);
	else if ((!router_is_upload(request->path) || upload_begin(request)) && !request->body_comes)
		exchange_body_end(request);
	return EXCHANGE_GOES_ON;
}

void
exchange_body(Request *request, const char *data, size_t len)
{
	request->received += (int64_t) len;
	if (request->received == request->content_length)
		request->body_comes = false;
	if (request->head.chunked && request->received > router_body_limit(request->path))
		request_error(request, 413, "the body is too large");
	else if (request->upload != NULL)
		upload_body(request, data, len);
	else
		buf_put(&request->body, data, len);
}

void
exchange_body_end(Request *request)
{
	request->body_comes = false;
	if (request->upload != NULL)
		upload_body_end(request);
	else if (buf_failed(&request->body))
		request_out_of_memory(request);
	else
		router_dispatch(request);
}
