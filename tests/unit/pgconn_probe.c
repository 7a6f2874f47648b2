/*
 * pgconn_probe.c - a connection whose server process is killed before queries are sent, for
 * tests/gateway/fire.test.mjs.
 *
 * libpq closes its socket inside of a call that only wanted to send. The number of that socket is the next one that
 * the process gets, perhaps for a client that connects in the same turn of the loop: libuv must not take the client
 * for the old connection, which it would do if the connection still watched that number.
 *
 *     pgconn_probe CONNINFO
 *
 * Prints "server PID", waits for a line on standard input (the server process is gone), and prints "reused" when
 * queries have closed the socket and its number could be watched anew, "woken" when what has the number now becomes
 * readable, "again" when a query is answered over a new connection. Anything else ends it with status 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "db/pgconn.h"

static char server_pid[32];
static int lost;
static bool answered;
static bool woken;

static void
fail(const char *what)
{
	printf("failed: %s\n", what);
	exit(1);
}

static void
on_state(void *arg, bool up)
{
}

static void
on_pid(void *arg, PGresult *res)
{
	if (PQresultStatus(res) != PGRES_TUPLES_OK)
		fail("the first query");
	snprintf(server_pid, sizeof(server_pid), "%s", PQgetvalue(res, 0, 0));
}

static void
on_lost(void *arg, PGresult *res)
{
	if (res != NULL)
		fail("a query was answered by a server that is gone");
	lost++;
}

static void
on_answer(void *arg, PGresult *res)
{
	if (PQresultStatus(res) != PGRES_TUPLES_OK)
		fail("the last query");
	answered = true;
}

static void
on_readable(uv_poll_t *poll, int status, int events)
{
	if (status != 0)
		fail(uv_strerror(status));
	woken = true;
	uv_poll_stop(poll);
}

/* The number that the process gets next. */
static int
next_number(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		fail("eventfd");
	return fd;
}

int
main(int argc, char **argv)
{
	static const char *const ask_pid = "SELECT pg_backend_pid()";
	uv_loop_t *loop = uv_default_loop();
	uint64_t one = 1;
	uv_poll_t poll;
	PgConn *conn;
	int before;
	int reused;
	char line[8];
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		fail("usage: pgconn_probe CONNINFO");
	conn = pgconn_open(loop, argv[1], &(PgConnOptions){.name = "probe", .state_fn = on_state});
	pgconn_query(conn, ask_pid, 0, NULL, 0, 20000, on_pid, NULL);
	while (server_pid[0] == '\0')
		uv_run(loop, UV_RUN_ONCE);
	before = next_number();
	close(before);
	printf("server %s\n", server_pid);
	if (fgets(line, sizeof(line), stdin) == NULL)
		fail("end of input");

	/* libpq says of the first that it is sent, and finds at the second that nothing can be. */
	for (int i = 0; i < 2; i++)
		pgconn_query(conn, ask_pid, 0, NULL, 0, 20000, on_lost, NULL);
	reused = next_number();
	if (reused == before)
		fail("libpq has not closed its socket: there is nothing to be seen here");
	status = uv_poll_init(loop, &poll, reused);
	if (status != 0)
		fail(uv_strerror(status));
	uv_poll_start(&poll, UV_READABLE, on_readable);
	printf("reused\n");

	if (write(reused, &one, sizeof(one)) != sizeof(one))
		fail("write");
	while (!woken || lost < 2)
		uv_run(loop, UV_RUN_ONCE);
	printf("woken\n");

	pgconn_query(conn, ask_pid, 0, NULL, 0, 20000, on_answer, NULL);
	while (!answered)
		uv_run(loop, UV_RUN_ONCE);
	printf("again\n");

	uv_close((uv_handle_t *) &poll, NULL);
	pgconn_close(conn);
	uv_run(loop, UV_RUN_DEFAULT);
	close(reused);
	return 0;
}
