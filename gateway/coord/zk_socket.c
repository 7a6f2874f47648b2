/*
 * zk_socket.c - shutting down the socket of the library's handle (see zk_handle.c).
 *
 * Only writing is shut down. The library's own thread does not notice that. If it noticed, it would connect to another
 * server at once, and closing the handle would end the session there.
 *
 * zoo_set_servers() disconnects a handle, too, but it closes the socket in the calling thread, and the library's own
 * thread may close it at the same time. A descriptor that is closed twice may be another connection's by then. A socket
 * that is shut down is closed by the library's thread alone.
 */
#include "coord/zk_private.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Whether the socket is connected to this server, "address:port" as the library writes it. */
static bool
is_connected_to(int fd, const char *server)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	char address[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 8];
	const void *from;
	int port;

	if (getpeername(fd, (struct sockaddr *) &peer, &len) != 0)
		return false;
	if (peer.ss_family == AF_INET)
	{
		from = &((struct sockaddr_in *) &peer)->sin_addr;
		port = ntohs(((struct sockaddr_in *) &peer)->sin_port);
	}
	else if (peer.ss_family == AF_INET6)
	{
		from = &((struct sockaddr_in6 *) &peer)->sin6_addr;
		port = ntohs(((struct sockaddr_in6 *) &peer)->sin6_port);
	}
	else
		return false;
	if (inet_ntop(peer.ss_family, from, address, sizeof(address)) == NULL)
		return false;
	snprintf(text, sizeof(text), "%s:%d", address, port);
	return strcmp(text, server) == 0;
}

/* The library does not tell the descriptor, so it is looked for: nothing else in this process is connected to the
 * server. */
void
zk_socket_shut_down(zhandle_t *handle)
{
	const char *server = zoo_get_current_server(handle);
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	if (directory == NULL)
		return;
	while ((entry = readdir(directory)) != NULL)
	{
		int fd = atoi(entry->d_name);

		if (fd > 0 && is_connected_to(fd, server))
			(void) shutdown(fd, SHUT_WR);
	}
	closedir(directory);
}
