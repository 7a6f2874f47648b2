/*
 * server.c - where connections begin, and where those that become WebSockets leave HTTP.
 */
#include "http/server/server.h"

#include "http/server/conn.h"
#include "core/gateway.h"
#include "http/server/listen.h"
#include "ws/v1/v1.h"
#include "ws/wire/socket.h"
#include "http/server/tls.h"
#include "ws/v2/v2_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* What an editor's socket may hold unread: what waits there is latency, and a flood must be pushed back early. */
#define SERVER_EDITOR_BUFFER 131072

/* The WebSocket has ended. */
static void
server_on_gone(void *arg)
{
	Ticket *ticket = arg;

	gateway.connections--;
	peers_leave(ticket->peer);
	free(ticket);
}

static Session *
server_open_session(Socket *socket, const Ticket *ticket)
{
	Session *session = ticket->v2
						   ? v2_session_open(socket, ticket->sheet_id, ticket->link)
						   : v1_session_open(socket, &ticket->claims, ticket->sheet_id, ticket->link, ticket->nack);

	if (session == NULL)
		return NULL;
	snprintf(session->peer, sizeof(session->peer), "%s", ticket->address);
	snprintf(session->request_id, sizeof(session->request_id), "%s", ticket->request_id);
	return session;
}

void
server_open_websocket(Stream stream, Ticket *ticket, char *read, size_t len)
{
	static const int editor_buffer = SERVER_EDITOR_BUFFER;
	Socket *socket = socket_open(stream, server_on_gone, ticket);
	char answer[512];
	Session *session;
	int answer_len;

	if (socket == NULL)
	{
		server_on_gone(ticket);
		return;
	}
	(void) setsockopt(stream.fd, SOL_SOCKET, SO_RCVBUF, &editor_buffer, sizeof(editor_buffer));
	answer_len = snprintf(answer, sizeof(answer),
						  "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
						  "Sec-WebSocket-Accept: %s\r\n%s%s%s\r\n",
						  ticket->accept, ticket->protocol != NULL ? "Sec-WebSocket-Protocol: " : "",
						  ticket->protocol != NULL ? ticket->protocol : "", ticket->protocol != NULL ? "\r\n" : "");
	socket_put(socket, answer, (size_t) answer_len);
	session = server_open_session(socket, ticket);
	if (session != NULL)
		socket_take(socket, read, len);
	else
		socket_abort(socket);
}

bool
server_start(void)
{
	return tls_start() && listen_start();
}

void
server_stop(void)
{
	listen_stop();
	conn_close_all();
	socket_close_all();
}

void
server_free(void)
{
	tls_stop();
}
