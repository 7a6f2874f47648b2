/*
 * test_timer.c - the timer (extension/timer) with a clock of the test's own, against a plain table: no entry is served
 * before its end, and each soon after it, whatever is set, changed and removed, however the clock steps, when workers
 * and the server die, and when there is more than the list or the window has room for.
 *
 * Two databases, a launcher and one worker for each. A tick is 10 ms. A transaction becomes visible in one tick and
 * tells the board up to two ticks later; a scan's snapshot is of one tick, and its end comes in the next one.
 */
#include "timer/timer_board.h"
#include "timer/timer_window.h"

#include <stdio.h>
#include <string.h>

#include "random.h"
#include "tap.h"

#define TICK	  10000
#define SECOND	  INT64CONST(1000000)
#define DATABASES 2
#define IDS		  40000
#define CAPACITY  12000
#define BATCH	  500
#define TELLS	  65536
#define NONE	  DT_NOEND

typedef struct Tell
{
	TimestampTz when; /* by the monotonic clock */
	int database;
	TimerEntry entry;
} Tell;

typedef struct Process
{
	bool runs, woken;
	TimestampTz until; /* by the monotonic clock */
} Process;

typedef struct Worker
{
	Process process;
	TimerWindow *window;
	bool scans, all;
	TimestampTz from, end;
	int limit;
} Worker;

static TimerBoard board;
static TimestampTz mono, wall_offset, stepped; /* stepped: when the clock stepped last */
static TimestampTz table[DATABASES][IDS], snapshot[DATABASES][IDS];
static TimestampTz due_since[DATABASES][IDS]; /* by the monotonic clock; NONE: not due */
static Tell tells[TELLS];
static int tell_count;
static Process launcher;
static Worker workers[DATABASES];
static int ids; /* that the case uses */
static int scans, wakes, served;
static int early;
static TimestampTz latest;
static struct PGPROC
{
	int unused;
} procs[DATABASES];

static TimestampTz
wall(void)
{
	return mono + wall_offset;
}

static Oid
oid_of(int database)
{
	return 100 + database;
}

/* ---- transactions ---- */

static void
set(int database, int id, TimestampTz at)
{
	table[database][id] = at;
	due_since[database][id] = NONE;
	if (at != NONE && tell_count < TELLS)
		tells[tell_count++] = (Tell){mono + random_below(3) * TICK, database, {id, at, TIMER_UPLOAD}};
}

static void
tell_due(void)
{
	int kept = 0;

	for (int i = 0; i < tell_count; i++)
	{
		Tell *tell = &tells[i];

		if (tell->when > mono)
		{
			tells[kept++] = *tell;
			continue;
		}
		switch (timer_board_tell(&board, oid_of(tell->database), &tell->entry, wall()))
		{
			case TIMER_WAKE_LAUNCHER:
				launcher.woken = true;
				break;
			case TIMER_WAKE_WORKER:
				workers[tell->database].process.woken = true;
				break;
			default:
				break;
		}
	}
	tell_count = kept;
}

/* ---- processes ---- */

static bool
must_run(const Process *process)
{
	return process->runs && (process->woken || mono >= process->until);
}

static void
sleep_until(Process *process, TimestampTz until)
{
	process->woken = false;
	process->until = until == NONE ? NONE : mono + timer_sleep_ms(until, wall()) * 1000;
}

/* Serves the entry if the table says that it is due. */
static void
serve(int database, const TimerEntry *entry)
{
	TimestampTz *at = &table[database][entry->id];

	if (*at > wall())
		return;
	if (due_since[database][entry->id] != NONE)
	{
		TimestampTz late = mono - due_since[database][entry->id];

		/* A step of the clock is seen at the end of the longest sleep. */
		if (mono - stepped > (TIMER_SLEEP_MAX_MS * 1000) + SECOND)
			latest = Max(latest, late);
	}
	*at = NONE;
	due_since[database][entry->id] = NONE;
	served++;
}

