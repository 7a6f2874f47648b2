/* routes.h - what each address does; the table of routes is in router.c. */
#ifndef ROUTES_H
#define ROUTES_H

#include "common/csv.h"
#include "http/request/request.h"
#include "support/charset.h"
#include "ws/cache/accounts.h"
#include "ws/cache/cached_range.h"

/* ---- router.c ---- */
/* What connections call; see conn.h. */
extern const ConnHandler router_handler;

/* ---- members.c ---- */
/* The JSON body of /v2/ has no member that its route, by its path in the table of routes, does not know. False:
 * answered. */
extern bool members_check(Request *request, const char *path, Method method);

/*
 * ---- arguments ----
 * Checked before the token is verified. They set sheet_id and number. False: answered with 400.
 */
extern bool check_fid(Request *request); /* {fid} */
/* {fid, purge}; purge is optional */
extern bool check_delete_sheet(Request *request);
extern bool check_commit(Request *request);		/* {fid, label}; label is optional */
extern bool check_fid_cid(Request *request);	/* {fid, cid} */
extern bool check_fid_lid(Request *request);	/* {fid, lid} */
extern bool check_user(Request *request);		/* {limit, after}, both optional */
extern bool check_username(Request *request);	/* {username} */
extern bool check_new_sheet(Request *request);	/* {name, initRows, initColumns} */
extern bool check_share(Request *request);		/* {fid, username, role | null} */
extern bool check_share_link(Request *request); /* {fid, role | null} */
extern bool check_rename(Request *request);		/* {name} */
extern bool check_label(Request *request);		/* {version, label} */
extern bool check_open_link(Request *request);	/* {link} */
extern bool check_password(Request *request);	/* {password, oldPassword}; oldPassword is optional in v1 */

/* ---- routes ---- */
/* routes_history.c */
extern void route_sheet_log(Request *request);
extern void route_sheet_versions(Request *request);
/* routes_account.c */
extern void route_login(Request *request);
extern void route_register(Request *request);
extern void route_get_user(Request *request);
extern void route_modify_user(Request *request);

/* routes_password.c */
extern void route_modify_password(Request *request);
extern void route_revoke_tokens(Request *request);
extern bool check_session(Request *request);
extern bool check_session_cookie(Request *request);
extern void route_session(Request *request);
extern void route_session_end(Request *request);

/* routes_sheet.c */
extern void route_new_sheet(Request *request);
extern void route_get_sheet(Request *request);
extern void route_delete_sheet(Request *request);
extern void route_recover_sheet(Request *request);
extern void route_get_files(Request *request);
extern void route_sheet_route(Request *request);

/* routes_share.c */
extern void route_share_sheet(Request *request);
extern void route_share_link(Request *request);
extern void route_open_link(Request *request);

/* routes_cells.c */
extern void route_sheet_cells(Request *request);
/* Answers with the range, or with 304. Takes over a pin of answer. */
extern void routes_give_range(Request *request, RangeAnswer *answer);
/* The header with the seq of the values of formulas that the answer has, if it has some (computed >= 0). */
extern void routes_add_computed(Request *request, int64_t computed);

/* routes_version.c */
extern void route_commit(Request *request);
extern void route_get_version(Request *request);
extern void route_rollback(Request *request);

/* routes_service.c */
extern void route_live(Request *request);
extern void route_ready(Request *request);
extern void route_health(Request *request);
extern void route_metrics(Request *request);
extern void route_debug(Request *request);
extern void route_drain(Request *request);
extern void route_resume(Request *request);
/* The request is an operator's. False: answered with 403. */
extern bool service_check_operator(Request *request);

/* single files */
extern void route_get_file(Request *request);	 /* download.c */
extern void route_get_picture(Request *request); /* download.c */
extern void route_get_log(Request *request);	 /* log_stream.c */
extern void route_static(Request *request);		 /* static.c */
/* static.c: the page that shows a paste; status: 200, or 404 for one that does not exist */
extern void static_serve_paste(Request *request, int status);
/* routes_files.c */
extern void route_files(Request *request);
extern void route_delete_file(Request *request);

/* upload.c: the body of /uploadchunk is read as it arrives */
extern bool upload_begin(Request *request); /* false: answered */
extern void upload_body_end(Request *request);

