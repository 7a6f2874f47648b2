/*
 * log_stream.c - POST /getsheetlog {fid, lid}: the edits of a segment, page by page out of the database.
 *
 * A segment may have millions of edits, so it is never whole in memory: the next page is queried while the one before
 * is sent. A page has as many edits as make about LOG_PAGE_BYTES, by the size of the ones before. If it gets twice as
 * large, the rest is dropped as it arrives, and queried again. A segment of one page is answered with its length; a
 * longer one in chunks (RFC 9112 7.1), or for HTTP/1.0 until the connection ends.
 */
#include "http/routes/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_PAGE_BYTES 65536
#define LOG_PAGE_FIRST 64 /* edits; they may be long */
#define LOG_PAGE_MAX   1024
#define LOG_PAGE_GROWS 8 /* times at most from page to page */

typedef struct LogStream
{
	char since[24]; /* seq of the last edit that was read; empty: none was */
	int page;		/* edits queried ... */
	int taken;		/* ... those of them that were taken */
	size_t size;	/* ... and their bytes, sent or not */
	bool cut;		/* the edits that follow are queried again */
	Buf bytes;		/* that were not sent */
	bool fetching;
	bool any;  /* an edit has been written */
	bool last; /* there are no more pages */
} LogStream;

/* A segment begins after the edits of the version before it, and exists as long as that version (42704). With a lower
 * bound of the segment instead, its start would be looked for in the log. */
static const char log_sql[] =
	"SELECT l.at, l.\"row\", l.col, l.old, l.new, l.uid, l.username, l.kind, l.seq "
	"FROM sheet.check_role($1, 'viewer', coalesce(sheet.role_of($1, $3) = 'owner', false), $3) c, LATERAL (SELECT "
	"coalesce($4, CASE WHEN $2::bigint > 1 THEN "
	"(SELECT v.seq FROM sheet.read_version($1, $2 - 1, 0) v) ELSE 0 END) AS since OFFSET 0) s, LATERAL "
	"(SELECT * FROM sheet.log_edits($1) e WHERE e.segment_id <= $2 AND e.seq > s.since ORDER BY e.seq LIMIT $5) l";

static void
log_free(void *own)
{
	LogStream *log = own;

	buf_free(&log->bytes);
	free(log);
}

static void
log_put_edit(Buf *to, int64_t lid, const PGresult *res)
{
	buf_printf(to, "{\"lid\":%lld", (long long) lid);
	routes_put_time_member(to, "timestamp", PQgetvalue(res, 0, 0));
	buf_printf(to, ",\"row\":%s,\"col\":%s", PQgetvalue(res, 0, 1), PQgetvalue(res, 0, 2));
	routes_put_member(to, "old", PQgetvalue(res, 0, 3));
	routes_put_member(to, "new", PQgetvalue(res, 0, 4));
	routes_put_uid(to, PQgetisnull(res, 0, 5) ? "0" : PQgetvalue(res, 0, 5));
	routes_put_member(to, "username", PQgetvalue(res, 0, 6));
	buf_puts(to, "}");
}

static void
log_take_edit(Request *request, PGresult *res)
{
	LogStream *log = request->own;
	size_t before = log->bytes.len;

	if (log->size >= 2 * LOG_PAGE_BYTES)
	{
		log->cut = true;
		return;
	}
	snprintf(log->since, sizeof(log->since), "%s", PQgetvalue(res, 0, 8));
	log->taken++;
	if (strcmp(PQgetvalue(res, 0, 7), "property") == 0)
		return; /* v1 has no such edits */
	if (log->any)
		buf_puts(&log->bytes, ",");
	log->any = true;
	log_put_edit(&log->bytes, request->number, res);
	log->size += log->bytes.len - before;
}

/* Chooses how many edits the next page has. */
static void
log_end_page(LogStream *log)
{
	size_t wanted = log->size > 0 ? (size_t) log->taken * LOG_PAGE_BYTES / log->size : LOG_PAGE_MAX;

	log->last = log->taken < log->page && !log->cut;
	if (wanted > (size_t) log->page * LOG_PAGE_GROWS)
		wanted = (size_t) log->page * LOG_PAGE_GROWS;
	log->page = wanted < 1 ? 1 : wanted > LOG_PAGE_MAX ? LOG_PAGE_MAX : (int) wanted;
}

static void log_fetch(Request *request);

/* Sends the bytes that are there, as a chunk for HTTP/1.1, and queries the next page while they are sent. */
static bool
log_fill(Request *request, Buf *to)
{
	LogStream *log = request->own;
	bool chunked = request->head.minor > 0;

	if (log->last)
		buf_puts(&log->bytes, "]}");
	if (log->bytes.len > 0 || buf_failed(&log->bytes))
	{
		if (chunked)
			buf_printf(to, "%zx\r\n", log->bytes.len);
		buf_put_buf(to, &log->bytes);
		if (chunked)
			buf_puts(to, "\r\n");
		buf_free(&log->bytes);
	}
	if (log->last && chunked)
		buf_puts(to, "0\r\n\r\n");
	if (!log->last && !log->fetching)
		log_fetch(request);
	return log->last;
}

/* The first page is there: it is the whole answer, or the beginning of one. */
static void
log_begin(Request *request)
{
	static const char head[] = "{\"success\":true,\"msg\":23,\"data\":[";
	LogStream *log = request->own;
	Buf page = buf_take(&log->bytes);

	_Static_assert(MSG_LOG == 23, "the head says so");
	buf_puts(&log->bytes, head);
	buf_put_buf(&log->bytes, &page);
	buf_free(&page);
	if (log->last)
	{
		buf_puts(&log->bytes, "]}");
		request_json(request, 200, &log->bytes);
		return;
	}
	request->fill = log_fill;
	request->unmeasured = true;
	request->close = request->close || request->head.minor == 0;
	request_json(request, 200, NULL);
}

static void
log_page_answered(Request *request, PGresult *res)
{
	bool first = !request_is_answered(request);
	LogStream *log = request->own;

	log->fetching = false;
	/* The first segment has the edit that made the sheet, until it is trimmed. */
	if (request_succeeded(res) && first && log->taken == 0 && request->number <= 1)
		request_msg(request, MSG_NO_LOG);
	else if (request_succeeded(res))
	{
		log_end_page(log);
		if (first)
			log_begin(request);
		else
			conn_wake(request->conn);
	}
	else if (first)
		version_error(request, res, MSG_NO_LOG);
	else
		conn_abort(request->conn); /* without the end of the answer: the client notices */
}

static void
log_fetch(Request *request)
{
	LogStream *log = request->own;

	log->fetching = true;
	log->taken = 0;
	log->size = 0;
	log->cut = false;
	request_stream(request, log_sql,
				   PARAMS(request_sheet(request), request_int64(request, request->number), request_uid(request),
						  pgparam_text(log->since[0] != '\0' ? log->since : NULL), request_int64(request, log->page)),
				   log_take_edit, log_page_answered);
}

void
route_get_log(Request *request)
{
	LogStream *log = request_own(request, sizeof(LogStream), log_free);

	if (log == NULL)
		return;
	log->page = LOG_PAGE_FIRST;
	log_fetch(request);
}
