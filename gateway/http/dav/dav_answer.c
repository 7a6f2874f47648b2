/* dav_answer.c - answers in XML: the properties of resources, and errors. */
#include "http/dav/dav.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAV_XML_HEAD "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
#define DAV_SPACES	 " xmlns=\"" XML_DAV "\" xmlns:C=\"" XML_CALDAV "\" xmlns:S=\"" XML_CS "\" xmlns:A=\"" XML_APPLE "\""

/* ---- texts ---- */

static bool
dav_is_plain(char c)
{
	return ((unsigned char) c >= ' ' || c == '\n' || c == '\t') && c != '&' && c != '<' && c != '>' && c != '"';
}

void
dav_put_text(Buf *to, const char *text)
{
	while (*text != '\0')
	{
		const char *from = text;

		while (*text != '\0' && dav_is_plain(*text))
			text++;
		buf_put(to, from, (size_t) (text - from));
		if (*text == '\0')
			break;
		if (*text == '\r')
			buf_puts(to, "&#13;");
		else if ((unsigned char) *text >= ' ')
			buf_put_html(to, text, 1);
		text++;
	}
}

void
dav_put_href(Buf *to, const Dav *dav, const DavResource *resource)
{
	buf_puts(to, resource->kind == DAV_ROOT && resource->bare ? "/" : DAV_PREFIX);
	if (resource->kind == DAV_ROOT)
		return;
	buf_puts(to, "u/");
	buf_puts_url(to, dav->user);
	buf_puts(to, "/");
	if (resource->kind == DAV_HOME)
		return;
	buf_puts_url(to, resource->address != NULL ? resource->address : dav->calendar);
	buf_puts(to, "/");
	if (resource->kind == DAV_OBJECT)
		buf_puts_url(to, resource->name);
}

/* ---- properties ---- */

static void
dav_put_href_of(Buf *to, const Dav *dav, DavKind kind)
{
	DavResource resource = {.kind = kind};

	buf_puts(to, "<href>");
	dav_put_href(to, dav, &resource);
	buf_puts(to, "</href>");
}

static bool
put_type(Buf *to, const Dav *dav, const DavResource *r)
{
	if (r->kind != DAV_OBJECT)
		buf_puts(to, "<collection/>");
	if (r->kind == DAV_HOME)
		buf_puts(to, "<principal/>");
	if (r->kind == DAV_CALENDAR)
		buf_puts(to, "<C:calendar/>");
	return true;
}

static bool
put_name(Buf *to, const Dav *dav, const DavResource *r)
{
	if (r->kind == DAV_OBJECT)
		return false;
	dav_put_text(to, r->kind == DAV_CALENDAR ? r->name : r->kind == DAV_HOME ? dav->user : "pg_sheet");
	return true;
}

static bool
put_principal(Buf *to, const Dav *dav, const DavResource *r)
{
	dav_put_href_of(to, dav, DAV_HOME);
	return true;
}

static bool
put_principals(Buf *to, const Dav *dav, const DavResource *r)
{
	dav_put_href_of(to, dav, DAV_ROOT);
	return true;
}

static bool
put_home(Buf *to, const Dav *dav, const DavResource *r)
{
	return r->kind <= DAV_HOME && put_principal(to, dav, r);
}

static bool
put_privileges(Buf *to, const Dav *dav, const DavResource *r)
{
	buf_puts(to, "<privilege><read/></privilege><privilege><read-current-user-privilege-set/></privilege>");
	if (r->kind == DAV_HOME)
		buf_puts(to, "<privilege><bind/></privilege>");
	if (r->kind == DAV_CALENDAR)
		buf_puts(to, "<privilege><C:read-free-busy/></privilege>");
	if (r->role != NULL && (strcmp(r->role, "editor") == 0 || strcmp(r->role, "owner") == 0))
		buf_puts(to, "<privilege><write/></privilege><privilege><write-content/></privilege><privilege><bind/>"
					 "</privilege><privilege><unbind/></privilege><privilege><write-properties/></privilege>");
	return true;
}

static bool
put_reports(Buf *to, const Dav *dav, const DavResource *r)
{
	static const char *const reports[] = {"<C:calendar-query/>", "<C:calendar-multiget/>", "<C:free-busy-query/>",
										  "<sync-collection/>"};

	for (size_t i = 0; r->kind == DAV_CALENDAR && i < sizeof(reports) / sizeof(reports[0]); i++)
		buf_printf(to, "<supported-report><report>%s</report></supported-report>", reports[i]);
	return true;
}

static bool
put_etag(Buf *to, const Dav *dav, const DavResource *r)
{
	if (r->etag == NULL)
		return false;
	dav_put_text(to, r->etag);
	return true;
}

