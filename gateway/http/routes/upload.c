/*
 * upload.c - POST /uploadchunk: a file of any size into the database, in parts, with bounded memory.
 *
 * The form's fields may come in any order: up to one part of the file is buffered until fid and token are known. A
 * token in the head of the request is known from the start; a field behind the file then has no effect. The token is
 * verified, the file is begun in the database, and its parts are written one after the other, each in its turn among
 * all uploads (upload_pace.c). While a part waits or is written, the client is read only up to the next one.
 *
 * States: FIELDS (until fid and token are known) -> CHECKING (file_begin) -> WRITING -> ENDING (file_end).
 */
#include "core/gateway.h"
#include "http/server/multipart.h"
#include "http/routes/routes.h"
#include "http/routes/upload_pace.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UPLOAD_PART_BYTES 262144
#define UPLOAD_NAME_MAX	  256

typedef enum UploadState
{
	UPLOAD_FIELDS,
	UPLOAD_CHECKING,
	UPLOAD_WRITING,
	UPLOAD_ENDING
} UploadState;

typedef enum UploadField
{
	FIELD_OTHER,
	FIELD_TOKEN,
	FIELD_FID,
	FIELD_FILE
} UploadField;

typedef struct Upload
{
	Multipart *reader;
	UploadState state;
	UploadField field; /* that is being read */
	char token[JWT_MAX];
	char fid[24];
	char name[MULTIPART_NAME_MAX + 1];
	char type[128];
	bool head_token; /* the header or the query has a token */
	bool has_file;
	bool file_done;
	bool body_done;
	PaceTurn turn; /* to write a part */
	Buf bytes;	   /* of the file, not yet written */
	int64_t file_bytes;
	int64_t upload_id;
	char stored_name[UPLOAD_NAME_MAX * 4];
	int part;
	EVP_MD_CTX *sha256;
} Upload;

static const char upload_begin_sql[] = "SELECT name, upload_id FROM sheet.file_begin($1, $2, $3, $5, $4)";
static const char upload_put_sql[] = "SELECT sheet.file_put($1, $2, $3)";
static const char upload_end_sql[] = "SELECT sheet.file_end($1, $2)";
static const char upload_abort_sql[] = "SELECT sheet.file_abort($1)";

static void upload_continue(Request *request);

/* Removes a file that was not completed from the database, without waiting for the result. */
static void
upload_free(void *own)
{
	Upload *upload = own;
	char id[24];
	PgParam param = pgparam_int64(id, upload->upload_id);

	if (upload->upload_id != 0)
		(void) database_query(DATABASE_WRITES, 0, upload_abort_sql, 1, &param, 0, NULL, NULL);
	pace_end(&upload->turn);
	multipart_close(upload->reader);
	EVP_MD_CTX_free(upload->sha256);
	buf_free(&upload->bytes);
	free(upload);
}

/* The rest of the body is not read. */
static void
upload_fail(Request *request, Msg msg)
{
	request->close = true;
	request_msg(request, msg);
}

static void
upload_error(Request *request, int status, const char *reason)
{
	request->close = true;
	request_error(request, status, reason);
}

static void
upload_out_of_memory(Request *request)
{
	request->close = true;
	request_out_of_memory(request);
}

/* ---- the form ---- */

static bool
upload_part_begin(void *arg, const char *name, const char *filename, const char *content_type)
{
	Upload *upload = arg;

	upload->field = FIELD_OTHER;
	if (strcmp(name, "token") == 0 && !(upload->has_file && upload->head_token))
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
	Upload *upload = arg;

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
	Upload *upload = arg;

	if (upload->field == FIELD_FILE)
		upload->file_done = true;
	upload->field = FIELD_OTHER;
	return true;
}

static void upload_body(Request *request, const char *data, size_t len);

bool
upload_begin(Request *request)
{
	Upload *upload = request_own(request, sizeof(Upload), upload_free);
	MultipartEvents events = {upload, upload_part_begin, upload_part_data, upload_part_end};
	char type[512] = "", token[JWT_MAX];

	if (upload == NULL)
		return false;
	request->take_body = upload_body;
	upload->head_token = request_token(request, token, sizeof(token));
	(void) request_header(request, "content-type", type, sizeof(type));
	errno = 0;
	upload->sha256 = EVP_MD_CTX_new();
	upload->reader = multipart_open(type, &events);
	if (upload->reader != NULL && upload->sha256 != NULL && EVP_DigestInit_ex(upload->sha256, EVP_sha256(), NULL) == 1)
		return true;
	if (errno == ENOMEM)
		upload_out_of_memory(request);
	else
		upload_fail(request, MSG_NO_FILE);
	return false;
}

/* ---- the database ---- */

static void
upload_put_answered(Request *request, PGresult *res)
{
	pace_end(&((Upload *) request->own)->turn);
	upload_continue(request);
}

static void
upload_put_part(Request *request)
{
	Upload *upload = request->own;
	size_t len = upload->bytes.len < UPLOAD_PART_BYTES ? upload->bytes.len : UPLOAD_PART_BYTES;

	request_query(request, DATABASE_WRITES, upload_put_sql,
				  PARAMS(request_int64(request, upload->upload_id), request_int64(request, upload->part++),
						 pgparam_bytes(upload->bytes.data, (int) len)),
				  REQUEST_TEXT, upload_put_answered);
	upload->bytes.len -= len;
	memmove(upload->bytes.data, upload->bytes.data + len, upload->bytes.len);
}