static void
worker_end_scan(int database)
{
	Worker *worker = &workers[database];
	TimestampTz horizon = NONE, from = worker->all ? DT_NOBEGIN : worker->from;
	static TimerDue found[IDS];
	int count = 0;

	for (int id = 0; id < ids; id++)
	{
		TimestampTz at = snapshot[database][id];

		if (at == NONE || at < from)
			continue;
		if (at >= worker->end)
			horizon = Min(horizon, at);
		else
			found[count++] = (TimerDue){{id, at, TIMER_UPLOAD}, at, 0};
	}
	if (count > worker->limit) /* the earliest ones, as by an index: cut at a random pivot until they fit */
	{
		TimestampTz cut = worker->end;

		while (count > worker->limit)
		{
			int kept = 0;

			cut = found[random_below(count)].due;
			horizon = Min(horizon, cut);
			for (int i = 0; i < count; i++)
				if (found[i].due < cut)
					found[kept++] = found[i];
			count = kept;
		}
	}
	for (int i = 0; i < count; i++)
		if (!timer_window_add(worker->window, &found[i]))
			horizon = Min(horizon, found[i].due);
	timer_board_lower_horizon(&board, oid_of(database), horizon);
	worker->scans = false;
}

/* One iteration; true: another one now. */
static bool
worker_iterate(int database)
{
	static TimerEntry told[TIMER_TOLD];
	static TimerDue dues[BATCH];
	Worker *worker = &workers[database];
	Oid oid = oid_of(database);
	int count = timer_board_take(&board, oid, told, TIMER_TOLD);
	TimestampTz horizon = timer_board_find(&board, oid)->horizon, until;

	for (int i = 0; i < count; i++)
	{
		TimerDue due = {told[i], told[i].at, 0};

		if (told[i].at >= horizon || timer_window_add(worker->window, &due))
			continue;
		timer_window_clear(worker->window);
		timer_board_lower_horizon(&board, oid, DT_NOBEGIN);
		horizon = DT_NOBEGIN;
		break;
	}
	switch (timer_window_step(worker->window, horizon, false, wall(), &until))
	{
		case TIMER_STEP_LEAVE:
			timer_board_leave(&board, oid, timer_window_earliest(worker->window));
			worker->process.runs = false;
			launcher.woken = true;
			return false;
		case TIMER_STEP_SLEEP:
			if (random_below(2) != 0)
				tell_due(); /* since the list was taken */
			if (!timer_board_sleep(&board, oid, horizon, until))
				return true;
			sleep_until(&worker->process, until);
			wakes++;
			return false;
		case TIMER_STEP_SCAN:
			worker->from = timer_board_scan_begin(&board, oid);
			worker->limit = timer_window_scanned(worker->window, wall(), &worker->all);
			worker->end = wall() + TIMER_WINDOW_US;
			memcpy(snapshot[database], table[database], sizeof(table[database]));
			worker->scans = true;
			scans++;
			return false;
		default:
			count = timer_window_take(worker->window, wall(), dues, BATCH);
			for (int i = 0; i < count; i++)
			{
				early += dues[i].due > wall();
				serve(database, &dues[i].entry);
			}
			return true;
	}
}

static void
launcher_iterate(void)
{
	TimestampTz next;
	Oid due;

	while ((due = timer_board_due(&board, NULL, 0, wall(), &next)) != InvalidOid)
	{
		Worker *worker = &workers[due - oid_of(0)];

		if (!timer_board_attach(&board, due, &procs[due - oid_of(0)]))
			abort();
		if (worker->window == NULL)
			worker->window = timer_window_create(CAPACITY, wall());
		timer_window_clear(worker->window);
		worker->process = (Process){true, true, 0};
		worker->scans = false;
	}
	sleep_until(&launcher, next);
}

static void
look_everywhere(void)
{
	for (int i = 0; i < DATABASES; i++)
		timer_board_look(&board, oid_of(i));
	launcher = (Process){true, true, 0};
}

static void
kill_worker(int database)
{
	if (!workers[database].process.runs)
		return;
	timer_board_leave(&board, oid_of(database), DT_NOBEGIN);
	workers[database].process.runs = false;
	launcher.woken = true;
}

