/*
 * upload.c - POST /uploadchunk: a file of any size into the database, in parts, with bounded memory.
 *
 * The form's parts come in any order: what comes of the file before fid and token are known is kept, up to one part.
 * Then the user is checked, the upload begun in the database, and the file written part by part. While parts are under
 * way the client is not read.
 *
 * States: FIELDS (until fid and token are known) -> CHECKING (the database is asked) -> WRITING -> ENDING.
 */
#include "http/request/upload.h"

#include "http/server/conn.h"
#include "core/gateway.h"
#include "http/request/request.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define UPLOAD_PART_BYTES 262144
#define UPLOAD_NAME_MAX	  256

typedef enum UploadState
{
	UPLOAD_FIELDS,
	UPLOAD_CHECKING,
	UPLOAD_WRITING,
	UPLOAD_ENDING,
	UPLOAD_FAILED
} UploadState;

typedef enum UploadField
{
	FIELD_OTHER,
	FIELD_TOKEN,
	FIELD_FID,
	FIELD_FILE
} UploadField;

struct Upload
{
	Multipart *reader;
	UploadState state;
	UploadField field; /* being read */
	char token[JWT_MAX];
	char fid[24];
	char name[MULTIPART_NAME_MAX + 1];
	char type[128];
	bool has_file;
	bool file_done;
	bool body_done;
	Buf bytes; /* of the file, not yet sent */
	int64_t file_bytes;
	int64_t upload_id;
	char stored_name[UPLOAD_NAME_MAX * 4];
	int part;
	int parts_under_way;
	bool paused;
	EVP_MD_CTX *sha256;
};

static const char upload_begin_sql[] = "SELECT name, upload_id FROM sheet.file_begin($1, $2, $3, $4, $5)";
static const char upload_put_sql[] = "SELECT sheet.file_put($1, $2, $3)";
static const char upload_end_sql[] = "SELECT sheet.file_end($1, $2)";
static const char upload_abort_sql[] = "SELECT sheet.file_abort($1)";

static void upload_go_on(Request *request);

const char *
upload_token(const Upload *upload)
{
	return upload != NULL && upload->token[0] != '\0' ? upload->token : NULL;
}

/* An upload that does not end is taken back; nobody waits for the answer. */
static void
upload_abandon(Upload *upload)
{
	char id[24];
	PgParam param = pgparam_int64(id, upload->upload_id);

	if (upload->upload_id != 0)
		(void) database_query(DATABASE_WRITES, 0, upload_abort_sql, 1, &param, 0, NULL, NULL);
	upload->upload_id = 0;
}

void
upload_free(Upload *upload)
{
	if (upload == NULL)
		return;
	upload_abandon(upload);
	multipart_close(upload->reader);
	EVP_MD_CTX_free(upload->sha256);
	buf_free(&upload->bytes);
	free(upload);
}

static void
upload_fail(Request *request, int status, Msg msg, const char *reason)
{
	request->upload->state = UPLOAD_FAILED;
	request->close = true; /* the rest of the body is not read */
	if (status == 200)
		request_msg(request, msg);
	else
		request_error(request, status, reason);
}

static void
upload_fail_memory(Request *request)
{
	request->upload->state = UPLOAD_FAILED;
	request->close = true;
	request_out_of_memory(request);
}

/* ---- the form ---- */

static bool
upload_part_begin(void *arg, const char *name, const char *filename, const char *content_type)
{
	Upload *upload = ((Request *) arg)->upload;

	upload->field = FIELD_OTHER;
	if (strcmp(name, "token") == 0)
		upload->field = FIELD_TOKEN;
	else if (strcmp(name, "fid") == 0)
		upload->field = FIELD_FID;
	else if (strcmp(name, "uploadfile") == 0 && filename != NULL && !upload->has_file)
	{
		upload->field = FIELD_FILE;
		upload->has_file = true;
		snprintf(upload->name, sizeof(upload->name), "%s", filename);
		snprintf(upload->type, sizeof(upload->type), "%s",
				 content_type[0] != '\0' ? content_type : "application/octet-stream");
	}
	return true;
}

