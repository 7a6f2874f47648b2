/*
 * server.c - libwebsockets: sockets in, requests and sessions out. A guest on our libuv loop.
 *
 * What is guarded here because libwebsockets 4.1.6 does not: a negative or missing Content-Length, bodies longer than
 * announced, the size of messages (session.c), HTTP/2 (not offered), extensions (none), `in` of HTTP_CONFIRM_UPGRADE
 * (not read).
 *
 * The address is tried with a plain socket first, since libwebsockets says of a busy port only that there is no
 * context.
 */
#include "server.h"

#include "gateway.h"
#include "handshake.h"
#include "log.h"
#include "origin.h"
#include "routes.h"
#include "session.h"
#include "upload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libwebsockets.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVER_READ_BYTES	65536
#define SERVER_WRITE_BYTES	(1 << 20)
#define SERVER_HEADER_BYTES 16384
/* What an editor's socket may hold unread: what waits there is latency, and a flood must be pushed back early. */
#define SERVER_EDITOR_BUFFER 131072

/* What a connection is just now; libwebsockets keeps it, zeroed at first. */
typedef struct Connection
{
	Request *request; /* must be first: request.c clears it */
	Session *session;
	bool message_open; /* a WebSocket message has begun and not ended */
} Connection;

/* ---- requests ---- */

static Method
server_method(struct lws *wsi)
{
	if (lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0)
		return METHOD_GET;
	if (lws_hdr_total_length(wsi, WSI_TOKEN_POST_URI) > 0)
		return METHOD_POST;
	if (lws_hdr_total_length(wsi, WSI_TOKEN_OPTIONS_URI) > 0)
		return METHOD_OPTIONS;
	if (lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0)
		return METHOD_HEAD;
	return METHOD_OTHER;
}

/* Content-Length: digits only. -1: none; -2: not a number. */
static int64_t
server_content_length(struct lws *wsi)
{
	char text[24];
	int64_t value = 0;
	int len = lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH);

	if (len == 0)
		return -1;
	if (len > 18 || lws_hdr_copy(wsi, text, sizeof(text), WSI_TOKEN_HTTP_CONTENT_LENGTH) <= 0)
		return -2;
	for (const char *p = text; *p != '\0'; p++)
	{
		if (*p < '0' || *p > '9')
			return -2;
		value = value * 10 + (*p - '0');
	}
	return value;
}

/* Headers that let an allowed page of another origin read the answer. */
static void
server_allow_origin(Request *request)
{
	char origin[512], host[512] = "";

	if (!request_header(request, WSI_TOKEN_ORIGIN, origin, sizeof(origin)))
		return;
	(void) request_header(request, WSI_TOKEN_HOST, host, sizeof(host));
	request_add_header(request, "Vary", "Origin");
	if (!origin_is_allowed(origin, host))
		return;
	request_add_header(request, "Access-Control-Allow-Origin", origin);
	request_add_header(request, "Access-Control-Allow-Credentials", "true");
	request_add_header(request, "Access-Control-Expose-Headers", "etag, content-range, location");
}

/* The announced body is acceptable; answered otherwise, and the connection ends. */
static bool
server_check_length(Request *request)
{
	if (request->content_length == -2)
		request_error(request, 400, "Content-Length is not a number");
	else if (request->content_length == -1)
		request_error(request, 411, "Content-Length is needed");
	else if (request->content_length > router_body_limit(request->path))
		request_error(request, 413, "the body is too large");
	else
		return true;
	request->close = true;
	return false;
}

static void
server_body_complete(Request *request)
{
	if (request->upload != NULL)
		upload_body_end(request);
	else if (request->status == 0)
		router_dispatch(request);
}

static int
server_on_request(Connection *connection, struct lws *wsi, const char *path)
{
	Request *request = request_create(wsi, server_method(wsi), path);

	if (request == NULL)
		return -1;
	connection->request = request;
	lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
	server_allow_origin(request);
	if (strlen(path) >= sizeof(request->path))
	{
		request_error(request, 414, "the address is too long");
		return 0;
	}
	if (request->method != METHOD_POST)
	{
		router_dispatch(request);
		return 0;
	}
	request->content_length = server_content_length(wsi);
	if (!server_check_length(request))
		return 0;
	if (router_is_upload(request->path) && !upload_begin(request))
		return 0;
	if (request->content_length == 0)
		server_body_complete(request);
	else
		lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, 60);
	return 0;
}