static void
kill_server(void)
{
	memset(&board, 0, sizeof(board));
	tell_count = 0;
	for (int i = 0; i < DATABASES; i++)
		workers[i].process.runs = false;
	look_everywhere();
}

static void
step_clock(TimestampTz by)
{
	wall_offset += by;
	stepped = mono;
	for (int d = 0; d < DATABASES; d++)
		for (int id = 0; id < ids; id++)
			due_since[d][id] = NONE; /* counted anew by the new clock */
}

static void
tick(void)
{
	mono += TICK;
	for (int d = 0; d < DATABASES; d++)
		for (int id = 0; id < ids; id++)
			if (due_since[d][id] == NONE && table[d][id] <= wall())
				due_since[d][id] = mono;
	if (random_below(2) != 0)
		tell_due();
	if (must_run(&launcher))
		launcher_iterate();
	for (int d = 0; d < DATABASES; d++)
	{
		Worker *worker = &workers[d];

		if (worker->process.runs && worker->scans)
		{
			worker_end_scan(d);
			worker->process.woken = true;
		}
		else if (must_run(&worker->process))
		{
			int iterations = 0;

			while (worker_iterate(d))
				if (++iterations == 1000)
				{
					TAP_OK(false, "a worker is busy for ever");
					exit(1);
				}
		}
	}
	tell_due();
}

/* ---- cases ---- */

static void
begin(int of)
{
	ids = of;
	memset(&board, 0, sizeof(board));
	for (int d = 0; d < DATABASES; d++)
	{
		workers[d].process.runs = false;
		for (int id = 0; id < ids; id++)
			table[d][id] = due_since[d][id] = NONE;
	}
	mono = SECOND * 1000;
	wall_offset = SECOND * 1000000;
	stepped = -SECOND * 1000000;
	tell_count = scans = wakes = served = early = 0;
	latest = 0;
	look_everywhere();
}

static int
left(void)
{
	int count = 0;

	for (int d = 0; d < DATABASES; d++)
		for (int id = 0; id < ids; id++)
			count += table[d][id] != NONE;
	return count;
}

static void
run_seconds(int seconds)
{
	for (int i = 0; i < seconds * (SECOND / TICK); i++)
		tick();
}

/* In order, and no more often than there is something to do. */
static void
test_plain(void)
{
	begin(3000);
	run_seconds(2);
	TAP_OK(!workers[0].process.runs && launcher.until == NONE,
		   "nothing runs, and nothing wakes, while there is nothing");
	scans = 0;
	for (int id = 0; id < 3000; id++)
		set(0, id, wall() + SECOND + random_below(59 * SECOND));
	run_seconds(20);
	for (int id = 0; id < 3000; id += 3) /* a shorter limit for all of them */
		if (table[0][id] != NONE)
			set(0, id, Min(table[0][id], wall() + SECOND));
	run_seconds(2);
	TAP_OK(served > 1300, "ends that were shortened are served (%d)", served);
	run_seconds(40);
	TAP_OK(left() == 0 && served == 3000, "3000 entries of a minute are served (%d)", served);
	TAP_OK(early == 0 && latest <= 20 * TICK, "none early, and the last one %d ms late", (int) (latest / 1000));
	TAP_OK(scans <= 2, "with %d scans of the table", scans);
	TAP_OK(!workers[0].process.runs, "and the worker has ended");
	wakes = 0;
	set(0, 1, wall() + 3600 * SECOND);
	run_seconds(300);
	TAP_OK(!workers[0].process.runs && wakes == 0, "it does not wait for what comes in an hour");
	set(0, 1, wall() + 30 * SECOND);
	set(1, 1, wall() + 40 * SECOND);
	run_seconds(41);
	TAP_OK(left() == 0 && latest <= 20 * TICK, "but that can be changed, in two databases");
}

