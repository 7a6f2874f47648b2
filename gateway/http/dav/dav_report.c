/*
 * dav_report.c - REPORT: calendar-query, calendar-multiget, free-busy-query (RFC 4791 7) and sync-collection (RFC
 * 6578).
 *
 * Of filters, only those that name components and a span of time are served, and one UID, which is what programs ask
 * for. Others are refused.
 */
#include "http/dav/dav.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAV_NAMES_MAX 49000

static const char dav_get_sql[] = "SELECT c.name, c.etag, c.data FROM sheet.caldav_get($1, $2::text[], $3) c";
static const char dav_etags_sql[] =
	"SELECT c.name, c.etag, NULL FROM sheet.caldav_list($1, $3) c WHERE c.name = ANY ($2::text[]) OR $2 IS NULL";
static const char dav_span_sql[] = "SELECT c.name, c.etag, c.data FROM sheet.caldav_get($1, ARRAY(SELECT q.name FROM "
								   "sheet.caldav_query($1, $2::timestamptz, $3::timestamptz, false, $4) q), $4) c";
static const char dav_span_etags_sql[] =
	"SELECT c.name, c.etag, c.data FROM sheet.caldav_query($1, $2::timestamptz, $3::timestamptz, false, $4) c";
static const char dav_expand_sql[] =
	"SELECT c.name, c.etag, c.data FROM sheet.caldav_query($1, $2::timestamptz, $3::timestamptz, true, $4) c";
static const char dav_changes_sql[] =
	"SELECT c.name, c.etag, c.gone, c.token, NULL FROM sheet.caldav_changes($1, $2, $3) c";
static const char dav_changes_data_sql[] =
	"WITH c AS MATERIALIZED (SELECT * FROM sheet.caldav_changes($1, $2, $3)) "
	"SELECT c.name, c.etag, c.gone, c.token, g.data FROM c LEFT JOIN sheet.caldav_get($1, "
	"ARRAY(SELECT k.name FROM c k WHERE NOT k.gone), $3) g ON g.name = c.name";

static bool
dav_wants_data(const Dav *dav)
{
	return xml_child(dav->props, XML_CALDAV, "calendar-data") != NULL;
}

static void
dav_put_object(Buf *to, Request *request, const char *name, const char *etag, const char *data)
{
	DavResource object = {.kind = DAV_OBJECT, .name = name, .etag = etag, .data = data};

	dav_put_resource(to, request->own, &object);
}

/* ---- objects ---- */

static void
dav_objects_answered(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	if (!dav_begin_answer(request, res, &body))
		return;
	for (int row = 0; row < PQntuples(res); row++)
		dav_put_object(&body, request, PQgetvalue(res, row, 0), PQgetvalue(res, row, 1),
					   PQgetisnull(res, row, 2) ? NULL : PQgetvalue(res, row, 2));
	dav_answer(request, &body);
}

/* Appends an element of an array of texts. */
static void
dav_put_element(Buf *array, const char *text)
{
	buf_puts(array, array->len > 1 ? ",\"" : "\"");
	for (const char *p = text; *p != '\0'; p++)
	{
		if (*p == '"' || *p == '\\')
			buf_puts(array, "\\");
		buf_put(array, p, 1);
	}
	buf_puts(array, "\"");
}

/* The name of an object of the calendar, decoded in place; NULL: the address is another one. */
static const char *
dav_object_of(const Request *request, char *href)
{
	const Dav *dav = request->own;
	char *path = strstr(href, "://"), *to, prefix[800];
	size_t len;

	path = path != NULL ? strchr(path + 3, '/') : href;
	if (path == NULL)
		return NULL;
	to = path;
	for (const char *from = path; *from != '\0'; to++)
	{
		int byte = *from == '%' ? head_escaped_byte(from + 1, strlen(from + 1)) : -1;

		if (*from == '%' && byte <= 0)
			return NULL;
		*to = byte > 0 ? (char) byte : *from;
		from += byte > 0 ? 3 : 1;
	}
	*to = '\0';
	len = (size_t) snprintf(prefix, sizeof(prefix), DAV_PREFIX "u/%s/%s/", dav->user, dav->calendar);
	return len < sizeof(prefix) && strncmp(path, prefix, len) == 0 && path[len] != '\0' ? path + len : NULL;
}

