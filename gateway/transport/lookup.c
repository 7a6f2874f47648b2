/*
 * lookup.c - the addresses of a host's name, each looked up on a thread of its own.
 *
 * Anybody may name a host whose servers do not answer, which takes the resolver many seconds. libuv's pool, of which
 * two threads resolve names, also has passwords and the names of database servers: such a host must not occupy it.
 */
#include "transport/lookup.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define LOOKUPS_MAX		   64
#define LOOKUPS_ACCOUNT	   8 /* of them for one account */
#define LOOKUP_STACK_BYTES 262144

struct Lookup
{
	int64_t account;
	char name[NI_MAXHOST];
	char addresses[LOOKUP_ADDRESSES_MAX][LOOKUP_ADDRESS];
	int count;
	LookupFn fn; /* NULL: forgotten */
	void *arg;
	LIST_ENTRY(Lookup) running_link;
	STAILQ_ENTRY(Lookup) link; /* when it is done */
};

static LIST_HEAD(, Lookup) lookup_running = LIST_HEAD_INITIALIZER(lookup_running); /* of the loop's thread */

static STAILQ_HEAD(, Lookup) lookup_done = STAILQ_HEAD_INITIALIZER(lookup_done);
static uv_mutex_t lookup_mutex; /* guards lookup_done and lookup_stopped */
static bool lookup_stopped;
static uv_async_t lookup_async;

/* On the thread. */
static void
lookup_run(void *arg)
{
	Lookup *lookup = arg;
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *found = NULL;

	if (getaddrinfo(lookup->name, NULL, &hints, &found) == 0)
	{
		for (struct addrinfo *a = found; a != NULL && lookup->count < LOOKUP_ADDRESSES_MAX; a = a->ai_next)
			lookup->count += getnameinfo(a->ai_addr, a->ai_addrlen, lookup->addresses[lookup->count], LOOKUP_ADDRESS,
										 NULL, 0, NI_NUMERICHOST) == 0;
		freeaddrinfo(found);
	}
	uv_mutex_lock(&lookup_mutex);
	if (lookup_stopped)
		free(lookup);
	else
	{
		STAILQ_INSERT_TAIL(&lookup_done, lookup, link);
		uv_async_send(&lookup_async);
	}
	uv_mutex_unlock(&lookup_mutex);
}

static Lookup *
lookup_take(void)
{
	Lookup *lookup;

	uv_mutex_lock(&lookup_mutex);
	lookup = STAILQ_FIRST(&lookup_done);
	if (lookup != NULL)
		STAILQ_REMOVE_HEAD(&lookup_done, link);
	uv_mutex_unlock(&lookup_mutex);
	return lookup;
}

static void
lookup_answer(uv_async_t *async)
{
	Lookup *lookup;

	while ((lookup = lookup_take()) != NULL)
	{
		LIST_REMOVE(lookup, running_link);
		if (lookup->fn != NULL)
			lookup->fn(lookup->arg, lookup->addresses, lookup->count);
		free(lookup);
	}
}

void
lookup_start(uv_loop_t *loop)
{
	uv_mutex_init(&lookup_mutex);
	uv_async_init(loop, &lookup_async, lookup_answer);
	uv_unref((uv_handle_t *) &lookup_async);
}

void
lookup_stop(void)
{
	Lookup *lookup;

	uv_mutex_lock(&lookup_mutex);
	lookup_stopped = true;
	uv_mutex_unlock(&lookup_mutex);
	while ((lookup = lookup_take()) != NULL)
		free(lookup);
	uv_close((uv_handle_t *) &lookup_async, NULL);
}

/* Whether the account may have another look-up. Its forgotten ones count until their threads end. */
static bool
lookup_is_admitted(int64_t account)
{
	const Lookup *lookup;
	int all = 0, own = 0;

	LIST_FOREACH (lookup, &lookup_running, running_link)
	{
		all++;
		own += lookup->account == account;
	}
	return all < LOOKUPS_MAX && own < LOOKUPS_ACCOUNT;
}

Lookup *
lookup_name(int64_t account, const char *name, LookupFn fn, void *arg)
{
	uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = LOOKUP_STACK_BYTES};
	Lookup *lookup;
	uv_thread_t thread;

	if (!lookup_is_admitted(account) || strlen(name) >= NI_MAXHOST)
		return NULL;
	lookup = calloc(1, sizeof(Lookup));
	if (lookup == NULL)
		return NULL;
	lookup->account = account;
	strcpy(lookup->name, name);
	lookup->fn = fn;
	lookup->arg = arg;
	if (uv_thread_create_ex(&thread, &options, lookup_run, lookup) != 0)
	{
		free(lookup);
		return NULL;
	}
	(void) pthread_detach(thread);
	LIST_INSERT_HEAD(&lookup_running, lookup, running_link);
	return lookup;
}

void
lookup_forget(Lookup *lookup)
{
	lookup->fn = NULL;
}
