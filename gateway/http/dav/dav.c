/* dav.c - requests of calendar programs: what the path names, the XML of the body, and the way to the method. */
#include "http/dav/dav.h"

#include "core/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
dav_free(void *own)
{
	Dav *dav = own;

	xml_free(dav->xml);
	free(dav);
}

static const char dav_find_sql[] = "SELECT sheet.caldav_find($1, $2)";

/* The path behind /dav/. False: it names nothing of this account. */
static bool
dav_read_path(Request *request, Dav *dav)
{
	const char *path = request->part;
	size_t user_len = strlen(dav->user), len;

	dav->bare = strcmp(request->head.path, "/") == 0;
	if (dav->bare)
		return true;
	if (path[0] == '\0')
		return true;
	if (strcmp(path, "u") == 0 || strcmp(path, "u/") == 0)
		return true;
	if (strncmp(path, "u/", 2) != 0 || strncmp(path + 2, dav->user, user_len) != 0)
		return false;
	path += 2 + user_len;
	dav->kind = DAV_HOME;
	if (path[0] == '\0' || strcmp(path, "/") == 0)
		return true;
	if (*path++ != '/')
		return false;
	dav->kind = DAV_CALENDAR;
	len = strcspn(path, "/");
	if (len >= sizeof(dav->calendar))
		return false;
	snprintf(dav->calendar, sizeof(dav->calendar), "%.*s", (int) len, path);
	(void) request_parse_id(dav->calendar, &request->sheet_id);
	path += len;
	if (path[0] == '\0' || strcmp(path, "/") == 0)
		return true;
	dav->kind = DAV_OBJECT;
	dav->object = path + 1;
	return true;
}

static bool
dav_read_depth(Request *request, Dav *dav)
{
	char depth[16] = "";

	(void) request_header(request, "depth", depth, sizeof(depth));
	dav->depth = strcmp(depth, "1") == 0;
	if (strcasecmp(depth, "infinity") != 0 || request->method != METHOD_PROPFIND)
		return true;
	dav_error(request, 403, XML_DAV, "propfind-finite-depth", "the depth is 0 or 1");
	return false;
}

/* The body, which may be empty, as XML. False: answered. */
static bool
dav_read_xml(Request *request, Dav *dav)
{
	if (request->body.len == 0 && !buf_failed(&request->body))
		return true;
	switch (buf_failed(&request->body) ? XML_NO_MEMORY : xml_read(request->body.data, request->body.len, &dav->xml))
	{
		case XML_OK:
			return true;
		case XML_NO_MEMORY:
			request_out_of_memory(request);
			break;
		case XML_MALFORMED:
			request_error(request, 400, "the body is not well-formed XML");
			break;
		case XML_FORBIDDEN:
			request_error(request, 400, "the body has a document type, or too many elements or levels");
			break;
	}
	return false;
}

static void
dav_dispatch(Request *request, const Dav *dav)
{
	switch (request->method)
	{
		case METHOD_PROPFIND:
			dav_propfind(request);
			break;
		case METHOD_REPORT:
			dav_report(request);
			break;
		case METHOD_PROPPATCH:
			dav_patch(request);
			break;
		case METHOD_MKCOL:
		case METHOD_MKCALENDAR:
			dav_make_calendar(request);
			break;
		case METHOD_GET:
		case METHOD_HEAD:
			dav_get(request);
			break;
		case METHOD_PUT:
			dav_put(request);
			break;
		default:
			if (dav->kind == DAV_CALENDAR)
				dav_delete_calendar(request);
			else
				dav_delete(request);
			break;
	}
}

static void
dav_found(Request *request, PGresult *res)
{
	if (!request_succeeded(res) || PQntuples(res) != 1)
		dav_sql_error(request, res);
	else if (!request_parse_id(PQgetvalue(res, 0, 0), &request->sheet_id))
		request_error(request, 404, "no such calendar");
	else
		dav_dispatch(request, request->own);
}

void
route_dav(Request *request)
{
	Dav *dav = request_own(request, sizeof(Dav), dav_free);
	bool makes = request->method == METHOD_MKCOL || request->method == METHOD_MKCALENDAR;

	if (dav == NULL)
		return;
	snprintf(dav->user, sizeof(dav->user), "%s", request->user_name);
	if (!dav_read_path(request, dav))
		dav->kind = DAV_NOWHERE;
	if (dav->kind == DAV_NOWHERE && !makes)
		request_error(request, 404, "no such calendar");
	else if (dav_read_depth(request, dav) && (request->method == METHOD_PUT || dav_read_xml(request, dav)))
	{
		if (dav->kind < DAV_CALENDAR || request->sheet_id != 0 || makes)
			dav_dispatch(request, dav);
		else
			request_query(request, DATABASE_READS, dav_find_sql,
						  PARAMS(pgparam_text(dav->calendar), request_uid(request)), REQUEST_TEXT_RAW, dav_found);
	}
}

void
route_dav_well_known(Request *request)
{
	request_add_header(request, "Location", DAV_PREFIX);
	request_answer(request, 301, NULL, NULL);
}
