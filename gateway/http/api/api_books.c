/*
 * api_books.c - /v2/books: books, which are sets of sheets, their tabs and members. The database makes the JSON of
 * answers: a book with all its tabs is one statement.
 *
 * The id in the path, request->sheet_id, is that of the book. What is done to a sheet as such, as renaming it or moving
 * it to the trash, is done by the routes of sheets.
 */
#include "common/edit_codec.h"
#include "http/api/api.h"
#include "ws/cache/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOOKS_PAGE	   200
#define BOOKS_PAGE_MAX 1000
#define TAB_ROWS	   100
#define TAB_COLS	   26

static const char books_list_sql[] =
	"SELECT json_build_object('books', coalesce(json_agg(json_build_object('id', b.book_id, 'name', b.name, 'owner', "
	"b.owner, 'role', b.role, 'trashed', b.trashed, 'createdAt', to_char(b.created_at AT TIME ZONE 'UTC', "
	"'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')) ORDER BY b.book_id DESC) FILTER (WHERE b.role IS NOT NULL), '[]'), "
	"'next', CASE WHEN count(*) = $2::int8 THEN min(b.book_id) END) FROM sheet.account_books($1, $2::int, $3) b";
static const char books_create_sql[] = "SELECT sheet.create_book($1, $2)";
static const char books_copy_sql[] = "SELECT sheet.duplicate_book($1, $2, $3)";
static const char books_describe_sql[] =
	"SELECT json_build_object('id', b.book_id, 'name', b.name, 'owner', b.owner, 'role', b.role, 'trashed', b.trashed, "
	"'createdAt', to_char(b.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), 'tabs', "
	"coalesce((SELECT json_agg(json_build_object('id', t.sheet_id, 'name', t.name, 'place', t.place, 'colour', "
	"t.colour, "
	"'hidden', t.hidden, 'role', t.role, 'trashed', t.trashed) ORDER BY t.place, t.sheet_id) "
	"FROM sheet.tabs($1, $2) t), '[]')) FROM sheet.book_info($1, $2) b";
static const char books_rename_sql[] = "SELECT sheet.rename_book($1, $3, $2)";
/* Changes of all tabs give their ids. The list is that from before the change: it has the snapshot of the statement. */
static const char books_trash_sql[] = "WITH c AS MATERIALIZED (SELECT sheet.trash_book($1, $2)) SELECT t.sheet_id FROM "
									  "c LEFT JOIN sheet.tabs($1, $2) t ON true";
static const char books_recover_sql[] = "WITH c AS MATERIALIZED (SELECT sheet.recover_book($1, $2)) SELECT t.sheet_id "
										"FROM c LEFT JOIN sheet.tabs($1, $2) t ON true";
static const char books_purge_sql[] = "WITH c AS MATERIALIZED (SELECT sheet.purge_book($1, $2)) SELECT t.sheet_id FROM "
									  "c LEFT JOIN sheet.tabs($1, $2) t ON true";
static const char books_share_sql[] = "WITH c AS MATERIALIZED (SELECT sheet.share_book($1, $3, $4, $2)) SELECT "
									  "t.sheet_id FROM c LEFT JOIN sheet.tabs($1, $2) t ON true";
static const char books_unshare_sql[] = "WITH c AS MATERIALIZED (SELECT sheet.unshare_book($1, $3, $2)) SELECT "
										"t.sheet_id FROM c LEFT JOIN sheet.tabs($1, $2) t ON true";
static const char books_state_sql[] = "SELECT trashed FROM sheet.book_info($1, $2)";
static const char books_members_sql[] =
	"SELECT json_build_object('members', coalesce(json_agg(json_build_object('uid', m.uid, 'username', m.name, 'role', "
	"m.role) ORDER BY m.uid), '[]'), 'next', CASE WHEN count(*) = $3::int8 THEN max(m.uid) END) "
	"FROM sheet.book_members($1, $3::int, $4, $2) m";
static const char books_add_tab_sql[] = "SELECT sheet.add_tab($1, $3, $4, $5, $6, $2)";
static const char books_take_tab_sql[] = "SELECT $3::int8, sheet.move_tab($3::int8, $1, $4, $2)";
static const char books_copy_tab_sql[] = "SELECT sheet.duplicate_tab($3, $4, $1, $2)";
/* Only a tab of the book of the path. A part that is not wanted is a call for no row. */
static const char books_change_tab_sql[] =
	"SELECT (SELECT count(sheet.move_tab($3, $1, $5, $2)) WHERE $4), "
	"(SELECT count(sheet.change_tab($3, $6, $7, $2)) WHERE $6 IS NOT NULL OR $7 IS NOT NULL) "
	"FROM sheet.tabs($1, $2) t WHERE t.sheet_id = $3";
