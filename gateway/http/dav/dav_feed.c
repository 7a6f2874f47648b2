/*
 * dav_feed.c - GET /cal/KEY.ics: a calendar for everybody who has the address, as programs subscribe to it.
 *
 * The key is that of a share link for viewers without a password. Anything else is answered with 404, after the same
 * question to the database, which is asked for the link first.
 */
#include "http/dav/dav.h"
#include "http/request/range.h"
#include "http/share/published_links.h"
#include "http/share/share.h"

#include <stdlib.h>
#include <string.h>

static const char feed_sql[] = "SELECT link_id, etag, data FROM sheet.calendar_feed($1, $2)";

static void
feed_missing(Request *request)
{
	request_add_header(request, "Cache-Control", "no-cache");
	request_error(request, 404, "no such calendar");
}

static void
feed_answered(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	if (!request_succeeded(res))
		request_sql_error(request, res);
	else if (PQntuples(res) == 0)
		feed_missing(request);
	else
	{
		request_add_header(request, "Cache-Control", "no-cache");
		request_add_header(request, "X-Robots-Tag", "noindex");
		if (request->method == METHOD_GET)
			link_uses_add(atoll(PQgetvalue(res, 0, 0)));
		if (range_not_modified(request, PQgetvalue(res, 0, 1)))
			return;
		buf_puts(&body, PQgetvalue(res, 0, 2));
		request_answer(request, 200, "text/calendar; charset=utf-8", &body);
	}
}

/* As those of a guest, the statements of a link wait for each other: requests of one feed keep nobody else waiting. */
static void
feed_found(Request *request, PGresult *res)
{
	char digest[PUBLISHED_DIGEST_SIZE], known[128];

	if (!request_succeeded(res))
	{
		request_sql_error(request, res);
		return;
	}
	if (PQntuples(res) == 0)
	{
		feed_missing(request);
		return;
	}
	request->claims.uid = -atoll(PQgetvalue(res, 0, 0));
	published_digest(request->part, digest);
	request_query(request, DATABASE_LONG, feed_sql,
				  PARAMS(pgparam_text(digest), request_header(request, "if-none-match", known, sizeof(known))
												   ? pgparam_text(known)
												   : pgparam_null()),
				  REQUEST_TEXT_RAW, feed_answered);
}

void
route_calendar_feed(Request *request)
{
	char digest[PUBLISHED_DIGEST_SIZE];

	if (published_key_chars(request->part) != PUBLISHED_KEY_CHARS ||
		strcmp(request->part + PUBLISHED_KEY_CHARS, ".ics") != 0)
	{
		feed_missing(request);
		return;
	}
	published_digest(request->part, digest);
	request_query(request, DATABASE_READS, published_sql, PARAMS(pgparam_text(digest)), REQUEST_TEXT_RAW, feed_found);
}
