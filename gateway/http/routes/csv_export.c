/*
 * csv_export.c - GET /v2/sheets/ID.csv, .tsv, .jsonl: a sheet, or a range of it, as CSV, TSV or JSON Lines, piece by
 * piece as the client takes it.
 *
 * All pieces have one state of the sheet, so they come from one statement, and its connection is the download's until
 * the client has taken them. There are few such connections (EXPORT_CONNECTIONS), and nothing else uses them. Other
 * downloads wait in a queue. No account has all connections, so its slow clients do not keep others waiting. Nothing is
 * read from the server while EXPORT_AHEAD bytes wait for the client, so a download takes about as much memory here,
 * whatever its size. Its statement holds a snapshot, which VACUUM has to keep, so it ends after long-statement-seconds.
 * It is cancelled when the client has gone.
 */
#include "common/a1.h"
#include "core/gateway.h"
#include "http/routes/routes.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT_AHEAD	   (512 * 1024)				/* bytes */
#define EXPORT_ACCOUNT_MAX 4						/* downloads of an account, waiting ones included */
#define EXPORT_SHARE	   (EXPORT_CONNECTIONS - 1) /* connections of an account */
#define EXPORT_TICK_MS	   250

static const char export_sql[] = "SELECT sheet.read_csv($1, 65536, $3, $4, $5, $6), sheet.computed_seq($1) "
								 "FROM sheet.check_role($1, 'viewer', as_uid => $2)";

typedef struct ExportFormat
{
	const char *suffix; /* of the path and of the file; without the dot, the name for sheet.read_csv() */
	const char *type;
	bool escapes; /* takes escape_formulas */
} ExportFormat;

static const ExportFormat export_formats[] = {
	{".csv", "text/csv; charset=utf-8", true},
	{".tsv", "text/tab-separated-values; charset=utf-8", true},
	{".jsonl", "application/jsonl", false},
};

typedef struct Export
{
	Request *request;
	const ExportFormat *format;
	char ref[A1_RANGE_MAX]; /* empty: the sheet */
	bool escape;			/* escape_formulas */
	bool formulas;			/* not their values */
	struct Export *next;	/* in the queue */
	PgConn *conn;			/* NULL: it waits for one */
	uint64_t began;			/* ms */
	Buf bytes;				/* that were not sent */
	bool last;				/* there are no more */
} Export;

static Export *running[EXPORT_CONNECTIONS];
static Export *waiting;
static uv_timer_t timer; /* runs while there are downloads */

static void
export_free(void *own)
{
	Export *export = own;

	buf_free(&export->bytes);
	free(export);
}

/* ---- the answer ---- */

/* Sends the bytes that are there, as a chunk for HTTP/1.1, and has more read. */
static bool
export_fill(Request *request, Buf *to)
{
	Export *export = request->own;
	bool chunked = request->head.minor > 0, last = export->last;

	if (export->bytes.len > 0 || buf_failed(&export->bytes))
	{
		if (chunked)
			buf_printf(to, "%zx\r\n", export->bytes.len);
		buf_put_buf(to, &export->bytes);
		if (chunked)
			buf_puts(to, "\r\n");
		buf_free(&export->bytes);
	}
	if (last && chunked)
		buf_puts(to, "0\r\n\r\n");
	if (export->conn != NULL)
		pgconn_resume(export->conn);
	return last;
}

/* The first piece is there, or the sheet is empty. */
static void
export_begin_answer(Request *request)
{
	const Export *export = request->own;

	request->fill = export_fill;
	request->unmeasured = true;
	request->close = request->close || request->head.minor == 0;
	request_answer(request, 200, export->format->type, NULL);
}

/* ---- reading ---- */

static void export_use(void);

static void
export_row(void *arg, PGresult *row)
{
	Export *export = arg;
	Request *request = export->request;

	if (request_is_gone(request))
		return;
	buf_put(&export->bytes, PQgetvalue(row, 0, 0), (size_t) PQgetlength(row, 0, 0));
	if (request_is_answered(request))
		conn_wake(request->conn);
	else
	{
		if (!export->formulas && !PQgetisnull(row, 0, 1))
			routes_add_computed(request, atoll(PQgetvalue(row, 0, 1)));
		export_begin_answer(request);
	}
	if (export->bytes.len >= EXPORT_AHEAD)
		pgconn_pause(export->conn);
}

/* An answer that cannot be completed ends without its last chunk, so that the client notices. */
static void
export_done(void *arg, PGresult *res)
{
	Export *export = arg;
	Request *request = export->request;

	for (int i = 0; i < EXPORT_CONNECTIONS; i++)
	{
		if (running[i] == export)
			running[i] = NULL;
	}
	export->conn = NULL;
	if (request_is_gone(request))
		;
	else if (request_succeeded(res))
	{
		export->last = true;
		if (request_is_answered(request))
			conn_wake(request->conn);
		else
			export_begin_answer(request);
	}
	else if (request_is_answered(request))
		conn_abort(request->conn);
	else
		request_sql_error(request, res);
	request_end_step(request);
	export_use();
}

