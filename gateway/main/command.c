/*
 * command.c - what operators ask on the command line:
 *
 *   pg_sheet_gateway members         the view sheet.gateways
 *   pg_sheet_gateway drain ADDRESS   moves the sheets of that gateway to others, and waits for the end of it
 *   pg_sheet_gateway resume ADDRESS  has it take sheets again
 *
 * ADDRESS is the gateway's admin-address, as host:port or a URL, http or https; or its name as `members` shows it. The
 * database is asked for names first: a gateway's name is its address for clients, which must not get the admin token.
 * Settings follow as flags, or come from where the gateway has them: `database` for members and names,
 * `admin-token-file` for the others, unless they are asked on the gateway's machine.
 * A command whose server does not answer for COMMAND_ANSWER_S ends with an error.
 */
#include "main/command.h"

#include "core/gateway.h"
#include "main/reload.h"

#include <libpq-fe.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COMMAND_STEP_MS		500
#define COMMAND_DRAIN_S		60
#define COMMAND_ANSWER_S	10
#define COMMAND_ANSWER_MAX	4096
#define COMMAND_ADDRESS_MAX 300

static void
command_say(const char *line)
{
	fprintf(stderr, "pg_sheet_gateway: %s\n", line);
}

static char command_late[512]; /* what is said when the answer does not come */

static void
command_on_alarm(int number)
{
	ssize_t ignored = write(STDERR_FILENO, command_late, strlen(command_late));

	_exit(ignored >= 0 ? 1 : 2);
}

/* Ends the process, with a message that names `whom`, unless alarm(0) follows within COMMAND_ANSWER_S. */
static void
command_expect(const char *whom)
{
	snprintf(command_late, sizeof(command_late), "pg_sheet_gateway: %s did not answer within %d s\n", whom,
			 COMMAND_ANSWER_S);
	signal(SIGALRM, command_on_alarm);
	alarm(COMMAND_ANSWER_S);
}

/* What `database` says counts, as the last one; of several hosts, one that does not answer is passed over. */
static PGconn *
command_connect_database(void)
{
	const char *const keys[] = {"connect_timeout", "dbname", "target_session_attrs", NULL};
	const char *const values[] = {"3", gateway.config.database, "primary", NULL}; /* the table is not on standbys */

	return PQconnectdbParams(keys, values, 1);
}

/* ---- members ---- */

static int
command_members(void)
{
	static const char sql[] =
		"SELECT address, weight, state, sheets, sessions, edits_per_second AS \"edits/s\", "
		"pg_catalog.date_trunc('second', pg_catalog.now() - seen) AS \"seen before\", admin_url FROM "
		"sheet.gateways ORDER BY address";
	PQprintOpt options = {.header = 1, .align = 1, .fieldSep = "|"};
	PGconn *conn;
	PGresult *res = NULL;
	int status = 1;

	command_expect("the database");
	conn = command_connect_database();
	if (PQstatus(conn) == CONNECTION_OK)
		res = PQexec(conn, sql);
	alarm(0);
	if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK)
	{
		PQprint(stdout, res, &options);
		status = 0;
	}
	else
		fprintf(stderr, "pg_sheet_gateway: %s", PQerrorMessage(conn));
	PQclear(res);
	PQfinish(conn);
	return status;
}

/* ---- requests ---- */

/* The connection to a host and port. NULL: it cannot be made. */
static BIO *
command_connect(const char *host, SSL_CTX *tls)
{
	BIO *bio = tls != NULL ? BIO_new_ssl_connect(tls) : BIO_new_connect(host);
	SSL *ssl = NULL;
	char name[256];

	if (bio == NULL)
		return NULL;
	if (tls != NULL)
	{
		snprintf(name, sizeof(name), "%.*s", (int) (strrchr(host, ':') - host), host);
		BIO_set_conn_hostname(bio, host);
		BIO_get_ssl(bio, &ssl);
		(void) SSL_set_tlsext_host_name(ssl, name);
		(void) SSL_set1_host(ssl, name);
	}
	if (BIO_do_connect(bio) > 0)
		return bio;
	BIO_free_all(bio);
	return NULL;
}

/* Posts to the path. Returns the status of HTTP, or 0 if there is no answer; body: what follows the head. */
static int
command_post(const char *address, const char *path, char answer[COMMAND_ANSWER_MAX], const char **body)
{
	bool https = strncmp(address, "https://", 8) == 0;
	const char *host = strstr(address, "://") ? strstr(address, "://") + 3 : address;
	SSL_CTX *tls = https ? SSL_CTX_new(TLS_client_method()) : NULL;
	bool has_token = gateway.admin_token[0] != '\0';
	BIO *bio;
	int status = 0, got, len = 0;

	if (tls != NULL)
	{
		SSL_CTX_set_default_verify_paths(tls);
		SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
	}
	bio = command_connect(host, tls);
	*body = "";
	if (bio != NULL)
	{
		BIO_printf(bio,
				   "POST %s HTTP/1.1\r\nHost: %s\r\n%s%s%sContent-Type: application/json\r\nContent-Length: 2\r\n"
				   "Connection: close\r\n\r\n{}",
				   path, host, has_token ? "Authorization: Bearer " : "", gateway.admin_token, has_token ? "\r\n" : "");
		(void) BIO_flush(bio);
		while (len < COMMAND_ANSWER_MAX - 1 && (got = BIO_read(bio, answer + len, COMMAND_ANSWER_MAX - 1 - len)) > 0)
			len += got;
		answer[len] = '\0';
		if (sscanf(answer, "HTTP/1.1 %d", &status) == 1 && strstr(answer, "\r\n\r\n") != NULL)
			*body = strstr(answer, "\r\n\r\n") + 4;
		BIO_free_all(bio);
	}
	SSL_CTX_free(tls);
	return status;
}