static const char books_leave_sql[] =
	"SELECT sheet.move_tab($3, NULL, NULL, $2) FROM sheet.tabs($1, $2) t WHERE t.sheet_id = $3";

/* ---- errors ---- */

void
books_sql_error(Request *request, const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);
	const char *reason = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
	const char *detail = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL) : NULL;

	if (reason == NULL)
		api_sql_error(request, res);
	else if (strcmp(state, "42704") == 0)
		request_error_code(request, 404, strncmp(reason, "account", 7) == 0 ? "no_account" : NULL, reason);
	else if (strcmp(state, "42501") == 0 && detail != NULL && strstr(detail, "yours is \"none\"") != NULL)
		request_error(request, 403,
					  strstr(reason, "book") != NULL ? "the book is not shared with you"
													 : "the sheet is not shared with you");
	else if (strcmp(state, "ST001") == 0)
		request_error(request, 410, reason);
	else if (strcmp(state, "55000") == 0)
		request_error_code(request, 409, "state", reason);
	else if (strcmp(state, "54000") == 0 && strstr(reason, "which is the maximum") != NULL)
		request_error_code(request, 409, "book_full", reason);
	else if (strstr(reason, "is the owner of the book") != NULL)
		request_error_code(request, 409, "owner", reason);
	else
		api_sql_error(request, res);
}

/* ---- what several routes share ---- */

static void
books_json(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	if (!request_succeeded(res))
	{
		books_sql_error(request, res);
		return;
	}
	buf_puts(&body, PQgetvalue(res, 0, 0));
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, &body);
}

/* 201 with the id that the query gives, and the address of what was made. */
static void
books_made(Request *request, const PGresult *res, const char *address)
{
	Buf body = {NULL, 0, 0}, location = {NULL, 0, 0};

	if (!request_succeeded(res))
	{
		books_sql_error(request, res);
		return;
	}
	buf_printf(&location, "%s%s", address, PQgetvalue(res, 0, 0));
	request_add_header_buf(request, "Location", &location);
	buf_printf(&body, "{\"id\":%s}", PQgetvalue(res, 0, 0));
	request_json(request, 201, &body);
}

/* Of all tabs, whose ids the query has given. */
static void
books_changed(Request *request, PGresult *res)
{
	if (!request_succeeded(res))
	{
		books_sql_error(request, res);
		return;
	}
	for (int i = 0; i < PQntuples(res); i++)
	{
		if (!PQgetisnull(res, i, 0))
			changes_register(atoll(PQgetvalue(res, i, 0)));
	}
	request_answer(request, 204, NULL, NULL);
}

static void
books_done(Request *request, PGresult *res)
{
	if (request_succeeded(res))
		request_answer(request, 204, NULL, NULL);
	else
		books_sql_error(request, res);
}

/* The paging arguments. False: answered. */
static bool
books_page(Request *request, int64_t *after)
{
	if (request_has_arg(request, "after") && !request_arg_id(request, "after", after))
		request_error(request, 400, "after is what an answer had as next");
	else
		return api_arg_number(request, "limit", BOOKS_PAGE, BOOKS_PAGE_MAX, &request->number);
	return false;
}

/* ---- GET, POST /v2/books; POST /v2/books/ID/duplicate ---- */

void
route_list_books(Request *request)
{
	int64_t after = JSON_MAX_NUMBER;

	if (books_page(request, &after))
		request_query(
			request, DATABASE_READS, books_list_sql,
			PARAMS(request_uid(request), request_int64(request, request->number), request_int64(request, after)),
			REQUEST_TEXT_RAW, books_json);
}

static void
book_made(Request *request, PGresult *res)
{
	books_made(request, res, "/v2/books/");
}

void
route_create_book(Request *request)
{
	request_query(request, DATABASE_WRITES, books_create_sql,
				  PARAMS(pgparam_text(request_text(request, "name")), request_uid(request)), REQUEST_TEXT_RAW,
				  book_made);
}

void
route_duplicate_book(Request *request)
{
	request_query(request, DATABASE_LONG, books_copy_sql,
				  PARAMS(request_sheet(request), pgparam_text(request_text(request, "name")), request_uid(request)),
				  REQUEST_TEXT_RAW, book_made);
}

/* ---- GET, PATCH, DELETE /v2/books/ID; POST /v2/books/ID/recover ---- */

void
route_describe_book(Request *request)
{
	request_query(request, DATABASE_READS, books_describe_sql, PARAMS(request_sheet(request), request_uid(request)),
				  REQUEST_TEXT_RAW, books_json);
}

