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
#include "connection.h"
#include "ws_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define MAX_USERS	100
#define SEND_MAX	16384 /* payload of a frame */
#define SEND_BUFFER (SEND_MAX + WS_HEAD_MAX + 4096)
#define READ_BUFFER (256 * 1024)
#define TEXT_BUFFER (512 * 1024)

struct LoadUser
{
	int index;
	Connection link;
	bool joined;
	uint64_t made;
	/* receiving: what is left of the frame that is under way, and payloads that are not taken yet */
	uint64_t frame_left;
	char *text;
	size_t text_len;
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
	if (user->link.out_len + len + WS_HEAD_MAX > SEND_BUFFER)
		fail("user %d: no room for what it has to say", user->index);
	user->link.out_len += ws_write_frame(user->link.out + user->link.out_len, dialect->opcode, text, len, 0x5A3C96E1);
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
	if (opcode == WS_PING && user->link.out_len + len + WS_HEAD_MAX <= SEND_BUFFER)
		user->link.out_len += ws_write_frame(user->link.out + user->link.out_len, WS_PONG, frame + header, len, 0);
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

	while (pos < user->link.in_len)
	{
		const unsigned char *frame = (unsigned char *) user->link.in + pos;
		size_t rest = user->link.in_len - pos, header, piece;
		uint64_t payload;

		if (user->frame_left > 0)
		{
			piece = user->frame_left < rest ? user->frame_left : rest;
			payload_take(user, user->link.in + pos, piece);
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
	connection_consume(&user->link, pos);
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

	for (; allowed > 0 && user->link.out_len + len + LOAD_EDIT_MAX + WS_HEAD_MAX <= SEND_MAX; allowed--)
	{
		len += dialect->put_edit(payload + len, user->index, user->made++);
		if (dialect->stream)
			continue;
		user->link.out_len += ws_write_frame(user->link.out + user->link.out_len, dialect->opcode, payload, len,
											 workload_mask(user->made));
		len = 0;
	}
	if (len > 0)
		user->link.out_len += ws_write_frame(user->link.out + user->link.out_len, dialect->opcode, payload, len,
											 workload_mask(user->made));
}

static void
user_send(LoadUser *user, int64_t now)
{
	if (user->link.out_len == 0)
		edits_make(user, edits_allowed(user, now));
	if (user->link.out_len == 0)
		return;
	connection_send(&user->link);
	connection_poll_for(&user->link, user->link.out_len > 0);
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
		{
			LoadUser *user = events[i].data.ptr;

			if (connection_receive(&user->link) > 0)
				bytes_take(user);
		}
	now = now_ns();
	for (int i = 0; i < user_count; i++)
		user_send(&users[i], now);
}

static void
user_join(LoadUser *user, int index, int port)
{
	int64_t since = now_ns();

	user->index = index;
	connection_init(&user->link, index, SEND_BUFFER, READ_BUFFER);
	user->text = allocate(TEXT_BUFFER);
	user->link.fd = ws_open(port, dialect->path, dialect->protocol, user->link.in, READ_BUFFER, &user->link.in_len);
	connection_watch(&user->link, poller, user);
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
		whole = whole && users[i].received >= made && users[i].link.out_len == 0;
		quiet = quiet && now - users[i].link.last_read > give_up * 1e9;
	}
	return whole || quiet;
}

static void
run(double seconds)
{
	start = now_ns();
	stop_at = start + (int64_t) (seconds * 1e9);
	for (int i = 0; i < user_count; i++)
		users[i].link.last_read = start;
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
		if (users[i].link.last_read > end)
			end = users[i].link.last_read;
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
