/*
 * client.c - requests of the gateway itself: POST, by libwebsockets' HTTP client, in the gateway's loop.
 *
 * The caller has looked up and checked the address: libwebsockets gets it as a literal, so that it looks nothing up,
 * and the name only for Host, SNI and the certificate. Of the answer only the head is read. Then the connection is
 * closed: what follows is not parsed, however long it is, and no connection is used twice.
 *
 * Switched off of libwebsockets: redirects, proxies named by the environment, HTTP/2, its timeouts (one timer of ours
 * for each request), and its own trusted certificates (the system's are used).
 */
#include "transport/client.h"

#include "support/log.h"
#include "transport/transport.h"

#include <libwebsockets.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <uv.h>

#define CLIENT_NEVER		 1000000 /* seconds */
#define CLIENT_WRITE_BYTES	 16384
#define CLIENT_RETRY_SECONDS 1000000

struct ClientCall
{
	ClientRequest request;
	ClientAnswer answer;
	size_t written;
	struct lws *wsi;  /* NULL: the connection has ended */
	bool opening;	  /* in client_post() */
	uv_timer_t timer; /* first its deadline, then, at once, the call of fn */
	LIST_ENTRY(ClientCall) link;
};

static LIST_HEAD(, ClientCall) client_calls = LIST_HEAD_INITIALIZER(client_calls);
static struct lws_vhost *client_vhosts[2]; /* without and with IPv6 */
static SSL_CTX *client_ssl;

/* ---- the end of a call ---- */

static void
client_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void
client_report(uv_timer_t *timer)
{
	ClientCall *call = timer->data;

	LIST_REMOVE(call, link);
	uv_close((uv_handle_t *) &call->timer, client_closed);
	call->request.fn(call->request.arg, &call->answer);
}

/* The first reason counts. */
static void
client_fail(ClientCall *call, const char *problem)
{
	if (call->answer.status == 0 && call->answer.problem[0] == '\0')
		snprintf(call->answer.problem, sizeof(call->answer.problem), "%s", problem);
}

/* The connection has ended, or was never made. */
static void
client_ended(ClientCall *call)
{
	if (call->wsi != NULL)
		lws_set_opaque_user_data(call->wsi, NULL);
	call->wsi = NULL;
	uv_timer_start(&call->timer, client_report, 0, 0);
}

static void
client_too_late(uv_timer_t *timer)
{
	ClientCall *call = timer->data;
	struct lws *wsi = call->wsi;

	client_fail(call, "there was no answer in time");
	client_ended(call);
	if (wsi != NULL)
		lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

/* ---- events ---- */

static int
client_put_headers(ClientCall *call, struct lws *wsi, unsigned char **to, unsigned char *end)
{
	char length[24];

	snprintf(length, sizeof(length), "%zu", call->request.length);
	for (size_t i = 0; i < call->request.header_count; i++)
	{
		const ClientHeader *header = &call->request.headers[i];

		if (lws_add_http_header_by_name(wsi, (const unsigned char *) header->name,
										(const unsigned char *) header->value, (int) strlen(header->value), to, end))
			return -1;
	}
	if (lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH, (const unsigned char *) length,
									 (int) strlen(length), to, end))
		return -1;
	lws_client_http_body_pending(wsi, 1);
	lws_callback_on_writable(wsi);
	return 0;
}

static int
client_write(ClientCall *call, struct lws *wsi)
{
	unsigned char piece[LWS_PRE + CLIENT_WRITE_BYTES];
	size_t left = call->request.length - call->written;
	size_t len = left < CLIENT_WRITE_BYTES ? left : CLIENT_WRITE_BYTES;

	memcpy(piece + LWS_PRE, call->request.body + call->written, len);
	call->written += len;
	if (len == left)
		lws_client_http_body_pending(wsi, 0);
	if (lws_write(wsi, piece + LWS_PRE, len, len == left ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < (int) len)
		return -1;
	if (len < left)
		lws_callback_on_writable(wsi);
	return 0;
}

/* The head of the answer has come. */
static void
client_answered(ClientCall *call, struct lws *wsi)
{
	char value[24];
	int status = (int) lws_http_client_http_response(wsi);

	if (status < 100 || status > 599)
		client_fail(call, "the answer was not one of HTTP");
	else
		call->answer.status = status;
	if (lws_hdr_copy(wsi, value, sizeof(value), WSI_TOKEN_HTTP_RETRY_AFTER) > 0)
	{
		long seconds = strtol(value, NULL, 10); /* a date counts as nothing */

		call->answer.retry_after = seconds > 0 && seconds < CLIENT_RETRY_SECONDS ? (int) seconds : 0;
	}
}

/* libwebsockets' reasons, in words for the owner of a webhook. What it knows of a certificate is in in. */
static void
client_explain(ClientCall *call, const char *in, size_t len)
{
	char reason[CLIENT_PROBLEM_MAX];

	snprintf(reason, sizeof(reason), "%.*s", (int) len, in != NULL ? (const char *) in : "");
	log_event(LOG_DEBUG, "a request has failed", LOG_STR("reason", reason));
	if (strcasestr(reason, "cert") != NULL || strcasestr(reason, "ssl") != NULL || strcasestr(reason, "tls") != NULL)
		client_fail(call, "its certificate is not valid, or TLS failed");
	else if (strncmp(reason, "HS:", 3) == 0)
		client_fail(call, "the answer was not one of HTTP");
	else
		client_fail(call,
					call->written > 0 ? "the connection ended without an answer" : "it could not be connected to");
}

static int
client_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	ClientCall *call = lws_get_opaque_user_data(wsi);

	switch (reason)
	{
		case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
			return call == NULL ? -1
								: client_put_headers(call, wsi, (unsigned char **) in, *(unsigned char **) in + len);
		case LWS_CALLBACK_CLIENT_HTTP_WRITEABLE:
			if (call == NULL)
				return -1;
			return call->written < call->request.length ? client_write(call, wsi) : 0;
		case LWS_CALLBACK_CLIENT_HTTP_REDIRECT:
			if (call != NULL)
				call->answer.status = (int) len;
			return -1;
		case LWS_CALLBACK_CLIENT_FILTER_PRE_ESTABLISH:
			if (call != NULL)
				client_answered(call, wsi);
			return -1; /* nothing more is read */
		case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
			if (call != NULL)
			{
				client_explain(call, in, len);
				lws_set_opaque_user_data(wsi, NULL); /* call->wsi may not be set yet */
				client_ended(call);
			}
			return 0;
		case LWS_CALLBACK_CLOSED_CLIENT_HTTP:
		case LWS_CALLBACK_WSI_DESTROY:
			if (call != NULL)
			{
				client_fail(call, "the connection ended without an answer");
				lws_set_opaque_user_data(wsi, NULL);
				client_ended(call);
			}
			return 0;
		default:
			return 0;
	}
}

