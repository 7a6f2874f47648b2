/*
 * load.c - the users of one sheet on a peer's server, in one process.
 *
 *     peer_load DIALECT PORT USERS WINDOW SECONDS [GIVE_UP]
 *
 * It prints "ready" when all have joined, starts at the next line of its standard input, prints its result as one line
 * of JSON when everything that was sent has come to everybody (or nothing has come for GIVE_UP = 15 s), and ends with
 * its input. A user is at most WINDOW edits ahead of the slowest receiver: peers push nobody back who sends too fast,
 * they drop messages or connections.
 *
 * The edits are those of workload.h, and every user reads every message and holds it against the sequence of its
 * sender: a peer may show the edits of different senders in a different order to each.
 */
#include "load.h"

#include "../../edit/workload.h"
#include "basics.h"
#include "ws_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define MAX_USERS	100
#define SEND_MAX	16384 /* payload of a frame */
#define SEND_BUFFER (SEND_MAX + WS_HEAD_MAX + 4096)
#define READ_BUFFER (256 * 1024)
#define TEXT_BUFFER (512 * 1024)

struct LoadUser
{
	int index;
	int fd;
	bool joined;
	/* sending */
	bool wants_write;
	uint64_t made;
	char *out;
	size_t out_len, out_sent;
	/* receiving: bytes, the payload of the frame that is under way, and payloads that are not taken yet */
	char *in;
	size_t in_len;
	uint64_t frame_left;
	char *text;
	size_t text_len;
	int64_t last_read;
	uint64_t received, other;
	WorkloadModel models[MAX_USERS]; /* of each sender */
};

static const Dialect *const dialects[] = {&dialect_nchan, &dialect_nats, &dialect_jetstream};
static const Dialect *dialect;
static LoadUser *users;
static int user_count;
static uint64_t window;
static double give_up = 15;
static int64_t start, stop_at;
static int poller;

/* ---- what dialects call ---- */

void
load_say(LoadUser *user, const char *text, size_t len)
{
	if (user->out_len + len + WS_HEAD_MAX > SEND_BUFFER)
		fail("user %d: no room for what it has to say", user->index);
	user->out_len += ws_write_frame(user->out + user->out_len, dialect->opcode, text, len, 0x5A3C96E1);
}

void
load_joined(LoadUser *user)
{
	user->joined = true;
}

void
load_edit(LoadUser *user, const char *text, size_t len)
{
	WorkloadEdit edit;
	int row;

	if (workload_read_message(text, len, &row, &edit) && row >= 0 && row < user_count)
	{
		workload_check(&user->models[row], row, edit);
		user->received++;
	}
	else if (user->other++ == 0)
		fprintf(stderr, "peer_load: an unexpected message: %.*s\n", (int) (len < 300 ? len : 300), text);
}

/* ---- receiving ---- */

static void
control_take(LoadUser *user, const unsigned char *frame, size_t header, size_t len)
{
	int opcode = frame[0] & 0x0F;

	if (opcode == WS_CLOSE)
		fail("user %d was closed with code %d", user->index, len >= 2 ? frame[header] << 8 | frame[header + 1] : 0);
	if (opcode == WS_PING && user->out_len + len + WS_HEAD_MAX <= SEND_BUFFER)
		user->out_len += ws_write_frame(user->out + user->out_len, WS_PONG, frame + header, len, 0);
}

/* A piece of a data frame's payload. */
static void
payload_take(LoadUser *user, const char *data, size_t len)
{
	size_t taken;

	if (user->text_len + len > TEXT_BUFFER)
		fail("user %d: a message of more than %d bytes", user->index, TEXT_BUFFER);
	memcpy(user->text + user->text_len, data, len);
	user->text_len += len;
	user->frame_left -= len;
	if (!dialect->stream && user->frame_left > 0)
		return;
	taken = dialect->take(user, user->text, user->text_len);
	user->text_len -= taken;
	memmove(user->text, user->text + taken, user->text_len);
}

static void
bytes_take(LoadUser *user)
{
	size_t pos = 0;

	while (pos < user->in_len)
	{
		const unsigned char *frame = (unsigned char *) user->in + pos;
		size_t rest = user->in_len - pos, header, piece;
		uint64_t payload;

		if (user->frame_left > 0)
		{
			piece = user->frame_left < rest ? user->frame_left : rest;
			payload_take(user, user->in + pos, piece);
			pos += piece;
			continue;
		}
		header = ws_measure_frame(frame, rest, &payload);
		if (header == 0)
			break;
		if (frame[0] & 0x08)
		{
			if (header + payload > rest)
				break;
			control_take(user, frame, header, payload);
			pos += payload;
		}
		else
			user->frame_left = payload;
		pos += header;
	}
	user->in_len -= pos;
	memmove(user->in, user->in + pos, user->in_len);
}

static void
user_receive(LoadUser *user)
{
	ssize_t got = recv(user->fd, user->in + user->in_len, READ_BUFFER - user->in_len, MSG_DONTWAIT);

	if (got == 0)
		fail("user %d: the server closed the connection", user->index);
	if (got < 0 && errno != EAGAIN)
		fail("user %d: %s", user->index, strerror(errno));
	if (got <= 0)
		return;
	user->in_len += (size_t) got;
	user->last_read = now_ns();
	bytes_take(user);
}

/* ---- sending ---- */

/* How many edits the user may make now. */
static uint64_t
edits_allowed(const LoadUser *user, int64_t now)
{
	uint64_t slowest = user->made;

	if (start == 0 || now >= stop_at)
		return 0;
	for (int i = 0; i < user_count; i++)
		if (users[i].models[user->index].next < slowest)
			slowest = users[i].models[user->index].next;
	return slowest + window - user->made;
}