/* The hrefs that the answer lacks: of objects that are gone, or that are not in the calendar. */
static void
dav_multiget_answered(Request *request, PGresult *res)
{
	const Dav *dav = request->own;
	Buf body = {NULL, 0, 0};

	if (!dav_begin_answer(request, res, &body))
		return;
	for (int row = 0; row < PQntuples(res); row++)
	{
		const char *name = PQgetvalue(res, row, 0);

		if (PQgetisnull(res, row, 1))
			dav_put_status(&body, dav, NULL, name, "404 Not Found");
		else
			dav_put_object(&body, request, name, PQgetvalue(res, row, 1),
						   PQgetisnull(res, row, 2) ? NULL : PQgetvalue(res, row, 2));
	}
	dav_answer(request, &body);
}

static const char dav_multiget_sql[] =
	"SELECT coalesce(c.name, w.href), c.etag, c.data FROM unnest($2::text[], $3::text[]) w (name, href) "
	"LEFT JOIN sheet.caldav_get($1, $2::text[], $4) c ON c.name = w.name";

static void
dav_multiget(Request *request, const XmlNode *root)
{
	Buf names = {NULL, 0, 0}, hrefs = {NULL, 0, 0};
	int count = 0;

	buf_puts(&names, "{");
	buf_puts(&hrefs, "{");
	for (const XmlNode *node = root->first; node != NULL; node = node->next)
	{
		char *copy;
		const char *name;

		if (!xml_is(node, XML_DAV, "href") || ++count > DAV_NAMES_MAX || (copy = strdup(node->text)) == NULL)
			continue;
		name = dav_object_of(request, copy);
		dav_put_element(&names, name != NULL ? name : "");
		dav_put_element(&hrefs, node->text);
		free(copy);
	}
	buf_put(&names, "}", 2);
	buf_put(&hrefs, "}", 2);
	if (count > DAV_NAMES_MAX)
		dav_error(request, 507, XML_DAV, "number-of-matches-within-limits", "at most 49000 addresses");
	else if (buf_failed(&names) || buf_failed(&hrefs))
		request_out_of_memory(request);
	else
		request_query(
			request, DATABASE_LONG, dav_multiget_sql,
			PARAMS(request_sheet(request), pgparam_text(names.data), pgparam_text(hrefs.data), request_uid(request)),
			REQUEST_TEXT_RAW, dav_multiget_answered);
	buf_free(&names);
	buf_free(&hrefs);
}

/* ---- calendar-query ---- */

/* A time as 20270131T093000Z. False: it is none. Without the attribute `to` stays. */
static bool
dav_read_time(const XmlNode *node, const char *attribute, char to[24])
{
	const char *value = xml_attribute(node, attribute);

	if (value == NULL)
		return true;
	if (strlen(value) != 16 || strspn(value, "0123456789") != 8 || value[8] != 'T' ||
		strspn(value + 9, "0123456789") != 6 || value[15] != 'Z')
		return false;
	snprintf(to, 24, "%s", value);
	return true;
}

static bool
dav_read_span(Dav *dav, const XmlNode *node)
{
	snprintf(dav->since, sizeof(dav->since), "-infinity");
	snprintf(dav->upto, sizeof(dav->upto), "infinity");
	return dav_read_time(node, "start", dav->since) && dav_read_time(node, "end", dav->upto) &&
		   (strcmp(dav->since, "-infinity") == 0 || strcmp(dav->upto, "infinity") == 0 ||
			strcmp(dav->since, dav->upto) < 0);
}

typedef struct DavFilter
{
	bool nothing;		 /* it asks for components that no calendar has */
	const XmlNode *span; /* time-range; NULL: none */
	const char *uid;	 /* NULL: any */
} DavFilter;

static bool
dav_read_uid(const XmlNode *node, DavFilter *filter)
{
	const char *name = xml_attribute(node, "name");
	const XmlNode *match = xml_child(node, XML_CALDAV, "text-match");

	if (name == NULL || strcasecmp(name, "UID") != 0 || match == NULL || node->first != match || match->next != NULL ||
		(xml_attribute(match, "negate-condition") != NULL &&
		 strcmp(xml_attribute(match, "negate-condition"), "yes") == 0))
		return false;
	filter->uid = match->text;
	return true;
}

