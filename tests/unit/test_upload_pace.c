/*
 * test_upload_pace.c - when uploads may write: at once while nobody edits; otherwise one at a time, with pauses, the
 * accounts in turn. A part that takes long stops nobody.
 */
#include "http/routes/upload_pace.h"

#include "core/gateway.h"
#include "core/metrics.h"
#include "tap.h"

#include <string.h>

Gateway gateway; /* of which only the loop is used */
Metrics metrics;

#define PAUSE_MS 40

static char order[64]; /* of the turns that were given, by the names of the uploads */
static uint64_t last_end;
static bool paused = true; /* before each of these turns */

typedef struct Upload
{
	PaceTurn turn;
	char name;
	int64_t account;
	int parts; /* left to write */
} Upload;

static void upload_continue(Upload *upload);

static void
upload_on_turn(void *arg)
{
	Upload *upload = arg;

	strncat(order, &upload->name, 1);
	paused &= uv_hrtime() - last_end >= PAUSE_MS * UINT64_C(1000000);
	metrics.edits_received++; /* somebody goes on editing */
	upload->parts--;
	last_end = uv_hrtime();
	pace_end(&upload->turn);
	upload_continue(upload);
}

static void
upload_continue(Upload *upload)
{
	if (upload->parts > 0 && pace_begin(&upload->turn, upload->account, upload_on_turn, upload))
		upload_on_turn(upload);
}

static void
run_until_done(const Upload *uploads, int n)
{
	int left = 1;

	while (left > 0)
	{
		uv_run(&gateway.loop, UV_RUN_NOWAIT);
		left = 0;
		for (int i = 0; i < n; i++)
			left += uploads[i].parts;
	}
}

static void
on_long_turn(void *arg)
{
}

/* Has somebody edit until the turn is given, for 15 s at most. */
static bool
run_until_taken(const PaceTurn *turn)
{
	for (uint64_t until = uv_hrtime() + UINT64_C(15000000000); !turn->taken && uv_hrtime() < until;)
	{
		metrics.edits_received++;
		uv_run(&gateway.loop, UV_RUN_ONCE);
	}
	return turn->taken;
}

static void
nothing(uv_timer_t *timer)
{
}

int
main(void)
{
	uv_timer_t beat; /* the loop has something to do */
	PaceTurn turns[3] = {0};
	Upload uploads[] = {{.name = 'a', .account = 1, .parts = 2},
						{.name = 'b', .account = 1, .parts = 2},
						{.name = 'c', .account = 1, .parts = 2},
						{.name = 'x', .account = 2, .parts = 3}};

	uv_loop_init(&gateway.loop);
	uv_timer_init(&gateway.loop, &beat);
	uv_timer_start(&beat, nothing, 1, 1);
	TAP_OK(pace_begin(&turns[0], 1, NULL, NULL) && pace_begin(&turns[1], 2, NULL, NULL) &&
			   pace_begin(&turns[2], 1, NULL, NULL),
		   "while nobody edits, all may write at once");
	TAP_OK(!pace_begin(&turns[0], 1, NULL, NULL), "each one part at a time");
	for (int i = 0; i < 3; i++)
		pace_end(&turns[i]);
	last_end = uv_hrtime();
	metrics.edits_received++;
	for (int i = 0; i < 4; i++)
		upload_continue(&uploads[i]);
	TAP_OK(order[0] == '\0', "while somebody edits, they wait");
	pace_end(&turns[2]);
	run_until_done(uploads, 4);
	TAP_OK(paused, "for a pause after each part");
	TAP_OK(strcmp(order, "axbxcxabc") == 0, "the accounts take turns, whatever the number of their uploads: %s", order);
	metrics.edits_received++;
	TAP_OK(!pace_begin(&turns[0], 1, upload_on_turn, NULL), "one that waits");
	pace_end(&turns[0]);
	for (uint64_t until = uv_hrtime() + 3 * PAUSE_MS * UINT64_C(1000000); uv_hrtime() < until;)
		uv_run(&gateway.loop, UV_RUN_NOWAIT);
	TAP_OK(!turns[0].waits && !turns[0].taken, "may give up");
	metrics.edits_received++;
	if (!pace_begin(&turns[0], 1, on_long_turn, NULL))
		(void) run_until_taken(&turns[0]);
	turns[0].began -= UINT64_C(60000000000);
	pace_end(&turns[0]);
	TAP_OK(pace_begin(&turns[1], 2, on_long_turn, NULL) || run_until_taken(&turns[1]),
		   "a part that took a minute stops nobody for three");
	pace_end(&turns[1]);
	return tap_done();
}
