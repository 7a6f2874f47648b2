/*
 * sim_socket.c - WebSockets in a simulated world: the functions of gateway/ws/wire/socket.h, and the client's end.
 *
 * A connection delivers in order. The gateway's frames arrive as it has written them, and are read here; the client's
 * messages arrive whole. A gateway that does not read a connection (socket_pause) gets its messages later.
 */
#include "sim_gateway.h"

#include <stdlib.h>
#include <string.h>

#include "ws/wire/socket.h"

typedef struct Message
{
	struct Message *next; /* that the gateway has not read */
	struct Socket *socket;
	size_t len;
	char data[];
} Message;

struct Socket
{
	struct Socket *next; /* of the world */
	SimProcess *process;
	const SimGatewayCalls *calls;
	int64_t sheet_id;
	const SimClient *client;
	void *arg;
	const SocketEvents *events;
	void *user;
	uint64_t to_server, to_client; /* when the last message arrives */
	bool client_open, server_open;
	bool paused, wants_write, broken;
	Message *unread, **unread_last;
	uint64_t sent;
	char *received; /* at the client: frames that are not complete */
	size_t received_len;
};

static struct Socket *sockets;

/* ---- the network ---- */

static uint64_t
arrival(uint64_t *last)
{
	uint64_t at = sim_now + 100 + sim_random(sim_is_slow(2) ? 100 * SIM_MS : 2 * SIM_MS);

	*last = at > *last ? at : *last;
	return *last - sim_now;
}

static Message *
message_new(struct Socket *socket, const void *data, size_t len)
{
	Message *message = malloc(sizeof(*message) + len);

	message->next = NULL;
	message->socket = socket;
	message->len = len;
	memcpy(message->data, data, len);
	return message;
}

/* ---- the gateway's end ---- */

static void
client_loses(void *arg)
{
	struct Socket *socket = arg;

	if (!socket->client_open)
		return;
	socket->client_open = false;
	socket->client->closed(socket->arg, 0, "the connection has ended");
}

static void
server_ends(void *arg)
{
	struct Socket *socket = arg;

	if (!socket->server_open)
		return;
	socket->server_open = false;
	sim_after(NULL, arrival(&socket->to_client), client_loses, socket);
	socket->events->gone(socket->user);
}

static void
server_accepts(void *arg)
{
	struct Socket *socket = arg;

	socket->server_open = true;
	socket->calls->accept(socket, socket->sheet_id);
}

static void
server_handles(struct Socket *socket, Message *message)
{
	FramePiece piece = {.op = message->len > 0 ? FRAME_TEXT : FRAME_CLOSE,
						.first = true,
						.last = true,
						.data = message->data,
						.len = message->len};

	if (!socket->server_open)
		;
	else if (piece.op == FRAME_CLOSE)
	{
		piece.data = "\x03\xe8"; /* 1000 */
		piece.len = 2;
		socket->events->control(socket->user, &piece);
	}
	else
		socket->events->receive(socket->user, &piece);
	free(message);
}

static void
server_reads(void *arg)
{
	struct Socket *socket = arg;

	while (socket->unread && !socket->paused)
	{
		Message *message = socket->unread;

		socket->unread = message->next;
		if (!socket->unread)
			socket->unread_last = &socket->unread;
		server_handles(socket, message);
	}
}

static void
server_gets(void *arg)
{
	Message *message = arg;
	struct Socket *socket = message->socket;

	*socket->unread_last = message;
	socket->unread_last = &message->next;
	server_reads(socket);
}

static void
server_writes(void *arg)
{
	struct Socket *socket = arg;

	socket->wants_write = false;
	if (socket->server_open && (socket->broken || !socket->events->writable(socket->user)))
		server_ends(socket);
}

void
socket_set_user(Socket *socket, const SocketEvents *events, void *user)
{
	socket->events = events;
	socket->user = user;
}

void
socket_sign_in(Socket *socket, int64_t uid)
{
}

void
socket_want_write(Socket *socket)
{
	if (!socket->wants_write)
		sim_after(socket->process, 0, server_writes, socket);
	socket->wants_write = true;
}

