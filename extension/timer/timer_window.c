/* timer_window.c - the entries of the timer that a worker knows. */
#include "timer/timer_window.h"

#include "lib/binaryheap.h"

struct TimerWindow
{
	binaryheap *heap; /* of the indexes of used slots */
	int capacity;
	TimerDue *slots;
	int *vacant; /* indexes of the other slots; capacity - bh_size of them */
	TimestampTz began, last_scan;
};

/* The heap's first element is its greatest one. */
static int
timer_window_compare(Datum a, Datum b, void *arg)
{
	const TimerDue *slots = ((TimerWindow *) arg)->slots;
	TimestampTz left = slots[DatumGetInt32(a)].due, right = slots[DatumGetInt32(b)].due;

	return (left < right) - (left > right);
}

TimerWindow *
timer_window_create(int capacity, TimestampTz now)
{
	TimerWindow *window = palloc(sizeof(TimerWindow));

	window->heap = binaryheap_allocate(capacity, timer_window_compare, window);
	window->capacity = capacity;
	window->slots = palloc(sizeof(TimerDue) * capacity);
	window->vacant = palloc(sizeof(int) * capacity);
	window->began = now;
	window->last_scan = DT_NOBEGIN;
	timer_window_clear(window);
	return window;
}

void
timer_window_clear(TimerWindow *window)
{
	binaryheap_reset(window->heap);
	for (int i = 0; i < window->capacity; i++)
		window->vacant[i] = i;
}

static int
timer_window_room(const TimerWindow *window)
{
	return window->capacity - window->heap->bh_size;
}

bool
timer_window_add(TimerWindow *window, const TimerDue *due)
{
	int slot;

	if (timer_window_room(window) == 0)
		return false;
	slot = window->vacant[timer_window_room(window) - 1];
	window->slots[slot] = *due;
	binaryheap_add(window->heap, Int32GetDatum(slot));
	return true;
}

/* When the first entry is due; DT_NOEND: there is none. */
static TimestampTz
timer_window_head(const TimerWindow *window)
{
	if (binaryheap_empty(window->heap))
		return DT_NOEND;
	return window->slots[DatumGetInt32(binaryheap_first(window->heap))].due;
}

TimestampTz
timer_window_earliest(const TimerWindow *window)
{
	TimestampTz earliest = DT_NOEND;

	for (int i = 0; i < window->heap->bh_size; i++)
		earliest = Min(earliest, window->slots[DatumGetInt32(window->heap->bh_nodes[i])].entry.at);
	return earliest;
}

int
timer_window_take(TimerWindow *window, TimestampTz now, TimerDue *dues, int max)
{
	int count = 0;

	while (count < max && timer_window_head(window) <= now)
	{
		int slot = DatumGetInt32(binaryheap_remove_first(window->heap));

		dues[count++] = window->slots[slot];
		window->vacant[timer_window_room(window) - 1] = slot;
	}
	return count;
}

int64
timer_retry_delay(uint32 failures)
{
	return Min(TIMER_RETRY_US << Min(failures, 20), TIMER_RETRY_MAX_US);
}

/* When a scan may begin that is due at the horizon. A last scan that is yet to come was before the clock stepped back.
 */
static TimestampTz
timer_window_scan_time(const TimerWindow *window, TimestampTz horizon, TimestampTz now)
{
	return window->last_scan <= now ? Max(horizon, window->last_scan + TIMER_SCAN_PAUSE_US) : horizon;
}

/* While others wait for their turn, a worker ends when nothing is due, and at the latest when its own is over. */
TimerStep
timer_window_step(const TimerWindow *window, TimestampTz horizon, bool crowded, TimestampTz now, TimestampTz *until)
{
	TimestampTz head = timer_window_head(window), scan = timer_window_scan_time(window, horizon, now);

	*until = Min(head, scan);
	if (crowded && (*until > now || now > window->began + TIMER_TURN_US))
		return TIMER_STEP_LEAVE;
	/* Without an entry that ends within the window, the worker ends: a scan finds the later ones. An entry that is
	 * tried again has ended, so the worker stays. */
	if (*until > now)
		return head > now + TIMER_WINDOW_US && horizon > now && timer_window_earliest(window) > now + TIMER_WINDOW_US
				   ? TIMER_STEP_LEAVE
				   : TIMER_STEP_SLEEP;
	if (scan <= now && (head > now || timer_window_room(window) >= window->capacity / 2))
		return TIMER_STEP_SCAN;
	return TIMER_STEP_SERVE;
}

int
timer_window_scanned(TimerWindow *window, TimestampTz now, bool *all)
{
	window->last_scan = now;
	*all = timer_window_room(window) < window->capacity / 2;
	if (*all)
		timer_window_clear(window);
	return window->capacity / 2;
}

long
timer_sleep_ms(TimestampTz until, TimestampTz now)
{
	if (until >= now + (int64) TIMER_SLEEP_MAX_MS * 1000)
		return TIMER_SLEEP_MAX_MS;
	return until <= now ? TIMER_SLEEP_MIN_MS : Max((until - now + 999) / 1000, TIMER_SLEEP_MIN_MS);
}