static void
upload_on_turn(void *arg)
{
	Request *request = arg;

	if (request_is_answered(request))
		pace_end(&((Upload *) request->own)->turn);
	else
		upload_put_part(request);
}

/* The name of the file, and its address. */
static void
upload_end_answered(Request *request, PGresult *res)
{
	Upload *upload = request->own;
	Buf data = {NULL, 0, 0};

	upload->upload_id = 0;
	buf_puts_json(&data, upload->stored_name);
	routes_put_file_url(&data, request, PQgetvalue(res, 0, 0), upload->stored_name);
	request_data(request, MSG_UPLOADED, &data);
}

static void
upload_end(Request *request)
{
	Upload *upload = request->own;
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned digest_len = 0;
	char hex[EVP_MAX_MD_SIZE * 2 + 1] = "";

	EVP_DigestFinal_ex(upload->sha256, digest, &digest_len);
	for (unsigned i = 0; i < digest_len; i++)
		snprintf(hex + i * 2, 3, "%02x", digest[i]);
	upload->state = UPLOAD_ENDING;
	request_query(request, DATABASE_WRITES, upload_end_sql,
				  PARAMS(request_int64(request, upload->upload_id), pgparam_text(hex)), REQUEST_TEXT,
				  upload_end_answered);
}

static void
upload_begun(Request *request, PGresult *res)
{
	Upload *upload = request->own;

	snprintf(upload->stored_name, sizeof(upload->stored_name), "%s", PQgetvalue(res, 0, 0));
	upload->upload_id = atoll(PQgetvalue(res, 0, 1));
	upload->state = UPLOAD_WRITING;
	upload_continue(request);
}

/* The largest size that the file may have by the length of the body; NULL if the body is in chunks. */
static PgParam
upload_size_limit(Request *request)
{
	const Upload *upload = request->own;
	int64_t left = request->head.content_length - request->received + (int64_t) multipart_undecided(upload->reader) -
				   (int64_t) multipart_end_length(upload->reader);

	if (upload->file_done)
		left = 0;
	else if (request->head.chunked)
		return pgparam_null();
	return request_int64(request, upload->file_bytes + (left > 0 ? left : 0));
}

static void
upload_authenticated(Request *request)
{
	Upload *upload = request->own;

	request->begins = true;
	request_query(request, DATABASE_WRITES, upload_begin_sql,
				  PARAMS(request_sheet(request), pgparam_text(upload->name), pgparam_text(upload->type),
						 request_uid(request), upload_size_limit(request)),
				  REQUEST_TEXT, upload_begun);
}

/* Does what can be done, after each piece of the body and each result. */
static void
upload_continue(Request *request)
{
	Upload *upload = request->own;
	bool fields_known = (upload->head_token || upload->token[0] != '\0') && upload->fid[0] != '\0' &&
						upload->field != FIELD_TOKEN && upload->field != FIELD_FID;

	if (request_is_answered(request))
		return;
	if (upload->state == UPLOAD_FIELDS && upload->has_file && (fields_known || upload->body_done))
	{
		upload->state = UPLOAD_CHECKING;
		request->form_token = upload->token[0] != '\0' ? upload->token : NULL;
		if (request_parse_id(upload->fid, &request->sheet_id))
			request_authenticate(request, upload_authenticated);
		else
			upload_fail(request, MSG_BAD_FORM);
	}
	if (upload->state == UPLOAD_FIELDS && upload->bytes.len > UPLOAD_PART_BYTES)
		upload_error(request, 400,
					 "the fields fid and token must stand before the file, or the token in the header Authorization");
	if (upload->state == UPLOAD_WRITING)
	{
		if (upload->bytes.len >= UPLOAD_PART_BYTES || (upload->file_done && upload->bytes.len > 0))
		{
			if (pace_begin(&upload->turn, request->claims.uid, upload_on_turn, request))
				upload_put_part(request);
		}
		else if (upload->file_done && upload->body_done && !upload->turn.taken)
			upload_end(request);
	}
	conn_pause(request->conn, upload->state != UPLOAD_FIELDS && upload->bytes.len > UPLOAD_PART_BYTES);
}

static void
upload_body(Request *request, const char *data, size_t len)
{
	Upload *upload = request->own;
	char reason[80];

	if (!multipart_feed(upload->reader, data, len))
	{
		if (buf_failed(&upload->bytes))
			upload_out_of_memory(request);
		else if (multipart_has_long_filename(upload->reader))
			upload_error(request, 400, multipart_error(upload->reader));
		else
			upload_fail(request, MSG_BAD_FORM);
	}
	else if (upload->file_bytes > gateway.config.max_upload_bytes)
	{
		snprintf(reason, sizeof(reason), "the file is larger than max-upload-bytes permits (%d bytes)",
				 gateway.config.max_upload_bytes);
		upload_error(request, 413, reason);
	}
	else
		upload_continue(request);
}

void
upload_body_end(Request *request)
{
	Upload *upload = request->own;

	upload->body_done = true;
	if (!upload->has_file)
		upload_fail(request, MSG_NO_FILE);
	else if (!multipart_done(upload->reader))
		upload_fail(request, MSG_BAD_FORM);
	else
		upload_continue(request);
}
