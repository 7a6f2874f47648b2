/*
 * download.c - GET /getchunk: a file out of the database, part by part, with Range and ETag.
 *
 * A picture in a cell is asked for by the browser, without a token. The address that the upload has answered with has a
 * key that opens this one file; other addresses are served to accounts that may see the sheet, by their token or by the
 * cookie of this path, which signing in has set.
 *
 * Only pictures whose first bytes say so are shown in place; everything else is an attachment, so that no uploaded
 * page or script runs in the gateway's origin.
 */
#include "http/request/download.h"

#include "http/server/conn.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "http/request/range.h"
#include "http/request/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOWNLOAD_PART_BYTES	 262144
#define DOWNLOAD_WRITE_BYTES 65536

struct Download
{
	int64_t upload_id;
	int64_t size;
	Range range;
	Buf part;
	size_t part_written;
	int part_number; /* next to fetch */
	bool fetching;
	char name[1024];
};

static const char download_info_sql[] = "SELECT c.upload_id, c.size, c.etag, sheet.file_get(c.upload_id, 0), "
										"c.by_key OR sheet.role_of($1, nullif($3::bigint, 0)) IS NOT NULL AND "
										"$3::bigint > 0 FROM sheet.file_info($1, $2, $4) c";
static const char download_part_sql[] = "SELECT sheet.file_get($1, $2)";

void
download_free(Download *download)
{
	if (download == NULL)
		return;
	buf_free(&download->part);
	free(download);
}

/* The type of a picture by its first bytes; NULL for everything else. */
static const char *
picture_type(const unsigned char *bytes, size_t len)
{
	if (len >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
		return "image/png";
	if (len >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
		return "image/jpeg";
	if (len >= 6 && (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0))
		return "image/gif";
	if (len >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0)
		return "image/webp";
	return NULL;
}

static void
download_part_answered(Request *request, PGresult *res)
{
	Download *download = request->download;
	size_t len = (size_t) PQgetlength(res, 0, 0);
	int64_t start = (int64_t) (download->part_number - 1) * DOWNLOAD_PART_BYTES;
	int64_t skip = download->range.from > start ? download->range.from - start : 0;
	int64_t keep = download->range.to - start + 1;

	download->fetching = false;
	if (keep > (int64_t) len)
		keep = (int64_t) len;
	download->part.len = 0;
	download->part_written = 0;
	if (PQgetisnull(res, 0, 0) || keep <= skip)
	{
		/* The file is gone while it was being sent: the connection must end short of the promised length. */
		conn_abort(request->conn);
		return;
	}
	buf_put(&download->part, PQgetvalue(res, 0, 0) + skip, (size_t) (keep - skip));
	if (buf_failed(&download->part))
	{
		conn_abort(request->conn);
		return;
	}
	conn_wake(request->conn);
}

static void
download_part_raw(Request *request, PGresult *res)
{
	if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1)
		download_part_answered(request, res);
	else
		conn_abort(request->conn);
}

static void
download_fetch(Request *request)
{
	Download *download = request->download;
	char id[24], number[24];
	PgParam params[2];

	params[0] = pgparam_int64(id, download->upload_id);
	params[1] = pgparam_int64(number, download->part_number++);
	download->fetching = true;
	request_query(request, DATABASE_READS, download_part_sql, 2, params, REQUEST_RAW, download_part_raw);
}

/* Appends the next piece to what is sent, or fetches it, and wakes the connection when it is there. True: the last one.
 */
static bool
download_fill(Request *request, Buf *to)
{
	Download *download = request->download;
	size_t piece = download->part.len - download->part_written;

	if (piece > DOWNLOAD_WRITE_BYTES)
		piece = DOWNLOAD_WRITE_BYTES;
	buf_put(to, download->part.data + download->part_written, piece);
	download->part_written += piece;
	request->written += piece;
	if (request->written == request->length)
		return true;
	if (download->part_written == download->part.len && !download->fetching)
		download_fetch(request); /* while this piece is on its way */
	return false;
}

static void
download_put_disposition(Request *request, const char *name)
{
	Buf value = {NULL, 0, 0};

	buf_puts(&value, "attachment; filename*=UTF-8''");
	buf_puts_url(&value, name);
	request_add_header(request, "Content-Disposition", value.data);
	buf_free(&value);
}

static void
download_found(Request *request, PGresult *res)
{
	Download *download = request->download;
	char etag[96];
	const char *type;

	if (PQntuples(res) == 0 || PQgetvalue(res, 0, 4)[0] == 0)
	{
		request_error(request, 404, "no such file");
		return;
	}
	download->upload_id = pgresult_int64(res, 0, 0);
	download->size = pgresult_int64(res, 0, 1);
	snprintf(etag, sizeof(etag), "\"%.64s\"", PQgetvalue(res, 0, 2));
	request_add_header(request, "ETag", etag);
	request_add_header(request, "Accept-Ranges", "bytes");
	request_add_header(request, "Cache-Control", "private, max-age=31536000, immutable");
	if (range_not_modified(request, etag))
	{
		request_answer(request, 304, NULL, NULL);
		return;
	}
	if (!range_choose(request, etag, download->size, &download->range))
		return;
	type = picture_type((const unsigned char *) PQgetvalue(res, 0, 3), (size_t) PQgetlength(res, 0, 3));
	if (type == NULL)
	{
		type = "application/octet-stream";
		download_put_disposition(request, download->name);
	}
	/* Whatever the browser makes of it: it runs nothing. */
	request_add_header(request, "Content-Security-Policy", "default-src 'none'; sandbox");
	request->length = (size_t) (download->range.to - download->range.from + 1);
	request->constant = "";
	request->fill = download_fill;
	download->part_number = (int) (download->range.from / DOWNLOAD_PART_BYTES);
	request_answer(request, download->range.partial ? 206 : 200, type, NULL);
}

static void
download_find(Request *request)
{
	char sheet[24], uid[24], key[64] = "";
	PgParam params[] = {pgparam_int64(sheet, request->sheet_id), pgparam_text(request->download->name),
						pgparam_int64(uid, request->claims.uid), pgparam_text(key)};

	(void) request_arg(request, "key", key, sizeof(key));
	params[3] = pgparam_text(key);
	request_query(request, DATABASE_READS, download_info_sql, 4, params, 1, download_found);
}

void
route_get_file(Request *request)
{
	char fid[24];

	request->download = calloc(1, sizeof(Download));
	if (request->download == NULL)
	{
		request_out_of_memory(request);
		return;
	}
	if (!request_arg(request, "fid", fid, sizeof(fid)) || !request_parse_id(fid, &request->sheet_id) ||
		!request_arg(request, "chunk", request->download->name, sizeof(request->download->name)))
	{
		download_free(request->download);
		request->download = NULL;
		request_error(request, 400, "fid and chunk are needed");
		return;
	}
	request->by_cookie = true;
	if (request_has_arg(request, "key"))
		download_find(request);
	else
		request_authenticate(request, download_find);
}