/* False: it is not served. */
static bool
dav_read_filter(const XmlNode *comp, DavFilter *filter, int depth)
{
	const char *name = xml_attribute(comp, "name");
	bool absent = xml_child(comp, XML_CALDAV, "is-not-defined") != NULL, is_event;

	if (name == NULL || depth > 1)
		return false;
	is_event = strcmp(name, depth == 0 ? "VCALENDAR" : "VEVENT") == 0;
	if (is_event == absent)
	{
		filter->nothing = true;
		return true;
	}
	if (absent)
		return true;
	for (const XmlNode *node = comp->first; node != NULL; node = node->next)
	{
		if (xml_is(node, XML_CALDAV, "time-range"))
			filter->span = node;
		else if (xml_is(node, XML_CALDAV, "comp-filter"))
		{
			if (!dav_read_filter(node, filter, depth + 1))
				return false;
		}
		else if (!xml_is(node, XML_CALDAV, "prop-filter") || !dav_read_uid(node, filter))
			return false;
	}
	return true;
}

static const char dav_uid_sql[] =
	"SELECT c.name, c.etag, c.data FROM sheet.caldav_get($1, ARRAY[sheet.caldav_name($1, $2, $3)], $3) c";

static void
dav_query(Request *request, const XmlNode *root)
{
	Dav *dav = request->own;
	const XmlNode *data = xml_child(dav->props, XML_CALDAV, "calendar-data");
	const XmlNode *expand = xml_child(data, XML_CALDAV, "expand");
	const XmlNode *comp = xml_child(xml_child(root, XML_CALDAV, "filter"), XML_CALDAV, "comp-filter");
	DavFilter filter = {0};
	Buf body = {NULL, 0, 0};

	if (comp == NULL)
		dav_error(request, 403, XML_CALDAV, "valid-filter", "the query has no filter");
	else if (!dav_read_filter(comp, &filter, 0))
		dav_error(request, 403, XML_CALDAV, "supported-filter", "filters name components, a span of time, or one UID");
	else if (filter.nothing)
	{
		dav_begin(&body);
		dav_answer(request, &body);
	}
	else if ((filter.span != NULL && !dav_read_span(dav, filter.span)) ||
			 (expand != NULL && (!dav_read_span(dav, expand) || dav->since[0] == '-' || dav->upto[0] == 'i')))
		dav_error(request, 403, XML_CALDAV, "valid-filter", "a span of time has UTC times, and ends behind its start");
	else if (filter.uid != NULL)
		request_query(request, DATABASE_LONG, dav_uid_sql,
					  PARAMS(request_sheet(request), pgparam_text(filter.uid), request_uid(request)), REQUEST_TEXT_RAW,
					  dav_objects_answered);
	else if (filter.span == NULL && expand == NULL)
		request_query(request, DATABASE_LONG, dav_wants_data(dav) ? dav_get_sql : dav_etags_sql,
					  PARAMS(request_sheet(request), pgparam_null(), request_uid(request)), REQUEST_TEXT_RAW,
					  dav_objects_answered);
	else
		request_query(
			request, DATABASE_LONG,
			expand != NULL		  ? dav_expand_sql
			: dav_wants_data(dav) ? dav_span_sql
								  : dav_span_etags_sql,
			PARAMS(request_sheet(request), pgparam_text(dav->since), pgparam_text(dav->upto), request_uid(request)),
			REQUEST_TEXT_RAW, dav_objects_answered);
}

/* ---- free-busy-query ---- */

static const char dav_busy_sql[] = "SELECT sheet.caldav_busy($1, $2::timestamptz, $3::timestamptz, $4)";

static void
dav_busy_answered(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	if (!request_succeeded(res) || PQntuples(res) != 1)
	{
		dav_sql_error(request, res);
		return;
	}
	buf_puts(&body, PQgetvalue(res, 0, 0));
	request_answer(request, 200, "text/calendar; charset=utf-8", &body);
}

