/* dav_calendar.c - whole calendars: MKCALENDAR, MKCOL (RFC 5689), PROPPATCH and DELETE. */
#include "http/dav/dav.h"

#include <stdio.h>
#include <string.h>

static const char dav_make_sql[] = "SELECT sheet.caldav_make($1, $2, $3, $4, $5)";
static const char dav_patch_sql[] = "SELECT CASE WHEN $2::text IS NOT NULL THEN sheet.rename($1, $2, $4) END, "
									"CASE WHEN $3::text IS NOT NULL THEN sheet.choose_calendar($1, $3, NULL, $4) END";
static const char dav_trash_sql[] = "SELECT sheet.trash(c.sheet_id, $2) FROM sheet.caldav_calendar($1, $2) c";

/* ---- MKCALENDAR and MKCOL ---- */

static void
dav_refuse_place(Request *request)
{
	dav_error(request, 403, XML_CALDAV, "calendar-collection-location-ok",
			  "calendars are made in the home of the account, at /dav/u/NAME/CALENDAR/");
}

static void
dav_refuse_known(Request *request)
{
	request_add_header(request, "Allow", "OPTIONS, PROPFIND, PROPPATCH, REPORT, DELETE");
	dav_error(request, 405, XML_DAV, "resource-must-be-null", "the address has something already");
}

