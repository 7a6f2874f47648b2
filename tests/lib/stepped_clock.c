/*
 * stepped_clock.c - a clock that steps: in front of the system's gettimeofday() (LD_PRELOAD), adds the seconds that the
 * first eight bytes of the file STEPPED_CLOCK have. Tests write the file at any time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

static int (*real_gettimeofday)(struct timeval *, void *);
static const volatile int64_t *offset;

__attribute__((constructor)) static void
begin(void)
{
	int fd = open(getenv("STEPPED_CLOCK"), O_RDONLY);

	real_gettimeofday = (int (*)(struct timeval *, void *)) dlsym(RTLD_NEXT, "gettimeofday");
	offset = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || offset == MAP_FAILED)
		abort();
}

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	int code = real_gettimeofday(now, zone);

	now->tv_sec += *offset;
	return code;
}