static bool
upload_append_text(char *to, size_t size, const char *data, size_t len)
{
	size_t used = strlen(to);

	if (used + len >= size || memchr(data, '\0', len) != NULL)
		return false;
	memcpy(to + used, data, len);
	to[used + len] = '\0';
	return true;
}

static bool
upload_part_data(void *arg, const char *data, size_t len)
{
	Request *request = arg;
	Upload *upload = request->upload;

	switch (upload->field)
	{
		case FIELD_TOKEN:
			return upload_append_text(upload->token, sizeof(upload->token), data, len);
		case FIELD_FID:
			return upload_append_text(upload->fid, sizeof(upload->fid), data, len);
		case FIELD_FILE:
			upload->file_bytes += (int64_t) len;
			EVP_DigestUpdate(upload->sha256, data, len);
			buf_put(&upload->bytes, data, len);
			return !buf_failed(&upload->bytes);
		default:
			return true;
	}
}

static bool
upload_part_end(void *arg)
{
	Upload *upload = ((Request *) arg)->upload;

	if (upload->field == FIELD_FILE)
		upload->file_done = true;
	upload->field = FIELD_OTHER;
	return true;
}

bool
upload_begin(Request *request)
{
	MultipartEvents events = {request, upload_part_begin, upload_part_data, upload_part_end};
	Upload *upload = calloc(1, sizeof(Upload));
	char type[512] = "";

	if (upload == NULL)
	{
		request->close = true;
		request_out_of_memory(request);
		return false;
	}
	request->upload = upload;
	(void) request_header(request, "content-type", type, sizeof(type));
	errno = 0;
	upload->sha256 = EVP_MD_CTX_new();
	upload->reader = multipart_open(type, &events);
	if (upload->reader == NULL || upload->sha256 == NULL || EVP_DigestInit_ex(upload->sha256, EVP_sha256(), NULL) != 1)
	{
		if (errno == ENOMEM)
			upload_fail_memory(request);
		else
			upload_fail(request, 200, MSG_NO_FILE, NULL);
		return false;
	}
	return true;
}

/* ---- the database ---- */

static void
upload_pause(Request *request, bool pause)
{
	if (request->conn == NULL || request->upload->paused == pause)
		return;
	request->upload->paused = pause;
	conn_pause(request->conn, pause);
}

static void
upload_put_answered(Request *request, PGresult *res)
{
	request->upload->parts_under_way--;
	upload_go_on(request);
}

static void
upload_put_part(Request *request, size_t len)
{
	Upload *upload = request->upload;
	char id[24], part[24];
	PgParam params[] = {pgparam_int64(id, upload->upload_id), pgparam_int64(part, upload->part++),
						pgparam_bytes(upload->bytes.data, (int) len)};

	upload->parts_under_way++;
	request_query(request, DATABASE_WRITES, upload_put_sql, 3, params, 0, upload_put_answered);
	upload->bytes.len -= len;
	memmove(upload->bytes.data, upload->bytes.data + len, upload->bytes.len);
}

/* The file's name, and the address that shows it, below that of any gateway. */
static void
upload_end_answered(Request *request, PGresult *res)
{
	Upload *upload = request->upload;
	Buf data = {NULL, 0, 0};

	upload->upload_id = 0;
	buf_puts_json(&data, upload->stored_name);
	buf_printf(&data, ",\"url\":\"/getchunk?fid=%lld&chunk=", (long long) request->sheet_id);
	buf_puts_url(&data, upload->stored_name);
	buf_printf(&data, "&key=%s\"", PQgetvalue(res, 0, 0));
	request_data(request, MSG_UPLOADED, &data);
}

static void
upload_end(Request *request)
{
	Upload *upload = request->upload;
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned digest_len = 0;
	char hex[EVP_MAX_MD_SIZE * 2 + 1] = "";
	char id[24];
	PgParam params[2];

	EVP_DigestFinal_ex(upload->sha256, digest, &digest_len);
	for (unsigned i = 0; i < digest_len; i++)
		snprintf(hex + i * 2, 3, "%02x", digest[i]);
	params[0] = pgparam_int64(id, upload->upload_id);
	params[1] = pgparam_text(hex);
	upload->state = UPLOAD_ENDING;
	request_query(request, DATABASE_WRITES, upload_end_sql, 2, params, 0, upload_end_answered);
}

