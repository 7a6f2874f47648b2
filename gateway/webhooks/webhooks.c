/*
 * webhooks.c - takes due webhooks from the database, starts their deliveries (delivery.c), and stores the results. The
 * design is in docs/design/webhooks.md.
 *
 * The gateway keeps the ids of all sheets that have webhooks, and marks those that change: by its own commits, and by
 * events of sheet.follow. It passes the changed ids to sheet.take_webhooks(), which returns the due webhooks and leases
 * them to this gateway. All gateways ask; the database leases each webhook to one of them.
 *
 * This memory can be lost: a gateway that starts, or has missed events, reads all webhooks again.
 */
#include "webhooks/webhooks.h"

#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "db/pgresult.h"
#include "support/log.h"
#include "support/repeat.h"
#include "support/sheet_map.h"
#include "webhooks/delivery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <uv.h>

#define WEBHOOKS_TICK_MS	250	 /* while something has changed */
#define WEBHOOKS_POLL_TICKS 4	 /* between questions for what is due by its time */
#define WEBHOOKS_CHANGED	500	 /* sheets of a question */
#define WEBHOOKS_PAGE		1000 /* as sheet.watched_sheets() has it */
#define WEBHOOKS_TAKE		16	 /* of a question, so that no connection is held long */
#define WEBHOOKS_LEASE_MS	30000
#define WEBHOOKS_LATE_MS	10000 /* an answer that took longer is not used: a request may take DELIVERY_MS more */

typedef struct Watched
{
	SheetEntry entry;
	bool changed;					 /* since the last question */
	bool asked;						 /* in the question under way */
	TAILQ_ENTRY(Watched) link;		 /* in webhooks_changed, if changed */
	TAILQ_ENTRY(Watched) asked_link; /* in webhooks_asked, if asked */
} Watched;

static const char watched_sql[] = "SELECT webhook_id, sheet_id FROM sheet.watched_sheets($1)";
static const char take_sql[] =
	"SELECT sheet_id, again, webhook_id, attempt, to_seq, account, url, secret, body, failures FROM "
	"sheet.take_webhooks($1, $2, $3, $4, $5)";
static const char end_sql[] = "SELECT sheet.end_webhook($1, $2, $3, $4, $5, $6, $7)";

static SheetMap webhooks_watched; /* and sheets whose row has changed, of which the answer tells */
static TAILQ_HEAD(, Watched) webhooks_changed = TAILQ_HEAD_INITIALIZER(webhooks_changed);
static TAILQ_HEAD(, Watched) webhooks_asked = TAILQ_HEAD_INITIALIZER(webhooks_asked);
static uv_timer_t webhooks_timer;
static int webhooks_ticks;
static bool webhooks_asking;
static uint64_t webhooks_asked_at; /* ms */
static bool webhooks_more;		   /* others may be due: the answer had WEBHOOKS_TAKE, or a delivery has ended since */
static bool webhooks_reading;	   /* a page of all webhooks */
static bool webhooks_reread;	   /* look at all again after the page under way */
static int64_t webhooks_read;	   /* the last one of the pages so far; -1: all were read */
static uint64_t webhooks_ended[DELIVERY_OUTCOMES];

static const char *const outcome_names[DELIVERY_OUTCOMES] = {"delivered", "failed", "gone", "postponed"};

/* ---- what has changed ---- */

static bool
webhooks_are_on(void)
{
	return gateway.config.webhook_requests > 0;
}

static void
webhooks_mark(Watched *watched)
{
	if (watched->changed)
		return;
	watched->changed = true;
	TAILQ_INSERT_TAIL(&webhooks_changed, watched, link);
}

/* Without memory the sheet is found when a gateway looks at all. */
static void
webhooks_watch(int64_t sheet_id)
{
	Watched *watched = sheet_map_find(&webhooks_watched, sheet_id);

	if (watched == NULL)
	{
		watched = calloc(1, sizeof(Watched));
		if (watched == NULL)
			return;
		watched->entry.sheet_id = sheet_id;
		sheet_map_add(&webhooks_watched, &watched->entry);
	}
	webhooks_mark(watched);
}

void
webhooks_edited(int64_t sheet_id)
{
	Watched *watched;

	if (webhooks_watched.count == 0)
		return;
	watched = sheet_map_find(&webhooks_watched, sheet_id);
	if (watched != NULL)
		webhooks_mark(watched);
}

void
webhooks_status_changed(int64_t sheet_id)
{
	if (webhooks_are_on())
		webhooks_watch(sheet_id);
}

void
webhooks_look_at_all(void)
{
	webhooks_read = 0;
	webhooks_reread = webhooks_reading;
}

/* ---- all webhooks, in pages ---- */