static void
dav_busy(Request *request, const XmlNode *root)
{
	Dav *dav = request->own;
	const XmlNode *span = xml_child(root, XML_CALDAV, "time-range");

	if (span == NULL || !dav_read_span(dav, span) || dav->since[0] == '-' || dav->upto[0] == 'i')
		request_error(request, 400, "free-busy-query has a time-range with start and end, in UTC");
	else
		request_query(
			request, DATABASE_LONG, dav_busy_sql,
			PARAMS(request_sheet(request), pgparam_text(dav->since), pgparam_text(dav->upto), request_uid(request)),
			REQUEST_TEXT_RAW, dav_busy_answered);
}

/* ---- sync-collection ---- */

enum
{
	CHANGE_NAME,
	CHANGE_ETAG,
	CHANGE_GONE,
	CHANGE_TOKEN,
	CHANGE_DATA
};

static void
dav_sync_answered(Request *request, PGresult *res)
{
	const Dav *dav = request->own;
	const char *token = NULL;
	DavResource object = {.kind = DAV_OBJECT};
	Buf body = {NULL, 0, 0};

	if (!dav_begin_answer(request, res, &body))
		return;
	for (int row = 0; row < PQntuples(res); row++)
	{
		object.name = PQgetvalue(res, row, CHANGE_NAME);
		if (PQgetisnull(res, row, CHANGE_NAME))
			token = PQgetvalue(res, row, CHANGE_TOKEN);
		else if (PQgetvalue(res, row, CHANGE_GONE)[0] == 't')
			dav_put_status(&body, dav, &object, NULL, "404 Not Found");
		else
			dav_put_object(&body, request, object.name, PQgetvalue(res, row, CHANGE_ETAG),
						   PQgetisnull(res, row, CHANGE_DATA) ? NULL : PQgetvalue(res, row, CHANGE_DATA));
	}
	buf_printf(&body, "<sync-token>urn:pg-sheet:sync:%lld:%s</sync-token>\n", (long long) request->sheet_id,
			   token != NULL ? token : "0");
	dav_answer(request, &body);
}

static void
dav_sync(Request *request, const XmlNode *root)
{
	Dav *dav = request->own;
	const XmlNode *token = xml_child(root, XML_DAV, "sync-token");
	char prefix[64];
	size_t len = (size_t) snprintf(prefix, sizeof(prefix), "urn:pg-sheet:sync:%lld:", (long long) request->sheet_id);
	bool first = token == NULL || token->text[0] == '\0';

	if (!first && (strncmp(token->text, prefix, len) != 0 || strlen(token->text + len) > 18 ||
				   strspn(token->text + len, "0123456789") != strlen(token->text + len)))
	{
		dav_error(request, 403, XML_DAV, "valid-sync-token", "the token is none of this calendar");
		return;
	}
	dav->token = first ? 0 : atoll(token->text + len);
	request_query(request, DATABASE_LONG, dav_wants_data(dav) ? dav_changes_data_sql : dav_changes_sql,
				  PARAMS(request_sheet(request), first ? pgparam_null() : request_int64(request, dav->token),
						 request_uid(request)),
				  REQUEST_TEXT_RAW, dav_sync_answered);
}

void
dav_report(Request *request)
{
	Dav *dav = request->own;
	const XmlNode *root = xml_root(dav->xml);

	if (root == NULL)
	{
		request_error(request, 400, "the body of REPORT is XML");
		return;
	}
	dav->props = xml_child(root, XML_DAV, "prop");
	if (dav->kind != DAV_CALENDAR)
		dav_error(request, 403, XML_DAV, "supported-report", "reports are of calendars");
	else if (xml_is(root, XML_CALDAV, "calendar-multiget"))
		dav_multiget(request, root);
	else if (xml_is(root, XML_CALDAV, "calendar-query"))
		dav_query(request, root);
	else if (xml_is(root, XML_CALDAV, "free-busy-query"))
		dav_busy(request, root);
	else if (xml_is(root, XML_DAV, "sync-collection"))
		dav_sync(request, root);
	else
		dav_error(request, 403, XML_DAV, "supported-report", "the report is not known");
}
