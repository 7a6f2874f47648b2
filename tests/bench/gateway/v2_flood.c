/*
 * v2_flood.c - users of one sheet who write as fast as TCP takes it, in the binary form of protocol v2.
 *
 *     v2_flood PORT SHEET TOKENS SECONDS RATE CELLS
 *
 * Started, driven and answering as the generator of `edit` (tests/bench/edit/generator.c), with the same edits. RATE
 * must be 0. An operation has EDITS edits, a frame one operation.
 *
 * All users read one stream: user 0 holds every edit against the sequence of its sender, the others count edits and
 * hash the messages that have them. Every operation must be acknowledged to its sender.
 */
#include "../edit/workload.h"
#include "basics.h"
#include "connection.h"
#include "common/edit_codec.h"
#include "ws_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EDITS		16
#define MAX_USERS	500
#define SEND_BUFFER 65536
#define OP_MAX		4096
#define READ_BUFFER (1024 * 1024) /* a message has 256 kB and an edit */
#define GIVE_UP_NS	15000000000

#define MESSAGE_HELLO 65
#define MESSAGE_EDITS 66
#define MESSAGE_ACK	  68
#define MESSAGE_NACK  69
#define MESSAGE_PEER  72

typedef struct User
{
	int index;
	Connection link;
	bool greeted;
	uint64_t operations, acked;
	uint64_t edits, bytes, hash;
} User;

static User users[MAX_USERS];
static WorkloadModel models[MAX_USERS];
static int user_count, poller;
static int64_t start, stop_at;
static uint64_t other_messages, strange;
static char words[WORKLOAD_REPEATS * 4 + 1];

/* ---- what is sent ---- */

static char *
put_number(char *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (char) (value | 0x80);
	*to++ = (char) value;
	return to;
}

static void
put_frame(User *user, const char *payload, const char *end)
{
	user->link.out_len +=
		ws_write_frame(user->link.out + user->link.out_len, WS_BINARY, payload, (size_t) (end - payload), 0);
}

static void
put_operation(User *user)
{
	char payload[OP_MAX], *to = payload;
	EditWriter writer;

	*to++ = 4;
	to = put_number(to, user->operations + 1);
	to = put_number(to, 0); /* nacks */
	to = put_number(to, 0); /* base */
	to = put_number(to, 0); /* seen */
	to = put_number(to, EDITS);
	edit_write_edits(&writer, (uint8_t *) to);
	for (int i = 0; i < EDITS; i++)
	{
		WorkloadEdit edit = workload_edit_at(user->index, user->operations * EDITS + (uint64_t) i);

		edit_write(&writer, &(Edit){.kind = EDIT_SET,
									.row = (uint32_t) user->index,
									.col = (uint32_t) edit.col,
									.content = {words, (uint32_t) edit.repeats * 4}});
	}
	put_frame(user, payload, (char *) writer.pos);
	user->operations++;
}

static void
put_hello(User *user, const char *token)
{
	char payload[OP_MAX], *to = payload;
	size_t len = strlen(token);

	*to++ = 1;
	to = put_number(to, 2);
	to = put_number(to, len);
	memcpy(to, token, len);
	to = put_number(to + len, (uint64_t) user->index + 1);
	to = put_number(to, 0);
	to = put_number(to, 0);
	put_frame(user, payload, to);
}

static void
user_send(User *user, int64_t now)
{
	while (user->link.out_sent == 0 && now < stop_at && user->link.out_len + OP_MAX <= SEND_BUFFER)
		put_operation(user);
	if (user->link.out_len > 0)
		connection_send(&user->link);
	connection_poll_for(&user->link, user->link.out_len > 0 || now < stop_at);
}

/* ---- what comes ---- */

static uint64_t
get_number(const unsigned char **at)
{
	uint64_t value = 0;

	for (int shift = 0;; shift += 7)
	{
		unsigned char byte = *(*at)++;

		value |= (uint64_t) (byte & 0x7F) << shift;
		if (byte < 0x80)
			return value;
	}
}

static void
check_edits(const unsigned char *edits, size_t len, uint32_t count)
{
	EditReader reader;
	Edit edit;
	uint32_t seen = 0;

	edit_reader_init_edits(&reader, edits, len, count);
	for (; edit_read(&reader, &edit) == EDIT_OK; seen++)
	{
		WorkloadEdit found = {(int) edit.col, (int) (edit.content.len / 4)};

		if (edit.kind != EDIT_SET || edit.row >= (uint32_t) user_count || edit.content.len % 4 != 0 ||
			edit.content.len > sizeof(words) || memcmp(edit.content.data, words, edit.content.len) != 0)
			strange++;
		else
			(void) workload_check(&models[edit.row], (int) edit.row, found);
	}
	strange += seen != count;
}

static uint64_t
hash_add(uint64_t hash, const unsigned char *data, size_t len)
{
	for (; len >= 8; data += 8, len -= 8)
	{
		uint64_t word;

		memcpy(&word, data, 8);
		hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
		hash ^= hash >> 29;
	}
	for (; len > 0; data++, len--)
		hash = (hash ^ *data) * 0x100000001B3u;
	return hash;
}

static void
user_take_message(User *user, const unsigned char *message, size_t len)
{
	const unsigned char *at = message + 1;
	uint32_t count;

	switch (message[0])
	{
		case MESSAGE_HELLO:
			user->greeted = true;
			return;
		case MESSAGE_EDITS:
			(void) get_number(&at);
			(void) get_number(&at);
			count = (uint32_t) get_number(&at);
			user->edits += count;
			user->bytes += len;
			user->hash = hash_add(user->hash, message, len);
			if (user->index == 0)
				check_edits(at, len - (size_t) (at - message), count);
			return;
		case MESSAGE_ACK:
			user->acked = get_number(&at);
			return;
		case MESSAGE_NACK:
			fail("user %d: operation %llu was refused", user->index, (unsigned long long) get_number(&at));
		case MESSAGE_PEER:
			return;
		default:
			other_messages++;
	}
}

