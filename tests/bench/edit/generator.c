/*
 * generator.c - the users of the benchmark, in one process: an epoll loop and just enough of a WebSocket client.
 *
 *     generator PORT SHEET TOKENS SECONDS RATE CELLS [GIVE_UP]
 *
 * TOKENS is a file with one token a line, one for each user; RATE is edits a second and user on an open loop, 0 is as
 * fast as TCP takes them. It prints "ready" when all have joined, starts at the next line of its standard input, prints
 * its result as one line of JSON when everything that was sent has come back to everybody (or nothing has come for 15
 * s), writes to CELLS the cells that must be in the sheet now ("row col repeats"), and ends with its input.
 *
 * Verification is cheap, so that it measures the server and not itself. All users get the same bytes in the same order
 * from the first edit on, since all have joined before it. User 0 reads every message and holds it against the sequence
 * of its sender (workload.h). The others walk the frame headers only, count frames, and hash headers and payloads
 * (control frames left out): the same count, bytes and hash as user 0's mean the same edits in the same total order.
 *
 * Latency is from when the sender made an edit (on an open loop: from when it was due) to when that same sender got its
 * echo. Every SAMPLE_EVERYth edit is timed: user 0 finds its place in the common stream, and the sender's own reads say
 * when the sender had got that far.
 */
#include "basics.h"
#include "connection.h"
#include "latencies.h"
#include "workload.h"
#include "ws_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_USERS	 500
#define SEND_BUFFER	 16384
#define READ_BUFFER	 (256 * 1024)
#define SAMPLE_EVERY 16
#define SENT_TIMES	 65536 /* samples of one sender that may be under way */
#define READ_LOG	 4096

/* A hash of a byte stream in four lanes; how the stream is cut into pieces does not matter. */
typedef struct StreamHash
{
	uint64_t lanes[4];
	uint64_t len;
	unsigned char rest[32];
} StreamHash;

typedef struct ReadMark
{
	uint64_t offset; /* of the common stream, after this read */
	int64_t at;
} ReadMark;

typedef struct Sample
{
	uint64_t offset;
	int64_t sent;
} Sample;

typedef struct User
{
	int index;
	Connection link;
	uint64_t made;	  /* edits put into the buffer */
	int64_t *sent_at; /* of every SAMPLE_EVERYth edit, a ring */
	/* receiving */
	uint64_t frames;
	StreamHash hash;
	ReadMark *marks; /* a ring of READ_LOG */
	uint64_t mark_count;
	Sample *pending; /* a ring of SENT_TIMES: samples whose place this user has not reached */
	uint64_t pending_head, pending_tail;
} User;

static User users[MAX_USERS];
static WorkloadModel models[MAX_USERS];
static int user_count;
static double rate;
static double give_up = 15; /* seconds without any message */
static int64_t start, stop_at;
static uint64_t other_messages;
static Latencies latencies;
static int poller;

/* ---- hash ---- */

static void
hash_block(StreamHash *hash, const unsigned char *block)
{
	for (int lane = 0; lane < 4; lane++)
	{
		uint64_t word;

		memcpy(&word, block + lane * 8, 8);
		word = (hash->lanes[lane] ^ word) * 0x9E3779B97F4A7C15u;
		hash->lanes[lane] = word ^ (word >> 29);
	}
}

static void
hash_add(StreamHash *hash, const char *data, size_t len)
{
	size_t rest = hash->len % 32;

	hash->len += len;
	if (rest > 0)
	{
		size_t take = 32 - rest < len ? 32 - rest : len;

		memcpy(hash->rest + rest, data, take);
		data += take;
		len -= take;
		if (rest + take < 32)
			return;
		hash_block(hash, hash->rest);
	}
	for (; len >= 32; data += 32, len -= 32)
		hash_block(hash, (const unsigned char *) data);
	memcpy(hash->rest, data, len);
}

static uint64_t
hash_value(const StreamHash *hash)
{
	StreamHash copy = *hash;

	memset(copy.rest + copy.len % 32, 0, 32 - copy.len % 32);
	hash_block(&copy, copy.rest);
	return copy.lanes[0] ^ copy.lanes[1] * 3 ^ copy.lanes[2] * 5 ^ copy.lanes[3] * 7;
}

/* ---- latency ---- */

/* User 0 has met a timed edit of the user at this place: when did, or will, the user get there? */
static void
latency_sample(User *user, uint64_t offset, uint64_t index)
{
	int64_t sent = user->sent_at[index / SAMPLE_EVERY % SENT_TIMES];

	if (user->hash.len < offset)
	{
		if (user->pending_head - user->pending_tail < SENT_TIMES)
			user->pending[user->pending_head++ % SENT_TIMES] = (Sample){offset, sent};
		return;
	}
	for (uint64_t i = user->mark_count; i > 0 && user->mark_count - i < READ_LOG; i--)
	{
		bool first = i == 1 || user->marks[(i - 2) % READ_LOG].offset < offset;

		if (first)
		{
			latencies_add(&latencies, sent, user->marks[(i - 1) % READ_LOG].at);
			return;
		}
	}
}

