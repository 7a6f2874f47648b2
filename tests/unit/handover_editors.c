/*
 * handover_editors.c - the editors of test_handover.c. They connect to any gateway, follow redirects, send numbered
 * operations, and send again what was not acknowledged.
 */
#include "handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_MS	 4000 /* at the end nothing is edited */
#define RING_MS		 1000 /* in which all hear of a change */
#define REDIRECT_MS	 250  /* until a redirect has arrived */
#define SERVED_MS	 500
#define IMPATIENT_MS 4000 /* more than a session */
#define HOPS_MAX	 8

Editor editors[EDITORS];

static void editor_connect(Editor *editor, Gateway *gateway);

/* A gateway that answers, as a load balancer would choose one. */
static Gateway *
any_gateway(void)
{
	int first = (int) sim_random(GATEWAYS);

	for (int i = 0; i < GATEWAYS; i++)
	{
		Gateway *gateway = gateways[(first + i) % GATEWAYS];

		if (gateway_serves(gateway))
			return gateway;
	}
	return NULL;
}

void
editor_comes(void *arg)
{
	Editor *editor = arg;
	Gateway *gateway = any_gateway();

	if (editor->state == AWAY && gateway)
		editor_connect(editor, gateway);
	else if (editor->state == AWAY)
		sim_after(NULL, 100 * SIM_MS, editor_comes, editor);
}

void
editor_comes_again(Editor *editor)
{
	editor->state = AWAY;
	editor->connection++;
	if (editor->waits == 0)
		editor->waits = sim_now;
	sim_after(NULL, (20 + sim_random(200)) * SIM_MS, editor_comes, editor);
}

static void
editor_sends(Editor *editor, uint64_t n)
{
	char text[128];
	int len = snprintf(text, sizeof(text), "{\"t\":\"op\",\"n\":%llu,\"edits\":[[%d,%llu,\"%llu\"]]}",
					   (unsigned long long) n, editor->number, (unsigned long long) n, (unsigned long long) n);

	sim_send(editor->socket, text, (size_t) len);
}