static int
server_on_body(Request *request, const char *data, size_t len)
{
	request->received += (int64_t) len;
	if (request->received > request->content_length)
		return -1;
	lws_set_timeout(request->wsi, PENDING_TIMEOUT_HTTP_CONTENT, 60);
	if (request->upload != NULL)
		upload_body(request, data, len);
	else if (request->status == 0)
		buf_put(&request->body, data, len);
	return 0;
}

/* ---- upgrades ---- */

static bool
server_url_arg(struct lws *wsi, const char *name, char *to, size_t size)
{
	Request reader = {.wsi = wsi};

	return request_arg(&reader, name, to, size);
}

/* Answers an upgrade that is refused, at once. Always 1: answered. */
static int
server_refuse_upgrade(struct lws *wsi, int status, const char *body)
{
	unsigned char buffer[LWS_PRE + 6144];
	unsigned char *start = buffer + LWS_PRE;
	unsigned char *p = start;
	unsigned char *end = buffer + sizeof(buffer) - 1;
	size_t len = strlen(body);

	if (lws_add_http_common_headers(wsi, (unsigned) status, "application/json", len, &p, end) != 0 ||
		(status == 426 && lws_add_http_header_by_name(wsi, (const unsigned char *) "sec-websocket-version:",
													  (const unsigned char *) "13", 2, &p, end) != 0) ||
		lws_finalize_http_header(wsi, &p, end) != 0 || (size_t) (end - p) < len)
		return -1;
	memcpy(p, body, len);
	p += len;
	if (lws_write(wsi, start, (size_t) (p - start), LWS_WRITE_HTTP_HEADERS) < 0)
		return -1;
	return 1;
}

/* What an upgrade asks for. */
typedef struct UpgradeQuery
{
	JwtClaims claims;
	int64_t sheet_id;
	bool nack;
	char token[JWT_MAX];
} UpgradeQuery;

/* 0: go on; otherwise what the callback returns. */
static int
server_check_upgrade(struct lws *wsi, UpgradeQuery *query)
{
	char path[64] = "", origin[512], host[512] = "", fid[24] = "", nack[8] = "", header[JWT_MAX + 16];
	const char *owner, *problem;
	char body[JWT_MAX + 512];
	int status;

	(void) lws_hdr_copy(wsi, path, sizeof(path), WSI_TOKEN_GET_URI);
	if (strcmp(path, "/sheetws") != 0)
		return server_refuse_upgrade(wsi, 404, "{\"success\":false,\"msg\":0,\"data\":\"no such address\"}");
	problem = handshake_problem(wsi, &status);
	if (problem != NULL)
	{
		snprintf(body, sizeof(body), "{\"success\":false,\"msg\":0,\"data\":\"%s\"}", problem);
		return server_refuse_upgrade(wsi, status, body);
	}
	if (lws_hdr_total_length(wsi, WSI_TOKEN_ORIGIN) > 0)
	{
		(void) lws_hdr_copy(wsi, host, sizeof(host), WSI_TOKEN_HOST);
		if (lws_hdr_copy(wsi, origin, sizeof(origin), WSI_TOKEN_ORIGIN) <= 0 || !origin_is_allowed(origin, host))
			return server_refuse_upgrade(wsi, 403, "{\"success\":false,\"msg\":0,\"data\":\"foreign origin\"}");
	}
	if (!server_url_arg(wsi, "fid", fid, sizeof(fid)) || !request_parse_id(fid, &query->sheet_id))
		return server_refuse_upgrade(wsi, 400, "{\"success\":false,\"msg\":0,\"data\":\"fid is needed\"}");
	if (!server_url_arg(wsi, "token", query->token, sizeof(query->token)) &&
		lws_hdr_copy(wsi, header, sizeof(header), WSI_TOKEN_HTTP_AUTHORIZATION) > 7 &&
		strncasecmp(header, "Bearer ", 7) == 0)
		snprintf(query->token, sizeof(query->token), "%.*s", JWT_MAX - 1, header + 7);
	if (jwt_verify(&gateway.keys, query->token, strlen(query->token), gateway_now(), &query->claims) != JWT_OK)
		return server_refuse_upgrade(wsi, 200, "{\"success\":false,\"msg\":1,\"data\":null}");
	query->nack = server_url_arg(wsi, "nack", nack, sizeof(nack)) && strcmp(nack, "1") == 0;
	owner = coord_owner_of(gateway.coord, query->sheet_id);
	if (owner == NULL || gateway.draining)
		return server_refuse_upgrade(wsi, 503, "{\"success\":false,\"msg\":0,\"data\":\"not serving now\"}");
	if (coord_is_mine(gateway.coord, query->sheet_id))
		return 0;
	snprintf(body, sizeof(body), "{\"success\":false,\"msg\":19,\"data\":\"ws://%s/sheetws?token=%s&fid=%lld\"}", owner,
			 query->token, (long long) query->sheet_id);
	return server_refuse_upgrade(wsi, 200, body);
}

