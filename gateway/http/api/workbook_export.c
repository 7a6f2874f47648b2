/*
 * workbook_export.c - GET /v2/books/ID.xlsx and /v2/sheets/ID.xlsx: a book or a sheet as a workbook; and /s/KEY.xlsx,
 * what a link publishes, which is converted on behalf of a guest of the link.
 *
 * Calc makes the file, which is then in the database in parts. They are sent one after the other as the client takes
 * them, and removed with the request.
 */
#include "http/api/api.h"
#include "http/api/workbooks.h"
#include "http/request/range.h"
#include "http/share/published_links.h"
#include "http/share/share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKBOOK_WRITE_BYTES 65536
#define WORKBOOK_TYPE		 "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

typedef struct WorkbookExport
{
	WorkbookJob job;
	Buf name;		/* of the file, without its suffix */
	bool published; /* /s/KEY.xlsx */
	char etag[80];	/* "": none */
	Buf part;
	size_t part_written;
	int part_number; /* next to fetch */
	bool fetching;
} WorkbookExport;

static const char workbook_export_sql[] = "SELECT job_id FROM sheet.workbook_begin($1, $2, NULL, $3)";
static const char workbook_part_sql[] = "SELECT sheet.workbook_part($1, $2)";
/* Of two conversions of the same state the bytes may differ, so the ETag is weak. Values of formulas may change without
 * an edit of the sheet: a sheet that has had formulas has none. */
static const char workbook_published_sql[] =
	"SELECT link_id, sheet_id, title, index_ok, CASE WHEN rectangle OR sheet.computed_seq(sheet_id) IS NULL "
	"THEN format('W/\"%s-%s\"', sheet.last_seq(sheet_id), md5(title)) END FROM sheet.published($1)";
static const char workbook_link_sql[] = "SELECT sheet.guest_left($1)";
static const char workbook_book_sql[] = "SELECT name, trashed FROM sheet.book_info($1, $2)";

static void
workbook_free(void *own)
{
	WorkbookExport *export = own;

	workbook_end(&export->job);
	buf_free(&export->name);
	buf_free(&export->part);
	free(export);
}

static bool
workbook_is_book(const Request *request)
{
	return strncmp(request->head.path, "/v2/books/", strlen("/v2/books/")) == 0;
}

/* ---- the answer ---- */

/* An answer that cannot be completed ends short of its Content-Length, so that the client notices. */
static void
workbook_part_answered(Request *request, PGresult *res)
{
	WorkbookExport *export = request->own;

	export->fetching = false;
	export->part.len = export->part_written = 0;
	if (request_succeeded(res) && PQgetlength(res, 0, 0) > 0)
		buf_put(&export->part, PQgetvalue(res, 0, 0), (size_t) PQgetlength(res, 0, 0));
	if (export->part.len == 0 || buf_failed(&export->part))
		conn_abort(request->conn);
	else
		conn_wake(request->conn);
}

static bool
workbook_fill(Request *request, Buf *to)
{
	WorkbookExport *export = request->own;
	size_t piece = export->part.len - export->part_written;

	if (piece > WORKBOOK_WRITE_BYTES)
		piece = WORKBOOK_WRITE_BYTES;
	if (piece > request->length - request->written)
		piece = request->length - request->written;
	buf_put(to, export->part.data + export->part_written, piece);
	export->part_written += piece;
	request->written += piece;
	if (request->written == request->length)
		return true;
	if (export->part_written < export->part.len || export->fetching)
		return false;
	export->fetching = true;
	request_query(request, DATABASE_READS, workbook_part_sql,
				  PARAMS(request_int64(request, export->job.id), request_int64(request, export->part_number++)),
				  REQUEST_BINARY_RAW, workbook_part_answered);
	return false;
}

static void
workbook_add_headers(Request *request)
{
	const WorkbookExport *export = request->own;
	Buf disposition = {NULL, 0, 0};

	buf_puts(&disposition, "attachment; filename*=UTF-8''");
	buf_puts_url(&disposition, export->name.data);
	buf_puts(&disposition, ".xlsx");
	request_add_header_buf(request, "Content-Disposition", &disposition);
	request_add_header(request, "Cache-Control", "private, no-cache");
	if (export->etag[0] != '\0')
		request_add_header(request, "ETag", export->etag);
	request_add_header(request, "Content-Security-Policy", "default-src 'none'; sandbox");
}

static void
workbook_give(Request *request)
{
	workbook_add_headers(request);
	request->fill = workbook_fill;
	request_answer(request, 200, WORKBOOK_TYPE, NULL);
}

/* The link may have ended during the conversion. */
static void
workbook_link_lasts(Request *request, PGresult *res)
{
	if (!request_succeeded(res))
		request_sql_error(request, res);
	else if (strcmp(PQgetvalue(res, 0, 0), "0") == 0)
		published_missing(request);
	else
	{
		link_uses_add(-request->claims.uid);
		workbook_give(request);
	}
}

static void
workbook_set_name(Request *request, const char *name)
{
	WorkbookExport *export = request->own;

	export->name.len = 0;
	buf_put(&export->name, name, strlen(name) + 1);
}