static uint64_t
number_in(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Operations up to n are acknowledged. */
static void
editor_takes_ack(Editor *editor, uint64_t n)
{
	sim_promise(n <= sim_log_last(editor->sheet, editor->number), "an acknowledged operation is not in the log",
				editor->number);
	sim_promise(n >= editor->acked, "an acknowledged operation is forgotten", editor->number);
	editor->acked = n;
	editor->heard = sim_now;
}

static void
editor_takes_hello(Editor *editor, const char *text)
{
	bool resumed = strstr(text, "\"resumed\":true") != NULL;

	editor->state = LIVE;
	sim_trace("editor %d is served by gateway %d", editor->number, editor->gateway->process.number);
	if (calm && sim_commit_ms == 0 && editor->waits != 0 && sim_now - editor->waits > result.longest_wait)
		result.longest_wait = sim_now - editor->waits;
	if (calm && editor->waits != 0)
		sim_promise(sim_now - editor->waits < (SERVED_MS + 3 * sim_commit_ms) * SIM_MS,
					"an editor is not served in time", editor->number);
	if (calm && editor->hops > result.longest_way)
		result.longest_way = editor->hops;
	if (calm)
		sim_promise(editor->hops <= HOPS_MAX, "an editor is sent to and fro", editor->number);
	editor->waits = 0;
	editor->hops = 0;
	editor_takes_ack(editor, number_in(text, "\"landed\":"));
	if (!resumed)
	{
		editor->since = number_in(text, "\"seq\":");
		memset(editor->seen, 0xff, sizeof(editor->seen));
	}
	for (uint64_t n = editor->acked + 1; n <= editor->made; n++)
		editor_sends(editor, n);
}

/* {"t":"edits","seq":9,"more":false,"edits":[[uid,row,col,"content"],...]} */
static void
editor_takes_edits(Editor *editor, const char *text)
{
	for (const char *at = strstr(text, "\"edits\":["); (at = strchr(at, '[')); at++)
	{
		unsigned long long uid, row, col;

		if (sscanf(at, "[%llu,%llu,%llu", &uid, &row, &col) != 3)
			continue;
		sim_promise(editor->seen[row] == UINT64_MAX || editor->seen[row] + 1 == col,
					"an editor is not told each operation once and in order", editor->number);
		editor->seen[row] = col;
	}
	if (strstr(text, "\"more\":false"))
		editor->since = number_in(text, "\"seq\":");
}

typedef struct Connected
{
	Editor *editor;
	unsigned connection;
} Connected;

static void
on_message(void *arg, const char *bytes, size_t len)
{
	Editor *editor = ((Connected *) arg)->editor;
	char *text = strndup(bytes, len);

	if (editor->connection != ((Connected *) arg)->connection)
		;
	else if (strncmp(text, "{\"t\":\"hello\"", 12) == 0)
		editor_takes_hello(editor, text);
	else if (strncmp(text, "{\"t\":\"ack\"", 10) == 0)
		editor_takes_ack(editor, number_in(text, "\"n\":"));
	else if (strncmp(text, "{\"t\":\"edits\"", 12) == 0)
		editor_takes_edits(editor, text);
	else if (strncmp(text, "{\"t\":\"nack\"", 11) == 0)
		sim_promise(false, "an operation is refused", editor->number);
	free(text);
}

/*
 * Returns whether the editor may be closed for this reason without a fault: the gateway that the ring names has just
 * ended, and the others have not heard of it yet; or the ring has changed back while the sheet moved.
 */
static bool
is_of_change(const char *reason)
{
	if (sim_now - changed_at >= RING_MS * SIM_MS)
		return false;
	return strstr(reason, "accepts no connections") ||
		   (strstr(reason, "come again") && sim_now - changed_before < (HANDOVER_MS + MOVED_MS) * SIM_MS);
}

static void
on_closed(void *arg, int code, const char *reason)
{
	Editor *editor = ((Connected *) arg)->editor;
	const char *address = strstr(reason, "://");
	Gateway *gateway;
	char name[16];

	if (editor->connection != ((Connected *) arg)->connection)
		return;
	sim_trace("editor %d is closed by gateway %d: %d %s", editor->number, editor->gateway->process.number, code,
			  reason);
	if (code != 4307)
	{
		sim_promise(!calm || code == 0 || is_of_change(reason), "an editor is refused", editor->number);
		sim_promise(code != 4412, "what was acknowledged is not known", editor->number);
		editor_comes_again(editor);
		return;
	}
	result.redirects++;
	editor->hops++;
	snprintf(name, sizeof(name), "%.*s", (int) strcspn(address + 3, "/"), address + 3);
	if (editor->waits == 0)
		editor->waits = sim_now;
	gateway = gateway_at(name);
	sim_promise(!gateway || !gateway->process.dead || sim_now - gateway->ended < REDIRECT_MS * SIM_MS,
				"an editor is sent to a gateway that refuses connections", editor->number);
	if (gateway)
		editor_connect(editor, gateway);
	else
		editor_comes_again(editor);
}

static void
editor_connect(Editor *editor, Gateway *gateway)
{
	static const SimClient client = {on_message, on_closed};
	Connected *connected = malloc(sizeof(*connected));
	char text[160];
	int len = snprintf(
		text, sizeof(text), "{\"t\":\"hello\",\"v\":3,\"token\":\"%d\",\"client\":%d,\"acked\":%llu,\"since\":%llu}",
		editor->number, editor->number, (unsigned long long) editor->acked, (unsigned long long) editor->since);

	*connected = (Connected){editor, ++editor->connection};
	editor->state = CONNECTING;
	editor->gateway = gateway;
	editor->began = sim_now;
	if (editor->waits == 0)
		editor->waits = sim_now;
	editor->socket = sim_connect(&gateway->process, gateway->calls, editor->sheet, &client, connected);
	sim_send(editor->socket, text, (size_t) len);
}

void
editor_disconnects(Editor *editor, uint64_t unnoticed)
{
	if (editor->state != AWAY)
		sim_disconnect(editor->socket, unnoticed);
	editor->connection++;
	editor->state = AWAY;
	editor->waits = 0;
	editor->hops = 0;
}

static bool
editor_is_impatient(const Editor *editor)
{
	return (editor->state == CONNECTING && sim_now - editor->began > IMPATIENT_MS * SIM_MS) ||
		   (editor->state == LIVE && editor->made > editor->acked && sim_now - editor->heard > 6000 * SIM_MS);
}

void
editor_lives(void *arg)
{
	Editor *editor = arg;
	bool quiet = sim_now > (FAULTS_MS + PEACE_MS - QUIET_MS) * SIM_MS;

	sim_after(NULL, (50 + sim_random(800)) * SIM_MS, editor_lives, editor);
	if (editor_is_impatient(editor))
	{
		sim_trace("editor %d waits no more for gateway %d", editor->number, editor->gateway->process.number);
		sim_promise(!calm && (!peace || editor->began < (FAULTS_MS + SESSION_MS) * SIM_MS),
					"an editor waits for too long", editor->number);
		editor_disconnects(editor, 0);
		editor_comes_again(editor);
	}
	else if (!peace && editor->state != AWAY && sim_percent(3))
	{
		sim_trace("editor %d leaves", editor->number);
		editor_disconnects(editor, 0);
		if (sim_percent(50))
			editor->since = 0;
		sim_after(NULL, sim_random(3000) * SIM_MS, editor_comes, editor);
	}
	else if (!quiet && editor->made - editor->acked < 5 && (editor->state == LIVE || sim_percent(20)))
	{
		if (editor->made == editor->acked)
			editor->heard = sim_now;
		editor->made++;
		if (editor->state == LIVE)
			editor_sends(editor, editor->made);
	}
}