static void
user_take_frames(User *user)
{
	size_t pos = 0;
	uint64_t payload;

	while (pos < user->link.in_len)
	{
		const unsigned char *frame = (unsigned char *) user->link.in + pos;
		size_t header = ws_measure_frame(frame, user->link.in_len - pos, &payload);

		if (header == 0 || header + payload > user->link.in_len - pos)
			break;
		if ((frame[0] & 0x0F) == WS_CLOSE)
			fail("user %d was closed: %.*s", user->index, (int) payload, (const char *) frame + header);
		if ((frame[0] & 0x0F) == 2)
			user_take_message(user, frame + header, payload);
		pos += header + payload;
	}
	connection_consume(&user->link, pos);
}

static void
user_receive(User *user)
{
	if (connection_receive(&user->link) > 0)
		user_take_frames(user);
}

/* ---- joining ---- */

static void
user_connect(User *user, int port, const char *sheet, const char *token)
{
	char path[256];

	connection_init(&user->link, user->index, SEND_BUFFER, READ_BUFFER);
	snprintf(path, sizeof(path), "/sheetws?fid=%s", sheet);
	user->link.fd = ws_open(port, path, "sheet.v2", user->link.in, READ_BUFFER, &user->link.in_len);
	connection_watch(&user->link, poller, user);
	put_hello(user, token);
	connection_send(&user->link);
}

static void
users_join(int port, const char *sheet, const char *tokens_file)
{
	char token[2048];
	FILE *file = fopen(tokens_file, "r");

	if (!file)
		fail("%s: %s", tokens_file, strerror(errno));
	while (fgets(token, sizeof(token), file) && user_count < MAX_USERS)
	{
		User *user = &users[user_count];

		token[strcspn(token, "\r\n")] = '\0';
		user->index = user_count++;
		user_connect(user, port, sheet, token);
		while (!user->greeted)
		{
			user_receive(user);
			usleep(1000);
		}
	}
	fclose(file);
}

/* ---- the run ---- */

static bool
all_received(void)
{
	uint64_t made = 0;

	for (int i = 0; i < user_count; i++)
		made += users[i].operations * EDITS;
	for (int i = 0; i < user_count; i++)
	{
		if (users[i].edits < made || users[i].acked < users[i].operations)
			return false;
	}
	return true;
}

static bool
all_quiet(int64_t now)
{
	for (int i = 0; i < user_count; i++)
	{
		if (now - users[i].link.last_read < GIVE_UP_NS)
			return false;
	}
	return true;
}

static void
run(double seconds)
{
	struct epoll_event events[64];
	int64_t now = now_ns();

	start = now;
	stop_at = start + (int64_t) (seconds * 1e9);
	for (int i = 0; i < user_count; i++)
	{
		users[i].link.last_read = start;
		user_send(&users[i], now);
	}
	while (now < stop_at || (!all_received() && !all_quiet(now)))
	{
		int ready = epoll_wait(poller, events, 64, 100);

		for (int i = 0; i < ready; i++)
		{
			if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
				user_receive(events[i].data.ptr);
			if (events[i].events & EPOLLOUT)
				user_send(events[i].data.ptr, now_ns());
		}
		now = now_ns();
	}
}

static void
result_print(void)
{
	uint64_t made = 0, lost = 0, wrong = strange, changed = 0, received = 0;
	int64_t end = start;

	for (int i = 0; i < user_count; i++)
		made += users[i].operations * EDITS;
	for (int i = 0; i < user_count; i++)
	{
		lost += made > users[i].edits ? made - users[i].edits : 0;
		lost += users[i].operations - users[i].acked;
		received += users[i].edits;
		changed += models[i].changed;
		wrong += models[i].strange + models[i].missing + (models[i].next != users[i].operations * EDITS);
		wrong += users[i].edits > made || users[i].hash != users[0].hash || users[i].bytes != users[0].bytes;
		end = users[i].link.last_read > end ? users[i].link.last_read : end;
	}
	printf("{\"users\":%d,\"sent\":%llu,\"received\":%llu,\"lost\":%llu,\"reordered\":%llu,\"other_messages\":%llu,"
		   "\"changed\":%llu,\"send_seconds\":%.3f,\"total_seconds\":%.3f,\"stream_bytes\":%llu}\n",
		   user_count, (unsigned long long) made, (unsigned long long) received, (unsigned long long) lost,
		   (unsigned long long) wrong, (unsigned long long) other_messages, (unsigned long long) changed,
		   (stop_at - start) / 1e9, (end - start) / 1e9, (unsigned long long) users[0].bytes);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	if (argc != 7 || atof(argv[5]) != 0)
		fail("usage: v2_flood PORT SHEET TOKENS SECONDS 0 CELLS");
	for (size_t i = 0; i < sizeof(words) - 1; i++)
		words[i] = WORKLOAD_WORD[i % 4];
	poller = epoll_create1(EPOLL_CLOEXEC);
	users_join(atoi(argv[1]), argv[2], argv[3]);
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	run(atof(argv[4]));
	workload_write_cells(models, user_count, argv[6]);
	result_print();
	while (getchar() != EOF)
		;
	return 0;
}
