/*
 * sim_loop.c - the clock and the events of a simulated world, and the functions of libuv that gateway/coord/ calls.
 *
 * A handle keeps its event in u.reserved[0], and whether it is active in u.reserved[1]. Work of the thread pool runs
 * after a while, in one event, and tells the loop in another. Locks need not do anything, since there is one thread.
 */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct SimEvent
{
	uint64_t at, order;
	SimProcess *process;
	SimFn fn; /* NULL: cancelled */
	void *arg;
	struct SimEvent *next; /* while its process is stopped */
} SimEvent;

uint64_t sim_now;
bool sim_traces, sim_is_calm;

static SimEvent **heap;
static size_t heap_count, heap_room;
static uint64_t order, state;
static SimProcess *running;

/* ---- chance: splitmix64 ---- */

static uint64_t
random_64(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

uint32_t
sim_random(uint32_t below)
{
	return (uint32_t) (random_64() % below);
}

bool
sim_percent(unsigned percent)
{
	return sim_random(100) < percent;
}

bool
sim_is_slow(unsigned percent)
{
	return !sim_is_calm && sim_percent(percent);
}

/* ---- events: a binary heap ---- */

static bool
is_before(const SimEvent *a, const SimEvent *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void
heap_put(SimEvent *event)
{
	size_t i = heap_count++;

	if (heap_count > heap_room)
	{
		heap_room = heap_room ? 2 * heap_room : 256;
		heap = realloc(heap, heap_room * sizeof(SimEvent *));
	}
	for (; i > 0 && is_before(event, heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = event;
}

static SimEvent *
heap_take(void)
{
	SimEvent *first = heap[0], *last = heap[--heap_count];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < heap_count; i = child)
	{
		if (child + 1 < heap_count && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], last))
			break;
		heap[i] = heap[child];
	}
	heap[i] = last;
	return first;
}

SimEvent *
sim_after(SimProcess *process, uint64_t delay, SimFn fn, void *arg)
{
	SimEvent *event = malloc(sizeof(*event));

	*event = (SimEvent){.at = sim_now + delay, .order = ++order, .process = process, .fn = fn, .arg = arg};
	heap_put(event);
	return event;
}

void
sim_cancel(SimEvent *event)
{
	event->fn = NULL;
}

void
sim_run(uint64_t until)
{
	while (heap_count > 0 && heap[0]->at <= until)
	{
		SimEvent *event = heap_take();
		SimProcess *process = event->process;

		sim_now = event->at;
		if (event->fn && process && process->stopped)
		{
			*(process->first ? &process->last->next : &process->first) = event;
			process->last = event;
			continue;
		}
		running = process;
		if (event->fn)
			event->fn(event->arg);
		if (event->fn && process && process->iterate && !process->stopped)
			process->iterate();
		running = NULL;
		free(event);
	}
	sim_now = until;
}

void
sim_continue(SimProcess *process)
{
	SimEvent *event = process->first, *next;

	process->stopped = false;
	process->first = process->last = NULL;
	for (; event; event = next)
	{
		next = event->next;
		event->next = NULL;
		event->at = sim_now;
		event->order = ++order;
		heap_put(event);
	}
}

void
sim_begin(uint64_t seed)
{
	sim_now = order = 0;
	state = seed;
}

void
sim_end(void)
{
	while (heap_count > 0)
		free(heap_take());
	free(heap);
	heap = NULL;
	heap_room = 0;
}

void
sim_trace(const char *format, ...)
{
	va_list args;

	if (!sim_traces)
		return;
	printf("# %6llu.%03u ", (unsigned long long) sim_now / SIM_MS, (unsigned) (sim_now % SIM_MS));
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

SimProcess *
sim_process_now(void)
{
	return running;
}

/* ---- libuv ---- */

#define EVENT(handle)	  (*(SimEvent **) &(handle)->u.reserved[0])
#define IS_ACTIVE(handle) ((handle)->u.reserved[1] != NULL)

uint64_t
uv_hrtime(void)
{
	return 1000000000 + sim_now * (1000000 / SIM_MS);
}

uint64_t
uv_now(const uv_loop_t *loop)
{
	return uv_hrtime() / 1000000;
}

int
uv_random(uv_loop_t *loop, uv_random_t *request, void *to, size_t len, unsigned flags, uv_random_cb fn)
{
	for (size_t i = 0; i < len; i++)
		((unsigned char *) to)[i] = (unsigned char) random_64();
	return 0;
}

static void
handle_forget(uv_handle_t *handle)
{
	if (EVENT(handle))
		sim_cancel(EVENT(handle));
	handle->u.reserved[0] = handle->u.reserved[1] = NULL;
}

int
uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
	memset(timer, 0, sizeof(*timer));
	timer->loop = loop;
	return 0;
}

static void
timer_fires(void *arg)
{
	uv_timer_t *timer = arg;

	timer->u.reserved[0] = timer->u.reserved[1] = NULL;
	if (timer->repeat > 0)
		uv_timer_start(timer, timer->timer_cb, timer->repeat, timer->repeat);
	timer->timer_cb(timer);
}

int
uv_timer_start(uv_timer_t *timer, uv_timer_cb fn, uint64_t timeout, uint64_t repeat)
{
	handle_forget((uv_handle_t *) timer);
	timer->timer_cb = fn;
	timer->repeat = repeat;
	EVENT(timer) = sim_after(timer->loop->data, timeout * SIM_MS, timer_fires, timer);
	timer->u.reserved[1] = timer;
	return 0;
}

int
uv_timer_stop(uv_timer_t *timer)
{
	handle_forget((uv_handle_t *) timer);
	return 0;
}

uint64_t
uv_timer_get_repeat(const uv_timer_t *timer)
{
	return timer->repeat;
}

void
uv_unref(uv_handle_t *handle)
{
}

int
uv_is_active(const uv_handle_t *handle)
{
	return IS_ACTIVE(handle);
}

static void
handle_closed(void *arg)
{
	uv_handle_t *handle = arg;

	handle->close_cb(handle);
}

void
uv_close(uv_handle_t *handle, uv_close_cb fn)
{
	handle_forget(handle);
	handle->close_cb = fn;
	sim_after(handle->loop->data, 0, handle_closed, handle);
}

int
uv_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb fn)
{
	memset(async, 0, sizeof(*async));
	async->loop = loop;
	async->async_cb = fn;
	return 0;
}

