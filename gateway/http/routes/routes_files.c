/*
 * routes_files.c - the files that an account has uploaded, to whatever sheets: its album.
 */
#include "core/gateway.h"
#include "http/routes/routes.h"

#define FILES_PAGE 200

static const char files_sql[] =
	"SELECT upload_id, sheet_id, name, size, created_at, link_key, used, quota FROM sheet.file_usage($3) "
	"LEFT JOIN LATERAL sheet.account_files($1, $2, $3) ON true";
static const char files_delete_sql[] = "SELECT sheet.file_delete($1, $2)";

/* The host is the one by which the client has reached this gateway. */
void
routes_put_file_url(Buf *to, const Request *request, const char *key, const char *name)
{
	const char *host = head_field(&request->head, "host");

	buf_printf(to, ",\"url\":\"%s://", gateway_http_scheme());
	buf_puts(to, host != NULL && host[0] != '\0' ? host : gateway.config.public_address);
	buf_printf(to, "/i/%s/", key);
	buf_puts_url(to, name);
	buf_puts(to, "\"");
}

/* ---- GET /v2/files: newest first, in pages; a page without files is one row of nulls, with the quota ---- */

static void
files_answered(Request *request, PGresult *res)
{
	int rows = PQntuples(res);
	Buf body = {NULL, 0, 0};

	buf_puts(&body, "{\"files\":[");
	for (int i = 0; i < rows; i++)
	{
		if (PQgetisnull(res, i, 0))
			break; /* there are no files */
		buf_printf(&body, "%s{\"id\":%s,\"fid\":%s", i > 0 ? "," : "", PQgetvalue(res, i, 0),
				   PQgetisnull(res, i, 1) ? "null" : PQgetvalue(res, i, 1));
		routes_put_member(&body, "name", PQgetvalue(res, i, 2));
		buf_printf(&body, ",\"size\":%s", PQgetvalue(res, i, 3));
		routes_put_time_member(&body, "at", PQgetvalue(res, i, 4));
		if (PQgetisnull(res, i, 5))
			buf_puts(&body, ",\"url\":null"); /* of a sheet that the account cannot open */
		else
			routes_put_file_url(&body, request, PQgetvalue(res, i, 5), PQgetvalue(res, i, 2));
		buf_puts(&body, "}");
	}
	buf_printf(&body, "],\"next\":%s", rows == FILES_PAGE ? PQgetvalue(res, rows - 1, 0) : "null");
	buf_printf(&body, ",\"used\":%s,\"quota\":%s}", PQgetisnull(res, 0, 6) ? "null" : PQgetvalue(res, 0, 6),
			   PQgetisnull(res, 0, 7) ? "null" : PQgetvalue(res, 0, 7));
	request_add_header(request, "Cache-Control", "private, no-cache");
	request_json(request, 200, &body);
}

void
route_files(Request *request)
{
	int64_t before = INT64_MAX;

	if (request_has_arg(request, "before") && !request_arg_id(request, "before", &before))
		request_error(request, 400, "before is a number");
	else
		request_query(request, DATABASE_READS, files_sql,
					  PARAMS(request_int64(request, FILES_PAGE), request_int64(request, before), request_uid(request)),
					  REQUEST_TEXT, files_answered);
}

/* ---- DELETE /v2/files/ID: sheet_id is the id of the file ---- */

static void
files_deleted(Request *request, PGresult *res)
{
	request_done(request, res);
}

void
route_delete_file(Request *request)
{
	request_query(request, DATABASE_WRITES, files_delete_sql, PARAMS(request_sheet(request), request_uid(request)),
				  REQUEST_TEXT_RAW, files_deleted);
}
