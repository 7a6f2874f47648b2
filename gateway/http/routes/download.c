/*
 * download.c - GET /getchunk and GET /i/KEY/NAME: a file out of the database, part by part, with Range and ETag.
 *
 * Browsers load a picture in a cell, or in a text elsewhere, without a token. So the address that an upload returns has
 * a key that opens this one file. /getchunk takes no key from who is signed in: the account must be able to see the
 * sheet; its token may be in a cookie, which signing in sets.
 *
 * Only pictures, which are recognized by their first bytes, are shown in place. All other files are attachments, so no
 * uploaded page or script runs in the gateway's origin.
 */
#include "core/gateway.h"
#include "http/request/range.h"
#include "http/routes/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOWNLOAD_PART_BYTES	 262144
#define DOWNLOAD_WRITE_BYTES 65536

typedef struct Download
{
	int64_t upload_id;
	Range range;
	Buf part;
	size_t part_written;
	int part_number; /* next to fetch */
	bool fetching;
	bool public; /* its address opens it for everybody */
	char key[64];
	char name[1024];
} Download;

static const char download_info_sql[] = "SELECT c.upload_id, c.size, c.etag, sheet.file_get(c.upload_id, 0), "
										"c.by_key OR sheet.role_of($1, nullif($3::bigint, 0)) IS NOT NULL AND "
										"$3::bigint > 0 FROM sheet.file_info($1, $2, $4) c";
static const char download_public_sql[] =
	"SELECT c.upload_id, c.size, c.etag, sheet.file_get(c.upload_id, 0), true FROM sheet.file_by_digest($1, $2) c";
static const char download_part_sql[] = "SELECT sheet.file_get($1, $2)";

static void
download_free(void *own)
{
	Download *download = own;

	buf_free(&download->part);
	free(download);
}

/* The type of a picture by its first bytes; NULL for all other files. */
static const char *
picture_type(const char *bytes, size_t len)
{
	if (len >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
		return "image/png";
	if (len >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
		return "image/jpeg";
	if (len >= 6 && (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0))
		return "image/gif";
	if (len >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0)
		return "image/webp";
	if (len >= 12 && memcmp(bytes + 4, "ftypavif", 8) == 0)
		return "image/avif";
	return NULL;
}

/* Takes what the range has of a part. False: the file was deleted meanwhile, or there is no memory. */
static bool
download_take_part(Download *download, const PGresult *res)
{
	int64_t start = (int64_t) (download->part_number - 1) * DOWNLOAD_PART_BYTES;
	int64_t from = download->range.from > start ? download->range.from - start : 0;
	int64_t to = download->range.to - start + 1;

	if (!request_succeeded(res) || PQntuples(res) != 1)
		return false;
	if (to > PQgetlength(res, 0, 0))
		to = PQgetlength(res, 0, 0);
	download->part.len = download->part_written = 0;
	if (to <= from)
		return false;
	buf_put(&download->part, PQgetvalue(res, 0, 0) + from, (size_t) (to - from));
	return !buf_failed(&download->part);
}

/* An answer that cannot be completed ends short of its Content-Length, so that the client notices. */
static void
download_part_answered(Request *request, PGresult *res)
{
	Download *download = request->own;

	download->fetching = false;
	if (download_take_part(download, res))
		conn_wake(request->conn);
	else
		conn_abort(request->conn);
}

/* Appends the next piece, and fetches the next part while it is sent. */
static bool
download_fill(Request *request, Buf *to)
{
	Download *download = request->own;
	size_t piece = download->part.len - download->part_written;

	if (piece > DOWNLOAD_WRITE_BYTES)
		piece = DOWNLOAD_WRITE_BYTES;
	buf_put(to, download->part.data + download->part_written, piece);
	download->part_written += piece;
	request->written += piece;
	if (request->written == request->length)
		return true;
	if (download->part_written < download->part.len || download->fetching)
		return false;
	download->fetching = true;
	request_query(request, DATABASE_READS, download_part_sql,
				  PARAMS(request_int64(request, download->upload_id), request_int64(request, download->part_number++)),
				  REQUEST_BINARY_RAW, download_part_answered);
	return false;
}

static void
download_found(Request *request, PGresult *res)
{
	Download *download = request->own;
	Buf disposition = {NULL, 0, 0};
	char etag[96];
	const char *type;

	if (PQntuples(res) == 0 || PQgetvalue(res, 0, 4)[0] == 0)
	{
		request_error(request, 404, "no such file");
		return;
	}
	download->upload_id = pgresult_int64(res, 0, 0);
	snprintf(etag, sizeof(etag), "\"%.64s\"", PQgetvalue(res, 0, 2));
	request_add_header(request, "Cache-Control",
					   download->public ? "public, max-age=31536000, immutable"
										: "private, max-age=31536000, immutable");
	if (range_not_modified(request, etag) || !range_choose(request, etag, pgresult_int64(res, 0, 1), &download->range))
		return;
	type = picture_type(PQgetvalue(res, 0, 3), (size_t) PQgetlength(res, 0, 3));
	if (type == NULL)
	{
		type = "application/octet-stream";
		buf_puts(&disposition, "attachment; filename*=UTF-8''");
		buf_puts_url(&disposition, download->name);
		request_add_header_buf(request, "Content-Disposition", &disposition);
	}
	/* However a browser interprets the file, it runs nothing of it. */
	request_add_header(request, "Content-Security-Policy", "default-src 'none'; sandbox");
	request->fill = download_fill;
	download->part_number = (int) (download->range.from / DOWNLOAD_PART_BYTES);
	request_answer(request, download->range.partial ? 206 : 200, type, NULL);
}

static void
download_find(Request *request)
{
	Download *download = request->own;
	char key[64] = "";

	(void) request_arg(request, "key", key, sizeof(key));
	request_query(request, DATABASE_READS, download_info_sql,
				  PARAMS(request_sheet(request), pgparam_text(download->name), request_uid(request),
						 request_digest(request, key)),
				  REQUEST_BINARY, download_found);
}

void
route_get_file(Request *request)
{
	Download *download = request_own(request, sizeof(Download), download_free);

	if (download == NULL)
		return;
	/* Pages of other gateways, on other ports of this host, show pictures of this one. */
	request->cookie = request->origin != ORIGIN_FOREIGN ? COOKIE_FILES : NULL;
	if (!request_arg_id(request, "fid", &request->sheet_id) ||
		!request_arg(request, "chunk", download->name, sizeof(download->name)))
		request_error(request, 400, "fid and chunk are needed");
	else if (request_has_arg(request, "key"))
		download_find(request);
	else
		request_authenticate(request, download_find);
}

/* ---- GET /i/KEY/NAME ---- */

void
route_get_picture(Request *request)
{
	Download *download = request_own(request, sizeof(Download), download_free);
	const char *key = request->head.path + strlen("/i/"), *slash = strchr(key, '/');

	if (download == NULL)
		return;
	/* A name with a slash is no file's. */
	if (slash == NULL || (size_t) (slash - key) >= sizeof(download->key) || strlen(slash + 1) >= sizeof(download->name))
	{
		request_error(request, 404, "no such file");
		return;
	}
	snprintf(download->key, sizeof(download->key), "%.*s", (int) (slash - key), key);
	snprintf(download->name, sizeof(download->name), "%s", slash + 1);
	download->public = true;
	request_query(request, DATABASE_READS, download_public_sql,
				  PARAMS(request_digest(request, download->key), pgparam_text(download->name)), REQUEST_BINARY,
				  download_found);
}
