/*
 * dav.h - calendars by CalDAV (RFC 4791) and WebDAV (RFC 4918, 6578); docs/design/caldav.md.
 *
 *   /dav/                    names the account of the request; so does / itself
 *   /dav/u/NAME/             the account, and the home of its calendars
 *   /dav/u/NAME/ID/          a calendar: a sheet; the name that a program of the account has chosen stands for its id
 *   /dav/u/NAME/ID/OBJECT    a calendar object: the tasks of one UID
 *
 * A request is one statement, after another one if the address has a name instead of an id, or if the account's e-mail
 * address is asked for. Any gateway answers: none redirects.
 */
#ifndef DAV_H
#define DAV_H

#include "http/dav/dav_xml.h"
#include "http/request/request.h"

#define DAV_PREFIX	"/dav/"
#define DAV_CLASSES "1, 3, extended-mkcol, calendar-access"
#define DAV_ADDRESS 256 /* of a calendar, with its NUL */

typedef enum DavKind
{
	DAV_ROOT,
	DAV_HOME,
	DAV_CALENDAR,
	DAV_OBJECT,
	DAV_NOWHERE /* nothing of the account */
} DavKind;

/* A request: what its path names, and what its body asks for. */
typedef struct Dav
{
	DavKind kind;
	bool bare;					/* DAV_ROOT at the address / */
	char user[512];				/* the account of the token */
	char email[256];			/* of the account; "": none, or not asked for */
	char calendar[DAV_ADDRESS]; /* of its path */
	const char *object;
	int depth; /* 0 or 1 */
	XmlTree *xml;
	const XmlNode *props; /* the properties that are asked for: children; NULL: all */
	bool names_only;
	char since[24], upto[24]; /* of a report */
	bool expand;
	int64_t token;
} Dav;

/* A resource that an answer describes. Texts are NULL where it has none. */
typedef struct DavResource
{
	DavKind kind;
	bool bare;			 /* DAV_ROOT at the address / */
	const char *id;		 /* of the calendar */
	const char *address; /* of the calendar; NULL: that of the request */
	const char *name;
	const char *etag;
	const char *data;
	const char *role;
	const char *zone;
	const char *token;
	const char *colour; /* "": none */
} DavResource;

/* ---- dav.c ---- */
extern void route_dav(Request *request);
extern void route_dav_well_known(Request *request);

/* ---- dav_feed.c: GET /cal/KEY.ics ---- */
extern void route_calendar_feed(Request *request);

/* ---- dav_answer.c ---- */
/* Text without markup, and without characters that no XML document has. */
extern void dav_put_text(Buf *to, const char *text);
extern void dav_put_href(Buf *to, const Dav *dav, const DavResource *resource);
/* An element without content, of the name and namespace of the node. */
extern void dav_put_name(Buf *to, const XmlNode *node);
extern void dav_begin(Buf *to);
/* The same for the rows of a statement. False: it has failed, which is answered. */
extern bool dav_begin_answer(Request *request, const PGresult *res, Buf *to);
/* A response with the properties that the request asks for. */
extern void dav_put_resource(Buf *to, const Dav *dav, const DavResource *resource);
/* A response with a status alone. Exactly one of the resource and the href (not encoded) is given. */
extern void dav_put_status(Buf *to, const Dav *dav, const DavResource *resource, const char *href, const char *status);
/* 207; takes over the buffer. */
extern void dav_answer(Request *request, Buf *to);
/* An error with the element of the precondition that it breaks. */
extern void dav_error(Request *request, int status, const char *space, const char *element, const char *reason);
extern void dav_sql_error(Request *request, const PGresult *res);

/* ---- dav_find.c: PROPFIND ---- */
extern void dav_propfind(Request *request);
/* ---- dav_report.c: REPORT ---- */
extern void dav_report(Request *request);
/* ---- dav_object.c: GET, PUT and DELETE of objects ---- */
extern void dav_get(Request *request);
extern void dav_put(Request *request);
extern void dav_delete(Request *request);
/* The step after a deletion. */
extern void dav_deleted(Request *request, PGresult *res);
/* ---- dav_calendar.c: MKCALENDAR, MKCOL, PROPPATCH and DELETE of calendars ---- */
extern void dav_make_calendar(Request *request);
extern void dav_patch(Request *request);
extern void dav_delete_calendar(Request *request);

#endif
