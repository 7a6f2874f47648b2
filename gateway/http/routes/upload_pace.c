/*
 * upload_pace.c - when the next part of a file may be written to the database.
 *
 * The WAL is one file: a commit of edits flushes what uploads have written before it. While somebody edits, all uploads
 * together write one part at a time, and then nothing for PACE_PAUSES times as long as the part took, or for
 * PACE_PAUSE_MS at least. A slow disk so slows uploads down, not edits. Accounts take turns, whatever the number of
 * their uploads. While nobody edits, parts are written at once.
 */
#include "http/routes/upload_pace.h"

#include "core/gateway.h"
#include "core/metrics.h"

#define PACE_PAUSES	  3
#define PACE_PAUSE_MS 40
#define PACE_LOST_MS  1000 /* a part that takes longer, or waits for its account's other statements, stops nobody */
#define PACE_EDITS_MS 2000 /* after an edit, somebody edits */

static PaceTurn *waiting;	/* by `order` */
static uint64_t pace_order; /* of the turn that was taken last */
static uint64_t next_at;	/* ns: nothing is begun before, while somebody edits */
static uv_timer_t pace_timer;

static uint64_t
pace_ns(uint64_t ms)
{
	return ms * UINT64_C(1000000);
}

static bool
pace_somebody_edits(void)
{
	static uint64_t seen, until;

	if (metrics.edits_received != seen)
		until = uv_hrtime() + pace_ns(PACE_EDITS_MS);
	seen = metrics.edits_received;
	return uv_hrtime() < until;
}

static bool
pace_is_due(void)
{
	return !pace_somebody_edits() || uv_hrtime() >= next_at;
}

static void
pace_take(PaceTurn *turn)
{
	if (turn->order > pace_order)
		pace_order = turn->order;
	turn->order = pace_order + 1; /* of its next part */
	turn->taken = true;
	turn->began = uv_hrtime();
	next_at = turn->began + pace_ns(PACE_LOST_MS);
}

static void
pace_on_timer(uv_timer_t *timer)
{
	while (waiting != NULL && pace_is_due())
	{
		PaceTurn *turn = waiting;

		waiting = turn->next;
		turn->waits = false;
		pace_take(turn);
		turn->fn(turn->arg);
	}
	if (waiting != NULL)
	{
		uint64_t now = uv_hrtime(); /* may have passed next_at just now */

		uv_timer_start(timer, pace_on_timer, next_at > now ? (next_at - now) / pace_ns(1) + 1 : 0, 0);
	}
}

/* Has the turns given that are due, in another iteration of the loop. */
static void
pace_wake(void)
{
	if (pace_timer.loop == NULL)
	{
		uv_timer_init(&gateway.loop, &pace_timer);
		uv_unref((uv_handle_t *) &pace_timer);
	}
	if (waiting != NULL)
		uv_timer_start(&pace_timer, pace_on_timer, 0, 0);
}

bool
pace_begin(PaceTurn *turn, int64_t account, void (*fn)(void *arg), void *arg)
{
	PaceTurn **link = &waiting;

	if (turn->waits || turn->taken)
		return false;
	if (waiting == NULL && pace_is_due())
	{
		pace_take(turn);
		return true;
	}
	*turn = (PaceTurn){.waits = true,
					   .account = account,
					   .order = turn->order > pace_order ? turn->order : pace_order,
					   .fn = fn,
					   .arg = arg};
	for (const PaceTurn *other = waiting; other != NULL; other = other->next)
	{
		if (other->account == account && other->order >= turn->order)
			turn->order = other->order + 1;
	}
	while (*link != NULL && (*link)->order <= turn->order)
		link = &(*link)->next;
	turn->next = *link;
	*link = turn;
	pace_wake();
	return false;
}

void
pace_end(PaceTurn *turn)
{
	uint64_t now = uv_hrtime();
	PaceTurn **link = &waiting;

	if (turn->waits)
	{
		while (*link != turn)
			link = &(*link)->next;
		*link = turn->next;
		turn->waits = false;
	}
	if (turn->taken)
	{
		uint64_t took = now - turn->began, pause = took * PACE_PAUSES;

		turn->taken = false;
		if (took < pace_ns(PACE_LOST_MS))
			next_at = now + (pause > pace_ns(PACE_PAUSE_MS) ? pause : pace_ns(PACE_PAUSE_MS));
		pace_wake();
	}
}