static void
webhooks_page_read(void *arg, PGresult *res)
{
	int count;

	webhooks_reading = false;
	if (webhooks_reread)
	{
		webhooks_reread = false;
		return;
	}
	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK)
		return; /* the next tick asks again */
	count = PQntuples(res);
	for (int i = 0; i < count; i++)
		webhooks_watch(atoll(PQgetvalue(res, i, 1)));
	if (webhooks_read >= 0)
		webhooks_read = count < WEBHOOKS_PAGE ? -1 : atoll(PQgetvalue(res, count - 1, 0));
}

static void
webhooks_read_page(void)
{
	char after[24];

	webhooks_reading = database_query(DATABASE_WRITES, 0, watched_sql, 1,
									  (PgParam[]){pgparam_int64(after, webhooks_read)}, 0, webhooks_page_read, NULL);
}

/* ---- the end of a delivery ---- */

/* If this is lost, the lease ends, and the same is posted again. */
static void
webhooks_end_told(void *arg, PGresult *res)
{
	if (!pgresult_succeeded(res))
		log_event(LOG_WARN, "the end of a webhook's request was not stored");
}

static void
webhooks_end(const DeliveryResult *result)
{
	char id[24], attempt[24], seq[24], status[24], wait[24];
	PgParam params[] = {pgparam_int64(id, result->webhook_id),
						pgparam_int64(attempt, result->attempt),
						result->to_seq < 0 ? pgparam_null() : pgparam_int64(seq, result->to_seq),
						pgparam_text(outcome_names[result->outcome]),
						result->status == 0 ? pgparam_null() : pgparam_int64(status, result->status),
						result->why[0] == '\0' ? pgparam_null() : pgparam_text(result->why),
						pgparam_int64(wait, result->wait_seconds)};

	webhooks_ended[result->outcome]++;
	webhooks_more = true; /* its account or its host may have been at its limit */
	if (!database_query(DATABASE_WRITES, 0, end_sql, 7, params, 0, webhooks_end_told, NULL))
		webhooks_end_told(NULL, NULL);
}

/* ---- asking what is due ---- */

enum
{
	TAKE_SHEET,
	TAKE_AGAIN,
	TAKE_WEBHOOK,
	TAKE_ATTEMPT,
	TAKE_TO_SEQ,
	TAKE_ACCOUNT,
	TAKE_URL,
	TAKE_SECRET,
	TAKE_BODY,
	TAKE_FAILURES
};

static int64_t
webhooks_number(const PGresult *res, int row, int column)
{
	return PQgetisnull(res, row, column) ? -1 : atoll(PQgetvalue(res, row, column));
}

static void
webhooks_send(const PGresult *res, int row)
{
	DeliveryTask task = {.webhook_id = webhooks_number(res, row, TAKE_WEBHOOK),
						 .attempt = webhooks_number(res, row, TAKE_ATTEMPT),
						 .to_seq = webhooks_number(res, row, TAKE_TO_SEQ),
						 .account = webhooks_number(res, row, TAKE_ACCOUNT),
						 .failures = (int) webhooks_number(res, row, TAKE_FAILURES),
						 .url = PQgetvalue(res, row, TAKE_URL),
						 .secret = PQgetvalue(res, row, TAKE_SECRET),
						 .body = PQgetvalue(res, row, TAKE_BODY)};

	delivery_start(&task, webhooks_end);
}

/* The sheets of the question: those of which the answer does not tell have no webhooks. */
static void
webhooks_forget_others(bool answered)
{
	Watched *watched;

	while ((watched = TAILQ_FIRST(&webhooks_asked)) != NULL)
	{
		TAILQ_REMOVE(&webhooks_asked, watched, asked_link);
		watched->asked = false;
		if (!answered)
			webhooks_mark(watched);
		else if (!watched->changed)
		{
			sheet_map_remove(&webhooks_watched, &watched->entry);
			free(watched);
		}
	}
}

static void
webhooks_give_back(const PGresult *res, int row)
{
	webhooks_end(&(DeliveryResult){.webhook_id = webhooks_number(res, row, TAKE_WEBHOOK),
								   .attempt = webhooks_number(res, row, TAKE_ATTEMPT),
								   .to_seq = webhooks_number(res, row, TAKE_TO_SEQ),
								   .outcome = DELIVERY_POSTPONED,
								   .why = ""});
}

static void
webhooks_taken(void *arg, PGresult *res)
{
	static Repeat failing;
	int taken = 0;
	bool answered = res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK;
	bool late = uv_now(&gateway.loop) - webhooks_asked_at > WEBHOOKS_LATE_MS;

	webhooks_asking = false;
	for (int i = 0; answered && i < PQntuples(res); i++)
	{
		Watched *watched = sheet_map_find(&webhooks_watched, webhooks_number(res, i, TAKE_SHEET));

		if (!PQgetisnull(res, i, TAKE_WEBHOOK))
		{
			taken++;
			if (!late)
				webhooks_send(res, i);
			else
				webhooks_give_back(res, i);
			continue;
		}
		if (watched == NULL || !watched->asked)
			continue;
		TAILQ_REMOVE(&webhooks_asked, watched, asked_link);
		watched->asked = false;
		if (PQgetvalue(res, i, TAKE_AGAIN)[0] == 't')
			webhooks_mark(watched);
	}
	if (answered)
		repeat_ended(&failing, uv_now(&gateway.loop), "webhooks are taken again", LOG_STR("after", failing.reason));
	else if (res != NULL && repeat_failed(&failing, uv_now(&gateway.loop), pgresult_sqlstate(res)))
		log_event(LOG_WARN, "webhooks could not be taken",
				  LOG_STR("reason", PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY)));
	webhooks_forget_others(answered);
	webhooks_more |= taken == WEBHOOKS_TAKE;
}