/* Fills the empty buffer: frames of one edit each, or one frame of a stream. */
static void
edits_make(LoadUser *user, uint64_t allowed)
{
	char payload[SEND_MAX];
	size_t len = 0;

	for (; allowed > 0 && user->out_len + len + LOAD_EDIT_MAX + WS_HEAD_MAX <= SEND_MAX; allowed--)
	{
		len += dialect->put_edit(payload + len, user->index, user->made++);
		if (dialect->stream)
			continue;
		user->out_len +=
			ws_write_frame(user->out + user->out_len, dialect->opcode, payload, len, workload_mask(user->made));
		len = 0;
	}
	if (len > 0)
		user->out_len +=
			ws_write_frame(user->out + user->out_len, dialect->opcode, payload, len, workload_mask(user->made));
}

static void
poll_for(LoadUser *user, bool write)
{
	struct epoll_event event = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = user};

	if (user->wants_write == write)
		return;
	user->wants_write = write;
	if (epoll_ctl(poller, EPOLL_CTL_MOD, user->fd, &event) != 0)
		fail("epoll: %s", strerror(errno));
}

static void
user_send(LoadUser *user, int64_t now)
{
	ssize_t sent;

	if (user->out_len == 0)
		edits_make(user, edits_allowed(user, now));
	if (user->out_len == 0)
		return;
	sent = send(user->fd, user->out + user->out_sent, user->out_len - user->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN)
		fail("user %d: %s", user->index, strerror(errno));
	user->out_sent += sent > 0 ? (size_t) sent : 0;
	if (user->out_sent == user->out_len)
		user->out_sent = user->out_len = 0;
	poll_for(user, user->out_len > 0);
}

/* ---- joining, running ---- */

static void
poll_once(int timeout_ms)
{
	struct epoll_event events[64];
	int ready = epoll_wait(poller, events, 64, timeout_ms);
	int64_t now;

	for (int i = 0; i < ready; i++)
		if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			user_receive(events[i].data.ptr);
	now = now_ns();
	for (int i = 0; i < user_count; i++)
		user_send(&users[i], now);
}

static void
user_join(LoadUser *user, int index, int port)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = user};
	int64_t since = now_ns();

	user->index = index;
	user->out = allocate(SEND_BUFFER);
	user->in = allocate(READ_BUFFER);
	user->text = allocate(TEXT_BUFFER);
	user->fd = ws_open(port, dialect->path, dialect->protocol, user->in, READ_BUFFER, &user->in_len);
	if (epoll_ctl(poller, EPOLL_CTL_ADD, user->fd, &event) != 0)
		fail("epoll: %s", strerror(errno));
	user_count = index + 1;
	bytes_take(user);
	dialect->hello(user, index);
	while (!user->joined)
	{
		poll_once(100);
		if (now_ns() - since > INT64_C(10000000000))
			fail("user %d has not joined after 10 s", index);
	}
}

static uint64_t
edits_made(void)
{
	uint64_t made = 0;

	for (int i = 0; i < user_count; i++)
		made += users[i].made;
	return made;
}

/* Is all sent and received, or will nothing come any more? */
static bool
is_over(int64_t now)
{
	uint64_t made = edits_made();
	bool whole = true, quiet = true;

	for (int i = 0; i < user_count; i++)
	{
		whole = whole && users[i].received >= made && users[i].out_len == 0;
		quiet = quiet && now - users[i].last_read > give_up * 1e9;
	}
	return whole || quiet;
}

static void
run(double seconds)
{
	start = now_ns();
	stop_at = start + (int64_t) (seconds * 1e9);
	for (int i = 0; i < user_count; i++)
		users[i].last_read = start;
	for (int64_t now = start; now < stop_at || !is_over(now); now = now_ns())
		poll_once(now < stop_at ? 10 : 100);
}

/* ---- the result ---- */

static void
result_print(void)
{
	uint64_t made = edits_made(), received = 0, lost = 0, reordered = 0, other = 0;
	int64_t end = start;

	for (int i = 0; i < user_count; i++)
	{
		received += users[i].received;
		other += users[i].other;
		for (int sender = 0; sender < user_count; sender++)
		{
			const WorkloadModel *model = &users[i].models[sender];

			lost += model->missing + (users[sender].made - model->next);
			reordered += model->strange;
		}
		if (users[i].last_read > end)
			end = users[i].last_read;
	}
	printf("{\"users\":%d,\"sent\":%llu,\"received\":%llu,\"lost\":%llu,\"reordered\":%llu,\"other_messages\":%llu,"
		   "\"total_seconds\":%.3f}\n",
		   user_count, (unsigned long long) made, (unsigned long long) received, (unsigned long long) lost,
		   (unsigned long long) reordered, (unsigned long long) other, (double) (end - start) / 1e9);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	int wanted;

	if (argc != 6 && argc != 7)
		fail("usage: peer_load DIALECT PORT USERS WINDOW SECONDS [GIVE_UP]");
	for (size_t i = 0; i < sizeof(dialects) / sizeof(*dialects); i++)
		if (strcmp(argv[1], dialects[i]->name) == 0)
			dialect = dialects[i];
	wanted = atoi(argv[3]);
	window = strtoull(argv[4], NULL, 10);
	if (!dialect || wanted < 1 || wanted > MAX_USERS || window < 1)
		fail("no such dialect, or too many users, or no window");
	if (argc == 7)
		give_up = atof(argv[6]);
	users = allocate((size_t) wanted * sizeof(LoadUser));
	poller = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < wanted; i++)
		user_join(&users[i], i, atoi(argv[2]));
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	run(atof(argv[5]));
	result_print();
	while (getchar() != EOF)
		;
	return 0;
}
