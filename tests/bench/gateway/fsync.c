/*
 * fsync.c - how long this disk takes to make 8 kB durable.
 *
 *     fsync FILE SECONDS
 *
 * Writes over a file of 16 MB, 8 kB after the other, each followed by fdatasync(), as the server writes its log; prints
 * one line of JSON.
 */
#include "basics.h"
#include "latencies.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK  8192
#define BLOCKS 2048

int
main(int argc, char **argv)
{
	static char block[BLOCK];
	Latencies times = {NULL, 0, 0};
	int64_t until;
	int fd;

	if (argc != 3)
		fail("usage: fsync FILE SECONDS");
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		fail("%s: %s", argv[1], strerror(errno));
	for (int i = 0; i < BLOCKS; i++)
	{
		if (pwrite(fd, block, BLOCK, (off_t) i * BLOCK) != BLOCK)
			fail("%s: %s", argv[1], strerror(errno));
	}
	if (fsync(fd) != 0)
		fail("%s: %s", argv[1], strerror(errno));
	until = now_ns() + (int64_t) (atof(argv[2]) * 1e9);
	while (now_ns() < until)
	{
		int64_t before = now_ns();

		memset(block, (int) times.count, BLOCK);
		if (pwrite(fd, block, BLOCK, (off_t) (times.count % BLOCKS) * BLOCK) != BLOCK || fdatasync(fd) != 0)
			fail("%s: %s", argv[1], strerror(errno));
		latencies_add(&times, before, now_ns());
	}
	latencies_sort(&times);
	printf("{\"count\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n", times.count, latencies_percentile(&times, 0.5),
		   latencies_percentile(&times, 0.99));
	close(fd);
	unlink(argv[1]);
	return 0;
}
