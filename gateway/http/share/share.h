/* share.h - routes by which sheets are shown to those who have no account; the table of routes is in routes/router.c.
 */
#ifndef SHARE_H
#define SHARE_H

#include "http/request/request.h"

/* links.c: the links of a sheet, for its owners. Arguments are checked before the token. */
extern bool check_link_values(Request *request); /* {role, expires, password, label}, all optional */
extern bool check_link_change(Request *request); /* the same, and {blocked} */
extern bool check_link_number(Request *request); /* of the path */
extern void route_links(Request *request);
extern void route_create_link(Request *request);
extern void route_change_link(Request *request);
extern void route_revoke_link(Request *request);

/* webhook_routes.c: the webhooks of a sheet, for its owners. */
extern bool check_create_webhook(Request *request); /* {url} */
extern bool check_change_webhook(Request *request); /* {url, active}, both optional */
extern void route_webhooks(Request *request);
extern void route_create_webhook(Request *request);
extern void route_change_webhook(Request *request);
extern void route_test_webhook(Request *request);
extern void route_delete_webhook(Request *request);

/* guests.c: who enters by a link */
extern bool check_enter_link(Request *request); /* {link, name, password}; password is optional */
extern void route_enter_link(Request *request);
extern void route_link_cells(Request *request);
/* Counts a use of the link. The database hears of it within some seconds. */
extern void link_uses_add(int64_t link_id);

/* published.c: GET /s/KEY, /s/KEY.csv, .tsv, .json and .xlsx */
extern void route_published(Request *request);
/* Answers that the key publishes nothing. */
extern void published_missing(Request *request);
/* The path is of one of the forms for programs, which pages of any site may read. */
extern bool published_is_for_programs(const char *path);

#endif
