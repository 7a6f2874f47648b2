/* notify.c - one datagram for each state to the socket that systemd names; see notify.h. */
#include "support/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void
notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len;
	int fd;

	if (path == NULL || (path[0] != '/' && path[0] != '@') || (len = strlen(path)) >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, len);
	if (path[0] == '@') /* the abstract namespace */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void) !sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *) &address,
				   (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

void
notify_tick(const char *status)
{
	static char last[128];
	char state[192];

	if (getenv("WATCHDOG_USEC") != NULL)
		notify_send("WATCHDOG=1");
	if (strcmp(status, last) == 0)
		return;
	snprintf(last, sizeof(last), "%s", status);
	snprintf(state, sizeof(state), "STATUS=%s", status);
	notify_send(state);
}
