/*
 * crowd.c - many WebSockets in one process: users of many sheets that write a little, thousands who watch or sit idle.
 *
 *     crowd PORT MEMBERS RATE SECONDS WRITERS ORDER [GIVE_UP]
 *
 * MEMBERS is a file with a line "SHEET TOKEN" for each WebSocket, those of a sheet together. RATE is edits a second and
 * sheet on an open loop, made in turn by the first WRITERS members of the sheet. It prints "ready" when all have
 * joined, writes from the next line of its standard input on for SECONDS, prints its result as one line of JSON when
 * everything has come back to everybody (or nothing has come for GIVE_UP = 10 s), writes to ORDER the edits of each
 * sheet as its first member received them ("SHEET CONTENT"), and ends with its input.
 *
 * Edit n of a sheet has the content "WRITER:n", so every receiver knows what must come next from each writer; a hash of
 * what it received in which order is compared with that of the sheet's first member. Latencies are from when an edit
 * was due: to its own writer's receiving it (echo), and to the last member's receiving it (last).
 *
 * During the run it sleeps, and looks at all sockets every STEP_NS, instead of waiting in epoll_wait(): people's
 * browsers run on machines of their own, and here the gateway would have to wake this process with most of its writes.
 * That makes latencies up to two steps longer, never shorter.
 */
#include "basics.h"
#include "latencies.h"
#include "ws_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_BUFFER (256 * 1024)
#define JOINING_MAX 64 /* at once: the gateway's queue of new connections is finite */
#define JOIN_NS		INT64_C(20000000000)
#define STEP_NS		INT64_C(500000)
#define EVENTS_MAX	1024

typedef struct SheetEdit
{
	int64_t due;
	int left; /* members that have not got it */
} SheetEdit;

typedef struct Sheet
{
	char id[24];
	int first, members;
	uint32_t made, room;
	SheetEdit *edits;
} Sheet;

typedef enum MemberState
{
	MEMBER_UPGRADING,
	MEMBER_JOINING, /* waits for onConn */
	MEMBER_LIVE
} MemberState;

typedef struct Member
{
	int fd;
	MemberState state;
	int sheet;
	int position; /* in the sheet: a writer's number */
	char *token;
	char *rest; /* the beginning of a frame */
	size_t rest_len;
	uint32_t received, strange;
	uint32_t *next; /* of each writer's edits, the one that must come */
	uint64_t hash;
} Member;

static Member *members;
static int member_count, live_count;
static Sheet *sheets;
static int sheet_count;
static int writers;
static double rate;
static double give_up = 10; /* seconds without any message */
static int64_t start, stop_at, last_news;
static Latencies echo_times, last_times;
static int poller, port;
static FILE *order;
static char read_buffer[READ_BUFFER];

/* ---- receiving ---- */

static void
member_send(Member *member, const char *data, size_t len)
{
	if (send(member->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t) len)
		fail("sheet %s: the gateway does not take a message of %zu bytes", sheets[member->sheet].id, len);
}

/* Behind the digits; NULL when there are none. */
static const char *
number_read(const char *at, const char *end, uint32_t *number)
{
	const char *from = at;

	for (*number = 0; at < end && *at >= '0' && *at <= '9'; at++)
		*number = *number * 10 + (uint32_t) (*at - '0');
	return at > from ? at : NULL;
}

/* "WRITER:n" behind the key content. */
static bool
message_read(const char *text, size_t len, uint32_t *writer, uint32_t *number)
{
	static const char key[] = "\"content\":\"";
	const char *at = memmem(text, len, key, sizeof(key) - 1);
	const char *end = text + len;

	if (!at)
		return false;
	at = number_read(at + sizeof(key) - 1, end, writer);
	if (!at || at == end || *at != ':')
		return false;
	at = number_read(at + 1, end, number);
	return at && at < end && *at == '"';
}

static void
message_take(Member *member, const char *text, size_t len, int64_t now)
{
	Sheet *sheet = &sheets[member->sheet];
	uint32_t writer, number;

	if (!message_read(text, len, &writer, &number) || (int) writer >= writers || number >= sheet->made ||
		member->next[writer] != number)
	{
		if (member->strange++ == 0)
			fprintf(stderr, "crowd: sheet %s: not what must come next: %.*s\n", sheet->id,
					(int) (len < 200 ? len : 200), text);
		return;
	}
	member->next[writer] = number + (uint32_t) writers;
	member->hash = (member->hash ^ number) * UINT64_C(0x9E3779B97F4A7C15);
	member->hash ^= member->hash >> 29;
	member->received++;
	if (member->position == 0)
		fprintf(order, "%s %u:%u\n", sheet->id, writer, number);
	if (member->position == (int) writer)
		latencies_add(&echo_times, sheet->edits[number].due, now);
	if (--sheet->edits[number].left == 0)
		latencies_add(&last_times, sheet->edits[number].due, now);
}

