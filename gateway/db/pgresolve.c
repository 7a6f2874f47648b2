/*
 * pgresolve.c - the addresses of the servers in a connection string.
 *
 * libpq looks names up in the thread that connects, and a slow name server would stop the whole gateway, until
 * ZooKeeper takes it for dead. So names are looked up in a thread of libuv's pool, and libpq gets the addresses. All
 * connections of the gateway have one string: they share one look-up, which takes one thread, and for a moment its
 * answer.
 */
#include "db/pgresolve.h"

#include "support/must.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_FRESH_MS 1000
#define RESOLVE_HOSTS	 32
#define RESOLVE_LIST	 2048 /* bytes of a list */

typedef struct ResolveWaiter
{
	struct ResolveWaiter *next;
	PgResolvedFn fn;
	void *arg;
} ResolveWaiter;

typedef struct Resolver
{
	uv_loop_t *loop;
	char *conninfo; /* of the answer, or of what is being looked up */
	char *hosts[RESOLVE_HOSTS];
	char *ports[RESOLVE_HOSTS];
	int count;
	int at; /* the host that is being looked up; count: none is */
	char host_list[RESOLVE_LIST], address_list[RESOLVE_LIST], port_list[RESOLVE_LIST];
	char problem[256];
	uint64_t answered; /* ms; 0: never */
	uv_getaddrinfo_t request;
	ResolveWaiter *waiters;
} Resolver;

static Resolver resolver;

/* ---- the connection string ---- */

/* A path to a socket, or an address, needs no look-up; nor does the default. */
static bool
host_is_name(const char *host)
{
	struct in6_addr address;

	return *host != '\0' && *host != '/' && *host != '@' && inet_pton(AF_INET, host, &address) != 1 &&
		   inet_pton(AF_INET6, host, &address) != 1;
}

static const char *
option_value(const PQconninfoOption *options, const char *keyword)
{
	for (; options->keyword != NULL; options++)
	{
		if (strcmp(options->keyword, keyword) == 0)
			return options->val != NULL ? options->val : options->envvar != NULL ? getenv(options->envvar) : NULL;
	}
	return NULL;
}

/* The item of a list between commas; the only one stands for all, as for libpq. */
static char *
list_item(const char *list, int number)
{
	const char *at = list != NULL ? list : "";

	if (strchr(at, ',') == NULL)
		return must_have(strdup(at));
	for (; number > 0 && *at != '\0'; number--)
		at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',');
	return must_have(strndup(at, strcspn(at, ",")));
}

static void
resolver_clear(void)
{
	for (int i = 0; i < resolver.count; i++)
	{
		free(resolver.hosts[i]);
		free(resolver.ports[i]);
	}
	free(resolver.conninfo);
	resolver.conninfo = NULL;
	resolver.count = resolver.at = 0;
	resolver.answered = 0;
	resolver.host_list[0] = resolver.address_list[0] = resolver.port_list[0] = resolver.problem[0] = '\0';
}

/* Notes the hosts; false when none has to be looked up. */
static bool
resolver_read(const char *conninfo)
{
	PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
	const char *hosts = options != NULL ? option_value(options, "host") : NULL;
	const char *addresses = options != NULL ? option_value(options, "hostaddr") : NULL;
	bool names = false;

	resolver_clear();
	if (hosts != NULL && (addresses == NULL || *addresses == '\0'))
	{
		int count = 1;

		for (const char *p = hosts; *p != '\0'; p++)
			count += *p == ',';
		for (int i = 0; i < count && i < RESOLVE_HOSTS; i++)
		{
			resolver.hosts[i] = list_item(hosts, strchr(hosts, ',') != NULL ? i : 0);
			resolver.ports[i] = list_item(option_value(options, "port"), i);
			resolver.count++;
			names = names || (resolver.hosts[i] != NULL && host_is_name(resolver.hosts[i]));
		}
		names = names && count <= RESOLVE_HOSTS;
	}
	PQconninfoFree(options);
	if (names)
		resolver.conninfo = strdup(conninfo);
	return names && resolver.conninfo != NULL;
}