void
route_rename_book(Request *request)
{
	request_query(request, DATABASE_WRITES, books_rename_sql,
				  PARAMS(request_sheet(request), request_uid(request), pgparam_text(request_text(request, "name"))),
				  REQUEST_TEXT_RAW, books_done);
}

static void
books_change(Request *request, const char *sql)
{
	request_query(request, DATABASE_LONG, sql, PARAMS(request_sheet(request), request_uid(request)), REQUEST_TEXT_RAW,
				  books_changed);
}

/* Whether the book is in the trash. False: answered, since the query has failed. */
static bool
books_state(Request *request, PGresult *res, bool *trashed)
{
	if (!request_succeeded(res))
	{
		books_sql_error(request, res);
		return false;
	}
	*trashed = PQgetvalue(res, 0, 0)[0] == 't';
	return true;
}

static void
remove_book_state(Request *request, PGresult *res)
{
	bool trashed;

	if (!books_state(request, res, &trashed))
		return;
	if (request->number && !trashed)
		request_error_code(request, 409, "not_in_trash", "the book is not in the trash: move it there first");
	else if (request->number)
		books_change(request, books_purge_sql);
	else if (trashed)
		request_error(request, 410, "the book is in the trash");
	else
		books_change(request, books_trash_sql);
}

static void
recover_book_state(Request *request, PGresult *res)
{
	bool trashed;

	if (!books_state(request, res, &trashed))
		return;
	if (trashed)
		books_change(request, books_recover_sql);
	else
		request_error_code(request, 409, "not_in_trash", "the book is not in the trash");
}

static void
books_query_state(Request *request, RequestStep step)
{
	request_query(request, DATABASE_READS, books_state_sql, PARAMS(request_sheet(request), request_uid(request)),
				  REQUEST_TEXT_RAW, step);
}

void
route_remove_book(Request *request)
{
	books_query_state(request, remove_book_state);
}

void
route_recover_book(Request *request)
{
	books_query_state(request, recover_book_state);
}

/* ---- /v2/books/ID/members, /v2/books/ID/members/NAME ---- */

void
route_book_members(Request *request)
{
	int64_t after = 0;

	if (books_page(request, &after))
		request_query(request, DATABASE_READS, books_members_sql,
					  PARAMS(request_sheet(request), request_uid(request), request_int64(request, request->number),
							 request_int64(request, after)),
					  REQUEST_TEXT_RAW, books_json);
}

void
route_set_book_member(Request *request)
{
	request_query(request, DATABASE_LONG, books_share_sql,
				  PARAMS(request_sheet(request), request_uid(request), pgparam_text(request->part),
						 pgparam_text(request_text(request, "role"))),
				  REQUEST_TEXT_RAW, books_changed);
}

void
route_remove_book_member(Request *request)
{
	request_query(request, DATABASE_LONG, books_unshare_sql,
				  PARAMS(request_sheet(request), request_uid(request), pgparam_text(request->part)), REQUEST_TEXT_RAW,
				  books_changed);
}

/* ---- POST /v2/books/ID/tabs {name, rows, cols, before}, {name, copy}, or {sheet, before} ---- */

/* A member that is the id of a sheet; *id 0: it is absent or null. False: answered. */
static bool
tab_member_id(Request *request, const char *name, int64_t *id)
{
	const cJSON *member = request_member(request, name);
	char reason[64];

	*id = 0;
	if (member == NULL || cJSON_IsNull(member) || request_number(request, name, 1, JSON_MAX_NUMBER, id))
		return true;
	snprintf(reason, sizeof(reason), "%s is the id of a sheet", name);
	request_error(request, 400, reason);
	return false;
}

static bool
tab_size(const Request *request, const char *name, int64_t otherwise, int64_t max, int64_t *value)
{
	*value = otherwise;
	return request_member(request, name) == NULL || request_number(request, name, 1, max, value);
}

bool
check_add_tab(Request *request)
{
	int64_t before, sheet, copy, number;
	const char *name;
	bool sized = request_member(request, "rows") != NULL || request_member(request, "cols") != NULL;

	if (!tab_member_id(request, "before", &before) || !tab_member_id(request, "sheet", &sheet) ||
		!tab_member_id(request, "copy", &copy))
		return false;
	if (!tab_size(request, "rows", 0, SHEET_MAX_ROWS, &number) ||
		!tab_size(request, "cols", 0, SHEET_MAX_COLS, &number))
		request_error(request, 400, "rows is a number from 1 to 16777216, cols from 1 to 16384");
	else if (sheet != 0 && (copy != 0 || sized || request_member(request, "name") != NULL))
		request_error(request, 400, "a sheet that becomes a tab has its name and its size already");
	else if (copy != 0 && (sized || before != 0))
		request_error(request, 400, "a copy has the size of its original, and a place of its own");
	else if (sheet == 0 && !request_string(request, "name", &name))
		request_error(request, 400, "name is needed, as a string; or sheet, the id of one that becomes a tab");
	else
		return true;
	return false;
}