/* ---- start and end ---- */

static bool
client_load_certificates(void)
{
	client_ssl = SSL_CTX_new(TLS_client_method());
	if (client_ssl == NULL || SSL_CTX_set_default_verify_paths(client_ssl) != 1)
		return false;
	SSL_CTX_set_min_proto_version(client_ssl, TLS1_2_VERSION);
	SSL_CTX_set_verify(client_ssl, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(client_ssl, SSL_SESS_CACHE_OFF);
	return true;
}

static struct lws_vhost *
client_add_host(const char *name, unsigned long long options)
{
	static const struct lws_protocols protocols[] = {{.name = "client", .callback = client_callback}, {.name = NULL}};
	struct lws_context_creation_info info = {
		.vhost_name = name,
		.port = CONTEXT_PORT_NO_LISTEN_SERVER,
		.protocols = protocols,
		.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | options,
		.provided_client_ssl_ctx = client_ssl,
		.timeout_secs = CLIENT_NEVER,
		.connect_timeout_secs = CLIENT_NEVER,
		.gid = (gid_t) -1,
		.uid = (uid_t) -1,
	};

	return lws_create_vhost(transport_lws(), &info);
}

bool
client_start(void)
{
	if (!client_load_certificates())
		return false;
	unsetenv("http_proxy"); /* libwebsockets would use them */
	unsetenv("socks_proxy");
	client_vhosts[0] = client_add_host("client", LWS_SERVER_OPTION_DISABLE_IPV6);
	client_vhosts[1] = client_add_host("client6", 0);
	return client_vhosts[0] != NULL && client_vhosts[1] != NULL;
}

void
client_stop(void)
{
	ClientCall *call;

	while ((call = LIST_FIRST(&client_calls)) != NULL)
	{
		if (call->wsi != NULL)
			lws_set_opaque_user_data(call->wsi, NULL);
		LIST_REMOVE(call, link);
		uv_close((uv_handle_t *) &call->timer, client_closed);
	}
}

/* ---- a call ---- */

ClientCall *
client_post(const ClientRequest *request)
{
	ClientCall *call = calloc(1, sizeof(ClientCall));
	struct lws_client_connect_info info = {
		.context = transport_lws(),
		.vhost = client_vhosts[strchr(request->address, ':') != NULL],
		.address = request->address,
		.port = request->port,
		.ssl_connection = LCCSCF_HTTP_NO_FOLLOW_REDIRECT | (request->tls ? LCCSCF_USE_SSL : 0),
		.path = request->path,
		.host = request->host,
		.method = "POST",
		.local_protocol_name = "client",
		.alpn = "http/1.1",
	};
	uint64_t timeout = (uint64_t) request->timeout_ms;

	if (call == NULL)
		return NULL;
	call->request = *request;
	info.opaque_user_data = call;
	info.pwsi = &call->wsi;
	uv_timer_init(transport_loop(), &call->timer);
	call->timer.data = call;
	LIST_INSERT_HEAD(&client_calls, call, link);
	uv_timer_start(&call->timer, client_too_late, timeout, 0);
	/* Without memory, or if the connection fails at once, the callback has been called, or not. */
	if (lws_client_connect_via_info(&info) == NULL)
	{
		client_fail(call, "it could not be connected to");
		call->wsi = NULL;
		uv_timer_start(&call->timer, client_report, 0, 0);
	}
	return call;
}
