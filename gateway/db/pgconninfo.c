/*
 * pgconninfo.c - the connection string; see pgconninfo.h.
 *
 * libpq tries all hosts of a string by itself, but without a time limit for each if it is asynchronous: a server that
 * is paused, or a network that drops packets, would keep it at the first host forever. Therefore each connection gets
 * the parameters of one server (pgconnect.c).
 *
 * libpq expands services and the environment only when it connects. A string with an invalid parameter is expanded,
 * refused, and connects to nothing.
 */
#include "db/pgconninfo.h"

#include "support/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNINFO_ATTEMPT_MS		5000
#define CONNINFO_ATTEMPT_MIN_MS 2000 /* as in libpq */
#define CONNINFO_PARAMETERS		64
#define CONNINFO_INVALID		"(invalid)"

/* Gives libpq the string with this parameter invalid. Returns NULL when there is no memory. */
static PGconn *
conninfo_probe(const char *conninfo, const char *parameter)
{
	const char *keywords[] = {"dbname", parameter, NULL};
	const char *values[] = {conninfo, CONNINFO_INVALID, NULL};

	return PQconnectStartParams(keywords, values, 1);
}

static const char *
conninfo_value(const PQconninfoOption *options, const char *keyword)
{
	for (; options->keyword != NULL; options++)
	{
		if (strcmp(options->keyword, keyword) == 0)
			return options->val != NULL ? options->val : "";
	}
	return "";
}

static int
list_count(const char *list)
{
	int count = 1;

	for (; *list != '\0'; list++)
		count += *list == ',';
	return count;
}

/* Copies item i of a list. A single item stands for all. */
static char *
list_item(const char *list, int i)
{
	for (i = strchr(list, ',') != NULL ? i : 0; i > 0; i--)
		list += strcspn(list, ",") + 1;
	return must_have(strndup(list, strcspn(list, ",")));
}

static int
conninfo_hosts(const PQconninfoOption *options)
{
	const char *hosts = conninfo_value(options, "host");

	return list_count(*hosts != '\0' ? hosts : conninfo_value(options, "hostaddr"));
}

static const char *
conninfo_problem(const PQconninfoOption *options)
{
	const char *attrs = conninfo_value(options, "target_session_attrs");

	if (strcmp(attrs, CONNINFO_INVALID) == 0)
		return NULL; /* it is the other probe's */
	if (conninfo_hosts(options) > PGCONNINFO_HOSTS)
		return "it has more than 32 hosts";
	if (strcmp(conninfo_value(options, "replication"), "") != 0)
		return "replication is for other programs";
	if (strcmp(attrs, "any") != 0 && strcmp(attrs, "read-write") != 0 && strcmp(attrs, "primary") != 0)
		return "a gateway writes, and uses the primary: target_session_attrs must be read-write, primary or any";
	return NULL;
}

/* Whether libpq refuses the string for nothing but the invalid parameter. */
static bool
conninfo_passes_probe(const char *conninfo, const char *parameter, char *problem, size_t size)
{
	PGconn *probe = conninfo_probe(conninfo, parameter);
	PQconninfoOption *options = PQconninfo(probe);
	const char *found = probe != NULL ? PQerrorMessage(probe) : "out of memory";

	if (options != NULL && strstr(found, CONNINFO_INVALID) != NULL)
		found = conninfo_problem(options);
	if (found != NULL)
		snprintf(problem, size, "%.*s", (int) strcspn(found, "\n"), found);
	PQconninfoFree(options);
	PQfinish(probe);
	return found == NULL;
}

/* The second probe is for what libpq checks after the parameter that is invalid in the first one. */
bool
pgconninfo_check(const char *conninfo, char *problem, size_t size)
{
	char *message = NULL;
	PQconninfoOption *options = PQconninfoParse(conninfo, &message);

	if (options == NULL)
		snprintf(problem, size, "%.*s", (int) strcspn(message ?: "", "\n"), message ?: "out of memory");
	PQfreemem(message);
	PQconninfoFree(options);
	return options != NULL && conninfo_passes_probe(conninfo, "channel_binding", problem, size) &&
		   conninfo_passes_probe(conninfo, "target_session_attrs", problem, size);
}

const PgConninfo *
pgconninfo_get(const char *conninfo)
{
	static PgConninfo info;
	PGconn *probe;
	long seconds;

	if (info.options != NULL)
		return &info;
	probe = must_have(conninfo_probe(conninfo, "target_session_attrs")); /* at the start */
	info.options = must_have(PQconninfo(probe));
	info.count = conninfo_hosts(info.options);
	for (int i = 0; i < info.count && i < PGCONNINFO_HOSTS; i++)
	{
		info.hosts[i].host = list_item(conninfo_value(info.options, "host"), i);
		info.hosts[i].address = list_item(conninfo_value(info.options, "hostaddr"), i);
		info.hosts[i].port = list_item(conninfo_value(info.options, "port"), i);
	}
	seconds = strtol(conninfo_value(info.options, "connect_timeout"), NULL, 10);
	info.attempt_ms = seconds <= 0 ? CONNINFO_ATTEMPT_MS : seconds > 3600 ? 3600000 : (unsigned) seconds * 1000;
	if (info.attempt_ms < CONNINFO_ATTEMPT_MIN_MS)
		info.attempt_ms = CONNINFO_ATTEMPT_MIN_MS;
	PQfinish(probe);
	/* libpq must not complete the parameters of a single server from these: their values are in the options. */
	unsetenv("PGSERVICE");
	unsetenv("PGHOST");
	unsetenv("PGHOSTADDR");
	unsetenv("PGPORT");
	return &info;
}

/* Whether libpq gets the option as it is in the string. */
static bool
conninfo_passes(const PQconninfoOption *option)
{
	static const char *const own[] = {
		"host", "hostaddr", "port", "service", "target_session_attrs", "client_encoding", "load_balance_hosts"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
	{
		if (strcmp(option->keyword, own[i]) == 0)
			return false;
	}
	return option->val != NULL && option->val[0] != '\0';
}

PGconn *
pgconninfo_start(const PgConninfo *info, const PgHost *host, const char *address, const char *name)
{
	/*
	 * An idle connection whose server has vanished ends after 25 s, unless the string says otherwise. A gateway needs
	 * the primary whatever the string says.
	 */
	const char *keywords[CONNINFO_PARAMETERS] = {"keepalives_idle",
												 "keepalives_interval",
												 "keepalives_count",
												 "fallback_application_name",
												 "host",
												 "hostaddr",
												 "port",
												 "target_session_attrs",
												 "client_encoding"};
	const char *values[CONNINFO_PARAMETERS] = {"10",	"5",		"3",	   name,  host->host,
											   address, host->port, "primary", "UTF8"};
	int count = 9;

	for (const PQconninfoOption *option = info->options; option->keyword != NULL && count < CONNINFO_PARAMETERS - 1;
		 option++)
	{
		if (!conninfo_passes(option))
			continue;
		keywords[count] = option->keyword;
		values[count++] = option->val;
	}
	return PQconnectStartParams(keywords, values, 0);
}
