/* server.c - see server.h. */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_BYTES ((size_t) 256 << 20)
#define COPY_RUNS  7

Session *
server_connect(void)
{
	return session_open(getenv("PG_SHEET_DATABASE"));
}

void
server_restart(Bench *bench, int64_t cache_kb, bool drop_caches)
{
	char command[1024], option[64] = "";

	session_close(bench->monitor);
	if (cache_kb != SERVER_AMPLE)
		snprintf(option, sizeof(option), " -c pg_sheet.cache_size=%ldkB", (long) cache_kb);
	snprintf(command, sizeof(command), "'%s'%s%s >&2", getenv("PG_SHEET_BENCH_RESTART"),
			 drop_caches ? " --drop-caches" : "", option);
	fflush(NULL);
	if (system(command) != 0)
		fail("the server did not start again: %s", command);
	bench->monitor = server_connect();
	if (cache_kb != SERVER_AMPLE &&
		session_number(bench->monitor, "SELECT budget / 1024 FROM sheet.cache_stats") != cache_kb)
		fail("the server has another cache than the %ld kB that were asked for", (long) cache_kb);
}

int64_t
server_bytes_read(Session *session)
{
	char path[64], line[128];
	long bytes = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/io", PQbackendPID(session->conn));
	file = fopen(path, "r");
	while (file != NULL && fgets(line, sizeof(line), file))
		if (sscanf(line, "read_bytes: %ld", &bytes) == 1)
			break;
	if (file != NULL)
		fclose(file);
	return bytes;
}

double
server_memory_speed(void)
{
	char *from = allocate(COPY_BYTES), *to = allocate(COPY_BYTES);
	double speeds[COPY_RUNS];

	memset(from, 1, COPY_BYTES);
	memset(to, 2, COPY_BYTES);
	for (int run = 0; run < COPY_RUNS; run++)
	{
		int64_t start = now_ns();

		memcpy(to, from, COPY_BYTES);
		speeds[run] = COPY_BYTES / ((now_ns() - start) / 1e9);
		if (memcmp(to, from, COPY_BYTES) != 0)
			fail("memcpy() did not copy");
		from[run]++; /* no two runs are the same */
	}
	free(from);
	free(to);
	return median(speeds, COPY_RUNS);
}