static char command_admin[COMMAND_ADDRESS_MAX]; /* the address for operators that the name stands for; "": none */

/* Asks the database for the gateway of this name. False: it does not answer; a message was printed. */
static bool
command_find(const char *name)
{
	static const char admin_sql[] = "SELECT admin_url FROM sheet.gateways WHERE address = $1";
	PGconn *conn;
	PGresult *res;
	bool asked;

	command_expect("the database");
	conn = command_connect_database();
	res = PQexecParams(conn, admin_sql, 1, NULL, &name, NULL, NULL, 0);
	asked = PQresultStatus(res) == PGRES_TUPLES_OK;
	if (!asked)
		fprintf(stderr, "pg_sheet_gateway: %s", PQerrorMessage(conn));
	else if (PQntuples(res) == 1)
		snprintf(command_admin, sizeof(command_admin), "%s", PQgetvalue(res, 0, 0));
	PQclear(res);
	PQfinish(conn);
	alarm(0);
	return asked;
}

/* Posts, and returns whether that was done; prints what was not. Without `database`, the address of clients, where
 * nothing is to be asked (404), is a name. */
static bool
command_ask(const char *address, const char *path, char answer[COMMAND_ANSWER_MAX], const char **body)
{
	const char *to = command_admin[0] != '\0' ? command_admin : address;
	int status;

	command_expect(to);
	status = command_post(to, path, answer, body);
	if (status == 404 && command_admin[0] == '\0')
		(void) command_find(strstr(address, "://") ? strstr(address, "://") + 3 : address);
	if (status == 404 && command_admin[0] != '\0' && to != command_admin)
	{
		to = command_admin;
		command_expect(to);
		status = command_post(to, path, answer, body);
	}
	alarm(0);
	if (status == 200)
		return true;
	if (status == 0)
		fprintf(stderr, "pg_sheet_gateway: %s does not answer: %s\n", to,
				ERR_peek_last_error() ? ERR_reason_error_string(ERR_peek_last_error()) : "no HTTP");
	else if (status == 404)
		fprintf(stderr, "pg_sheet_gateway: %s is not the admin-address of a gateway, nor a name that `members` shows\n",
				to);
	else
		fprintf(stderr, "pg_sheet_gateway: %s answered %d: %s\n", to, status, *body);
	return false;
}

/* Until no sheet is left there, or COMMAND_DRAIN_S have passed. */
static int
command_drain(const char *address)
{
	static const struct timespec step = {0, COMMAND_STEP_MS * 1000000L};
	char answer[COMMAND_ANSWER_MAX];
	const char *body, *sheets;
	long left = -1, before;

	for (int waited = 0; waited < COMMAND_DRAIN_S * 1000 && left != 0; waited += COMMAND_STEP_MS)
	{
		before = left;
		if (!command_ask(address, "/admin/drain", answer, &body))
			return 1;
		sheets = strstr(body, "\"sheets\":");
		left = sheets != NULL ? strtol(sheets + strlen("\"sheets\":"), NULL, 10) : 0;
		if (left != before)
			printf("%s drains: %ld open sheets are left\n", address, left);
		fflush(stdout);
		if (left != 0)
			nanosleep(&step, NULL);
	}
	if (left == 0)
		return 0;
	command_say("some sheets have not moved: another transaction may hold them (see GET /debug)");
	return 1;
}

static int
command_resume(const char *address)
{
	char answer[COMMAND_ANSWER_MAX];
	const char *body;

	if (!command_ask(address, "/admin/resume", answer, &body))
		return 1;
	printf("%s takes sheets again\n", address);
	return 0;
}

int
command_run(int argc, char **argv)
{
	bool members = strcmp(argv[1], "members") == 0, drain = strcmp(argv[1], "drain") == 0;
	int taken = members ? 1 : 2;
	const char *address = argc > 2 ? argv[2] : "";

	if (!members && !drain && strcmp(argv[1], "resume") != 0)
	{
		fprintf(stderr, "pg_sheet_gateway: there is no command \"%s\" (see --help)\n", argv[1]);
		return 2;
	}
	if (!members && (address[0] == '-' || strchr(address, ':') == NULL))
	{
		fprintf(stderr, "pg_sheet_gateway: %s needs a gateway: its admin-address, or its name\n", argv[1]);
		return 2;
	}
	argv[taken] = argv[0];
	if (!config_load_command(&gateway.config, argc - taken, argv + taken, members))
		return 2;
	if (!members && !reload_admin_token(command_say))
		return 2;
	if (members)
		return command_members();
	if (strstr(address, "://") == NULL && gateway.config.database[0] != '\0' && !command_find(address) &&
		gateway.admin_token[0] != '\0')
	{
		command_say(
			"it is not known whether that is a name: give the admin-address as a URL, for example http://HOST:PORT");
		return 1;
	}
	return drain ? command_drain(address) : command_resume(address);
}