static bool
put_content_type(Buf *to, const Dav *dav, const DavResource *r)
{
	if (r->kind == DAV_OBJECT)
		buf_puts(to, "text/calendar; charset=utf-8; component=VEVENT");
	return r->kind == DAV_OBJECT;
}

static bool
put_token(Buf *to, const Dav *dav, const DavResource *r)
{
	if (r->kind == DAV_CALENDAR)
		buf_printf(to, "urn:pg-sheet:sync:%s:%s", r->id, r->token);
	return r->kind == DAV_CALENDAR;
}

static bool
put_components(Buf *to, const Dav *dav, const DavResource *r)
{
	buf_puts(to, "<C:comp name=\"VEVENT\"/>");
	return r->kind == DAV_CALENDAR;
}

static bool
put_data_types(Buf *to, const Dav *dav, const DavResource *r)
{
	buf_puts(to, "<C:calendar-data content-type=\"text/calendar\" version=\"2.0\"/>");
	return r->kind == DAV_CALENDAR;
}

static bool
put_max_size(Buf *to, const Dav *dav, const DavResource *r)
{
	buf_puts(to, "1048576");
	return r->kind == DAV_CALENDAR;
}

static bool
put_colour(Buf *to, const Dav *dav, const DavResource *r)
{
	if (r->colour == NULL || r->colour[0] == '\0')
		return false;
	dav_put_text(to, r->colour);
	return true;
}

static bool
put_data(Buf *to, const Dav *dav, const DavResource *r)
{
	if (r->data == NULL)
		return false;
	dav_put_text(to, r->data);
	return true;
}

static bool
put_addresses(Buf *to, const Dav *dav, const DavResource *r)
{
	buf_puts(to, "<href preferred=\"1\">urn:pg-sheet:account:");
	buf_puts_url(to, dav->user);
	buf_puts(to, "</href>");
	if (dav->email[0] != '\0')
	{
		buf_puts(to, "<href>mailto:");
		dav_put_text(to, dav->email);
		buf_puts(to, "</href>");
	}
	return r->kind <= DAV_HOME;
}

/* Writes the value. False: the resource does not have the property; what was written is removed. */
typedef bool (*DavPut)(Buf *to, const Dav *dav, const DavResource *resource);

static const struct
{
	const char *space;
	const char *prefix;
	const char *name;
	DavPut put;
	bool of_all; /* a request for all properties means it, too (RFC 4791 forbids some) */
} dav_properties[] = {
	{XML_DAV, "", "resourcetype", put_type, true},
	{XML_DAV, "", "displayname", put_name, true},
	{XML_DAV, "", "getetag", put_etag, true},
	{XML_DAV, "", "getcontenttype", put_content_type, true},
	{XML_DAV, "", "sync-token", put_token, false},
	{XML_DAV, "", "current-user-principal", put_principal, false},
	{XML_DAV, "", "owner", put_principal, false},
	{XML_DAV, "", "principal-URL", put_principal, false},
	{XML_DAV, "", "principal-collection-set", put_principals, false},
	{XML_DAV, "", "current-user-privilege-set", put_privileges, false},
	{XML_DAV, "", "supported-report-set", put_reports, false},
	{XML_CALDAV, "C:", "calendar-home-set", put_home, false},
	{XML_CALDAV, "C:", "calendar-user-address-set", put_addresses, false},
	{XML_CALDAV, "C:", "supported-calendar-component-set", put_components, false},
	{XML_CALDAV, "C:", "supported-calendar-data", put_data_types, false},
	{XML_CALDAV, "C:", "max-resource-size", put_max_size, false},
	{XML_CALDAV, "C:", "calendar-data", put_data, false},
	{XML_CS, "S:", "getctag", put_token, false},
	{XML_APPLE, "A:", "calendar-color", put_colour, false},
};

#define DAV_PROPERTIES (sizeof(dav_properties) / sizeof(dav_properties[0]))

static bool
dav_put_property(Buf *to, const Dav *dav, const DavResource *resource, size_t i)
{
	size_t before = to->len, value;

	buf_printf(to, "<%s%s>", dav_properties[i].prefix, dav_properties[i].name);
	value = to->len;
	if (!dav_properties[i].put(to, dav, resource))
	{
		to->len = before < to->len ? before : to->len;
		return false;
	}
	if (dav->names_only)
		to->len = value < to->len ? value : to->len;
	buf_printf(to, "</%s%s>", dav_properties[i].prefix, dav_properties[i].name);
	return true;
}

static size_t
dav_find_property(const XmlNode *node)
{
	size_t i = 0;

	while (i < DAV_PROPERTIES && !xml_is(node, dav_properties[i].space, dav_properties[i].name))
		i++;
	return i;
}