static void
frame_take(Member *member, const unsigned char *frame, size_t header, size_t len, int64_t now)
{
	char pong[160];
	int opcode = frame[0] & 0x0F;

	if (opcode == WS_CLOSE)
		fail("sheet %s: closed with code %d", sheets[member->sheet].id,
			 len >= 2 ? frame[header] << 8 | frame[header + 1] : 0);
	if (opcode == WS_PING)
		member_send(member, pong, ws_write_frame(pong, WS_PONG, frame + header, len, 0));
	else if (opcode == WS_TEXT && member->state == MEMBER_JOINING)
	{
		if (!memmem(frame + header, len, "onConn", 6))
			fail("the first message is not onConn");
		member->state = MEMBER_LIVE;
		live_count++;
	}
	else if (opcode == WS_TEXT)
		message_take(member, (const char *) frame + header, len, now);
}

/* The answer to the upgrade; how much of the data it was. */
static size_t
upgrade_take(Member *member, const char *data, size_t len)
{
	const char *end = memmem(data, len, "\r\n\r\n", 4);

	if (!end)
		return 0;
	if (strncmp(data, "HTTP/1.1 101", 12) != 0)
		fail("the upgrade was refused: %.*s", (int) len, data);
	member->state = MEMBER_JOINING;
	return (size_t) (end + 4 - data);
}

/* Takes what is whole; how much. */
static size_t
bytes_take(Member *member, const char *data, size_t len, int64_t now)
{
	size_t pos = member->state == MEMBER_UPGRADING ? upgrade_take(member, data, len) : 0;
	uint64_t payload;

	while (member->state != MEMBER_UPGRADING && pos < len)
	{
		const unsigned char *frame = (const unsigned char *) data + pos;
		size_t header = ws_measure_frame(frame, len - pos, &payload);

		if (header == 0 || header + payload > len - pos)
			break;
		frame_take(member, frame, header, payload, now);
		pos += header + payload;
	}
	return pos;
}

/* Whether there may be more. */
static bool
member_receive_once(Member *member)
{
	size_t len = member->rest_len, taken;
	size_t room = READ_BUFFER - len;
	ssize_t got = recv(member->fd, read_buffer + len, room, MSG_DONTWAIT);

	if (got < 0 && errno == EAGAIN)
		return false;
	if (got <= 0)
		fail("sheet %s: the gateway closed a connection", sheets[member->sheet].id);
	if (len > 0)
		memcpy(read_buffer, member->rest, len);
	len += (size_t) got;
	last_news = now_ns();
	taken = bytes_take(member, read_buffer, len, last_news);
	member->rest_len = len - taken;
	if (member->rest_len == READ_BUFFER)
		fail("a message is too long");
	free(member->rest);
	member->rest = member->rest_len > 0 ? allocate(member->rest_len) : NULL;
	if (member->rest_len > 0)
		memcpy(member->rest, read_buffer + taken, member->rest_len);
	return (size_t) got == room;
}

/* All that is there, with the end behind it: the poller tells only of what comes later. */
static void
member_receive(Member *member, uint32_t events)
{
	bool ends = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);

	while (member_receive_once(member) || ends)
		;
}

static void
poll_once(int timeout_ms)
{
	struct epoll_event events[EVENTS_MAX];
	int ready = epoll_wait(poller, events, EVENTS_MAX, timeout_ms);

	for (int i = 0; i < ready; i++)
		member_receive(events[i].data.ptr, events[i].events);
}

/* ---- joining ---- */

static void
members_read(const char *path)
{
	char sheet[24], token[4096];
	int room = 0;
	FILE *file = fopen(path, "r");

	if (!file)
		fail("%s: %s", path, strerror(errno));
	while (fscanf(file, "%23s %4095s", sheet, token) == 2)
	{
		if (member_count == room)
		{
			room = room > 0 ? room * 2 : 1024;
			members = realloc(members, (size_t) room * sizeof(Member));
			sheets = realloc(sheets, (size_t) room * sizeof(Sheet));
			if (!members || !sheets)
				fail("out of memory");
		}
		if (sheet_count == 0 || strcmp(sheets[sheet_count - 1].id, sheet) != 0)
		{
			sheets[sheet_count] = (Sheet){.first = member_count};
			strcpy(sheets[sheet_count++].id, sheet);
		}
		members[member_count++] = (Member){.fd = -1,
										   .sheet = sheet_count - 1,
										   .position = sheets[sheet_count - 1].members++,
										   .token = strdup(token),
										   .next = allocate((size_t) writers * sizeof(uint32_t))};
		for (int i = 0; i < writers; i++)
			members[member_count - 1].next[i] = (uint32_t) i;
	}
	fclose(file);
	if (member_count == 0)
		fail("%s has no members", path);
}

static void
member_connect(Member *member)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = member};
	char path[8192], request[sizeof(path) + 512];

	snprintf(path, sizeof(path), "/sheetws?token=%s&fid=%s", member->token, sheets[member->sheet].id);
	member->fd = ws_connect(port);
	if (epoll_ctl(poller, EPOLL_CTL_ADD, member->fd, &event) != 0)
		fail("epoll: %s", strerror(errno));
	member_send(member, request, ws_write_upgrade(request, sizeof(request), port, path, NULL));
}

