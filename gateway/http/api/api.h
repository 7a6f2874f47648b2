/*
 * api.h - routes for programs, below /v2: sheets, their cells, versions, members and files, books, access tokens,
 * and calendars. The answers are JSON, and errors have statuses of HTTP's. docs/openapi.yaml describes them.
 */
#ifndef API_H
#define API_H

#include "http/routes/routes.h"

/* ---- api_tokens.c ---- */
extern bool check_create_token(Request *request); /* {label, scopes, days} */
extern void route_create_token(Request *request);
extern void route_list_tokens(Request *request);
extern void route_revoke_token(Request *request);

/* ---- api_sheets.c ---- */
extern void route_list_sheets(Request *request);
extern bool check_create_sheet(Request *request); /* {name, rows, cols} */
extern void route_create_sheet(Request *request);
extern void route_describe_sheet(Request *request);
extern bool check_remove_sheet(Request *request); /* purge in the query */
extern void route_remove_sheet(Request *request);
extern void route_bring_back_sheet(Request *request);
extern void route_list_files(Request *request);
extern bool check_set_member(Request *request); /* {role} */
extern void route_set_member(Request *request);
extern void route_remove_member(Request *request);

/* ---- api_books.c: the sheet of the request is the book ---- */
extern void route_list_books(Request *request);
extern void route_create_book(Request *request);
extern void route_describe_book(Request *request);
extern void route_rename_book(Request *request);
extern void route_remove_book(Request *request);
extern void route_recover_book(Request *request);
extern void route_duplicate_book(Request *request);
extern void route_book_members(Request *request);
extern void route_set_book_member(Request *request);
extern void route_remove_book_member(Request *request);
extern bool check_add_tab(Request *request); /* {name, rows, cols, before}, {name, copy} or {sheet, before} */
extern void route_add_tab(Request *request);
extern bool check_change_tab(Request *request); /* {before, colour, hidden} */
extern void route_change_tab(Request *request);
extern void route_remove_tab(Request *request);
/* An error of the database about a book. */
extern void books_sql_error(Request *request, const PGresult *res);

/* ---- workbook_import.c: the body is read as it arrives ---- */
extern bool workbook_import_begin(Request *request); /* name in the query. False: answered */
extern void workbook_import_body_end(Request *request);

/* ---- workbook_export.c ---- */
extern void route_export_workbook(Request *request);
extern void route_export_published(Request *request); /* /s/KEY.xlsx */

/* ---- api_versions.c ---- */
extern bool check_save_version(Request *request); /* {label} */
extern void route_save_version(Request *request);
extern bool check_restore_version(Request *request); /* {version} */
extern void route_restore_version(Request *request);
extern void route_diff(Request *request);

/* ---- api_cells.c: the body is read after the token ---- */
extern bool check_put_cells(Request *request);	 /* {values}; range and input in the query */
extern bool check_patch_cells(Request *request); /* {cells}; input in the query */
extern bool check_append_rows(Request *request); /* {values}; column and input in the query */
extern void route_write_cells(Request *request);
extern bool check_patch_part(Request *request); /* {cells}; input in the query */
extern void route_write_part(Request *request);

/* ---- api_calendars.c ---- */
extern void route_list_calendars(Request *request);
extern bool check_create_calendar(Request *request); /* {name, zone} */
extern void route_create_calendar(Request *request);
extern void route_set_calendar(Request *request);
extern bool check_choose_calendar(Request *request); /* {colour} */
extern void route_choose_calendar(Request *request);
extern void route_calendar_entries(Request *request);
extern void route_calendar_dots(Request *request);
extern bool check_add_task(Request *request); /* {cells} */
extern void route_add_task(Request *request);
extern void route_describe_task(Request *request);
extern bool check_change_task(Request *request); /* {cells, scope, instance, seen} */
extern void route_change_task(Request *request);
extern void route_delete_task(Request *request);
extern bool check_answer_task(Request *request); /* {answer, instance} */
extern void route_answer_task(Request *request);
extern void route_reminders(Request *request);
extern void route_dismiss_reminders(Request *request); /* ids in the query */

/* ---- what they share ---- */
/* An error of the database. A refusal for want of a role says which one is needed. */
extern void api_sql_error(Request *request, const PGresult *res);
/* The seq of If-Match: one in quotes, or an ETag of GET, which begins with the seq. *given: there is one, and not "*".
 * False: answered. */
extern bool api_if_match(Request *request, bool *given, int64_t *seq);
/* 201 with the id that the query gives to the sheet `name`; code sheet_name if the name is refused. */
extern void api_created(Request *request, PGresult *res);
/* 204 if the query succeeded. */
extern void api_done(Request *request, const PGresult *res);
/* A number of the query from 1 to max, or `otherwise` if there is none. False: answered. */
extern bool api_arg_number(Request *request, const char *name, int64_t otherwise, int64_t max, int64_t *value);

#endif
