/*
 * workbook_import.c - POST /v2/books/import?name=NAME: a workbook (.xlsx) becomes a book.
 *
 * The body is stored in parts as it arrives, as that of CSV (http/routes/csv_import.c), and then converted by calc.
 * Nothing is left of an import that fails. While a part waits or is written, the client is read only up to the next
 * one.
 */
#include "http/api/api.h"
#include "http/api/workbooks.h"
#include "http/routes/upload_pace.h"

#include "core/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKBOOK_PART_BYTES	 262144
#define WORKBOOK_NAME_BYTES	 1024
#define WORKBOOK_READY_TRIES 3

typedef struct WorkbookImport
{
	WorkbookJob job;
	char name[WORKBOOK_NAME_BYTES + 1]; /* of the book */
	bool body_done;
	int ready_tries; /* all parts are stored: how often the database was told */
	PaceTurn turn;	 /* to write a part */
	Buf bytes;		 /* not yet written */
	int64_t file;
	int part;
} WorkbookImport;

static const char workbook_begin_sql[] = "SELECT job_id, file FROM sheet.workbook_begin('import', NULL, $1, $2)";
static const char workbook_put_sql[] = "SELECT sheet.import_put($1, $2, $3)";
static const char workbook_ready_sql[] = "SELECT sheet.workbook_ready($1)";

static void workbook_continue(Request *request);

static void
workbook_free(void *own)
{
	WorkbookImport *import = own;

	workbook_end(&import->job);
	pace_end(&import->turn);
	buf_free(&import->bytes);
	free(import);
}

static void
workbook_refuse_size(Request *request)
{
	char reason[80];

	snprintf(reason, sizeof(reason), "the file is larger than max-upload-bytes permits (%d bytes)",
			 gateway.config.max_upload_bytes);
	request_error(request, 413, reason);
}

/* The body of the answer is that of calc. Of a book, it begins with its id. */
static void
workbook_converted(Request *request, PGresult *res)
{
	int status = atoi(PQgetvalue(res, 0, WORKBOOK_STATUS));
	const char *answer = PQgetvalue(res, 0, WORKBOOK_ANSWER);
	char location[64];
	Buf body = {NULL, 0, 0};
	long long id;

	if (status == 201 && sscanf(answer, "{\"id\":%lld", &id) == 1)
	{
		snprintf(location, sizeof(location), "/v2/books/%lld", id);
		request_add_header(request, "Location", location);
	}
	buf_puts(&body, answer);
	request_json(request, status, &body);
}

static void workbook_tell_ready(Request *request);

/* If the answer was lost, the job may be running: telling it again changes nothing. */
static void
workbook_stored(Request *request, PGresult *res)
{
	if (request_succeeded(res))
		workbook_wait(request, workbook_converted);
	else if (((WorkbookImport *) request->own)->ready_tries < WORKBOOK_READY_TRIES)
		workbook_tell_ready(request);
	else
		request_sql_error(request, res);
}

static void
workbook_tell_ready(Request *request)
{
	WorkbookImport *import = request->own;

	import->ready_tries++;
	request_query(request, DATABASE_WRITES, workbook_ready_sql, PARAMS(request_int64(request, import->job.id)),
				  REQUEST_TEXT_RAW, workbook_stored);
}

static void
workbook_put_answered(Request *request, PGresult *res)
{
	pace_end(&((WorkbookImport *) request->own)->turn);
	workbook_continue(request);
}

static void
workbook_put_part(Request *request)
{
	WorkbookImport *import = request->own;
	size_t len = import->bytes.len < WORKBOOK_PART_BYTES ? import->bytes.len : WORKBOOK_PART_BYTES;

	request_query(request, DATABASE_WRITES, workbook_put_sql,
				  PARAMS(request_int64(request, import->file), request_int64(request, import->part++),
						 pgparam_bytes(import->bytes.data, (int) len)),
				  REQUEST_TEXT, workbook_put_answered);
	import->bytes.len -= len;
	memmove(import->bytes.data, import->bytes.data + len, import->bytes.len);
}

static void
workbook_on_turn(void *arg)
{
	Request *request = arg;

	if (request_is_answered(request))
		pace_end(&((WorkbookImport *) request->own)->turn);
	else
		workbook_put_part(request);
}

/* Does what can be done, after each piece of the body and each result. */
static void
workbook_continue(Request *request)
{
	WorkbookImport *import = request->own;

	if (request_is_answered(request))
		return;
	if (import->job.id != 0)
	{
		if (import->bytes.len >= WORKBOOK_PART_BYTES || (import->body_done && import->bytes.len > 0))
		{
			if (pace_begin(&import->turn, request->claims.uid, workbook_on_turn, request))
				workbook_put_part(request);
		}
		else if (import->body_done && !import->turn.taken && import->ready_tries == 0)
			workbook_tell_ready(request);
	}
	conn_pause(request->conn, import->bytes.len > WORKBOOK_PART_BYTES);
}

static void
workbook_import_begun(Request *request, PGresult *res)
{
	if (request_succeeded(res))
		((WorkbookImport *) request->own)->file = atoll(PQgetvalue(res, 0, 1));
	if (workbook_begun(request, res))
		workbook_continue(request);
}

static void
workbook_authenticated(Request *request)
{
	request->begins = true;
	request_query(request, DATABASE_WRITES, workbook_begin_sql,
				  PARAMS(pgparam_text(((WorkbookImport *) request->own)->name), request_uid(request)), REQUEST_TEXT_RAW,
				  workbook_import_begun);
}

static void
workbook_body(Request *request, const char *data, size_t len)
{
	WorkbookImport *import = request->own;

	if (request_is_answered(request))
		return;
	buf_put(&import->bytes, data, len);
	if (buf_failed(&import->bytes))
		request_out_of_memory(request);
	else if (request->received > gateway.config.max_upload_bytes)
		workbook_refuse_size(request);
	else
		workbook_continue(request);
}

bool
workbook_import_begin(Request *request)
{
	WorkbookImport *import = request_own(request, sizeof(WorkbookImport), workbook_free);

	if (import == NULL)
		return false;
	request->take_body = workbook_body;
	if (!request_arg(request, "name", import->name, sizeof(import->name)))
		request_error(request, 400, "name is needed in the query: that of the book");
	else if (request->head.content_length > gateway.config.max_upload_bytes)
		workbook_refuse_size(request);
	else
		request_authenticate(request, workbook_authenticated);
	return !request_is_answered(request);
}

void
workbook_import_body_end(Request *request)
{
	((WorkbookImport *) request->own)->body_done = true;
	workbook_continue(request);
}
