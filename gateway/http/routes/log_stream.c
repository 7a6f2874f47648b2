/*
 * log_stream.c - POST /getsheetlog: the edits of a log, page by page out of the database.
 *
 * A log may hold millions of edits, so it is never whole in memory: the next page is asked for while the one before is
 * on its way to the client. A page is as many edits as make about LOG_PAGE_BYTES, judged by the one before; when it is
 * more, the rest is dropped as it comes, and asked for again. A log of one page is answered like everything else; a
 * longer one in chunks (RFC 9112 7.1), or to HTTP/1.0 until the connection ends.
 */
#include "http/routes/log_stream.h"

#include "http/server/conn.h"
#include "http/routes/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_PAGE_BYTES 65536
#define LOG_PAGE_FIRST 64 /* edits; they may be long */
#define LOG_PAGE_MAX   1024
#define LOG_PAGE_GROWS 8 /* times at most from page to page */

struct LogStream
{
	char since[24]; /* seq of the last edit that was read */
	int page;		/* edits asked for ... */
	int taken;		/* ... and those that came */
	size_t before;	/* bytes that were there when they were asked for */
	bool cut;		/* more has come than was taken */
	Buf bytes;		/* that have not been sent */
	bool fetching;
	bool last;	/* there are no more pages */
	bool ended; /* the end of the answer is among the bytes */
};

static const char log_sql[] =
	"SELECT l.at, l.\"row\", l.col, l.old, l.new, l.uid, l.username, l.kind, l.seq "
	"FROM sheet.check_role($1, $3, 'viewer', true) c, LATERAL sheet.read_log($1, $2, $4, $5) l ORDER BY l.seq";

void
log_stream_free(LogStream *log)
{
	if (log == NULL)
		return;
	buf_free(&log->bytes);
	free(log);
}

/* Written word by word, as there may be millions. */
static void
log_put_edit(Buf *to, int64_t lid, const PGresult *res, int row)
{
	bool commit = strcmp(PQgetvalue(res, row, 7), "commit") == 0;

	buf_puts(to, "{\"lid\":");
	buf_put_number(to, lid);
	buf_puts(to, ",\"timestamp\":");
	routes_put_time(to, PQgetvalue(res, row, 0));
	buf_puts(to, ",\"row\":");
	buf_puts(to, commit ? "-1" : PQgetvalue(res, row, 1));
	buf_puts(to, ",\"col\":");
	buf_puts(to, commit ? "-1" : PQgetvalue(res, row, 2));
	buf_puts(to, ",\"old\":");
	buf_puts_json(to, PQgetvalue(res, row, 3));
	buf_puts(to, ",\"new\":");
	buf_puts_json(to, PQgetvalue(res, row, 4));
	buf_puts(to, ",\"uid\":");
	buf_puts(to, PQgetisnull(res, row, 5) ? "0" : PQgetvalue(res, row, 5));
	buf_puts(to, ",\"username\":");
	buf_puts_json(to, PQgetvalue(res, row, 6));
	buf_puts(to, "}");
}

/* How many edits the next page holds. */
static int
log_next_page(int page, int rows, size_t bytes)
{
	size_t wanted = bytes > 0 ? (size_t) rows * LOG_PAGE_BYTES / bytes : LOG_PAGE_MAX;

	if (wanted > (size_t) page * LOG_PAGE_GROWS)
		wanted = (size_t) page * LOG_PAGE_GROWS;
	return wanted < 1 ? 1 : wanted > LOG_PAGE_MAX ? LOG_PAGE_MAX : (int) wanted;
}

static void
log_take_edit(Request *request, PGresult *res)
{
	LogStream *log = request->log;

	if (log->bytes.len - log->before >= 2 * LOG_PAGE_BYTES)
	{
		log->cut = true;
		return;
	}
	if (strcmp(log->since, "0") != 0)
		buf_puts(&log->bytes, ",");
	log_put_edit(&log->bytes, request->number, res, 0);
	snprintf(log->since, sizeof(log->since), "%s", PQgetvalue(res, 0, 8));
	log->taken++;
}

static void
log_end_page(LogStream *log)
{
	log->last = log->taken < log->page && !log->cut;
	log->page = log_next_page(log->page, log->taken, log->bytes.len - log->before);
}

/* The bytes that are there as one chunk, or as they are. */
static void
log_put_chunk(Request *request, Buf *to)
{
	LogStream *log = request->log;

	if (log->bytes.len == 0 && !buf_failed(&log->bytes))
		return;
	if (request->head.minor > 0)
		buf_printf(to, "%zx\r\n", log->bytes.len);
	buf_put_buf(to, &log->bytes);
	if (request->head.minor > 0)
		buf_puts(to, "\r\n");
	request->written += log->bytes.len;
	buf_free(&log->bytes);
}

static void log_fetch(Request *request);

static bool
log_fill(Request *request, Buf *to)
{
	LogStream *log = request->log;

	if (log->last && !log->ended)
	{
		buf_puts(&log->bytes, "]}");
		log->ended = true;
	}
	log_put_chunk(request, to);
	if (log->ended)
	{
		if (request->head.minor > 0)
			buf_puts(to, "0\r\n\r\n");
		return true;
	}
	if (!log->fetching)
		log_fetch(request); /* while this page is on its way */
	return false;
}

/* The first page is there: it is the whole answer, or the beginning of one. */
static void
log_begin(Request *request)
{
	static const char head[] = "{\"success\":true,\"msg\":23,\"data\":[";
	LogStream *log = request->log;
	Buf page = buf_take(&log->bytes);

	_Static_assert(MSG_LOG == 23, "the head says so");
	buf_put(&log->bytes, head, sizeof(head) - 1);
	buf_put_buf(&log->bytes, &page);
	buf_free(&page);
	if (log->last)
	{
		Buf body = buf_take(&log->bytes);

		buf_puts(&body, "]}");
		request_answer(request, 200, "application/json", &body);
		return;
	}
	request->fill = log_fill;
	request->unmeasured = true;
	request->close = request->close || request->head.minor == 0; /* whose body ends with the connection */
	request_answer(request, 200, "application/json", NULL);
}

static void
log_page_answered(Request *request, PGresult *res)
{
	bool first = request->status == 0;

	request->log->fetching = false;
	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK)
	{
		if (first)
			version_error(request, res, MSG_NO_LOG);
		else
			conn_abort(request->conn); /* short of its end: the client knows */
		return;
	}
	log_end_page(request->log);
	if (first)
		log_begin(request);
	else
		conn_wake(request->conn);
}

static void
log_fetch(Request *request)
{
	LogStream *log = request->log;
	char sheet[24], lid[24], uid[24], page[24];
	PgParam params[] = {pgparam_int64(sheet, request->sheet_id), pgparam_int64(lid, request->number),
						pgparam_int64(uid, request->claims.uid), pgparam_text(log->since),
						pgparam_int64(page, log->page)};

	log->fetching = true;
	log->taken = 0;
	log->cut = false;
	log->before = log->bytes.len;
	request_stream(request, log_sql, 5, params, log_take_edit, log_page_answered);
}

static void
log_authenticated(Request *request)
{
	request->log = calloc(1, sizeof(LogStream));
	if (request->log == NULL)
	{
		request_out_of_memory(request);
		return;
	}
	strcpy(request->log->since, "0");
	request->log->page = LOG_PAGE_FIRST;
	log_fetch(request);
}

void
route_get_log(Request *request)
{
	if (version_numbers(request, "lid"))
		request_authenticate(request, log_authenticated);
}