/* ---- looking up ---- */

static void
list_add(char *list, const char *item)
{
	size_t len = strlen(list);

	snprintf(list + len, RESOLVE_LIST - len, "%s%s", resolver.host_list[0] != '\0' ? "," : "", item);
}

/* One entry more; an address "" is for a host that needs none. */
static void
resolver_add(const char *address)
{
	list_add(resolver.address_list, address);
	list_add(resolver.port_list, resolver.ports[resolver.at] != NULL ? resolver.ports[resolver.at] : "");
	list_add(resolver.host_list, resolver.hosts[resolver.at]);
}

static void
resolver_tell(void)
{
	PgAddresses found = {resolver.host_list, resolver.address_list, resolver.port_list};
	ResolveWaiter *waiter = resolver.waiters, *next;

	resolver.waiters = NULL;
	for (; waiter != NULL; waiter = next)
	{
		next = waiter->next;
		waiter->fn(waiter->arg, resolver.host_list[0] != '\0' ? &found : NULL, resolver.problem);
		free(waiter);
	}
}

static void resolver_next(void);

static void
resolver_on_answer(uv_getaddrinfo_t *request, int status, struct addrinfo *result)
{
	char address[INET6_ADDRSTRLEN];

	if (status != 0)
		snprintf(resolver.problem, sizeof(resolver.problem), "\"%.100s\" cannot be looked up: %s",
				 resolver.hosts[resolver.at], uv_strerror(status));
	for (const struct addrinfo *info = status == 0 ? result : NULL; info != NULL; info = info->ai_next)
	{
		if (getnameinfo(info->ai_addr, info->ai_addrlen, address, sizeof(address), NULL, 0, NI_NUMERICHOST) == 0)
			resolver_add(address);
	}
	uv_freeaddrinfo(result);
	resolver.at++;
	resolver_next();
}

/* Goes on with the next host that has a name, or tells. */
static void
resolver_next(void)
{
	static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

	for (; resolver.at < resolver.count; resolver.at++)
	{
		if (!host_is_name(resolver.hosts[resolver.at]))
			resolver_add("");
		else if (uv_getaddrinfo(resolver.loop, &resolver.request, resolver_on_answer, resolver.hosts[resolver.at], NULL,
								&hints) == 0)
			return;
	}
	resolver.answered = uv_now(resolver.loop) + 1;
	resolver_tell();
}

void
pgresolve(uv_loop_t *loop, const char *conninfo, PgResolvedFn fn, void *arg)
{
	static const PgAddresses none = {NULL, NULL, NULL};
	bool known = resolver.conninfo != NULL && strcmp(resolver.conninfo, conninfo) == 0;
	bool under_way = resolver.at < resolver.count;
	ResolveWaiter *waiter;

	resolver.loop = loop;
	if (!known && (under_way || !resolver_read(conninfo)))
	{
		fn(arg, &none, NULL); /* of two strings, which no gateway has, libpq looks up the second */
		return;
	}
	waiter = malloc(sizeof(ResolveWaiter));
	if (waiter == NULL)
	{
		fn(arg, NULL, "out of memory");
		return;
	}
	*waiter = (ResolveWaiter){resolver.waiters, fn, arg};
	resolver.waiters = waiter;
	if (under_way)
		return;
	if (known && resolver.answered != 0 && uv_now(loop) < resolver.answered + RESOLVE_FRESH_MS)
	{
		resolver_tell();
		return;
	}
	if (resolver_read(conninfo))
		resolver_next();
}

void
pgresolve_forget(void *arg)
{
	for (ResolveWaiter **at = &resolver.waiters; *at != NULL;)
	{
		ResolveWaiter *waiter = *at;

		if (waiter->arg != arg)
			at = &waiter->next;
		else
		{
			*at = waiter->next;
			free(waiter);
		}
	}
}
