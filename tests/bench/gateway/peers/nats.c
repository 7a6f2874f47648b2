/*
 * nats.c - one subject of nats-server: everybody publishes to it and is subscribed to it. The protocol's lines are a
 * stream of bytes, whatever frames they come in.
 *
 * With JetStream the subject is that of a stream which the server keeps in a file, and a member gets what a consumer of
 * his own sends on: messages that have been stored, in the order of the stream.
 */
#include "../../edit/workload.h"
#include "basics.h"
#include "load.h"
#include "ws_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBJECT "sheet"
#define CONNECT "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":false}\r\n"

/* The server answers a PING after it has done what came before. */
static void
nats_hello(LoadUser *user, int number)
{
	static const char text[] = CONNECT "SUB " SUBJECT " 1\r\nPING\r\n";

	(void) number;
	load_say(user, text, sizeof(text) - 1);
}

static size_t
put_publish(char *to, size_t size, const char *head, const char *body, size_t len)
{
	return (size_t) snprintf(to, size, "PUB %s %zu\r\n%.*s\r\n", head, len, (int) len, body);
}

/* The first member makes the stream; each makes his consumer, whose answer says that he is a member. */
static void
jetstream_hello(LoadUser *user, int number)
{
	static const char stream[] =
		"{\"name\":\"SHEET\",\"subjects\":[\"" SUBJECT "\"],\"storage\":\"file\",\"retention\":\"limits\","
		"\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\"max_age\":0,\"num_replicas\":1}";
	char text[2048], consumer[256];
	size_t len, consumer_len;

	len = (size_t) snprintf(text, sizeof(text), CONNECT "SUB deliver.%d 1\r\nSUB answer.%d 2\r\n", number, number);
	if (number == 0)
		len += put_publish(text + len, sizeof(text) - len, "$JS.API.STREAM.CREATE.SHEET nobody", stream,
						   sizeof(stream) - 1);
	consumer_len = (size_t) snprintf(
		consumer, sizeof(consumer),
		"{\"stream_name\":\"SHEET\",\"config\":{\"deliver_subject\":\"deliver.%d\",\"deliver_policy\":\"all\","
		"\"ack_policy\":\"none\",\"replay_policy\":\"instant\"}}",
		number);
	len +=
		(size_t) snprintf(text + len, sizeof(text) - len, "PUB $JS.API.CONSUMER.CREATE.SHEET answer.%d %zu\r\n%s\r\n",
						  number, consumer_len, consumer);
	load_say(user, text, len);
}

static size_t
nats_put_edit(char *to, int sender, uint64_t index)
{
	char message[WORKLOAD_MESSAGE_MAX];
	size_t len = workload_write_message(message, sender, index);

	return put_publish(to, LOAD_EDIT_MAX, SUBJECT, message, len);
}

static void
message_take(LoadUser *user, const char *line, const char *body, size_t len)
{
	if (strncmp(line, "MSG answer.", 11) != 0)
		load_edit(user, body, len);
	else if (memmem(body, len, "\"error\"", 7))
		fail("JetStream refuses: %.*s", (int) len, body);
	else
		load_joined(user);
}

/* One message at text, whose first line ends at `end` with CR LF; its length, 0 when there is more to come. */
static size_t
line_take(LoadUser *user, char *text, size_t len, char *end)
{
	size_t head = (size_t) (end + 2 - text), body_len;
	const char *number;

	*end = '\0';
	if (strncmp(text, "MSG ", 4) == 0)
	{
		number = strrchr(text, ' ') + 1;
		body_len = strtoul(number, NULL, 10);
		if (len < head + body_len + 2)
		{
			*end = '\r';
			return 0;
		}
		message_take(user, text, text + head, body_len);
		return head + body_len + 2;
	}
	if (strcmp(text, "PONG") == 0)
		load_joined(user);
	else if (strcmp(text, "PING") == 0)
		load_say(user, "PONG\r\n", 6);
	else if (strncmp(text, "-ERR", 4) == 0)
		fail("nats-server says %s", text);
	return head; /* INFO */
}

static size_t
nats_take(LoadUser *user, char *text, size_t len)
{
	size_t pos = 0, taken;
	char *end;

	while ((end = memmem(text + pos, len - pos, "\r\n", 2)))
	{
		taken = line_take(user, text + pos, len - pos, end);
		if (taken == 0)
			break;
		pos += taken;
	}
	return pos;
}

const Dialect dialect_nats = {
	.name = "nats",
	.path = "/",
	.opcode = WS_BINARY,
	.stream = true,
	.hello = nats_hello,
	.put_edit = nats_put_edit,
	.take = nats_take,
};

const Dialect dialect_jetstream = {
	.name = "jetstream",
	.path = "/",
	.opcode = WS_BINARY,
	.stream = true,
	.hello = jetstream_hello,
	.put_edit = nats_put_edit,
	.take = nats_take,
};