static void
workbook_made(Request *request, PGresult *res)
{
	WorkbookExport *export = request->own;
	int status = atoi(PQgetvalue(res, 0, WORKBOOK_STATUS));
	Buf body = {NULL, 0, 0};

	/* The link has ended, or its sheet is in the trash, since it was looked up. */
	if (export->published && (status == 403 || status == 404 || status == 410))
	{
		published_missing(request);
		return;
	}
	if (status != 200)
	{
		buf_puts(&body, PQgetvalue(res, 0, WORKBOOK_ANSWER));
		request_json(request, status, &body);
		return;
	}
	workbook_set_name(request, PQgetvalue(res, 0, WORKBOOK_NAME));
	request->length = (size_t) atoll(PQgetvalue(res, 0, WORKBOOK_BYTES));
	if (buf_failed(&export->name))
		request_out_of_memory(request);
	else if (export->published)
		request_query(request, DATABASE_READS, workbook_link_sql, PARAMS(request_uid(request)), REQUEST_TEXT_RAW,
					  workbook_link_lasts);
	else
		workbook_give(request);
}

/* ---- the routes ---- */

static void
workbook_export_begun(Request *request, PGresult *res)
{
	if (workbook_begun(request, res))
		workbook_wait(request, workbook_made);
}

static void
workbook_ask(Request *request, const char *name)
{
	if (request->method == METHOD_HEAD)
	{
		workbook_set_name(request, name);
		if (buf_failed(&((WorkbookExport *) request->own)->name))
		{
			request_out_of_memory(request);
			return;
		}
		workbook_add_headers(request);
		request->unmeasured = true;
		request_answer(request, 200, WORKBOOK_TYPE, NULL);
		return;
	}
	request->begins = true;
	request_query(request, DATABASE_WRITES, workbook_export_sql,
				  PARAMS(pgparam_text(workbook_is_book(request) ? "book" : "sheet"), request_sheet(request),
						 request_uid(request)),
				  REQUEST_TEXT_RAW, workbook_export_begun);
}

static void
workbook_book_answered(Request *request, PGresult *res)
{
	if (!request_succeeded(res))
		books_sql_error(request, res);
	else if (PQgetvalue(res, 0, 1)[0] == 't')
		request_error(request, 410, "the book is in the trash");
	else
		workbook_ask(request, PQgetisnull(res, 0, 0) ? "book" : PQgetvalue(res, 0, 0));
}

static void
workbook_sheet_answered(Request *request, PGresult *res)
{
	if (sheet_is_open(request, res))
		workbook_ask(request, PQgetvalue(res, 0, INFO_NAME));
}

static void
workbook_export_authenticated(Request *request)
{
	if (workbook_is_book(request))
		request_query(request, DATABASE_READS, workbook_book_sql, PARAMS(request_sheet(request), request_uid(request)),
					  REQUEST_TEXT_RAW, workbook_book_answered);
	else
		sheet_query_info(request, workbook_sheet_answered);
}

/* A browser writes the answer to its disk if it follows a link, and then the token is in a cookie. */
void
route_export_workbook(Request *request)
{
	if (request_own(request, sizeof(WorkbookExport), workbook_free) == NULL)
		return;
	request->cookie = request->origin != ORIGIN_FOREIGN ? COOKIE_FILES : NULL;
	request_authenticate(request, workbook_export_authenticated);
}

static void
workbook_link_answered(Request *request, PGresult *res)
{
	WorkbookExport *export = request->own;

	if (!request_succeeded(res))
		request_sql_error(request, res);
	else if (PQntuples(res) == 0)
		published_missing(request);
	else
	{
		request->claims.uid = -atoll(PQgetvalue(res, 0, 0));
		request->sheet_id = atoll(PQgetvalue(res, 0, 1));
		if (PQgetvalue(res, 0, 3)[0] == 'f')
			request_add_header(request, "X-Robots-Tag", "noindex");
		snprintf(export->etag, sizeof(export->etag), "%s", PQgetvalue(res, 0, 4));
		export->published = true;
		if (export->etag[0] != '\0' && range_is_known(request, export->etag))
		{
			request_add_header(request, "Cache-Control", "private, no-cache");
			(void) range_not_modified(request, export->etag);
		}
		else
			workbook_ask(request, PQgetvalue(res, 0, 2));
	}
}

void
route_export_published(Request *request)
{
	char key[PUBLISHED_KEY_CHARS + 1], digest[PUBLISHED_DIGEST_SIZE];

	if (published_key_chars(request->part) != PUBLISHED_KEY_CHARS ||
		strcmp(request->part + PUBLISHED_KEY_CHARS, ".xlsx") != 0)
	{
		published_missing(request);
		return;
	}
	snprintf(key, sizeof(key), "%s", request->part);
	if (request_own(request, sizeof(WorkbookExport), workbook_free) == NULL)
		return;
	published_digest(key, digest);
	request_query(request, DATABASE_READS, workbook_published_sql, PARAMS(pgparam_text(digest)), REQUEST_TEXT_RAW,
				  workbook_link_answered);
}
