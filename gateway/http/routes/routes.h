/* routes.h - what each address does; the table is in router.c. */
#ifndef ROUTES_H
#define ROUTES_H

#include "http/request/request.h"

/* There is such an address, and it takes the method; answered otherwise. */
extern bool router_check_method(Request *request);
/* Begins the route, whose method was checked. For POST the body is complete. */
extern void router_dispatch(Request *request);
/* Does a POST to this path carry a form that is read as it comes? */
extern bool router_is_upload(const char *path);
/*
 * Which route a request belongs to, as a number below ROUTER_LABELS_MAX, and its name for people; NULL behind the last
 * one. Addresses that there are not share one.
 */
#define ROUTER_LABELS_MAX 64
extern int router_label(const Request *request);
extern const char *router_label_name(int label);
/* Bytes of body that the path takes. */
extern int64_t router_body_limit(const char *path);

/* routes_account.c */
extern void route_login(Request *request);
extern void route_register(Request *request);
extern void route_get_user(Request *request);
extern void route_modify_user(Request *request);

/* routes_password.c */
extern void route_modify_password(Request *request);
extern void route_revoke_tokens(Request *request);

/* routes_sheet.c */
extern void route_new_sheet(Request *request);
extern void route_get_sheet(Request *request);
extern void route_delete_sheet(Request *request);
extern void route_recover_sheet(Request *request);
extern void route_share_sheet(Request *request);
extern void route_share_link(Request *request);
extern void route_open_link(Request *request); /* POST /v2/sheets/ID/open */
extern void route_sheet_ws(Request *request);  /* GET /sheetws without an upgrade: where to connect */
extern void route_sheet(Request *request);	   /* what lies below /v2/sheets/ID */
extern void route_get_files(Request *request);

/* routes_cells.c; sheet_id is set */
extern void route_sheet_cells(Request *request);

/* routes_version.c */
/* fid, and a second number when it is named; answered when one is missing. */
extern bool version_numbers(Request *request, const char *name);
/* Answers an error of versions or logs; missing: what there is not when it is not the sheet. */
extern void version_error(Request *request, const PGresult *res, Msg missing);
extern void route_commit(Request *request);
extern void route_get_version(Request *request);
extern void route_rollback(Request *request);

/* log_stream.c */
extern void route_get_log(Request *request);

/* routes_service.c */
extern void route_live(Request *request);
extern void route_ready(Request *request);
extern void route_health(Request *request);
extern void route_metrics(Request *request);
extern void route_debug(Request *request);

/* static.c */
extern void route_static(Request *request);

/* Appends a page of an account's sheets as a JSON array, and the member "next" when there are more, or `paged`: the
 * client knows of pages. res: rows of sheet.account_sheets, of which `limit` were asked for. */
extern void routes_put_sheets(Buf *to, const PGresult *res, int limit, bool paged);
/* A timestamp of PostgreSQL as RFC 3339, quoted. */
extern void routes_put_time(Buf *to, const char *text);

#endif
