/*
 * pgresolve.c - the addresses of the database's servers; see pgresolve.h.
 *
 * libpq looks up names with getaddrinfo(), which blocks for as long as the name server does not answer. Here libuv's
 * threads do that, once for all connections that are opened within a second. One name is looked up at a time, so that
 * a name server that is away keeps one thread.
 */
#include "db/pgresolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_FRESH_MS  1000
#define RESOLVE_ADDRESSES 16 /* of a name */

typedef struct ResolvedName
{
	int count;
	char addresses[RESOLVE_ADDRESSES][PGRESOLVE_ADDRESS];
} ResolvedName;

static struct
{
	uv_loop_t *loop;
	const PgConninfo *info;
	ResolvedName names[PGCONNINFO_HOSTS]; /* of the hosts that are names */
	bool running;
	int next;			  /* host to look up */
	uint64_t answered_at; /* ms; 0: never */
	char problem[256];
	uv_getaddrinfo_t lookup;
	PgResolve *requests;
	PgAddress first;  /* the address to try first */
	bool first_fails; /* the one after it */
} resolver;

/* ---- lists ---- */

/* A socket's path and an address need no lookup. Nor does the default. */
static bool
host_is_name(const PgHost *host)
{
	struct in6_addr address;
	const char *name = host->host;

	return host->address[0] == '\0' && *name != '\0' && *name != '/' && *name != '@' &&
		   inet_pton(AF_INET, name, &address) != 1 && inet_pton(AF_INET6, name, &address) != 1;
}

/* Without memory the list is empty, as if no name could be looked up. */
static PgAddresses *
resolver_list(void)
{
	static PgAddresses none = {.references = 1};
	const PgConninfo *info = resolver.info;
	size_t most = (size_t) info->count * RESOLVE_ADDRESSES;
	PgAddresses *list = calloc(1, sizeof(PgAddresses) + most * sizeof(PgAddress));

	if (list == NULL)
		list = &none;
	list->references++;
	if (list == &none)
	{
		snprintf(resolver.problem, sizeof(resolver.problem), "out of memory");
		return list;
	}
	for (int i = 0; i < info->count; i++)
	{
		bool name = host_is_name(&info->hosts[i]);

		for (int j = 0; j < (name ? resolver.names[i].count : 1); j++)
		{
			PgAddress *address = &list->list[list->count++];

			address->host = &info->hosts[i];
			snprintf(address->address, sizeof(address->address), "%s",
					 name ? resolver.names[i].addresses[j] : info->hosts[i].address);
		}
	}
	return list;
}

void
pgresolve_unref(PgAddresses *addresses)
{
	if (addresses != NULL && --addresses->references == 0)
		free(addresses);
}

static bool
address_is(const PgAddress *address, const PgAddress *other)
{
	return address->host == other->host && strcmp(address->address, other->address) == 0;
}

int
pgresolve_first(const PgAddresses *addresses)
{
	int i = 0;

	if (addresses->count == 0)
		return 0;
	while (i < addresses->count && !address_is(&addresses->list[i], &resolver.first))
		i++;
	if (i == addresses->count)
		i = 0;
	else if (resolver.first_fails)
		i = (i + 1) % addresses->count;
	pgresolve_set_answers(&addresses->list[i]);
	return i;
}

void
pgresolve_set_answers(const PgAddress *address)
{
	resolver.first = *address;
	resolver.first_fails = false;
}

void
pgresolve_set_fails(const PgAddress *address)
{
	if (address_is(address, &resolver.first))
		resolver.first_fails = true;
}

/* ---- looking up ---- */

static void
resolver_answer(void)
{
	PgAddresses *list = resolver_list();
	PgResolve *request;

	while ((request = resolver.requests) != NULL)
	{
		resolver.requests = request->next;
		list->references++;
		request->fn(request->arg, list, resolver.problem);
	}
	pgresolve_unref(list);
}

static void resolver_on_answer(uv_getaddrinfo_t *lookup, int status, struct addrinfo *result);

/* Looks up the next name. Answers the requests if there is none. */
static void
resolver_step(void)
{
	static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

	for (; resolver.next < resolver.info->count; resolver.next++)
	{
		const PgHost *host = &resolver.info->hosts[resolver.next];

		if (host_is_name(host) &&
			uv_getaddrinfo(resolver.loop, &resolver.lookup, resolver_on_answer, host->host, NULL, &hints) == 0)
			return;
	}
	resolver.running = false;
	resolver.answered_at = uv_now(resolver.loop);
	resolver_answer();
}

static void
resolver_on_answer(uv_getaddrinfo_t *lookup, int status, struct addrinfo *result)
{
	ResolvedName *name = &resolver.names[resolver.next];

	if (status != 0)
		snprintf(resolver.problem, sizeof(resolver.problem), "\"%.100s\" cannot be looked up: %s",
				 resolver.info->hosts[resolver.next].host, uv_strerror(status));
	else
		name->count = 0;
	for (const struct addrinfo *info = status == 0 ? result : NULL; info != NULL && name->count < RESOLVE_ADDRESSES;
		 info = info->ai_next)
	{
		if (getnameinfo(info->ai_addr, info->ai_addrlen, name->addresses[name->count], PGRESOLVE_ADDRESS, NULL, 0,
						NI_NUMERICHOST) == 0)
			name->count++;
	}
	uv_freeaddrinfo(result);
	resolver.next++;
	resolver_step();
}

void
pgresolve(uv_loop_t *loop, const char *conninfo, PgResolve *request)
{
	resolver.loop = loop;
	resolver.info = pgconninfo_get(conninfo);
	request->next = resolver.requests;
	resolver.requests = request;
	if (resolver.running)
		return;
	if (resolver.answered_at != 0 && uv_now(loop) - resolver.answered_at < RESOLVE_FRESH_MS)
	{
		resolver_answer();
		return;
	}
	resolver.running = true;
	resolver.next = 0;
	resolver.problem[0] = '\0';
	resolver_step();
}

bool
pgresolve_hurry(PgResolve *request)
{
	PgAddresses *list = resolver_list();

	if (list->count > 0)
	{
		pgresolve_forget(request);
		request->fn(request->arg, list, "a name server does not answer");
		return true;
	}
	pgresolve_unref(list);
	return false;
}

void
pgresolve_forget(PgResolve *request)
{
	for (PgResolve **at = &resolver.requests; *at != NULL; at = &(*at)->next)
	{
		if (*at == request)
		{
			*at = request->next;
			return;
		}
	}
}
