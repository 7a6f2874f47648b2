/* process.c - memory, processor time and descriptors of this process; see process.h. */
#include "core/process.h"

#include "core/gateway.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Resident pages, from /proc. */
static unsigned long long
process_resident_bytes(void)
{
	unsigned long long size = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file == NULL)
		return 0;
	if (fscanf(file, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	fclose(file);
	return resident * (unsigned long long) sysconf(_SC_PAGESIZE);
}

static unsigned
process_open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	if (directory == NULL)
		return 0;
	while (readdir(directory) != NULL)
		count++;
	closedir(directory);
	return count - 3; /* ".", "..", and the one that was just open */
}

static void
process_put(Buf *buf, const char *name, const char *type, const char *help, double value)
{
	buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
}

void
process_print(Buf *buf)
{
	struct rusage usage = {0};
	struct rlimit limit = {0};
	struct mallinfo2 heap = mallinfo2();

	(void) getrusage(RUSAGE_SELF, &usage);
	(void) getrlimit(RLIMIT_NOFILE, &limit);
	process_put(buf, "process_cpu_seconds_total", "counter", "Processor time, user and system.",
				(double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
					(double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	process_put(buf, "process_resident_memory_bytes", "gauge", "Memory that is resident.",
				(double) process_resident_bytes());
	process_put(buf, "process_open_fds", "gauge", "Open file descriptors.", process_open_descriptors());
	process_put(buf, "process_max_fds", "gauge", "File descriptors that may be open.", (double) limit.rlim_cur);
	process_put(buf, "process_start_time_seconds", "gauge", "When the process began, since 1970.",
				(double) gateway.started);
	process_put(buf, "pg_sheet_heap_used_bytes", "gauge", "Memory that the allocator has given out.",
				(double) (heap.uordblks + heap.hblkhd));
	process_put(buf, "pg_sheet_heap_free_bytes", "gauge", "Memory that the allocator keeps.", (double) heap.fordblks);
}