static void
latency_note_read(User *user, int64_t at)
{
	user->marks[user->mark_count++ % READ_LOG] = (ReadMark){user->hash.len, at};
	while (user->pending_tail != user->pending_head &&
		   user->pending[user->pending_tail % SENT_TIMES].offset <= user->hash.len)
		latencies_add(&latencies, user->pending[user->pending_tail++ % SENT_TIMES].sent, at);
}

/* ---- receiving ---- */

/* A ping is answered, a close ends the benchmark. */
static void
control_frame(User *user, const unsigned char *frame, size_t header, size_t len)
{
	int opcode = frame[0] & 0x0F;

	if (opcode == WS_CLOSE)
		fail("user %d was closed with code %d", user->index, len >= 2 ? frame[header] << 8 | frame[header + 1] : 0);
	if (opcode == WS_PING)
	{
		/* It goes between whole frames: the buffer holds nothing else, and this fits behind what is there. */
		if (user->link.out_len + 6 + len > SEND_BUFFER + 1024)
			return; /* the next ping comes, and edits are a sign of life, too */
		user->link.out_len += ws_write_frame(user->link.out + user->link.out_len, WS_PONG, frame + header, len, 0);
	}
}

static void
message_check(const char *text, size_t len, uint64_t offset)
{
	WorkloadEdit edit;
	uint64_t index;
	int row;

	if (!workload_read_message(text, len, &row, &edit) || row < 0 || row >= user_count)
	{
		if (other_messages++ == 0)
			fprintf(stderr, "generator: an unexpected message: %.*s\n", (int) (len < 300 ? len : 300), text);
		return;
	}
	index = workload_check(&models[row], row, edit);
	if (index != UINT64_MAX && index % SAMPLE_EVERY == 0)
		latency_sample(&users[row], offset, index);
}

/* Takes the whole frames in the buffer, keeps the rest. */
static void
frames_take(User *user, int64_t at)
{
	size_t pos = 0, run = 0; /* run: start of the data frames that are not hashed yet */
	uint64_t payload;

	while (pos < user->link.in_len)
	{
		const unsigned char *frame = (unsigned char *) user->link.in + pos;
		size_t header = ws_measure_frame(frame, user->link.in_len - pos, &payload);

		if (header == 0 || header + payload > user->link.in_len - pos)
			break;
		if (frame[0] & 0x08)
		{
			hash_add(&user->hash, user->link.in + run, pos - run);
			control_frame(user, frame, header, payload);
			run = pos + header + payload;
		}
		else
		{
			user->frames++;
			if (user->index == 0)
			{
				/* Offsets are of the common stream: what is hashed, and what is about to be. */
				uint64_t offset = user->hash.len + (pos + header + payload - run);

				message_check((const char *) frame + header, payload, offset);
			}
		}
		pos += header + payload;
	}
	hash_add(&user->hash, user->link.in + run, pos - run);
	connection_consume(&user->link, pos);
	latency_note_read(user, at);
}

static void
user_receive(User *user)
{
	for (int i = 0; i < 4; i++)
	{
		size_t got = connection_receive(&user->link);

		if (got > 0)
			frames_take(user, user->link.last_read);
		if (got < READ_BUFFER / 2)
			return;
	}
}

/* ---- sending ---- */

/* Fills the empty buffer with the edits that are due. */
static void
edits_make(User *user, int64_t now)
{
	uint64_t due = UINT64_MAX;

	if (rate > 0)
		due = (uint64_t) (((now < stop_at ? now : stop_at) - start) / 1e9 * rate);
	else if (now >= stop_at)
		return;
	while (user->made < due && user->link.out_len + WORKLOAD_FRAME_MAX <= SEND_BUFFER)
	{
		if (user->made % SAMPLE_EVERY == 0)
			user->sent_at[user->made / SAMPLE_EVERY % SENT_TIMES] =
				rate > 0 ? start + (int64_t) ((user->made + 1) / rate * 1e9) : now;
		user->link.out_len += workload_write_frame(user->link.out + user->link.out_len, user->index, user->made);
		user->made++;
	}
}

static void
user_send(User *user, int64_t now)
{
	Connection *link = &user->link;

	for (int i = 0; i < 4; i++)
	{
		if (link->out_len == 0)
			edits_make(user, now);
		if (link->out_len == 0)
		{
			connection_poll_for(link, false);
			return;
		}
		connection_send(link);
		if (link->out_len > 0)
			break;
	}
	connection_poll_for(link, true);
}

/* ---- joining ---- */

