/*
 * mail.c - sends reminders of calendars by mail: takes a mail from the database, gives it to the program of
 * reminder-mail, and tells the database how the program has ended.
 *
 * Each mailer has a connection of its own. take_mail() postpones a reminder by 40 seconds, longer than the program may
 * run, so other gateways pass over it, also after a restart of the server. A transaction has it locked while the
 * program runs, so a step of the clock does no harm. If the connection is lost, the mailer stores the result in another
 * session. So a mail is sent twice only if this gateway dies, or cannot reach the database for long, between the start
 * of the program and the commit.
 *
 * The program gets the mail as its input. It inherits no descriptor and no environment. It has a process group of its
 * own, which is killed if the program runs too long.
 */
#include "mail/mail.h"

#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "db/pgresult.h"
#include "support/log.h"
#include "support/repeat.h"

#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define MAIL_AT_ONCE	4
#define MAIL_TICK_MS	1000
#define MAIL_WORDS		16 /* of reminder-mail */
#define MAIL_PROGRAM_MS 30000

typedef enum MailerState
{
	MAILER_IDLE,
	MAILER_ASKS,  /* the database for a mail, then for its lock */
	MAILER_SENDS, /* the program runs */
	MAILER_TELLS, /* the database how it has ended */
	MAILER_RETELLS
} MailerState;

typedef struct Mailer
{
	PgConn *conn;
	MailerState state;
	char id[24]; /* of the reminder; "": none */
	char *message;
	bool sent;
	bool told;	   /* the answer of end_mail() was no error */
	Repeat untold; /* the end of this mail */
	int handles;
	uv_process_t program;
	uv_pipe_t input;
	uv_write_t write;
	uv_timer_t deadline;
} Mailer;

static const char begin_sql[] = "BEGIN";
static const char commit_sql[] = "COMMIT";
static const char rollback_sql[] = "ROLLBACK";
static const char lock_sql[] = "SELECT sheet.lock_mail($1)";
static const char take_sql[] = "SELECT outbox_id, message FROM sheet.take_mail($1, $2, $3)";
static const char end_sql[] = "SELECT sheet.end_mail($1, $2)";

static Mailer mailers[MAIL_AT_ONCE];
static uv_timer_t mail_timer;
static bool mail_open;
static uint64_t mail_sent, mail_failed;

static void mailer_ask(Mailer *mailer);

static void
mailer_ignore(void *arg, PGresult *res)
{
}

/* Rolls back the session's open transaction, if any. */
static void
mailer_roll_back(Mailer *mailer)
{
	(void) pgconn_query(mailer->conn, rollback_sql, 0, NULL, 0, database_deadline(), mailer_ignore, NULL);
}

static void
mailer_rest(Mailer *mailer)
{
	free(mailer->message);
	mailer->message = NULL;
	mailer->id[0] = '\0';
	mailer->state = MAILER_IDLE;
}

/* ---- telling how the program has ended ---- */

static void
mailer_end_answered(void *arg, PGresult *res)
{
	((Mailer *) arg)->told = pgresult_succeeded(res);
}

/* The commit stores the end. In a new session, it ends the implicit transaction of the pipeline, which has end_mail().
 */
static void
mailer_told(void *arg, PGresult *res)
{
	Mailer *mailer = arg;

	if (!mail_open)
		return;
	if (!mailer->told || res == NULL || PQresultStatus(res) != PGRES_COMMAND_OK)
	{
		if (repeat_failed(&mailer->untold, uv_now(&gateway.loop), mailer->id))
			log_event(LOG_WARN, "the end of a mail was not stored; it will be", LOG_STR("reminder", mailer->id));
		mailer->state = MAILER_RETELLS;
		return;
	}
	repeat_ended(&mailer->untold, uv_now(&gateway.loop), "the end of a mail is stored",
				 LOG_STR("reminder", mailer->id));
	mailer_rest(mailer);
	mailer_ask(mailer);
}