static void
members_join(void)
{
	int64_t since = now_ns();
	int live = 0;

	for (int begun = 0; live_count < member_count;)
	{
		while (begun < member_count && begun - live_count < JOINING_MAX)
			member_connect(&members[begun++]);
		poll_once(100);
		if (live_count > live)
			since = now_ns();
		live = live_count;
		if (now_ns() - since > JOIN_NS)
			fail("%d of %d have joined, and nobody else does", live_count, member_count);
	}
}

/* ---- the run ---- */

static void
sheet_write(Sheet *sheet, int64_t due)
{
	uint32_t number = sheet->made++;
	uint32_t writer = number % (uint32_t) writers;
	char text[128], frame[160];
	size_t len;

	if (number == sheet->room)
	{
		sheet->room = sheet->room > 0 ? sheet->room * 2 : 1024;
		sheet->edits = realloc(sheet->edits, sheet->room * sizeof(SheetEdit));
		if (!sheet->edits)
			fail("out of memory");
	}
	sheet->edits[number] = (SheetEdit){due, sheet->members};
	len = (size_t) snprintf(
		text, sizeof(text),
		"{\"msgType\":\"modify\",\"body\":{\"row\":%u,\"col\":%u,\"content\":\"%u:%u\",\"info\":null}}", writer % 10,
		number % 10, writer, number);
	member_send(&members[sheet->first + (int) writer], frame, ws_write_frame(frame, WS_TEXT, text, len, 0));
}

/* Sends what is due, and returns whether everything has come back. */
static bool
sheets_write(int64_t now)
{
	bool complete = now >= stop_at;
	int64_t until = now < stop_at ? now : stop_at;

	for (int i = 0; i < sheet_count; i++)
	{
		Sheet *sheet = &sheets[i];

		for (;;)
		{
			/* The sheets do not write all at the same moment. */
			int64_t due = start + (int64_t) ((sheet->made + (double) i / sheet_count) / rate * 1e9);

			if (due >= until)
				break;
			sheet_write(sheet, due);
		}
	}
	return complete;
}

static bool
all_received(void)
{
	for (int i = 0; i < member_count; i++)
	{
		if (members[i].received + members[i].strange < sheets[members[i].sheet].made)
			return false;
	}
	return true;
}

/* Until the next step; one that has been missed is left out. */
static void
step_sleep(int64_t *next)
{
	int64_t now = now_ns();
	struct timespec until;

	while (*next <= now)
		*next += STEP_NS;
	until = (struct timespec){*next / 1000000000, *next % 1000000000};
	(void) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void
run(double seconds)
{
	int64_t next = now_ns();

	start = last_news = next;
	stop_at = start + (int64_t) (seconds * 1e9);
	for (;;)
	{
		int64_t now = now_ns();
		bool sent = rate > 0 ? sheets_write(now) : now >= stop_at;

		if (sent && (all_received() || now - last_news > (int64_t) (give_up * 1e9)))
			return;
		poll_once(0);
		step_sleep(&next);
	}
}

/* ---- the result ---- */

static void
latencies_print(const char *name, Latencies *latencies)
{
	latencies_sort(latencies);
	printf(",\"%s_p50_ms\":%.3f,\"%s_p99_ms\":%.3f,\"%s_max_ms\":%.3f", name, latencies_percentile(latencies, 0.5),
		   name, latencies_percentile(latencies, 0.99), name, latencies_percentile(latencies, 1));
}

static void
result_print(void)
{
	uint64_t sent = 0, received = 0, lost = 0, reordered = 0;

	for (int i = 0; i < sheet_count; i++)
		sent += sheets[i].made;
	for (int i = 0; i < member_count; i++)
	{
		const Member *member = &members[i];
		const Sheet *sheet = &sheets[member->sheet];

		received += member->received;
		lost += sheet->made > member->received ? sheet->made - member->received : 0;
		reordered += member->strange + (member->hash != members[sheet->first].hash);
	}
	printf("{\"members\":%d,\"sheets\":%d,\"sent\":%llu,\"received\":%llu,\"lost\":%llu,\"reordered\":%llu",
		   member_count, sheet_count, (unsigned long long) sent, (unsigned long long) received,
		   (unsigned long long) lost, (unsigned long long) reordered);
	latencies_print("echo", &echo_times);
	latencies_print("last", &last_times);
	puts("}");
	fflush(stdout);
}

/* As many descriptors as members, and some. */
static void
raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void) setrlimit(RLIMIT_NOFILE, &limit);
}

int
main(int argc, char **argv)
{
	if (argc != 7 && argc != 8)
		fail("usage: crowd PORT MEMBERS RATE SECONDS WRITERS ORDER [GIVE_UP]");
	if (argc == 8)
		give_up = atof(argv[7]);
	port = atoi(argv[1]);
	rate = atof(argv[3]);
	writers = atoi(argv[5]);
	order = fopen(argv[6], "w");
	if (!order || writers < 1)
		fail("%s: %s", argv[6], order ? "at least one writer" : strerror(errno));
	raise_limit();
	poller = epoll_create1(EPOLL_CLOEXEC);
	members_read(argv[2]);
	members_join();
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	run(atof(argv[4]));
	fclose(order);
	result_print();
	while (getchar() != EOF)
		;
	return 0;
}
