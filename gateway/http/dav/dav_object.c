/* dav_object.c - GET, PUT and DELETE of calendar objects. */
#include "http/dav/dav.h"
#include "http/request/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char dav_read_sql[] = "SELECT etag, data FROM sheet.caldav_get($1, ARRAY[$2], $3)";
static const char dav_put_sql[] = "SELECT etag, created FROM sheet.caldav_put($1, $2, $3, $4, $5, $6)";
static const char dav_delete_sql[] = "SELECT sheet.caldav_delete($1, $2, $3, $4)";

/* A header of a condition; null: it is absent. *ok is false if it is too long. */
static PgParam
dav_condition(Request *request, const char *name, char *to, size_t size, bool *ok)
{
	if (head_field(&request->head, name) == NULL)
		return pgparam_null();
	*ok &= request_header(request, name, to, size);
	return pgparam_text(to);
}

/* ---- GET ---- */

static void
dav_got(Request *request, PGresult *res)
{
	if (!request_succeeded(res))
		dav_sql_error(request, res);
	else if (PQntuples(res) == 0)
		request_error(request, 404, "no such calendar object");
	else if (!range_not_modified(request, PQgetvalue(res, 0, 0)))
	{
		Buf body = {NULL, 0, 0};

		buf_puts(&body, PQgetvalue(res, 0, 1));
		request_answer(request, 200, "text/calendar; charset=utf-8; component=VEVENT", &body);
	}
}

void
dav_get(Request *request)
{
	const Dav *dav = request->own;

	if (dav->kind == DAV_OBJECT)
		request_query(request, DATABASE_LONG, dav_read_sql,
					  PARAMS(request_sheet(request), pgparam_text(dav->object), request_uid(request)), REQUEST_TEXT_RAW,
					  dav_got);
	else
	{
		request_add_header(request, "Allow", "OPTIONS, PROPFIND, PROPPATCH, REPORT, MKCOL, MKCALENDAR");
		request_error(request, 405, "a calendar program asks for this address by PROPFIND");
	}
}

/* ---- PUT and DELETE ---- */

static bool
dav_check_object(Request *request)
{
	const Dav *dav = request->own;

	if (dav->kind == DAV_OBJECT)
		return true;
	dav_error(request, 403, XML_CALDAV, "calendar-collection-location-ok",
			  "only calendar objects can be written or deleted here");
	return false;
}

static void
dav_put_answered(Request *request, PGresult *res)
{
	if (!request_succeeded(res) || PQntuples(res) != 1)
		dav_sql_error(request, res);
	else
		request_answer(request, PQgetvalue(res, 0, 1)[0] == 't' ? 201 : 204, NULL, NULL);
}

/* The answer has no ETag: the object may be written otherwise than it was sent (RFC 4791 5.3.4). */
void
dav_put(Request *request)
{
	const Dav *dav = request->own;
	const char *type = head_field(&request->head, "content-type");
	char if_match[256], if_none_match[256];
	bool ok = true;
	PgParam match = dav_condition(request, "if-match", if_match, sizeof(if_match), &ok);
	PgParam none_match = dav_condition(request, "if-none-match", if_none_match, sizeof(if_none_match), &ok);

	if (!dav_check_object(request))
		return;
	if (type != NULL && strncasecmp(type, "text/calendar", 13) != 0)
	{
		dav_error(request, 415, XML_CALDAV, "supported-calendar-data", "a calendar object is text/calendar");
		return;
	}
	buf_put(&request->body, "", 1);
	if (buf_failed(&request->body))
		request_out_of_memory(request);
	else if (!ok)
		request_error(request, 400, "If-Match or If-None-Match is too long");
	else if (memchr(request->body.data, '\0', request->body.len - 1) != NULL)
		dav_error(request, 403, XML_CALDAV, "valid-calendar-data", "the calendar object has control characters");
	else
		request_query(request, DATABASE_LONG, dav_put_sql,
					  PARAMS(request_sheet(request), pgparam_text(dav->object), pgparam_text(request->body.data), match,
							 none_match, request_uid(request)),
					  REQUEST_TEXT_RAW, dav_put_answered);
}

void
dav_deleted(Request *request, PGresult *res)
{
	if (request_succeeded(res))
		request_answer(request, 204, NULL, NULL);
	else
		dav_sql_error(request, res);
}

void
dav_delete(Request *request)
{
	const Dav *dav = request->own;
	char if_match[256];
	bool ok = true;
	PgParam match = dav_condition(request, "if-match", if_match, sizeof(if_match), &ok);

	if (!dav_check_object(request))
		return;
	if (!ok)
		request_error(request, 400, "If-Match is too long");
	else
		request_query(request, DATABASE_LONG, dav_delete_sql,
					  PARAMS(request_sheet(request), pgparam_text(dav->object), match, request_uid(request)),
					  REQUEST_TEXT_RAW, dav_deleted);
}