/* ---- callbacks ---- */

static int
server_on_http(struct lws *wsi, enum lws_callback_reasons reason, Connection *connection, void *in, size_t len)
{
	UpgradeQuery query = {.nack = false};

	switch (reason)
	{
		case LWS_CALLBACK_HTTP:
			return server_on_request(connection, wsi, in);
		case LWS_CALLBACK_HTTP_BODY:
			return connection->request != NULL ? server_on_body(connection->request, in, len) : 0;
		case LWS_CALLBACK_HTTP_BODY_COMPLETION:
			lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
			if (connection->request != NULL && connection->request->content_length > 0)
				server_body_complete(connection->request);
			return 0;
		case LWS_CALLBACK_HTTP_WRITEABLE:
			return connection->request != NULL ? request_write(connection->request) : 0;
		case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
			return server_check_upgrade(wsi, &query);
		case LWS_CALLBACK_CLOSED_HTTP:
			if (connection != NULL && connection->request != NULL)
				request_gone(connection->request);
			if (connection != NULL)
				connection->request = NULL;
			return 0;
		default:
			return 0;
	}
}

static int
server_on_message(Connection *connection, struct lws *wsi, const char *data, size_t len)
{
	bool first = !connection->message_open;
	bool last = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;

	connection->message_open = !last;
	session_receive(connection->session, data, len, first, last, lws_frame_is_binary(wsi) != 0);
	return 0;
}

static int
server_on_websocket(struct lws *wsi, enum lws_callback_reasons reason, Connection *connection, void *in, size_t len)
{
	static const int editor_buffer = SERVER_EDITOR_BUFFER;
	UpgradeQuery query = {.nack = false};

	switch (reason)
	{
		case LWS_CALLBACK_ESTABLISHED:
			connection->request = NULL;
			if (server_check_upgrade(wsi, &query) != 0)
				return -1;
			(void) setsockopt(lws_get_socket_fd(wsi), SOL_SOCKET, SO_RCVBUF, &editor_buffer, sizeof(editor_buffer));
			connection->session = session_open(wsi, &query.claims, query.sheet_id, query.nack);
			return connection->session != NULL ? 0 : -1;
		case LWS_CALLBACK_RECEIVE:
			return connection->session != NULL ? server_on_message(connection, wsi, in, len) : -1;
		case LWS_CALLBACK_SERVER_WRITEABLE:
			return connection->session == NULL || session_writable(connection->session) ? 0 : -1;
		case LWS_CALLBACK_RECEIVE_PONG:
			if (connection->session != NULL)
				session_pong(connection->session);
			return 0;
		case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
			/* 0: the library answers with a close frame. */
			return connection->session == NULL || session_peer_closes(connection->session) ? 0 : -1;
		case LWS_CALLBACK_CLOSED:
			if (connection->session != NULL)
				session_gone(connection->session);
			connection->session = NULL;
			return 0;
		default:
			return 0;
	}
}