static void
mailer_tell(Mailer *mailer)
{
	PgParam params[] = {pgparam_text(mailer->id), pgparam_text(mailer->sent ? "true" : "false")};

	mailer->state = MAILER_TELLS;
	mailer->told = false;
	if (!pgconn_send(mailer->conn, end_sql, 2, params, 0, database_deadline(), mailer_end_answered, mailer) ||
		!pgconn_query(mailer->conn, commit_sql, 0, NULL, 0, database_deadline(), mailer_told, mailer))
		mailer->state = MAILER_RETELLS;
}

/* ---- the program ---- */

static void
mailer_handle_closed(uv_handle_t *handle)
{
	Mailer *mailer = handle->data;

	if (--mailer->handles == 0 && mail_open)
		mailer_tell(mailer);
}

static void
mailer_close(uv_handle_t *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, mailer_handle_closed);
}

static void
mailer_close_all(Mailer *mailer)
{
	mailer_close((uv_handle_t *) &mailer->program);
	mailer_close((uv_handle_t *) &mailer->input);
	mailer_close((uv_handle_t *) &mailer->deadline);
}

static void
mailer_ended(uv_process_t *program, int64_t status, int signal_number)
{
	Mailer *mailer = program->data;

	mailer->sent = status == 0 && signal_number == 0;
	if (mailer->sent)
		mail_sent++;
	else
		mail_failed++;
	log_event(mailer->sent ? LOG_DEBUG : LOG_WARN, mailer->sent ? "a reminder was sent" : "reminder-mail has failed",
			  LOG_STR("reminder", mailer->id), LOG_INT("status", status), LOG_INT("signal", signal_number));
	mailer_close_all(mailer);
}

/* Closes the input, so that the program sees its end. A program that does not read it may succeed all the same. */
static void
mailer_written(uv_write_t *write, int status)
{
	mailer_close((uv_handle_t *) write->handle);
}

static void
mailer_too_late(uv_timer_t *timer)
{
	Mailer *mailer = timer->data;

	log_event(LOG_WARN, "reminder-mail has not ended in time and is killed", LOG_STR("reminder", mailer->id));
	(void) kill(-mailer->program.pid, SIGKILL);
}

/* Splits the setting at blanks. */
static void
mail_split(char *command, char *words[MAIL_WORDS + 1])
{
	char *rest = command;

	for (int i = 0; i < MAIL_WORDS; i++)
		words[i] = strtok_r(i == 0 ? command : NULL, " \t", &rest);
	words[MAIL_WORDS] = NULL;
}

static int
mailer_spawn(Mailer *mailer, char **words)
{
	static char *environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
	uv_stdio_container_t stdio[] = {
		{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *) &mailer->input},
		{.flags = UV_IGNORE},
		{.flags = UV_IGNORE}};
	uv_process_options_t options = {.file = words[0],
									.args = words,
									.env = environment,
									.cwd = "/",
									.flags = UV_PROCESS_DETACHED,
									.stdio_count = 3,
									.stdio = stdio,
									.exit_cb = mailer_ended};

	/* Libraries have opened some without O_CLOEXEC. */
	(void) close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
	return uv_spawn(&gateway.loop, &mailer->program, &options);
}