static void
test_steps(void)
{
	begin(3000);
	for (int id = 0; id < 1000; id++)
		set(0, id, wall() + SECOND + random_below(600 * SECOND));
	run_seconds(5);
	step_clock(300 * SECOND);
	run_seconds(6);
	TAP_OK(left() < 550, "after a step forward what is over is served (%d left)", left());
	wakes = 0;
	step_clock(-3600 * SECOND);
	for (int id = 2000; id < 2010; id++)
		set(0, id, wall() + 20 * SECOND);
	run_seconds(30);
	TAP_OK(table[0][2000] == NONE && table[0][2009] == NONE, "after a step back what is set then is served in time");
	TAP_OK(wakes <= 30 + 10, "and the worker is not busy (%d wakes in 30 seconds)", wakes);
	TAP_OK(early == 0, "nothing is served early");
	step_clock(3600 * SECOND);
	run_seconds(400);
	TAP_OK(left() == 0, "all are served at last (%d left)", left());
}

/* A worker is told while it makes up its mind to sleep. */
static void
test_sparse(void)
{
	begin(1000);
	set(0, 0, wall() + 3600 * SECOND);
	for (int id = 1; id < 400; id++)
	{
		set(0, 999, wall() + 50 * SECOND);
		set(0, id, wall() + 300000);
		tick();
		if (random_below(2) != 0)
			set(0, 400 + id, wall() + 300000);
		for (int i = random_below(100); i >= 0; i--)
			tick();
	}
	run_seconds(1);
	TAP_OK(left() == 2 && early == 0 && latest <= 20 * TICK, "no entry is missed (%d left, %d ms late)", left(),
		   (int) (latest / 1000));
}

static void
test_floods(void)
{
	begin(30000);
	for (int id = 0; id < 30000; id++)
		set(0, id, wall() + SECOND + random_below(30 * SECOND));
	run_seconds(5);
	for (int id = 0; id < 30000; id++)
		if (table[0][id] != NONE)
			set(0, id, wall() + 500000 + random_below(30 * SECOND));
	for (int id = 0; id < 10000; id++)
		set(1, id, wall() + 200000 + random_below(5 * SECOND));
	run_seconds(31);
	TAP_OK(left() == 0 && early == 0, "a flood is served, and set again, with another one in a second database");
	TAP_OK(latest <= SECOND, "at most %d ms late", (int) (latest / 1000));
	for (int round = 0; round < 20; round++) /* changes without end of the same entries */
	{
		for (int id = 0; id < 3000; id++)
			set(0, id, wall() + 40 * SECOND + random_below(SECOND));
		set(0, 3000 + round, wall() + SECOND);
		run_seconds(1);
	}
	run_seconds(2);
	TAP_OK(table[0][3000] == NONE && table[0][3019] == NONE && latest <= SECOND + 2 * TICK,
		   "what is changed often does not keep others from being served (%d ms)", (int) (latest / 1000));
}

static void
test_random(unsigned seconds)
{
	TimestampTz quiet = 0;

	begin(23000);
	for (unsigned i = 0; i < seconds * (SECOND / TICK); i++)
	{
		unsigned what = random_below(1000);
		int d = random_below(DATABASES), id = random_below(3000);

		if (what < 300)
			set(d, id, wall() + random_below(100) * random_below(SECOND));
		else if (what < 320)
			set(d, id, NONE);
		else if (what == 321)
			set(d, id, DT_NOBEGIN);
		else if (what == 322)
			kill_worker(d);
		else if (what == 323 && random_below(3) == 0)
			kill_server();
		else if (what == 324 && random_below(3) == 0)
			step_clock((random_below(2) != 0 ? 1 : -1) * (int64) random_below(120) * SECOND);
		else if (what == 325 && random_below(2) == 0)
			for (id = 3000; id < 23000; id++)
				set(d, id, wall() + random_below(20 * SECOND));
		tick();
	}
	for (; left() > 0 && quiet < 400; quiet++)
		run_seconds(1);
	TAP_OK(left() == 0 && early == 0, "%d entries are served, none early, none for ever (%d left)", served, left());
	TAP_OK(latest <= SECOND + 5 * TICK, "at most %d ms late, but for steps of the clock", (int) (latest / 1000));
}

int
main(void)
{
	test_plain();
	test_steps();
	test_sparse();
	test_floods();
	test_random(steps_to_run(40, 600));
	return tap_done();
}