static int
server_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	switch (reason)
	{
		case LWS_CALLBACK_FILTER_NETWORK_CONNECTION:
			return gateway.connections >= gateway.config.max_connections ? -1 : 0;
		case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
			gateway.connections++;
			return 0;
		case LWS_CALLBACK_WSI_DESTROY:
			if (gateway.connections > 0)
				gateway.connections--;
			return 0;
		case LWS_CALLBACK_ESTABLISHED:
		case LWS_CALLBACK_RECEIVE:
		case LWS_CALLBACK_SERVER_WRITEABLE:
		case LWS_CALLBACK_RECEIVE_PONG:
		case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
		case LWS_CALLBACK_CLOSED:
			return server_on_websocket(wsi, reason, user, in, len);
		default:
			return server_on_http(wsi, reason, user, in, len);
	}
}

/* ---- start ---- */

static const struct lws_protocols server_protocols[] = {
	{"sheet.v1", server_callback, sizeof(Connection), SERVER_READ_BYTES, 0, NULL, SERVER_WRITE_BYTES},
	{NULL, NULL, 0, 0, 0, NULL, 0},
};

static lws_retry_bo_t server_pings; /* stays as long as the context */

static void
server_log(int level, const char *line)
{
	char text[512];

	snprintf(text, sizeof(text), "%.*s", (int) strcspn(line, "\n"), line);
	log_event((level & LLL_ERR) ? LOG_WARN : LOG_DEBUG, "libwebsockets", LOG_STR("text", text));
}

/* Can we listen there? errno tells why not. */
static bool
server_probe(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t) gateway.config.listen_port)};
	int on = 1;
	int fd;
	bool ok;

	if (inet_pton(AF_INET, gateway.config.listen_address, &address.sin_addr) != 1)
		return true; /* a name or IPv6: libwebsockets will say */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		return true;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	ok = bind(fd, (struct sockaddr *) &address, sizeof(address)) == 0 && listen(fd, 1) == 0;
	on = errno;
	close(fd);
	errno = on;
	return ok;
}

bool
server_start(void)
{
	struct lws_context_creation_info info;
	void *loops[] = {&gateway.loop};

	if (!server_probe())
	{
		fprintf(stderr, "pg_sheet_gateway: cannot listen on %s port %d: %s\n", gateway.config.listen_address,
				gateway.config.listen_port, strerror(errno));
		fprintf(stderr, "Choose another port with --listen-port, or end the program that uses it.\n");
		return false;
	}
	lws_set_log_level(LLL_ERR | LLL_WARN, server_log);
	memset(&info, 0, sizeof(info));
	info.port = gateway.config.listen_port;
	info.iface = gateway.config.listen_address;
	info.protocols = server_protocols;
	info.foreign_loops = loops;
	info.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_VALIDATE_UTF8 | LWS_SERVER_OPTION_DISABLE_IPV6;
	info.pt_serv_buf_size = SERVER_READ_BYTES;
	info.max_http_header_data = SERVER_HEADER_BYTES;
	info.alpn = "http/1.1";
	info.keepalive_timeout = 30;
	info.timeout_secs = 20;
	server_pings.secs_since_valid_ping = (uint16_t) gateway.config.ping_seconds;
	server_pings.secs_since_valid_hangup = (uint16_t) (2 * gateway.config.ping_seconds);
	info.retry_and_idle_policy = &server_pings;
	info.fd_limit_per_thread = (unsigned) gateway.config.max_connections + 64;
	gateway.lws = lws_create_context(&info);
	if (gateway.lws != NULL)
		return true;
	fprintf(stderr, "pg_sheet_gateway: cannot listen on %s port %d\n", gateway.config.listen_address,
			gateway.config.listen_port);
	return false;
}

void
server_stop(void)
{
	lws_context_destroy(gateway.lws);
}

void
server_free(void)
{
	lws_context_destroy(gateway.lws);
	gateway.lws = NULL;
}