static void
mailer_send(Mailer *mailer)
{
	char *command = strdup(gateway.config.reminder_mail), *words[MAIL_WORDS + 1];
	uv_handle_t *handles[] = {(uv_handle_t *) &mailer->program, (uv_handle_t *) &mailer->input,
							  (uv_handle_t *) &mailer->deadline};
	uv_buf_t buf = uv_buf_init(mailer->message, (unsigned) strlen(mailer->message));
	int status;

	mailer->state = MAILER_SENDS;
	mailer->sent = false;
	if (command == NULL)
	{
		mail_failed++;
		mailer_tell(mailer);
		return;
	}
	mailer->handles = 3;
	uv_pipe_init(&gateway.loop, &mailer->input, 0);
	uv_timer_init(&gateway.loop, &mailer->deadline);
	mail_split(command, words);
	status = mailer_spawn(mailer, words);
	for (int i = 0; i < 3; i++)
		handles[i]->data = mailer;
	if (status == 0)
	{
		uv_timer_start(&mailer->deadline, mailer_too_late, MAIL_PROGRAM_MS, 0);
		if (uv_write(&mailer->write, (uv_stream_t *) &mailer->input, &buf, 1, mailer_written) != 0)
			mailer_close((uv_handle_t *) &mailer->input);
	}
	else
	{
		mail_failed++;
		log_event(LOG_WARN, "reminder-mail cannot be started", LOG_STR("reason", uv_strerror(status)));
		mailer_close_all(mailer);
	}
	free(command);
}

/* ---- asking for a mail ---- */

static bool
mail_may_send(void)
{
	return mail_open && !gateway.draining && !gateway.stopping;
}

/* Has another mailer look whether there is more. */
static void
mail_wake_one(void)
{
	for (int i = 0; i < MAIL_AT_ONCE; i++)
	{
		if (mailers[i].state == MAILER_IDLE && pgconn_is_up(mailers[i].conn))
		{
			mailer_ask(&mailers[i]);
			return;
		}
	}
}

static void
mailer_locked(void *arg, PGresult *res)
{
	Mailer *mailer = arg;

	if (!mail_open)
		return;
	if (pgresult_succeeded(res) && PQgetvalue(res, 0, 0)[0] == 't')
		mailer_send(mailer);
	else
	{
		if (res != NULL)
			mailer_roll_back(mailer);
		mailer_rest(mailer);
	}
}

static void
mailer_lock(Mailer *mailer)
{
	if (!pgconn_send(mailer->conn, begin_sql, 0, NULL, 0, database_deadline(), mailer_ignore, NULL) ||
		!pgconn_query(mailer->conn, lock_sql, 1, (PgParam[]){pgparam_text(mailer->id)}, 0, database_deadline(),
					  mailer_locked, mailer))
		mailer_rest(mailer);
}

static void
mailer_taken(void *arg, PGresult *res)
{
	static Repeat failing; /* of all mailers */
	Mailer *mailer = arg;
	bool answered = pgresult_succeeded(res);

	if (!mail_open)
		return;
	if (answered)
		repeat_ended(&failing, uv_now(&gateway.loop), "reminders are taken again", LOG_STR("after", failing.reason));
	else if (res != NULL && repeat_failed(&failing, uv_now(&gateway.loop), pgresult_sqlstate(res)))
		log_event(LOG_WARN, "no reminder could be taken for mail", LOG_STR("reason", pgresult_reason(res)));
	if (answered && PQntuples(res) > 0)
	{
		snprintf(mailer->id, sizeof(mailer->id), "%s", PQgetvalue(res, 0, 0));
		mailer->message = strdup(PQgetvalue(res, 0, 1));
	}
	if (mailer->message != NULL)
	{
		mailer_lock(mailer);
		mail_wake_one();
	}
	else
		mailer_rest(mailer);
}

/* Excludes the reminders of the other mailers: after a lost connection they are not locked. */
static void
mailer_ask(Mailer *mailer)
{
	char site[512], others[MAIL_AT_ONCE * sizeof(mailer->id) + 2] = "{";

	if (!mail_may_send() || !pgconn_is_up(mailer->conn))
		return;
	snprintf(site, sizeof(site), "%s://%s", gateway_http_scheme(), gateway.config.public_address);
	for (int i = 0; i < MAIL_AT_ONCE; i++)
	{
		if (mailers[i].id[0] != '\0')
			snprintf(others + strlen(others), sizeof(others) - strlen(others), "%s%s", others[1] != '\0' ? "," : "",
					 mailers[i].id);
	}
	snprintf(others + strlen(others), sizeof(others) - strlen(others), "}");
	mailer->state = MAILER_ASKS;
	if (!pgconn_query(
			mailer->conn, take_sql, 3,
			(PgParam[]){pgparam_text(gateway.config.reminder_mail_from), pgparam_text(site), pgparam_text(others)}, 0,
			database_deadline(), mailer_taken, mailer))
		mailer_rest(mailer);
}

