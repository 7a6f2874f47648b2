/*
 * coord_probe.c - a gateway's coordination without the gateway, for tests/gateway/coord.test.mjs.
 *
 * Prints every event of coord.h as a line: "ready", "members A B", "suspended", "resumed", "granted SHEET EPOCH",
 * "waiting SHEET HOLDER", "lost SHEET REASON", "fatal REASON", "closed". Reads commands on standard input: acquire
 * SHEET, release SHEET, owner SHEET (prints "owner SHEET NAME"), owners COUNT (one line for sheets 1..COUNT), drain,
 * hang MS (the loop stands still), close (or end of input).
 *
 *     coord_probe postgres|zookeeper MEMBER WEIGHT CONNINFO|HOSTS [ROOT SESSION_MS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coord/coord.h"

/*
 * libzookeeper 3.8.0 forgets requests that are unanswered when a session that lost contact is closed: some hundred
 * bytes each time. Leaks of our own are still reported.
 */
extern const char *__lsan_default_suppressions(void);
const char *
__lsan_default_suppressions(void)
{
	return "leak:libzookeeper_mt.so\n";
}

static Coord *coord;
static uv_pipe_t input;
static char line[256];
static size_t line_len;
static bool is_closing;

static void
on_done(void *arg)
{
	printf("closed\n");
}

static void
close_all(void)
{
	if (is_closing)
		return;
	is_closing = true;
	coord_close(coord, on_done, NULL);
	uv_close((uv_handle_t *) &input, NULL);
}

static void
on_ready(void *arg)
{
	printf("ready\n");
}

static void
on_members(void *arg, const char *const *names, int count)
{
	printf("members");
	for (int i = 0; i < count; i++)
		printf(" %s", names[i]);
	printf("\n");
}

static void
on_suspended(void *arg)
{
	printf("suspended\n");
}

static void
on_resumed(void *arg)
{
	printf("resumed\n");
}

static void
on_granted(void *arg, int64_t sheet_id, int64_t epoch)
{
	printf("granted %lld %lld\n", (long long) sheet_id, (long long) epoch);
}

static void
on_waiting(void *arg, int64_t sheet_id, const char *holder)
{
	printf("waiting %lld %s\n", (long long) sheet_id, holder);
}

static void
on_lost(void *arg, int64_t sheet_id, const char *reason)
{
	printf("lost %lld %s\n", (long long) sheet_id, reason);
}

static void
on_fatal(void *arg, const char *reason)
{
	printf("fatal %s\n", reason);
	close_all();
}

static void
print_owners(int count)
{
	printf("owners");
	for (int id = 1; id <= count; id++)
	{
		const char *owner = coord_owner_of(coord, id);

		printf(" %s", owner ? owner : "-");
	}
	printf("\n");
}

static void
run_command(const char *text)
{
	char verb[32];
	long long number = 0;

	if (sscanf(text, "%31s %lld", verb, &number) < 1)
		return;
	if (strcmp(verb, "acquire") == 0)
		coord_acquire(coord, number);
	else if (strcmp(verb, "release") == 0)
		coord_release(coord, number);
	else if (strcmp(verb, "owner") == 0)
	{
		const char *owner = coord_owner_of(coord, number);

		printf("owner %lld %s%s\n", number, owner ? owner : "-", coord_is_mine(coord, number) ? " (mine)" : "");
	}
	else if (strcmp(verb, "owners") == 0)
		print_owners((int) number);
	else if (strcmp(verb, "drain") == 0)
		coord_set_state(coord, COORD_DRAINING);
	else if (strcmp(verb, "hang") == 0)
		nanosleep(&(struct timespec){number / 1000, number % 1000 * 1000000}, NULL);
	else if (strcmp(verb, "close") == 0)
		close_all();
	else
		printf("unknown command %s\n", verb);
}

static void
give_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
	static char bytes[4096];

	*buffer = uv_buf_init(bytes, sizeof(bytes));
}

static void
on_input(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	if (len < 0)
		close_all();
	for (ssize_t i = 0; i < len && !is_closing; i++)
		if (buffer->base[i] == '\n')
		{
			line[line_len] = '\0';
			line_len = 0;
			run_command(line);
		}
		else if (line_len + 1 < sizeof(line))
			line[line_len++] = buffer->base[i];
}

int
main(int argc, char **argv)
{
	CoordEvents events = {NULL,		  on_ready,	  on_members, on_suspended, on_resumed,
						  on_granted, on_waiting, on_lost,	  on_fatal,		NULL};
	CoordConfig config = {0};
	uv_loop_t loop;

	if (argc < 5)
	{
		fprintf(stderr, "usage: coord_probe postgres|zookeeper MEMBER WEIGHT CONNINFO|HOSTS [ROOT SESSION_MS]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	config.kind = argv[1];
	config.member = config.peer = argv[2];
	config.weight = (unsigned) atoi(argv[3]);
	config.conninfo = config.zk_hosts = argv[4];
	config.zk_root = argc > 5 ? argv[5] : "/pg_sheet";
	config.zk_session_ms = argc > 6 ? (unsigned) atoi(argv[6]) : 2000;
	uv_loop_init(&loop);
	coord = coord_open(&loop, &config, &events);
	uv_pipe_init(&loop, &input, 0);
	uv_pipe_open(&input, 0);
	uv_read_start((uv_stream_t *) &input, give_buffer, on_input);
	uv_run(&loop, UV_RUN_DEFAULT);
	return uv_loop_close(&loop) == 0 ? 0 : 1; /* 1: a handle was left on the loop */
}