static void
webhooks_ask(void)
{
	Buf sheets = {NULL, 0, 0}, accounts = {NULL, 0, 0}, hosts = {NULL, 0, 0};
	int count = 0, wanted = gateway.config.webhook_requests - delivery_count();
	char most[24], lease[24];
	Watched *watched;

	buf_puts(&sheets, "{");
	while ((watched = TAILQ_FIRST(&webhooks_changed)) != NULL && count++ < WEBHOOKS_CHANGED)
	{
		TAILQ_REMOVE(&webhooks_changed, watched, link);
		watched->changed = false;
		watched->asked = true;
		TAILQ_INSERT_TAIL(&webhooks_asked, watched, asked_link);
		buf_printf(&sheets, "%s%lld", count > 1 ? "," : "", (long long) watched->entry.sheet_id);
	}
	buf_puts(&sheets, "}");
	delivery_put_running(&accounts, &hosts);
	webhooks_more = false;
	webhooks_asked_at = uv_now(&gateway.loop);
	webhooks_asking =
		!buf_failed(&sheets) && !buf_failed(&accounts) && !buf_failed(&hosts) &&
		database_query(
			DATABASE_WRITES, 0, take_sql, 5,
			(PgParam[]){pgparam_buf(&sheets, 0), pgparam_int64(most, wanted < WEBHOOKS_TAKE ? wanted : WEBHOOKS_TAKE),
						pgparam_int64(lease, WEBHOOKS_LEASE_MS), pgparam_buf(&accounts, 0), pgparam_buf(&hosts, 0)},
			0, webhooks_taken, NULL);
	buf_free(&sheets);
	buf_free(&accounts);
	buf_free(&hosts);
	if (!webhooks_asking)
		webhooks_forget_others(false);
}

static void
webhooks_on_tick(uv_timer_t *timer)
{
	bool poll = ++webhooks_ticks % WEBHOOKS_POLL_TICKS == 0 && webhooks_watched.count > 0;

	if (!webhooks_are_on())
		webhooks_look_at_all(); /* when they are on again */
	if (!webhooks_are_on() || gateway.draining || gateway.stopping)
		return;
	if (webhooks_read >= 0 && !webhooks_reading)
		webhooks_read_page();
	if (!webhooks_asking && delivery_count() < gateway.config.webhook_requests &&
		(poll || webhooks_more || !TAILQ_EMPTY(&webhooks_changed)))
		webhooks_ask();
}

/* ---- start, end, metrics ---- */

void
webhooks_start(void)
{
	uv_timer_init(&gateway.loop, &webhooks_timer);
	uv_unref((uv_handle_t *) &webhooks_timer);
	uv_timer_start(&webhooks_timer, webhooks_on_tick, WEBHOOKS_TICK_MS, WEBHOOKS_TICK_MS);
}

void
webhooks_stop(void)
{
	SheetWalk walk;
	Watched *watched;

	delivery_stop_all();
	uv_close((uv_handle_t *) &webhooks_timer, NULL);
	TAILQ_INIT(&webhooks_changed);
	TAILQ_INIT(&webhooks_asked);
	sheet_walk_begin(&walk, &webhooks_watched);
	while ((watched = sheet_walk_next(&walk)) != NULL)
	{
		sheet_map_remove(&webhooks_watched, &watched->entry);
		free(watched);
	}
	sheet_map_free(&webhooks_watched);
}

void
webhooks_print_metrics(Buf *buf)
{
	metrics_print_head(buf, "webhook_requests_total", "counter",
					   "Requests to the addresses of webhooks, by their outcome; postponed: nothing was sent.");
	for (int i = 0; i < DELIVERY_OUTCOMES; i++)
		buf_printf(buf, "pg_sheet_webhook_requests_total{outcome=\"%s\"} %llu\n", outcome_names[i],
				   (unsigned long long) webhooks_ended[i]);
	metrics_print_gauge(buf, "webhook_requests", "Requests to the addresses of webhooks that are under way.",
						(uint64_t) delivery_count());
	metrics_print_gauge(buf, "webhook_sheets", "Sheets that have webhooks, as far as the gateway knows.",
						webhooks_watched.count);
}
