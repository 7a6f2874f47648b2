/*
 * must.c - what happens when memory cannot be had.
 *
 * An allocation on behalf of one client, request or query fails, and that client, request or query ends: the session is
 * closed with 1011, the request is answered with 503, the query is refused. A room's allocation fails, and its members
 * are closed with 1012: they come again, and read what is committed. Nobody can be ended for an allocation at the start
 * or for a few bytes of the process's own state: these go through must_have(), and the supervisor starts the process
 * again.
 */
#include "support/must.h"

#include "support/log.h"

#include <stdlib.h>

void *
must_have(void *memory)
{
	if (memory != NULL)
		return memory;
	log_event(LOG_ERROR, "out of memory", LOG_STR("reason", "the gateway cannot go on without it"));
	abort();
}