static void
upload_begun(Request *request, PGresult *res)
{
	Upload *upload = request->upload;

	snprintf(upload->stored_name, sizeof(upload->stored_name), "%s", PQgetvalue(res, 0, 0));
	upload->upload_id = atoll(PQgetvalue(res, 0, 1));
	upload->state = UPLOAD_WRITING;
	upload_go_on(request);
}

/* How many bytes the file has at most: what has come, and what may come before the form's end. -1: nobody knows. */
static int64_t
upload_size_limit(const Request *request)
{
	const Upload *upload = request->upload;
	int64_t left = request->content_length - request->received + (int64_t) multipart_undecided(upload->reader) -
				   (int64_t) multipart_end_length(upload->reader);

	if (upload->file_done)
		return upload->file_bytes;
	if (request->head.chunked)
		return -1;
	return left < 0 ? upload->file_bytes : upload->file_bytes + left;
}

static void
upload_authenticated(Request *request)
{
	Upload *upload = request->upload;
	char sheet[24], uid[24], size[24];
	int64_t limit = upload_size_limit(request);
	PgParam params[] = {pgparam_int64(sheet, request->sheet_id), pgparam_text(upload->name), pgparam_text(upload->type),
						pgparam_int64(uid, request->claims.uid),
						limit >= 0 ? pgparam_int64(size, limit) : pgparam_null()};

	request_query(request, DATABASE_WRITES, upload_begin_sql, 5, params, 0, upload_begun);
}

/* What can be done now, after each piece of the body and each answer. */
static void
upload_go_on(Request *request)
{
	Upload *upload = request->upload;
	bool fields_known = upload->token[0] != '\0' && upload->fid[0] != '\0' && upload->field != FIELD_TOKEN &&
						upload->field != FIELD_FID;

	if (request->status != 0)
		return;
	if (upload->state == UPLOAD_FIELDS && upload->has_file && (fields_known || upload->body_done))
	{
		upload->state = UPLOAD_CHECKING;
		if (!request_parse_id(upload->fid, &request->sheet_id))
		{
			upload_fail(request, 200, MSG_BAD_FORM, NULL);
			return;
		}
		request_authenticate(request, upload_authenticated);
	}
	if (upload->state == UPLOAD_FIELDS && upload->bytes.len > UPLOAD_PART_BYTES)
	{
		upload_fail(request, 200, MSG_BAD_FORM, NULL); /* fid and token must come before so much of the file */
		return;
	}
	if (upload->state == UPLOAD_WRITING && upload->parts_under_way == 0)
	{
		if (upload->bytes.len >= UPLOAD_PART_BYTES)
			upload_put_part(request, UPLOAD_PART_BYTES);
		else if (upload->file_done && upload->bytes.len > 0)
			upload_put_part(request, upload->bytes.len);
		else if (upload->file_done && upload->body_done)
			upload_end(request);
	}
	upload_pause(request, upload->state != UPLOAD_FIELDS && upload->bytes.len > UPLOAD_PART_BYTES);
}

void
upload_body(Request *request, const char *data, size_t len)
{
	Upload *upload = request->upload;

	if (upload->state == UPLOAD_FAILED || request->status != 0)
		return;
	if (!multipart_feed(upload->reader, data, len))
	{
		if (buf_failed(&upload->bytes))
			upload_fail_memory(request);
		else
			upload_fail(request, 200, MSG_BAD_FORM, NULL);
		return;
	}
	if (upload->file_bytes > gateway.config.max_upload_bytes)
	{
		upload_fail(request, 413, MSG_BAD_FORM, "the file is too large");
		return;
	}
	upload_go_on(request);
}

void
upload_body_end(Request *request)
{
	Upload *upload = request->upload;

	if (upload->state == UPLOAD_FAILED || request->status != 0)
		return;
	upload->body_done = true;
	if (!upload->has_file)
		upload_fail(request, 200, MSG_NO_FILE, NULL);
	else if (!multipart_done(upload->reader))
		upload_fail(request, 200, MSG_BAD_FORM, NULL);
	else
		upload_go_on(request);
}