static void
async_runs(void *arg)
{
	uv_async_t *async = arg;

	EVENT(async) = NULL;
	async->async_cb(async);
}

int
uv_async_send(uv_async_t *async)
{
	if (!EVENT(async))
		EVENT(async) = sim_after(async->loop->data, sim_random(SIM_MS), async_runs, async);
	return 0;
}

static void
work_is_done(void *arg)
{
	uv_work_t *work = arg;

	work->after_work_cb(work, 0);
}

static void
work_runs(void *arg)
{
	uv_work_t *work = arg;

	work->work_cb(work);
	sim_after(work->loop->data, sim_random(2 * SIM_MS), work_is_done, work);
}

int
uv_queue_work(uv_loop_t *loop, uv_work_t *work, uv_work_cb fn, uv_after_work_cb after)
{
	work->loop = loop;
	work->work_cb = fn;
	work->after_work_cb = after;
	sim_after(loop->data, sim_random(sim_is_slow(10) ? 500 * SIM_MS : 5 * SIM_MS), work_runs, work);
	return 0;
}

int
uv_mutex_init(uv_mutex_t *mutex)
{
	return 0;
}

void
uv_mutex_lock(uv_mutex_t *mutex)
{
}

void
uv_mutex_unlock(uv_mutex_t *mutex)
{
}

void
uv_mutex_destroy(uv_mutex_t *mutex)
{
}

int
uv_cond_init(uv_cond_t *cond)
{
	return 0;
}

void
uv_cond_signal(uv_cond_t *cond)
{
}

void
uv_cond_destroy(uv_cond_t *cond)
{
}

int
uv_cond_timedwait(uv_cond_t *cond, uv_mutex_t *mutex, uint64_t timeout)
{
	return UV_ETIMEDOUT;
}

/* There is no watchdog: here a loop stands still only together with its whole process. */
int
uv_thread_create(uv_thread_t *thread, uv_thread_cb fn, void *arg)
{
	return UV_EAGAIN;
}

int
uv_thread_join(uv_thread_t *thread)
{
	return 0;
}

unsigned long
sim_setting(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}