static void
export_read(Export *export, int connection)
{
	Request *request = export->request;

	running[connection] = export;
	export->conn = gateway.exports[connection];
	export->began = uv_now(&gateway.loop);
	if (!pgconn_stream(export->conn, export_sql,
					   PARAMS(request_sheet(request), request_uid(request),
							  pgparam_text(export->ref[0] != '\0' ? export->ref : NULL),
							  pgparam_text(export->escape ? "true" : "false"), pgparam_text(export->format->suffix + 1),
							  pgparam_text(export->formulas ? "true" : "false")),
					   0, database_deadline(), export_row, export_done, export))
		export_done(export, NULL);
}

/* ---- all of them ---- */

/* Number of an account's downloads that are being read, or also of those that wait. */
static int
export_count(int64_t uid, bool all)
{
	int count = 0;

	for (int i = 0; i < EXPORT_CONNECTIONS; i++)
		count += running[i] != NULL && running[i]->request->claims.uid == uid;
	for (const Export *export = waiting; all && export != NULL; export = export->next)
		count += export->request->claims.uid == uid;
	return count;
}

/* Takes the first waiting download of the account with the fewest connections. NULL: none may have another one. */
static Export *
export_next(void)
{
	Export **best = NULL, *export;
	int fewest = EXPORT_SHARE;

	for (Export **link = &waiting; (export = *link) != NULL;)
	{
		int count = export_count(export->request->claims.uid, false);

		if (request_is_gone(export->request))
		{
			*link = export->next;
			request_end_step(export->request);
			continue;
		}
		if (count < fewest)
		{
			fewest = count;
			best = link;
		}
		link = &export->next;
	}
	if (best == NULL)
		return NULL;
	export = *best;
	*best = export->next;
	return export;
}

/* Gives free connections to waiting downloads. */
static void
export_use(void)
{
	for (int i = 0; i < EXPORT_CONNECTIONS; i++)
	{
		Export *export = running[i] == NULL ? export_next() : NULL;

		if (export != NULL)
			export_read(export, i);
	}
}

/* Ends what takes too long, or is for clients that have gone. */
static void
export_on_timer(uv_timer_t *handle)
{
	uint64_t most = (uint64_t) gateway.config.long_statement_seconds * 1000;
	bool any = false;

	export_use();
	for (int i = 0; i < EXPORT_CONNECTIONS; i++)
	{
		Export *export = running[i];

		any |= export != NULL;
		if (export == NULL)
			continue;
		if (!request_is_gone(export->request) && uv_now(&gateway.loop) - export->began > most)
			conn_abort(export->request->conn);
		if (request_is_gone(export->request))
		{
			database_cancel(export->conn);
			pgconn_resume(export->conn);
		}
	}
	if (!any && waiting == NULL)
		uv_timer_stop(handle);
}

static void
export_add(Request *request)
{
	Export *export = request->own, **link = &waiting;

	while (*link != NULL)
		link = &(*link)->next;
	*link = export;
	request_begin_step(request);
	if (timer.loop == NULL)
	{
		uv_timer_init(&gateway.loop, &timer);
		uv_unref((uv_handle_t *) &timer);
	}
	uv_timer_start(&timer, export_on_timer, EXPORT_TICK_MS, EXPORT_TICK_MS);
	export_use();
}

/* ---- arguments ---- */

/* Reads ref. False: it is no range. */
static bool
export_read_ref(Request *request, Export *export)
{
	A1Range range;

	if (!request_has_arg(request, "ref"))
		return true;
	return request_arg(request, "ref", export->ref, sizeof(export->ref)) &&
		   a1_parse_range(export->ref, strlen(export->ref), &range);
}

bool
check_export(Request *request)
{
	Export *export = request_own(request, sizeof(Export), export_free);

	if (export == NULL)
		return false;
	export->request = request;
	export->format = export_formats; /* each of them has its row in the table of routes */
	while (strcmp(strrchr(request->head.path, '.'), export->format->suffix) != 0)
		export->format++;
	if (!export_read_ref(request, export))
		request_error(request, 400, "ref is a range, as A1:C10");
	else if (!export->format->escapes && request_has_arg(request, "escape_formulas"))
		request_error(request, 400, "escape_formulas is for .csv and .tsv only");
	else
		return request_arg_flag(request, "escape_formulas", &export->escape) &&
			   request_arg_flag(request, "formulas", &export->formulas);
	return false;
}

/* ---- the route ---- */

static void
export_info(Request *request, PGresult *res)
{
	const Export *export = request->own;
	Buf disposition = {NULL, 0, 0};

	if (!sheet_is_open(request, res))
		return;
	if (export_count(request->claims.uid, true) >= EXPORT_ACCOUNT_MAX)
	{
		request_too_busy(request);
		return;
	}
	buf_puts(&disposition, "attachment; filename*=UTF-8''");
	buf_puts_url(&disposition, PQgetvalue(res, 0, INFO_NAME));
	buf_puts(&disposition, export->format->suffix);
	request_add_header_buf(request, "Content-Disposition", &disposition);
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_add_header(request, "Content-Security-Policy", "default-src 'none'; sandbox");
	if (request->method == METHOD_HEAD)
		export_begin_answer(request);
	else
		export_add(request);
}

static void
export_authenticated(Request *request)
{
	sheet_query_info(request, export_info);
}

/* A browser writes the answer to its disk if it follows a link, and then the token is in a cookie. */
void
route_export(Request *request)
{
	request->cookie = request->origin != ORIGIN_FOREIGN ? COOKIE_FILES : NULL;
	request_authenticate(request, export_authenticated);
}
