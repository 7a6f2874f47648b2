/*
 * server.c - where connections begin, and libwebsockets for those that are WebSockets. A guest on our libuv loop.
 *
 * HTTP is our own (conn.c), because the parser of libwebsockets 4.1.6 takes what it should refuse (bare LF, folded
 * lines, blanks before colons, Transfer-Encoding that it does not understand) and drops a connection without an answer.
 * It gets a socket when the upgrade is accepted, reads the request once more, and speaks the frames.
 *
 * What is guarded here because it does not: the size of messages and their UTF-8 (session.c; the library goes through
 * it byte by byte), HTTP/2 and extensions (not offered).
 */
#include "server.h"

#include "conn.h"
#include "gateway.h"
#include "listen.h"
#include "log.h"
#include "session.h"
#include "tls.h"
#include "tunnel.h"
#include "v2_session.h"

#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVER_READ_BYTES	65536
#define SERVER_WRITE_BYTES	(1 << 20)
#define SERVER_HEADER_BYTES 65536
/* What an editor's socket may hold unread: what waits there is latency, and a flood must be pushed back early. */
#define SERVER_EDITOR_BUFFER 131072

/* What a connection is just now; libwebsockets keeps it, zeroed at first. */
typedef struct Connection
{
	Session *session;
	bool message_open; /* a WebSocket message has begun and not ended */
} Connection;

/* The ticket of the socket that is being adopted: libwebsockets calls back before it returns. */
static Ticket *server_adopting;

/* ---- callbacks ---- */

static int
server_on_established(Connection *connection, struct lws *wsi)
{
	static const int editor_buffer = SERVER_EDITOR_BUFFER;
	const Ticket *ticket = lws_get_opaque_user_data(wsi);

	if (ticket == NULL)
		return -1;
	(void) setsockopt(lws_get_socket_fd(wsi), SOL_SOCKET, SO_RCVBUF, &editor_buffer, sizeof(editor_buffer));
	connection->session = ticket->v2 ? v2_session_open(wsi, ticket->sheet_id, ticket->link)
									 : session_open(wsi, &ticket->claims, ticket->sheet_id, ticket->link, ticket->nack);
	if (connection->session == NULL)
		return -1;
	snprintf(connection->session->peer, sizeof(connection->session->peer), "%s", ticket->address);
	snprintf(connection->session->request_id, sizeof(connection->session->request_id), "%s", ticket->request_id);
	return 0;
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

static void
server_on_destroyed(struct lws *wsi)
{
	Ticket *ticket = lws_get_opaque_user_data(wsi);

	if (ticket == NULL)
		return;
	lws_set_opaque_user_data(wsi, NULL);
	gateway.connections--;
	peers_leave(ticket->peer);
	free(ticket);
}

static int
server_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	Connection *connection = user;

	switch (reason)
	{
		case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
			lws_set_opaque_user_data(wsi, server_adopting);
			server_adopting = NULL;
			return 0;
		case LWS_CALLBACK_HTTP: /* a second request on a socket that libwebsockets did not upgrade */
			return -1;
		case LWS_CALLBACK_ESTABLISHED:
			return server_on_established(connection, wsi);
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
		case LWS_CALLBACK_WSI_DESTROY:
			server_on_destroyed(wsi);
			return 0;
		default:
			return 0;
	}
}

void
server_adopt(int fd, Ticket *ticket, const char *head, size_t len)
{
	server_adopting = ticket;
	if (fd >= 0)
		(void) lws_adopt_socket_readbuf(gateway.lws, fd, head, len);
	if (server_adopting == NULL)
		return;
	/* There was no room for it. */
	server_adopting = NULL;
	gateway.connections--;
	peers_leave(ticket->peer);
	free(ticket);
}

/* ---- start ---- */

static const struct lws_protocols server_protocols[] = {
	{"sheet.v1", server_callback, sizeof(Connection), SERVER_READ_BYTES, 0, NULL, SERVER_WRITE_BYTES},
	{"sheet.v2", server_callback, sizeof(Connection), SERVER_READ_BYTES, 0, NULL, SERVER_WRITE_BYTES},
	{NULL, NULL, 0, 0, 0, NULL, 0},
};

const char *
server_protocol_name(int i)
{
	return server_protocols[i].name;
}

static lws_retry_bo_t server_pings; /* stays as long as the context */

static void
server_log(int level, const char *line)
{
	char text[512];

	if (strstr(line, "adopt_socket_readbuf") != NULL)
		return; /* it takes every adoption for an error */
	snprintf(text, sizeof(text), "%.*s", (int) strcspn(line, "\n"), line);
	log_event((level & LLL_ERR) ? LOG_WARN : LOG_DEBUG, "libwebsockets", LOG_STR("text", text));
}

static bool
server_start_websockets(void)
{
	struct lws_context_creation_info info;
	void *loops[] = {&gateway.loop};

	lws_set_log_level(LLL_ERR | LLL_WARN, server_log);
	memset(&info, 0, sizeof(info));
	info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
	info.protocols = server_protocols;
	info.foreign_loops = loops;
	info.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_DISABLE_IPV6;
	info.pt_serv_buf_size = SERVER_READ_BYTES;
	info.max_http_header_data = SERVER_HEADER_BYTES - 1;
	info.alpn = "http/1.1";
	info.keepalive_timeout = 30;
	info.timeout_secs = 20;
	server_pings.secs_since_valid_ping = (uint16_t) gateway.config.ping_seconds;
	server_pings.secs_since_valid_hangup = (uint16_t) (2 * gateway.config.ping_seconds);
	info.retry_and_idle_policy = &server_pings;
	info.fd_limit_per_thread = (unsigned) gateway.config.max_connections + 64;
	gateway.lws = lws_create_context(&info);
	if (gateway.lws == NULL)
		fprintf(stderr, "pg_sheet_gateway: libwebsockets cannot be started; is its event loop for libuv installed "
						"(libwebsockets-evlib-uv)?\n");
	return gateway.lws != NULL;
}

bool
server_start(void)
{
	return tls_start() && server_start_websockets() && listen_start();
}

void
server_stop(void)
{
	listen_stop();
	conn_close_all();
	lws_context_destroy(gateway.lws);
	tunnel_close_all();
}

void
server_free(void)
{
	lws_context_destroy(gateway.lws);
	gateway.lws = NULL;
	tls_stop();
}
