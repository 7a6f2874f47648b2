/*
 * pgcause.c - the log lines about connections that fail; see pgcause.h.
 *
 * The table has one entry for each text. If all are in use, the oldest one is forgotten, and its text would be logged
 * anew. Connections come up one after another, so a cause may end and be met again by the next one: within
 * CAUSE_AGAIN_MS it is the same.
 */
#include "db/pgcause.h"

#include "support/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CAUSE_TABLE		64
#define CAUSE_REPEAT_MS 60000
#define CAUSE_AGAIN_MS	5000

typedef struct PgCause
{
	const char *event; /* NULL: the entry is free */
	char reason[512];
	uint64_t failures;
	uint64_t since;	 /* ms */
	uint64_t logged; /* ms */
	uint64_t ended;	 /* ms; 0: it has not */
	bool told;		 /* it was logged since it ended the last time */
} PgCause;

static PgCause causes[CAUSE_TABLE];
static PgSufferer *sufferers;

void
pgcause_add(PgSufferer *sufferer)
{
	sufferer->causes = 0;
	sufferer->next = sufferers;
	sufferers = sufferer;
}

void
pgcause_remove(PgSufferer *sufferer)
{
	PgSufferer **at = &sufferers;

	while (*at != NULL && *at != sufferer)
		at = &(*at)->next;
	if (*at != NULL)
		*at = sufferer->next;
}

static int
cause_find(const char *event, const char *reason)
{
	int oldest = 0, unused = -1;

	for (int i = 0; i < CAUSE_TABLE; i++)
	{
		if (causes[i].event == NULL)
			unused = unused < 0 ? i : unused;
		else if (causes[i].event == event && strcmp(causes[i].reason, reason) == 0)
			return i;
		else if (causes[i].since < causes[oldest].since)
			oldest = i;
	}
	if (unused >= 0)
		return unused;
	for (PgSufferer *sufferer = sufferers; sufferer != NULL; sufferer = sufferer->next)
		sufferer->causes &= ~(UINT64_C(1) << oldest);
	causes[oldest].event = NULL;
	return oldest;
}

void
pgcause_report(PgSufferer *sufferer, uint64_t now, const char *event, const char *connection, const char *reason,
			   const char *hint)
{
	char text[sizeof(causes[0].reason)];
	PgCause *cause;
	int i;

	snprintf(text, sizeof(text), "%.*s", (int) strcspn(reason, "\n"), reason);
	i = cause_find(event, text);
	cause = &causes[i];
	sufferer->causes |= UINT64_C(1) << i;
	if (cause->event == NULL || (cause->ended != 0 && now - cause->ended >= CAUSE_AGAIN_MS))
	{
		*cause = (PgCause){.event = event, .since = now};
		memcpy(cause->reason, text, sizeof(text));
	}
	cause->failures++;
	cause->ended = 0;
	if (cause->failures > 1 && now - cause->logged < CAUSE_REPEAT_MS)
		return;
	cause->logged = now;
	cause->told = true;
	{
		const LogField fields[] = {LOG_STR("connection", connection), LOG_INT("failures", cause->failures),
								   LOG_STR("reason", text), LOG_STR("hint", hint)};

		log_write(LOG_WARN, event, fields, hint[0] != '\0' ? 4 : 3);
	}
}

void
pgcause_end(PgSufferer *sufferer, uint64_t now)
{
	uint64_t suffered = sufferer->causes, others = 0;

	sufferer->causes = 0;
	for (const PgSufferer *other = sufferers; other != NULL; other = other->next)
		others |= other->causes;
	for (int i = 0; i < CAUSE_TABLE; i++)
	{
		PgCause *cause = &causes[i];

		if ((suffered & ~others & UINT64_C(1) << i) == 0)
			continue;
		cause->ended = now;
		if (cause->told)
			log_event(LOG_INFO, "database connections work again", LOG_STR("after", cause->reason),
					  LOG_INT("failures", cause->failures), LOG_INT("ms", now - cause->since));
		cause->told = false;
	}
}
