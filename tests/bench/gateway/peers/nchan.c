/* nchan.c - one channel of nchan: what a member sends is a message for all, and each message is a frame. */
#include "../../edit/workload.h"
#include "load.h"
#include "ws_client.h"

#include <stdio.h>
#include <string.h>

#define HELLO "hello "

/* Who gets his own hello gets everything from then on. */
static void
nchan_hello(LoadUser *user, int number)
{
	char text[32];

	load_say(user, text, (size_t) snprintf(text, sizeof(text), HELLO "%d", number));
}

/* Hellos are for those who wait for theirs; the edits begin when all have joined. */
static size_t
nchan_take(LoadUser *user, char *text, size_t len)
{
	if (len > sizeof(HELLO) - 1 && memcmp(text, HELLO, sizeof(HELLO) - 1) == 0)
		load_joined(user);
	else
		load_edit(user, text, len);
	return len;
}

const Dialect dialect_nchan = {
	.name = "nchan",
	.path = "/sheet",
	.opcode = WS_TEXT,
	.hello = nchan_hello,
	.put_edit = workload_write_message,
	.take = nchan_take,
};