static void
tab_made(Request *request, PGresult *res)
{
	if (request_succeeded(res))
		changes_register(atoll(PQgetvalue(res, 0, 0)));
	if (!request_sql_error_code(request, res, "sheet_name"))
		books_made(request, res, "/v2/sheets/");
}

static PgParam
tab_id_or_null(Request *request, int64_t id)
{
	return id != 0 ? request_int64(request, id) : pgparam_null();
}

void
route_add_tab(Request *request)
{
	PgParam book = request_sheet(request), uid = request_uid(request);
	PgParam name = pgparam_text(request_text(request, "name"));
	int64_t before, sheet, copy, rows, cols;

	(void) tab_member_id(request, "before", &before);
	(void) tab_member_id(request, "sheet", &sheet);
	(void) tab_member_id(request, "copy", &copy);
	(void) tab_size(request, "rows", TAB_ROWS, SHEET_MAX_ROWS, &rows);
	(void) tab_size(request, "cols", TAB_COLS, SHEET_MAX_COLS, &cols);
	if (sheet != 0)
		request_query(request, DATABASE_LONG, books_take_tab_sql,
					  PARAMS(book, uid, request_int64(request, sheet), tab_id_or_null(request, before)),
					  REQUEST_TEXT_RAW, tab_made);
	else if (copy != 0)
		request_query(request, DATABASE_LONG, books_copy_tab_sql, PARAMS(book, uid, request_int64(request, copy), name),
					  REQUEST_TEXT_RAW, tab_made);
	else
		request_query(request, DATABASE_WRITES, books_add_tab_sql,
					  PARAMS(book, uid, name, tab_id_or_null(request, before), request_int64(request, rows),
							 request_int64(request, cols)),
					  REQUEST_TEXT_RAW, tab_made);
}

/* ---- PATCH, DELETE /v2/books/ID/tabs/SHEET ---- */

bool
check_change_tab(Request *request)
{
	const cJSON *colour = request_member(request, "colour"), *hidden = request_member(request, "hidden");
	int64_t before;

	if (!tab_member_id(request, "before", &before))
		return false;
	if (colour != NULL && !cJSON_IsNull(colour) && !cJSON_IsString(colour))
		request_error(request, 400, "colour is a string like #1d5fbf, or null");
	else if (hidden != NULL && !cJSON_IsBool(hidden))
		request_error(request, 400, "hidden is true or false");
	else if (colour == NULL && hidden == NULL && request_member(request, "before") == NULL)
		request_error(request, 400, "before, colour or hidden is needed");
	else
		return true;
	return false;
}

/* The sheet at the end of the path. False: answered. */
static bool
tab_number(Request *request)
{
	if (request_parse_id(request->part, &request->number))
		return true;
	request_error(request, 404, "no such tab");
	return false;
}

static void
tab_changed(Request *request, PGresult *res)
{
	changes_register(request->number);
	if (!request_succeeded(res))
		books_sql_error(request, res);
	else if (PQntuples(res) == 0)
		request_error(request, 404, "no such tab");
	else
		request_answer(request, 204, NULL, NULL);
}

void
route_change_tab(Request *request)
{
	const cJSON *colour = request_member(request, "colour"), *hidden = request_member(request, "hidden");
	bool moves = request_member(request, "before") != NULL;
	int64_t before;

	if (!tab_number(request))
		return;
	(void) tab_member_id(request, "before", &before);
	request_query(request, DATABASE_WRITES, books_change_tab_sql,
				  PARAMS(request_sheet(request), request_uid(request), request_int64(request, request->number),
						 pgparam_text(moves ? "true" : "false"), tab_id_or_null(request, before),
						 colour == NULL			  ? pgparam_null()
						 : cJSON_IsString(colour) ? pgparam_text(colour->valuestring)
												  : pgparam_text(""),
						 hidden == NULL ? pgparam_null() : pgparam_text(cJSON_IsTrue(hidden) ? "true" : "false")),
				  REQUEST_TEXT_RAW, tab_changed);
}

void
route_remove_tab(Request *request)
{
	if (tab_number(request))
		request_query(request, DATABASE_LONG, books_leave_sql,
					  PARAMS(request_sheet(request), request_uid(request), request_int64(request, request->number)),
					  REQUEST_TEXT_RAW, tab_changed);
}