/* Connects, asks for the upgrade, and reads up to the end of onConn. */
static void
user_join(User *user, int index, int port, const char *sheet, const char *token)
{
	char path[8192];
	size_t header;
	uint64_t payload;

	user->index = index;
	connection_init(&user->link, index, SEND_BUFFER + 2048, READ_BUFFER);
	user->sent_at = allocate(SENT_TIMES * sizeof(int64_t));
	user->marks = allocate(READ_LOG * sizeof(ReadMark));
	user->pending = allocate(SENT_TIMES * sizeof(Sample));
	snprintf(path, sizeof(path), "/sheetws?token=%s&fid=%s", token, sheet);
	user->link.fd = ws_open(port, path, NULL, user->link.in, READ_BUFFER, &user->link.in_len);
	while ((header = ws_measure_frame((unsigned char *) user->link.in, user->link.in_len, &payload)) == 0 ||
		   user->link.in_len < header + payload)
	{
		ssize_t got = ws_recv(user->link.fd, user->link.in + user->link.in_len, READ_BUFFER - user->link.in_len);

		if (got <= 0)
			fail("user %d: the gateway closed the connection before onConn", index);
		user->link.in_len += (size_t) got;
	}
	if (!memmem(user->link.in, header + payload, "onConn", 6) || user->link.in_len != header + payload)
		fail("user %d: the first message is not onConn, or not the only one: %.*s", index,
			 (int) (user->link.in_len < 400 ? user->link.in_len : 400), user->link.in);
	user->link.in_len = 0;
	connection_watch(&user->link, poller, user);
}

static void
users_join(int port, const char *sheet, const char *tokens_file)
{
	char token[4096];
	FILE *file = fopen(tokens_file, "r");

	if (!file)
		fail("%s: %s", tokens_file, strerror(errno));
	while (fgets(token, sizeof(token), file))
	{
		token[strcspn(token, "\r\n")] = '\0';
		if (user_count == MAX_USERS)
			fail("at most %d users", MAX_USERS);
		user_join(&users[user_count], user_count, port, sheet, token);
		user_count++;
	}
	fclose(file);
	if (user_count == 0)
		fail("no tokens");
}

/* ---- the run ---- */

static uint64_t
edits_made(void)
{
	uint64_t made = 0;

	for (int i = 0; i < user_count; i++)
		made += users[i].made;
	return made;
}

/* Has everything that was made been sent, and come back to everybody? */
static bool
all_received(void)
{
	uint64_t made = edits_made();

	for (int i = 0; i < user_count; i++)
		if (users[i].frames < made || users[i].link.out_sent < users[i].link.out_len)
			return false;
	return true;
}

static bool
all_quiet(int64_t now)
{
	for (int i = 0; i < user_count; i++)
		if (now - users[i].link.last_read < give_up * 1e9)
			return false;
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
	for (;;)
	{
		int ready = epoll_wait(poller, events, 64, rate > 0 ? 1 : 100);

		for (int i = 0; i < ready; i++)
		{
			if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
				user_receive(events[i].data.ptr);
			if (events[i].events & EPOLLOUT)
				user_send(events[i].data.ptr, now_ns());
		}
		now = now_ns();
		for (int i = 0; i < user_count; i++)
			if (rate > 0 || users[i].link.out_len > users[i].link.out_sent)
				if (!users[i].link.wants_write)
					user_send(&users[i], now);
		if (now >= stop_at && (all_received() || all_quiet(now)))
			return;
	}
}

/* ---- the result ---- */

static void
result_print(void)
{
	uint64_t made = edits_made(), lost = 0, reordered = 0, changed = 0, differing = 0, received = 0;
	int64_t end = start;

	for (int i = 0; i < user_count; i++)
	{
		lost += made > users[i].frames ? made - users[i].frames : 0;
		received += users[i].frames;
		reordered += models[i].strange;
		changed += models[i].changed;
		if (users[i].frames != users[0].frames || users[i].hash.len != users[0].hash.len ||
			hash_value(&users[i].hash) != hash_value(&users[0].hash))
			differing++;
		if (users[i].link.last_read > end)
			end = users[i].link.last_read;
		/* Skipped by the check, though the count is right: doubled elsewhere. */
		if (models[i].next != users[i].made && users[0].frames >= made)
			reordered++;
	}
	latencies_sort(&latencies);
	printf(
		"{\"users\":%d,\"sent\":%llu,\"received\":%llu,\"lost\":%llu,\"reordered\":%llu,\"differing_users\":%llu,"
		"\"other_messages\":%llu,"
		"\"changed\":%llu,\"send_seconds\":%.3f,\"total_seconds\":%.3f,\"stream_bytes\":%llu,\"latency_samples\":%zu,"
		"\"p50_ms\":%.3f,\"p90_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f}\n",
		user_count, (unsigned long long) made, (unsigned long long) received, (unsigned long long) lost,
		(unsigned long long) (reordered + differing), (unsigned long long) differing,
		(unsigned long long) other_messages, (unsigned long long) changed, (stop_at - start) / 1e9, (end - start) / 1e9,
		(unsigned long long) users[0].hash.len, latencies.count, latencies_percentile(&latencies, 0.5),
		latencies_percentile(&latencies, 0.9), latencies_percentile(&latencies, 0.99),
		latencies_percentile(&latencies, 1));
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	if (argc != 7 && argc != 8)
		fail("usage: generator PORT SHEET TOKENS SECONDS RATE CELLS [GIVE_UP]");
	if (argc == 8)
		give_up = atof(argv[7]);
	rate = atof(argv[5]);
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
