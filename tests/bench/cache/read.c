/*
 * read.c - reads that the cache serves: windows, cells and all cells of one large dense sheet, which a heap table
 * holds, too.
 *
 * The ways take turns in blocks. A rate counts the time in which clients wait for cells, not the checks of the answers.
 */
#include "awake.h"
#include "bench.h"
#include "reader.h"
#include "server.h"
#include "writer.h"

#include <pthread.h>

#define MAX_CLIENTS 2

typedef struct Client
{
	pthread_t thread;
	Session *sessions[WAYS]; /* one for each way: what one has grown in its backend is not the others' */
	const Model *model;
	Way way;
	bool cell; /* one cell at a time, not a window */
	uint64_t random;
	int64_t stop_at, reads, ns;
} Client;

/* Of one block. */
typedef struct Rate
{
	double reads; /* a second, of all clients together */
	double cpu;	  /* of the backends, microseconds a read */
} Rate;

static void
sessions_open(Session *sessions[WAYS], int ways)
{
	for (int way = 0; way < ways; way++)
	{
		sessions[way] = server_connect();
		reader_prepare(sessions[way], true);
	}
}

static void
sessions_close(Session *sessions[WAYS], int ways)
{
	for (int way = 0; way < ways; way++)
		session_close(sessions[way]);
}

static int64_t
client_read(Client *client)
{
	const Model *model = client->model;
	Window window;

	if (client->cell)
	{
		window = model_random_window(model, 1, 1, &client->random);
		return reader_cell(client->sessions[client->way], client->way, model, window.row0, window.col0);
	}
	window = model_random_window(model, WINDOW_ROWS, WINDOW_COLS, &client->random);
	return reader_window(client->sessions[client->way], client->way, model, window);
}

static void *
client_main(void *arg)
{
	Client *client = arg;

	client->reads = client->ns = 0;
	for (; now_ns() < client->stop_at || client->reads == 0; client->reads++)
		client->ns += client_read(client);
	return NULL;
}

static Rate
clients_run(Client *clients, int count, double seconds)
{
	int64_t cpu = 0, reads = 0, stop_at = now_ns() + (int64_t) (seconds * 1e9);
	Rate rate = {0};

	for (int i = 0; i < count; i++)
	{
		clients[i].stop_at = stop_at;
		cpu -= session_cpu_ns(clients[i].sessions[clients[i].way]);
		if (pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) != 0)
			fail("a thread could not be started");
	}
	for (int i = 0; i < count; i++)
	{
		pthread_join(clients[i].thread, NULL);
		cpu += session_cpu_ns(clients[i].sessions[clients[i].way]);
		reads += clients[i].reads;
		rate.reads += clients[i].reads / (clients[i].ns / 1e9);
	}
	rate.cpu = cpu / 1e3 / reads;
	return rate;
}

/* Medians of the rounds for each way below `ways`. */
static void
clients_measure(Bench *bench, int count, bool cell, int ways, Rate medians[WAYS])
{
	double reads[WAYS][ROUNDS], cpu[WAYS][ROUNDS];
	Client clients[MAX_CLIENTS];

	for (int i = 0; i < count; i++)
	{
		clients[i] = (Client){.model = bench->large, .cell = cell, .random = 100 + i};
		sessions_open(clients[i].sessions, ways);
	}
	/* Round -1 warms up: plans, buffers, the cache. */
	for (int round = -1; round < ROUNDS; round++)
		for (int turn = 0; turn < ways; turn++)
		{
			Way way = (Way) ((round + 1 + turn) % ways);
			Rate rate;

			for (int i = 0; i < count; i++)
				clients[i].way = way;
			rate = clients_run(clients, count, round < 0 ? bench->seconds / 10 : bench->seconds);
			if (round >= 0)
			{
				reads[way][round] = rate.reads;
				cpu[way][round] = rate.cpu;
			}
		}
	for (int way = 0; way < ways; way++)
		medians[way] = (Rate){median(reads[way], ROUNDS), median(cpu[way], ROUNDS)};
	for (int i = 0; i < count; i++)
		sessions_close(clients[i].sessions, ways);
}

#define PAIR(rates, way, field)                                                                                        \
	{                                                                                                                  \
		(rates)[WAY_HEAP].field, (rates)[way].field                                                                    \
	}