static void
mail_on_tick(uv_timer_t *timer)
{
	for (int i = 0; i < MAIL_AT_ONCE; i++)
	{
		if (mailers[i].state == MAILER_RETELLS && pgconn_is_up(mailers[i].conn))
		{
			mailer_roll_back(&mailers[i]);
			mailer_tell(&mailers[i]);
		}
	}
	mail_wake_one();
}

/* ---- start, end, metrics ---- */

/* Returns what is wrong with the settings, or NULL. The sender is a line of a header. */
static const char *
mail_check(void)
{
	const char *program = gateway.config.reminder_mail, *from = gateway.config.reminder_mail_from;
	char path[PATH_MAX];
	int words = 0;

	for (const char *at = program; *(at += strspn(at, " \t")) != '\0'; at += strcspn(at, " \t"))
		words++;
	snprintf(path, sizeof(path), "%.*s", (int) strcspn(program, " \t"), program);
	if (path[0] != '/' || words > MAIL_WORDS)
		return "reminder-mail is not the path of a program, from /, with some arguments";
	if (access(path, X_OK) != 0)
		return "the program of reminder-mail cannot be executed";
	for (const char *at = from; *at != '\0'; at++)
	{
		if (*at < ' ' || *at > '~')
			return "reminder-mail-from has other characters than those of ASCII";
	}
	return strchr(from, '@') != NULL ? NULL : "reminder-mail needs an address in reminder-mail-from";
}

bool
mail_start(void)
{
	const char *problem;

	if (gateway.config.reminder_mail[0] == '\0')
		return true;
	problem = mail_check();
	if (problem != NULL)
	{
		fprintf(stderr, "pg_sheet_gateway: %s\n", problem);
		gateway.invalid = true;
		return false;
	}
	for (int i = 0; i < MAIL_AT_ONCE; i++)
	{
		mailers[i].conn = database_open_more("pg_sheet mail");
		if (mailers[i].conn == NULL)
			return false;
	}
	uv_timer_init(&gateway.loop, &mail_timer);
	uv_unref((uv_handle_t *) &mail_timer);
	uv_timer_start(&mail_timer, mail_on_tick, MAIL_TICK_MS, MAIL_TICK_MS);
	mail_open = true;
	return true;
}

void
mail_stop(void)
{
	if (mail_open)
		uv_close((uv_handle_t *) &mail_timer, NULL);
	mail_open = false;
	for (int i = 0; i < MAIL_AT_ONCE; i++)
	{
		if (mailers[i].state == MAILER_SENDS && mailers[i].handles > 0)
		{
			if (uv_is_active((uv_handle_t *) &mailers[i].program))
				(void) kill(-mailers[i].program.pid, SIGKILL);
			mailer_close_all(&mailers[i]);
		}
		if (mailers[i].conn != NULL)
			pgconn_close(mailers[i].conn);
		free(mailers[i].message);
	}
}

int
mail_count(void)
{
	int count = 0;

	for (int i = 0; i < MAIL_AT_ONCE; i++)
		count += mailers[i].id[0] != '\0';
	return count;
}

void
mail_print_metrics(Buf *buf)
{
	metrics_print_head(buf, "reminder_mails_total", "counter",
					   "Reminders given to reminder-mail, by how it has ended.");
	buf_printf(buf, "pg_sheet_reminder_mails_total{outcome=\"sent\"} %llu\n", (unsigned long long) mail_sent);
	buf_printf(buf, "pg_sheet_reminder_mails_total{outcome=\"failed\"} %llu\n", (unsigned long long) mail_failed);
}
