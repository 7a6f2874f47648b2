/*
 * pgresolve.c - looks up the servers in a connection string without blocking the loop.
 *
 * libpq looks up names in the calling thread. A slow name server would block the gateway until ZooKeeper declares it
 * dead. Therefore a thread of libuv's pool looks up the names, and libpq gets addresses. All connections of a gateway
 * have the same string. They share one lookup, so that it occupies one thread, and its result for a second.
 */
#include "db/pgresolve.h"

#include "support/buf.h"
#include "support/log.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_FRESH_MS 1000
#define RESOLVE_HOSTS	 32

static struct
{
	uv_loop_t *loop;
	bool parsed;
	char *hosts[RESOLVE_HOSTS];
	char *ports[RESOLVE_HOSTS];
	int count; /* hosts; 0: libpq needs no help */
	int next;  /* host to look up */
	bool running;
	bool answered;
	uint64_t answered_at; /* ms */
	int found;			  /* entries in the lists */
	Buf host_list, address_list, port_list;
	char problem[256];
	uv_getaddrinfo_t lookup;
	PgResolve *requests;
} resolver;

/* ---- the connection string ---- */

/* A socket's path and an address need no lookup. Nor does the default. */
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

/* Splits a list at its commas. A single item stands for all, as in libpq. */
static int
list_split(const char *list, char *to[RESOLVE_HOSTS])
{
	bool single = list == NULL || strchr(list, ',') == NULL;
	int count = 0;

	for (const char *item = list != NULL ? list : ""; count < RESOLVE_HOSTS; count++)
	{
		size_t len = strcspn(item, ",");

		to[count] = must_have(strndup(item, len));
		if (!single && item[len] == '\0')
			return count + 1;
		item += single ? 0 : len + 1;
	}
	return single ? 1 : RESOLVE_HOSTS + 1;
}

static void
resolver_parse(const char *conninfo)
{
	PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
	const char *hosts = options != NULL ? option_value(options, "host") : NULL;
	const char *addresses = options != NULL ? option_value(options, "hostaddr") : NULL;
	bool names = false;
	int count = 0;

	resolver.parsed = true;
	if (hosts != NULL && (addresses == NULL || *addresses == '\0'))
	{
		count = list_split(hosts, resolver.hosts);
		(void) list_split(option_value(options, "port"), resolver.ports);
	}
	PQconninfoFree(options);
	if (count > RESOLVE_HOSTS)
		return;
	for (int i = 0; i < count; i++)
		names = names || host_is_name(resolver.hosts[i]);
	resolver.count = names ? count : 0;
}

/* ---- looking up ---- */

/* Adds an entry for the current host. address is "" for a host that needs none. */
static void
resolver_add(const char *address)
{
	const char *comma = resolver.found++ > 0 ? "," : "";
	const char *port = resolver.ports[resolver.next];

	buf_printf(&resolver.host_list, "%s%s", comma, resolver.hosts[resolver.next]);
	buf_printf(&resolver.address_list, "%s%s", comma, address);
	buf_printf(&resolver.port_list, "%s%s", comma, port != NULL ? port : "");
}

static void
resolver_answer(void)
{
	PgAddresses found = {resolver.host_list.data, resolver.address_list.data, resolver.port_list.data};
	bool usable = resolver.found > 0 && found.hosts != NULL && found.addresses != NULL && found.ports != NULL;
	PgResolve *request;

	while ((request = resolver.requests) != NULL)
	{
		resolver.requests = request->next;
		request->fn(request->arg, usable ? &found : NULL, resolver.problem);
	}
}

static void resolver_on_answer(uv_getaddrinfo_t *lookup, int status, struct addrinfo *result);

/* Looks up the next name. Answers the requests if there is none. */
static void
resolver_step(void)
{
	static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

	for (; resolver.next < resolver.count; resolver.next++)
	{
		if (!host_is_name(resolver.hosts[resolver.next]))
			resolver_add("");
		else if (uv_getaddrinfo(resolver.loop, &resolver.lookup, resolver_on_answer, resolver.hosts[resolver.next],
								NULL, &hints) == 0)
			return;
	}
	resolver.running = false;
	resolver.answered = true;
	resolver.answered_at = uv_now(resolver.loop);
	resolver_answer();
}

static void
resolver_on_answer(uv_getaddrinfo_t *lookup, int status, struct addrinfo *result)
{
	char address[INET6_ADDRSTRLEN];

	if (status != 0)
		snprintf(resolver.problem, sizeof(resolver.problem), "\"%.100s\" cannot be looked up: %s",
				 resolver.hosts[resolver.next], uv_strerror(status));
	for (const struct addrinfo *info = status == 0 ? result : NULL; info != NULL; info = info->ai_next)
	{
		if (getnameinfo(info->ai_addr, info->ai_addrlen, address, sizeof(address), NULL, 0, NI_NUMERICHOST) == 0)
			resolver_add(address);
	}
	uv_freeaddrinfo(result);
	resolver.next++;
	resolver_step();
}

void
pgresolve(uv_loop_t *loop, const char *conninfo, PgResolve *request)
{
	static const PgAddresses none = {NULL, NULL, NULL};

	resolver.loop = loop;
	if (!resolver.parsed)
		resolver_parse(conninfo);
	if (resolver.count == 0)
	{
		request->fn(request->arg, &none, NULL);
		return;
	}
	request->next = resolver.requests;
	resolver.requests = request;
	if (resolver.running)
		return;
	if (resolver.answered && uv_now(loop) - resolver.answered_at < RESOLVE_FRESH_MS)
	{
		resolver_answer();
		return;
	}
	resolver.running = true;
	resolver.next = resolver.found = 0;
	resolver.problem[0] = '\0';
	buf_free(&resolver.host_list);
	buf_free(&resolver.address_list);
	buf_free(&resolver.port_list);
	resolver_step();
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