/* csv_import.c: the same for the body of /v2/sheets/import and /v2/sheets/ID/import */
extern bool import_begin(Request *request);
extern void import_body_end(Request *request);
/* Answers that the body is not in its encoding, as far as it was converted. */
extern void import_refuse_encoding(Request *request, const Charset *charset);

/* csv_preview.c: what the query says of a text that is imported. An argument that is absent is empty */
typedef struct ImportOptions
{
	char format[8], separator[8], quote[8], decimal[8], dates[8];
	bool no_quote;		  /* quote was given, and is empty */
	const char *encoding; /* NULL: to be recognised */
	CsvOptions csv;
} ImportOptions;

#define IMPORT_MARK_BYTES 8 /* of a file, by which it is seen that it is no text */

/* The type of the body and the options. False: answered. */
extern bool import_read_options(Request *request, ImportOptions *options);
/* The quote as the database takes it; NULL: the default. */
extern const char *import_quote(const ImportOptions *options);
/* The file that begins with these bytes is a text. False: answered. */
extern bool import_check_head(Request *request, const char *head, size_t len);
extern void route_preview_import(Request *request);

/* what the files of v1's routes have for v2 */
extern void route_rename_sheet(Request *request);
extern void route_label_version(Request *request);
extern void route_sheet_access(Request *request);

/* csv_export.c */
extern bool check_export(Request *request); /* ref, escape_formulas of the query, both optional */
extern void route_export(Request *request);

/* upgrade.c */
extern void route_sheet_ws(Request *request);
extern void route_ticket(Request *request);
/* Is it a request to become a WebSocket? True: it was answered, or will be, if not by upgrade_finish(). */
extern bool upgrade_begin(Request *request);
extern void upgrade_finish(Request *request, Transport *transport, Place *place, char *read, size_t len);

/* ---- what several routes share ---- */
/* Queries name, owner, trashed, role, created_at and updated_at of the sheet (sheet.info). */
extern void sheet_query_info(Request *request, RequestStep step);
typedef enum SheetInfoColumn
{
	INFO_NAME,
	INFO_OWNER,
	INFO_TRASHED,
	INFO_ROLE,
	INFO_CREATED_AT,
	INFO_UPDATED_AT
} SheetInfoColumn;
/* The sheet exists and the account may see it. False: answered. */
extern bool sheet_is_visible(Request *request, const PGresult *res);
/* The same, and it is not in the trash. */
extern bool sheet_is_open(Request *request, const PGresult *res);
extern bool sheet_is_trashed(const PGresult *res);
/* Opens the sheet for the account by a key: the parameters are sheet, key and account. */
extern const char sheet_open_link_sql[];
/* Answers an error of versions or segments. missing: what there is not, if the sheet exists. */
extern void version_error(Request *request, const PGresult *res, Msg missing);
/* Answers with every cell of the sheet, as of now (0) or as of a version. request->data: the object of the answer so
 * far. The caller has checked that the account may see the sheet. */
extern void whole_sheet_answer(Request *request, int64_t version);
/* Appends a page of an account's sheets as a JSON array, and the member "next" if there are more, or `paged`: the
 * client knows pages. res: rows of sheet.account_sheets, of which `limit` were queried. */
extern void routes_put_sheets(Buf *to, const PGresult *res, int limit, bool paged);
/* Append a member of a JSON object, behind others. value: a string, a number, or a timestamp of PostgreSQL, which is
 * written by RFC 3339. */
typedef void (*RoutesPut)(Buf *to, const char *name, const char *value);
extern void routes_put_member(Buf *to, const char *name, const char *value);
extern void routes_put_number(Buf *to, const char *name, const char *value);
/* The member "uid" of an author, in the form of messages: see edit_uid_to_number(). */
extern void routes_put_uid(Buf *to, const char *uid);
extern void routes_put_time_member(Buf *to, const char *name, const char *value);
/* The same of a time in seconds since 1970. */
extern void routes_put_time(Buf *to, const char *name, int64_t seconds);
/* A value of a result: null, or as one of these functions writes it. */
extern void routes_put_optional(Buf *to, const PGresult *res, int row, int column, const char *name, RoutesPut put);
/* Appends the member "url", behind others: the address of a file, which opens it for everybody. */
extern void routes_put_file_url(Buf *to, const Request *request, const char *key, const char *name);

#endif
