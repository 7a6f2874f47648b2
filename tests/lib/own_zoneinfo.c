/*
 * own_zoneinfo.c - time zones of a test: in front of the system's open() (LD_PRELOAD), takes a file below
 * /usr/share/zoneinfo from the folder OWN_ZONEINFO if that has one of the same name.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ZONEINFO "/usr/share/zoneinfo/"

static int
own_open(const char *symbol, const char *path, int flags, int mode)
{
	int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...)) dlsym(RTLD_NEXT, symbol);
	char own[PATH_MAX];

	if (strncmp(path, ZONEINFO, strlen(ZONEINFO)) == 0)
	{
		snprintf(own, sizeof(own), "%s/%s", getenv("OWN_ZONEINFO"), path + strlen(ZONEINFO));
		if (access(own, R_OK) == 0)
			path = own;
	}
	return real(path, flags, mode);
}

#define OPEN(name)                                                                                                     \
	int name(const char *path, int flags, ...)                                                                         \
	{                                                                                                                  \
		va_list args;                                                                                                  \
		int mode;                                                                                                      \
                                                                                                                       \
		va_start(args, flags);                                                                                         \
		mode = va_arg(args, int);                                                                                      \
		va_end(args);                                                                                                  \
		return own_open(#name, path, flags, mode);                                                                     \
	}

OPEN(open)
OPEN(open64)
