/* dav_find.c - PROPFIND: the properties of a resource, and with Depth 1 of what is in it. */
#include "http/dav/dav.h"

#include <stdio.h>
#include <string.h>

static const char dav_email_sql[] = "SELECT sheet.caldav_email($1)";
static const char dav_calendars_sql[] =
	"SELECT sheet_id, name, role, zone, token, colour, address FROM sheet.calendars($1)";
/* Calendars that are open by their id alone are in no list. */
static const char dav_calendar_sql[] =
	"SELECT sheet_id, name, role, zone, token, colour FROM sheet.caldav_calendar($1, $2)";
static const char dav_list_sql[] =
	"SELECT sheet_id, name, role, zone, token, colour, NULL, NULL FROM sheet.caldav_calendar($1, $2) "
	"UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, name, etag FROM sheet.caldav_list($1, $2)";
static const char dav_object_sql[] = "SELECT name, etag FROM sheet.caldav_get($1, ARRAY[$2], $3)";

enum
{
	CALENDAR_ID,
	CALENDAR_NAME,
	CALENDAR_ROLE,
	CALENDAR_ZONE,
	CALENDAR_TOKEN,
	CALENDAR_COLOUR,
	LIST_NAME,
	LIST_ETAG,
	HOME_ADDRESS = LIST_NAME
};

static void
dav_put_calendar(Buf *to, const Dav *dav, const PGresult *res, int row)
{
	DavResource calendar = {.kind = DAV_CALENDAR,
							.id = PQgetvalue(res, row, CALENDAR_ID),
							.name = PQgetvalue(res, row, CALENDAR_NAME),
							.role = PQgetvalue(res, row, CALENDAR_ROLE),
							.zone = PQgetvalue(res, row, CALENDAR_ZONE),
							.token = PQgetvalue(res, row, CALENDAR_TOKEN),
							.colour = PQgetvalue(res, row, CALENDAR_COLOUR),
							.address = dav->kind == DAV_HOME ? PQgetvalue(res, row, HOME_ADDRESS) : NULL};

	dav_put_resource(to, dav, &calendar);
}

static void
dav_home_answered(Request *request, PGresult *res)
{
	const Dav *dav = request->own;
	DavResource home = {.kind = DAV_HOME};
	Buf body = {NULL, 0, 0};

	if (!dav_begin_answer(request, res, &body))
		return;
	dav_put_resource(&body, dav, &home);
	for (int row = 0; row < PQntuples(res); row++)
		dav_put_calendar(&body, dav, res, row);
	dav_answer(request, &body);
}

static void
dav_calendar_answered(Request *request, PGresult *res)
{
	const Dav *dav = request->own;
	Buf body = {NULL, 0, 0};

	if (!dav_begin_answer(request, res, &body))
		return;
	for (int row = 0; row < PQntuples(res); row++)
	{
		DavResource object = {.kind = DAV_OBJECT};

		if (!PQgetisnull(res, row, CALENDAR_ID))
		{
			dav_put_calendar(&body, dav, res, row);
			continue;
		}
		object.name = PQgetvalue(res, row, LIST_NAME);
		object.etag = PQgetvalue(res, row, LIST_ETAG);
		dav_put_resource(&body, dav, &object);
	}
	dav_answer(request, &body);
}

static void
dav_object_answered(Request *request, PGresult *res)
{
	const Dav *dav = request->own;
	DavResource object = {.kind = DAV_OBJECT, .name = dav->object};
	Buf body = {NULL, 0, 0};

	if (!request_succeeded(res))
		dav_sql_error(request, res);
	else if (PQntuples(res) == 0)
		request_error(request, 404, "no such calendar object");
	else
	{
		object.etag = PQgetvalue(res, 0, 1);
		dav_begin(&body);
		dav_put_resource(&body, dav, &object);
		dav_answer(request, &body);
	}
}

static void
dav_answer_alone(Request *request)
{
	const Dav *dav = request->own;
	DavResource resource = {.kind = dav->kind};
	Buf body = {NULL, 0, 0};

	resource.bare = dav->bare;
	dav_begin(&body);
	dav_put_resource(&body, dav, &resource);
	if (dav->kind == DAV_ROOT && dav->depth > 0)
	{
		resource.kind = DAV_HOME;
		dav_put_resource(&body, dav, &resource);
	}
	dav_answer(request, &body);
}

static void
dav_find(Request *request)
{
	const Dav *dav = request->own;

	if (dav->kind == DAV_OBJECT)
		request_query(request, DATABASE_LONG, dav_object_sql,
					  PARAMS(request_sheet(request), pgparam_text(dav->object), request_uid(request)), REQUEST_TEXT_RAW,
					  dav_object_answered);
	else if (dav->kind == DAV_CALENDAR)
		request_query(request, DATABASE_LONG, dav->depth > 0 ? dav_list_sql : dav_calendar_sql,
					  PARAMS(request_sheet(request), request_uid(request)), REQUEST_TEXT_RAW, dav_calendar_answered);
	else if (dav->kind == DAV_HOME && dav->depth > 0)
		request_query(request, DATABASE_LONG, dav_calendars_sql, PARAMS(request_uid(request)), REQUEST_TEXT_RAW,
					  dav_home_answered);
	else
		dav_answer_alone(request);
}

static void
dav_email_found(Request *request, PGresult *res)
{
	Dav *dav = request->own;

	if (!request_succeeded(res) || PQntuples(res) != 1)
	{
		dav_sql_error(request, res);
		return;
	}
	if (PQgetlength(res, 0, 0) < (int) sizeof(dav->email))
		snprintf(dav->email, sizeof(dav->email), "%s", PQgetvalue(res, 0, 0));
	dav_find(request);
}

void
dav_propfind(Request *request)
{
	Dav *dav = request->own;
	const XmlNode *root = xml_root(dav->xml);

	if (root != NULL && !xml_is(root, XML_DAV, "propfind"))
	{
		request_error(request, 400, "the body of PROPFIND is the element propfind");
		return;
	}
	dav->props = xml_child(root, XML_DAV, "prop");
	dav->names_only = xml_child(root, XML_DAV, "propname") != NULL;
	if (dav->kind <= DAV_HOME && xml_child(dav->props, XML_CALDAV, "calendar-user-address-set") != NULL)
		request_query(request, DATABASE_ACCOUNTS, dav_email_sql, PARAMS(request_uid(request)), REQUEST_TEXT_RAW,
					  dav_email_found);
	else
		dav_find(request);
}
