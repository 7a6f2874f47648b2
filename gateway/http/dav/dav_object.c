/* dav_object.c - GET, PUT and DELETE of calendar objects, MKCALENDAR, and PROPPATCH of calendars. */
#include "http/dav/dav.h"
#include "http/request/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char dav_read_sql[] = "SELECT etag, data FROM sheet.caldav_get($1, ARRAY[$2], $3)";
static const char dav_put_sql[] = "SELECT etag, created FROM sheet.caldav_put($1, $2, $3, $4, $5, $6)";
static const char dav_delete_sql[] = "SELECT sheet.caldav_delete($1, $2, $3, $4)";
static const char dav_rename_sql[] = "SELECT sheet.rename($1, $2, $3)";

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
		request_add_header(request, "Allow", "OPTIONS, PROPFIND, PROPPATCH, REPORT, MKCALENDAR");
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

static void
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

/* ---- calendars ---- */

void
dav_make_calendar(Request *request)
{
	dav_error(request, 403, XML_CALDAV, "calendar-collection-location-ok",
			  "calendars are made in pg_sheet, by sheet.create_calendar()");
}

/* The properties of all set and remove elements, each with a status. */
static void
dav_put_patched(Buf *to, const Dav *dav, const DavResource *calendar, bool renamed)
{
	buf_puts(to, "<response><href>");
	dav_put_href(to, dav, calendar);
	buf_puts(to, "</href>");
	for (const XmlNode *change = xml_root(dav->xml)->first; change != NULL; change = change->next)
	{
		const XmlNode *prop = xml_child(change, XML_DAV, "prop");

		for (const XmlNode *node = prop != NULL ? prop->first : NULL; node != NULL; node = node->next)
		{
			bool done = renamed && xml_is(node, XML_DAV, "displayname");

			buf_printf(to, "<propstat><prop><X:%s xmlns:X=\"", node->name);
			dav_put_text(to, node->space);
			buf_printf(to, "\"/></prop><status>HTTP/1.1 %s</status></propstat>", done ? "200 OK" : "403 Forbidden");
		}
	}
	buf_puts(to, "</response>\n");
}

static void
dav_answer_patch(Request *request, bool renamed)
{
	const Dav *dav = request->own;
	char id[24];
	DavResource calendar = {.kind = dav->kind, .id = id};
	Buf body = {NULL, 0, 0};

	(void) pgparam_int64(id, request->sheet_id);
	dav_begin(&body);
	dav_put_patched(&body, dav, &calendar, renamed);
	dav_answer(request, &body);
}

static void
dav_renamed(Request *request, PGresult *res)
{
	if (request_succeeded(res))
		dav_answer_patch(request, true);
	else
		dav_sql_error(request, res);
}

/* Of properties, the name of a calendar can be set. The change is one: with another property nothing is set. */
void
dav_patch(Request *request)
{
	const Dav *dav = request->own;
	const XmlNode *root = xml_root(dav->xml), *set = xml_child(root, XML_DAV, "set");
	const XmlNode *prop = xml_child(set, XML_DAV, "prop"), *name = xml_child(prop, XML_DAV, "displayname");

	if (root == NULL || !xml_is(root, XML_DAV, "propertyupdate") || dav->kind == DAV_OBJECT)
		request_error(request, 400, "PROPPATCH is for calendars, with the element propertyupdate");
	else if (dav->kind != DAV_CALENDAR || name == NULL || root->first != set || set->next != NULL ||
			 prop->first != name || name->next != NULL)
		dav_answer_patch(request, false);
	else
		request_query(request, DATABASE_LONG, dav_rename_sql,
					  PARAMS(request_sheet(request), pgparam_text(name->text), request_uid(request)), REQUEST_TEXT_RAW,
					  dav_renamed);
}