static void
read_windows(Bench *bench)
{
	Rate one[WAYS], two[WAYS], awake_one[WAYS];
	Awake *awake;

	clients_measure(bench, 1, false, WAYS, one);
	clients_measure(bench, 2, false, WAYS, two);
	awake = awake_begin();
	clients_measure(bench, 1, false, WAYS, awake_one);
	awake_end(awake);
	report_section("windows of 20 x 50 cells, at random places of the large sheet, reads a second");
	report_headline("halt_poll_us", "  an idle processor looks for work for so long before it halts, us (-1: unknown)",
					awake_halt_poll_us());
	report_add(
		(Figure){"window", "  sheet.read_cells(), 1 client", "window_ratio", true, PAIR(one, WAY_STREAM, reads)});
	report_add(
		(Figure){"window2", "  sheet.read_cells(), 2 clients", "window2_ratio", true, PAIR(two, WAY_STREAM, reads)});
	report_add((Figure){"window_awake", "  sheet.read_cells(), 1 client, the processors kept awake",
						"window_awake_ratio", true, PAIR(awake_one, WAY_STREAM, reads)});
	report_add((Figure){"window_cpu_us", "  sheet.read_cells(), 1 client: CPU of the backend, us", "window_cpu_ratio",
						false, PAIR(one, WAY_STREAM, cpu)});
	report_add(
		(Figure){"window_rows", "  sheet.range(), 1 client", "window_rows_ratio", true, PAIR(one, WAY_RANGE, reads)});
	report_add((Figure){"window2_rows", "  sheet.range(), 2 clients", "window2_rows_ratio", true,
						PAIR(two, WAY_RANGE, reads)});
	report_add((Figure){"window_rows_cpu_us", "  sheet.range(), 1 client: CPU of the backend, us",
						"window_rows_cpu_ratio", false, PAIR(one, WAY_RANGE, cpu)});
	report_add((Figure){"window_floor", "  1000 rows of a table that has no others, 1 client", "window_floor_ratio",
						true, PAIR(one, WAY_FLOOR, reads)});
	report_add((Figure){"window2_floor", "  1000 rows of a table that has no others, 2 clients", "window2_floor_ratio",
						true, PAIR(two, WAY_FLOOR, reads)});
}

static void
read_single_cells(Bench *bench)
{
	Rate rates[WAYS];

	clients_measure(bench, 1, true, WAY_RANGE + 1, rates);
	report_section("one cell, 1 client");
	report_add((Figure){"cell", "  sheet.get(): reads a second", "cell_ratio", true, PAIR(rates, WAY_RANGE, reads)});
	report_add(
		(Figure){"cell_cpu_us", "  sheet.get(): CPU of the backend, us", NULL, false, PAIR(rates, WAY_RANGE, cpu)});
}

/* ---- the whole sheet ---- */

static void
whole_report(double ms[WAYS], double cpu[WAYS], int64_t bytes, double memory)
{
	double copy_ms = bytes / memory * 1e3;

#define BOTH(figures, way) {(figures)[WAY_HEAP], (figures)[way]}
	report_section("all cells of the large sheet, 1 client");
	report_add((Figure){"full_ms", "  sheet.read_cells(): until the client has them, ms", "full_ratio", false,
						BOTH(ms, WAY_STREAM)});
	report_add((Figure){"full_cpu_ms", "  sheet.read_cells(): CPU of the backend, ms", "full_cpu_ratio", false,
						BOTH(cpu, WAY_STREAM)});
	report_add((Figure){"full_rows_ms", "  sheet.range(): until the client has them, ms", "full_rows_ratio", false,
						BOTH(ms, WAY_RANGE)});
	report_add((Figure){"full_rows_cpu_ms", "  sheet.range(): CPU of the backend, ms", "full_rows_cpu_ratio", false,
						BOTH(cpu, WAY_RANGE)});
	report_add((Figure){"full_floor_ms", "  as many rows of a table that has no others, ms", "full_floor_ratio", false,
						BOTH(ms, WAY_FLOOR)});
	report_headline("memory_gb_s", "  memcpy() of 256 MB: GB a second", memory / 1e9);
	report_headline("full_bytes", "  the cells as a stream, bytes", bytes);
	report_headline("full_memory_times", "  sheet.read_cells(): times the memcpy() of the stream",
					ms[WAY_STREAM] / copy_ms);
	report_headline("full_rows_memory_times", "  sheet.range(): times the memcpy() of the stream",
					ms[WAY_RANGE] / copy_ms);
}

static void
read_whole(Bench *bench)
{
	Session *sessions[WAYS];
	double ms[WAYS][ROUNDS], cpu[WAYS][ROUNDS], medians[WAYS], cpu_medians[WAYS];
	int64_t bytes = 0;

	sessions_open(sessions, WAYS);
	for (int round = -1; round < ROUNDS; round++)
		for (int turn = 0; turn < WAYS; turn++)
		{
			Way way = (Way) ((round + 1 + turn) % WAYS);
			Session *session = sessions[way];
			int64_t before = session_cpu_ns(session), ns = reader_whole(session, way, bench->large, &bytes);

			if (round >= 0)
			{
				ms[way][round] = ns / 1e6;
				cpu[way][round] = (session_cpu_ns(session) - before) / 1e6;
			}
		}
	sessions_close(sessions, WAYS);
	for (int way = 0; way < WAYS; way++)
	{
		medians[way] = median(ms[way], ROUNDS);
		cpu_medians[way] = median(cpu[way], ROUNDS);
	}
	whole_report(medians, cpu_medians, bytes, server_memory_speed());
}

void
read_run(Bench *bench)
{
	writer_make_heap(bench->monitor, bench_large(bench));
	read_windows(bench);
	read_single_cells(bench);
	read_whole(bench);
}