void
dav_put_name(Buf *to, const XmlNode *node)
{
	if (node->space[0] == '\0')
	{
		buf_printf(to, "<%s xmlns=\"\"/>", node->name);
		return;
	}
	buf_printf(to, "<X:%s xmlns:X=\"", node->name);
	dav_put_text(to, node->space);
	buf_puts(to, "\"/>");
}

static void
dav_put_found(Buf *to, const Dav *dav, const DavResource *resource, Buf *missing)
{
	if (dav->props == NULL)
	{
		for (size_t i = 0; i < DAV_PROPERTIES; i++)
		{
			if (dav_properties[i].of_all || dav->names_only)
				(void) dav_put_property(to, dav, resource, i);
		}
		return;
	}
	for (const XmlNode *node = dav->props->first; node != NULL; node = node->next)
	{
		size_t i = dav_find_property(node);

		if (i == DAV_PROPERTIES || !dav_put_property(to, dav, resource, i))
			dav_put_name(missing, node);
	}
}

/* ---- responses ---- */

void
dav_begin(Buf *to)
{
	buf_puts(to, DAV_XML_HEAD "<multistatus" DAV_SPACES ">\n");
}

void
dav_put_resource(Buf *to, const Dav *dav, const DavResource *resource)
{
	Buf missing = {NULL, 0, 0};

	buf_puts(to, "<response><href>");
	dav_put_href(to, dav, resource);
	buf_puts(to, "</href><propstat><prop>");
	dav_put_found(to, dav, resource, &missing);
	buf_puts(to, "</prop><status>HTTP/1.1 200 OK</status></propstat>");
	if (missing.len > 0)
	{
		buf_puts(to, "<propstat><prop>");
		buf_put_buf(to, &missing);
		buf_puts(to, "</prop><status>HTTP/1.1 404 Not Found</status></propstat>");
	}
	buf_puts(to, "</response>\n");
	buf_free(&missing);
}

void
dav_put_status(Buf *to, const Dav *dav, const DavResource *resource, const char *href, const char *status)
{
	buf_puts(to, "<response><href>");
	if (resource != NULL)
		dav_put_href(to, dav, resource);
	else
		dav_put_text(to, href);
	buf_printf(to, "</href><status>HTTP/1.1 %s</status></response>\n", status);
}

void
dav_answer(Request *request, Buf *to)
{
	buf_puts(to, "</multistatus>\n");
	request_answer(request, 207, "application/xml; charset=utf-8", to);
}

/* ---- errors ---- */

void
dav_error(Request *request, int status, const char *space, const char *element, const char *reason)
{
	Buf body = {NULL, 0, 0};

	buf_printf(&body, DAV_XML_HEAD "<error" DAV_SPACES "><%s%s/><S:message>",
			   strcmp(space, XML_DAV) == 0 ? "" : "C:", element);
	dav_put_text(&body, reason);
	buf_puts(&body, "</S:message></error>\n");
	request_answer(request, status, "application/xml; charset=utf-8", &body);
}

static int
dav_status(const char *element)
{
	if (strcmp(element, "no-uid-conflict") == 0)
		return 409;
	if (strcmp(element, "max-resource-size") == 0)
		return 413;
	return strcmp(element, "number-of-matches-within-limits") == 0 ? 507 : 403;
}

void
dav_sql_error(Request *request, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);
	const char *element = res != NULL ? PQresultErrorField(res, PG_DIAG_CONSTRAINT_NAME) : NULL;
	const char *reason = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	const char *detail = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL) : NULL;
	char text[512];

	if (strcmp(state, "SE001") == 0)
		request_error(request, 412, reason);
	else if (strcmp(state, "42809") == 0)
		request_error(request, 404, "no such calendar");
	else if (strncmp(state, "22", 2) == 0 || strncmp(state, "54", 2) == 0)
	{
		bool of_dav = element != NULL && (strcmp(element, "valid-sync-token") == 0 ||
										  strcmp(element, "number-of-matches-within-limits") == 0);

		if (element == NULL)
			element = "valid-calendar-data";
		snprintf(text, sizeof(text), "%s%s%s", reason, detail != NULL ? ". " : "", detail != NULL ? detail : "");
		dav_error(request, dav_status(element), of_dav ? XML_DAV : XML_CALDAV, element, text);
	}
	else if (strcmp(state, "42501") == 0)
		dav_error(request, 403, XML_DAV, "need-privileges", detail != NULL ? detail : reason);
	else
		request_sql_error(request, res);
}

bool
dav_begin_answer(Request *request, const PGresult *res, Buf *to)
{
	if (!request_succeeded(res))
	{
		dav_sql_error(request, res);
		return false;
	}
	dav_begin(to);
	return true;
}