static void
dav_made(Request *request, PGresult *res)
{
	const char *state = pgresult_sqlstate(res);

	if (request_succeeded(res))
	{
		request_add_header(request, "Cache-Control", "no-cache");
		request_answer(request, 201, NULL, NULL);
	}
	else if (strcmp(state, "42710") == 0)
		dav_refuse_known(request);
	else if (strncmp(state, "22", 2) == 0 && PQresultErrorField(res, PG_DIAG_CONSTRAINT_NAME) == NULL)
		dav_error(request, 403, XML_CALDAV, "initialize-calendar-collection",
				  PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
	else
		dav_sql_error(request, res);
}

/* A calendar has events only. */
static bool
dav_check_components(Request *request, const XmlNode *prop)
{
	const XmlNode *set = xml_child(prop, XML_CALDAV, "supported-calendar-component-set");

	for (const XmlNode *comp = set != NULL ? set->first : NULL; comp != NULL; comp = comp->next)
	{
		const char *name = xml_attribute(comp, "name");

		if (!xml_is(comp, XML_CALDAV, "comp") || (name != NULL && strcmp(name, "VEVENT") == 0))
			continue;
		dav_error(request, 403, XML_CALDAV, "supported-calendar-component", "a calendar has events (VEVENT) only");
		return false;
	}
	return true;
}

static PgParam
dav_text_of(const XmlNode *prop, const char *space, const char *name)
{
	const XmlNode *node = xml_child(prop, space, name);

	return pgparam_text(node != NULL && node->text[0] != '\0' ? node->text : NULL);
}

void
dav_make_calendar(Request *request)
{
	const Dav *dav = request->own;
	const XmlNode *root = xml_root(dav->xml);
	const XmlNode *prop = xml_child(xml_child(root, XML_DAV, "set"), XML_DAV, "prop");
	bool is_mkcol = request->method == METHOD_MKCOL,
		 has_zone = xml_child(prop, XML_CALDAV, "calendar-timezone") != NULL;

	if (dav->kind >= DAV_OBJECT)
		dav_refuse_place(request);
	else if (dav->kind != DAV_CALENDAR)
		dav_refuse_known(request);
	else if (root != NULL && !xml_is(root, is_mkcol ? XML_DAV : XML_CALDAV, is_mkcol ? "mkcol" : "mkcalendar"))
		request_error(request, 400, "the body of MKCALENDAR is the element mkcalendar, and that of MKCOL is mkcol");
	else if (is_mkcol && xml_child(xml_child(prop, XML_DAV, "resourcetype"), XML_CALDAV, "calendar") == NULL)
		dav_error(request, 403, XML_DAV, "valid-resourcetype", "only calendars can be made");
	else if (dav_check_components(request, prop))
		request_query(request, DATABASE_LONG, dav_make_sql,
					  PARAMS(pgparam_text(dav->calendar), dav_text_of(prop, XML_DAV, "displayname"),
							 dav_text_of(prop, XML_CALDAV, has_zone ? "calendar-timezone" : "calendar-timezone-id"),
							 dav_text_of(prop, XML_APPLE, "calendar-color"), request_uid(request)),
					  REQUEST_TEXT_RAW, dav_made);
}

/* ---- DELETE ---- */

/* Moves the calendar to the trash. Only its owner may. */
void
dav_delete_calendar(Request *request)
{
	if (request->by_program && !(request->scopes & SCOPE_ADMIN))
		dav_error(request, 403, XML_DAV, "need-privileges",
				  "the access token does not permit this: the scope admin is needed");
	else
		request_query(request, DATABASE_WRITES, dav_trash_sql, PARAMS(request_sheet(request), request_uid(request)),
					  REQUEST_TEXT_RAW, dav_deleted);
}

/* ---- PROPPATCH ---- */

typedef enum DavPatch
{
	PATCH_NAME,
	PATCH_COLOUR,
	PATCH_OTHER /* it cannot be changed */
} DavPatch;

static DavPatch
dav_patch_of(const XmlNode *change, const XmlNode *node)
{
	if (xml_is(node, XML_APPLE, "calendar-color"))
		return PATCH_COLOUR;
	return xml_is(node, XML_DAV, "displayname") && xml_is(change, XML_DAV, "set") ? PATCH_NAME : PATCH_OTHER;
}

/* Calls `put` for the properties of all set and remove elements. */
static void
dav_each_patch(Request *request, void *arg, void (*put)(void *arg, const XmlNode *change, const XmlNode *node))
{
	const Dav *dav = request->own;

	for (const XmlNode *change = xml_root(dav->xml)->first; change != NULL; change = change->next)
	{
		const XmlNode *prop = xml_child(change, XML_DAV, "prop");

		for (const XmlNode *node = prop != NULL ? prop->first : NULL; node != NULL; node = node->next)
			put(arg, change, node);
	}
}

typedef struct DavPatches
{
	const char *name, *colour; /* NULL: stays */
	bool others;
	Buf *to;
	const char *status; /* of those that can be changed */
} DavPatches;

static void
dav_take_patch(void *arg, const XmlNode *change, const XmlNode *node)
{
	DavPatches *patches = arg;

	switch (dav_patch_of(change, node))
	{
		case PATCH_NAME:
			patches->name = node->text;
			break;
		case PATCH_COLOUR:
			patches->colour = xml_is(change, XML_DAV, "set") ? node->text : "";
			break;
		case PATCH_OTHER:
			patches->others = true;
	}
}

static void
dav_put_patch(void *arg, const XmlNode *change, const XmlNode *node)
{
	const DavPatches *patches = arg;

	buf_puts(patches->to, "<propstat><prop>");
	dav_put_name(patches->to, node);
	buf_printf(patches->to, "</prop><status>HTTP/1.1 %s</status></propstat>",
			   dav_patch_of(change, node) == PATCH_OTHER ? "403 Forbidden" : patches->status);
}

static void
dav_answer_patch(Request *request, const char *status, const char *reason)
{
	const Dav *dav = request->own;
	DavResource calendar = {.kind = dav->kind};
	Buf body = {NULL, 0, 0};
	DavPatches patches = {.to = &body, .status = status};

	dav_begin(&body);
	buf_puts(&body, "<response><href>");
	dav_put_href(&body, dav, &calendar);
	buf_puts(&body, "</href>");
	dav_each_patch(request, &patches, dav_put_patch);
	if (reason != NULL)
	{
		buf_puts(&body, "<responsedescription>");
		dav_put_text(&body, reason);
		buf_puts(&body, "</responsedescription>");
	}
	buf_puts(&body, "</response>\n");
	dav_answer(request, &body);
}

static void
dav_patched(Request *request, PGresult *res)
{
	if (request_succeeded(res))
		dav_answer_patch(request, "200 OK", NULL);
	else if (strncmp(pgresult_sqlstate(res), "22", 2) == 0)
		dav_answer_patch(request, "409 Conflict", PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
	else
		dav_sql_error(request, res);
}

/* Only the name and the colour can be set. If another property is named, nothing is set. */
void
dav_patch(Request *request)
{
	const Dav *dav = request->own;
	const XmlNode *root = xml_root(dav->xml);
	DavPatches patches = {NULL};

	if (root == NULL || !xml_is(root, XML_DAV, "propertyupdate") || dav->kind == DAV_OBJECT)
	{
		request_error(request, 400, "PROPPATCH is for calendars, with the element propertyupdate");
		return;
	}
	dav_each_patch(request, &patches, dav_take_patch);
	if (dav->kind != DAV_CALENDAR || patches.others || (patches.name == NULL && patches.colour == NULL))
		dav_answer_patch(request, patches.others ? "424 Failed Dependency" : "403 Forbidden", NULL);
	else
		request_query(request, DATABASE_WRITES, dav_patch_sql,
					  PARAMS(request_sheet(request), pgparam_text(patches.name), pgparam_text(patches.colour),
							 request_uid(request)),
					  REQUEST_TEXT_RAW, dav_patched);
}