void
socket_pause(Socket *socket, bool pause)
{
	if (socket->paused && !pause)
		sim_after(socket->process, 0, server_reads, socket);
	socket->paused = pause;
}

void
socket_end_after(Socket *socket, int seconds)
{
	sim_after(socket->process, (uint64_t) seconds * 1000 * SIM_MS, server_ends, socket);
}

void
socket_finish(Socket *socket)
{
}

void
socket_abort(Socket *socket)
{
	socket->broken = true;
	socket_want_write(socket);
}

bool
socket_has_rest(const Socket *socket)
{
	return false;
}

uint64_t
socket_delivered(const Socket *socket)
{
	return socket->sent;
}

/* ---- the client's end ---- */

static void
client_sends(struct Socket *socket, const char *text, size_t len)
{
	if (socket->client_open)
		sim_after(socket->process, arrival(&socket->to_server), server_gets, message_new(socket, text, len));
}

static void
client_closes(struct Socket *socket, const char *payload, size_t len)
{
	char reason[126];

	client_sends(socket, "", 0);
	socket->client_open = false;
	memcpy(reason, payload + 2, len - 2);
	reason[len - 2] = '\0';
	socket->client->closed(socket->arg, (unsigned char) payload[0] << 8 | (unsigned char) payload[1], reason);
}

/* Handles the first frame, if it is complete, and returns its size; otherwise 0. */
static size_t
client_reads_frame(struct Socket *socket, const char *bytes, size_t have)
{
	const unsigned char *header = (const unsigned char *) bytes;
	size_t len, at = 2;

	if (have < 2)
		return 0;
	len = header[1];
	if (len == 126)
		at = 4;
	else if (len > 126)
		abort(); /* larger than anything that is sent here */
	if (have < at)
		return 0;
	if (at == 4)
		len = (size_t) header[2] << 8 | header[3];
	if (have < at + len)
		return 0;
	if ((header[0] & 15) == FRAME_CLOSE)
		client_closes(socket, bytes + at, len);
	else if ((header[0] & 15) == FRAME_TEXT)
		socket->client->message(socket->arg, bytes + at, len);
	return at + len;
}

static void
client_gets(void *arg)
{
	Message *message = arg;
	struct Socket *socket = message->socket;
	size_t done = 0, taken;

	socket->received = realloc(socket->received, socket->received_len + message->len);
	memcpy(socket->received + socket->received_len, message->data, message->len);
	socket->received_len += message->len;
	while (socket->client_open &&
		   (taken = client_reads_frame(socket, socket->received + done, socket->received_len - done)) > 0)
		done += taken;
	socket->received_len -= done;
	memmove(socket->received, socket->received + done, socket->received_len);
	free(message);
}

ssize_t
socket_write(Socket *socket, const void *bytes, size_t len)
{
	socket->sent += len;
	if (socket->server_open && !socket->process->dead)
		sim_after(NULL, arrival(&socket->to_client), client_gets, message_new(socket, bytes, len));
	return (ssize_t) len;
}

struct Socket *
sim_connect(SimProcess *process, const SimGatewayCalls *calls, int64_t sheet_id, const SimClient *client, void *arg)
{
	struct Socket *socket = calloc(1, sizeof(*socket));

	socket->process = process;
	socket->calls = calls;
	socket->sheet_id = sheet_id;
	socket->client = client;
	socket->arg = arg;
	socket->client_open = true;
	socket->unread_last = &socket->unread;
	socket->next = sockets;
	sockets = socket;
	if (process->dead)
		sim_after(NULL, arrival(&socket->to_client), client_loses, socket);
	else
		sim_after(process, arrival(&socket->to_server), server_accepts, socket);
	return socket;
}

void
sim_send(struct Socket *socket, const char *text, size_t len)
{
	client_sends(socket, text, len);
}

void
sim_disconnect(struct Socket *socket, uint64_t after)
{
	socket->client_open = false;
	arrival(&socket->to_server);
	sim_after(socket->process, socket->to_server - sim_now + after, server_ends, socket);
}

void
sim_disconnect_all(SimProcess *process)
{
	for (struct Socket *socket = sockets; socket; socket = socket->next)
		if (socket->process == process && socket->client_open)
			sim_after(NULL, arrival(&socket->to_client), client_loses, socket);
}
