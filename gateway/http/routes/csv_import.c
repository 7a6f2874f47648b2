/*
 * csv_import.c - POST /v2/sheets/import?name=NAME, the same with &book=ID, and PUT /v2/sheets/ID/import?ref=CELL: CSV,
 * TSV or JSON Lines of any size become a new sheet, a tab of a book, or cells of a sheet, with bounded memory.
 *
 * The body is the text. It is converted to UTF-8 and stored in parts as it arrives, each in its turn among all uploads
 * (upload_pace.c), and then becomes cells in one statement. Nothing is left of an import that fails. While a part waits
 * or is written, the client is read only up to the next one.
 *
 * States: CHECKING (until the account is known and the import has begun) -> WRITING -> ENDING.
 */
#include "common/a1.h"
#include "common/sql_interface.h"
#include "core/gateway.h"
#include "http/routes/routes.h"
#include "http/routes/upload_pace.h"
#include "ws/cache/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMPORT_NAME_BYTES 1024
#define IMPORT_TRIES	  10 /* of the statement that sets the cells, each of which waits 0.5 s for the sheet */

typedef enum ImportState
{
	IMPORT_CHECKING,
	IMPORT_WRITING,
	IMPORT_ENDING
} ImportState;

typedef struct Import
{
	ImportState state;
	char name[IMPORT_NAME_BYTES + 1]; /* of a new sheet */
	int64_t book, before;			  /* of a new tab, and the tab that follows it; 0: none */
	char ref[A1_RANGE_MAX];			  /* of a sheet that is there */
	ImportOptions options;
	Charset charset;
	bool body_done;
	PaceTurn turn; /* to write a part */
	Buf head;	   /* of the body, not yet converted */
	Buf bytes;	   /* in UTF-8, not yet written */
	int64_t import_id;
	int part;
	int tries;
} Import;

static const char import_begin_sql[] = "SELECT sheet.import_begin($1, $2, $3)";
static const char import_put_sql[] = "SELECT sheet.import_put($1, $2, $3)";
static const char import_into_sql[] = "SELECT sheet.import_begin(NULL, NULL, $2) "
									  "FROM sheet.check_role($1, 'editor', as_uid => $2)";
static const char import_tab_sql[] = "SELECT sheet.import_begin($2, NULL, $3), sheet.tab($1, $2, $3) "
									 "FROM sheet.book_info($1, $3) WHERE role IN ('editor', 'owner')";
static const char import_end_sql[] = "SELECT sheet_id, seq, taken_separator, forgiven, forgiven_line "
									 "FROM sheet.import_end($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
static const char import_end_tab_sql[] = "SELECT sheet_id, seq, taken_separator, forgiven, forgiven_line "
										 "FROM sheet.add_tab($2, $11, $12, 100, 26, $13) AS made (id), "
										 "LATERAL sheet.import_end($1, made.id, $3, $4, $5, $6, $7, $8, $9, $10)";
static const char import_abort_sql[] = "SELECT sheet.import_abort($1)";

static void import_continue(Request *request);

/* Removes an import that was not completed from the database, without waiting for the result. */
static void
import_free(void *own)
{
	Import *import = own;
	char id[24];
	PgParam param = pgparam_int64(id, import->import_id);

	if (import->import_id != 0)
		(void) database_query(DATABASE_WRITES, 0, import_abort_sql, 1, &param, 0, NULL, NULL);
	pace_end(&import->turn);
	charset_free(&import->charset);
	buf_free(&import->head);
	buf_free(&import->bytes);
	free(import);
}

/* ---- errors ---- */

/* The code by which a page finds its text; NULL: the error is not about the CSV. */
static const char *
import_error_code(const char *sqlstate)
{
	if (strcmp(sqlstate, "22P04") == 0)
		return "csv_malformed";
	if (strcmp(sqlstate, "22021") == 0)
		return "csv_encoding";
	return strcmp(sqlstate, "54000") == 0 ? "csv_limit" : NULL;
}

/* {"success":false,"msg":0,"data":reason,"code":code,"line":line,"column":column}; the context has the place. */
static void
import_refuse_csv(Request *request, const PGresult *res, const char *code)
{
	const char *message = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL);
	const char *context = PQresultErrorField(res, PG_DIAG_CONTEXT);
	bool placed = false;
	Buf reason = {NULL, 0, 0}, body = {NULL, 0, 0};
	long long line, column;

	buf_puts(&reason, message != NULL ? message : "");
	if (context != NULL && sscanf(context, "CSV, line %lld, column %lld", &line, &column) == 2)
	{
		placed = true;
		buf_printf(&reason, " in line %lld, column %lld", line, column);
	}
	buf_printf(&reason, ": %s", detail != NULL ? detail : "");
	buf_put(&reason, "", 1);
	buf_puts(&body, "{\"success\":false,\"msg\":0,\"data\":");
	buf_puts_json(&body, buf_failed(&reason) ? "" : reason.data);
	buf_printf(&body, ",\"code\":\"%s\"", code);
	if (placed)
		buf_printf(&body, ",\"line\":%lld,\"column\":%lld", line, column);
	buf_puts(&body, "}");
	buf_free(&reason);
	request_json(request, 400, &body);
}

void
import_refuse_encoding(Request *request, const Charset *charset)
{
	Buf body = {NULL, 0, 0};

	buf_printf(&body,
			   "{\"success\":false,\"msg\":0,\"data\":\"the text is not in %s: byte %lld begins no character\","
			   "\"code\":\"csv_encoding\",\"offset\":%lld}",
			   charset->name, (long long) charset->offset, (long long) charset->offset);
	request_json(request, 400, &body);
}

static void
import_refuse_size(Request *request)
{
	char reason[80];

	snprintf(reason, sizeof(reason), "the file is larger than max-upload-bytes permits (%d bytes)",
			 gateway.config.max_upload_bytes);
	request_error(request, 413, reason);
}

/* ---- the database ---- */

static bool
import_is_new(const Request *request)
{
	return request->sheet_id == 0;
}

/* {"id":ID} or {"seq":SEQ}, and what was recognised and forgiven. */
static void
import_answer(Request *request, const PGresult *res)
{
	const Import *import = request->own;
	Buf body = {NULL, 0, 0};

	buf_printf(&body, import_is_new(request) ? "{\"id\":%s" : "{\"seq\":%s",
			   PQgetvalue(res, 0, import_is_new(request) ? 0 : 1));
	routes_put_member(&body, "encoding", import->charset.name);
	routes_put_optional(&body, res, 0, 2, "separator", routes_put_member);
	routes_put_number(&body, "forgiven", PQgetvalue(res, 0, 3));
	routes_put_optional(&body, res, 0, 4, "forgivenLine", routes_put_number);
	buf_puts(&body, "}");
	request_json(request, 200, &body);
}

static void import_end(Request *request);

/* Whether another transaction was in the way. The parts are still there then, so the statement can be sent again. */
static bool
import_was_blocked(const PGresult *res)
{
	const char *state = pgresult_sqlstate(res);

	return strcmp(state, "55P03") == 0 || strncmp(state, "40", 2) == 0;
}

static void
import_ended(Request *request, PGresult *res)
{
	Import *import = request->own;
	const char *code = import_error_code(pgresult_sqlstate(res));
	bool placed = res != NULL && PQresultErrorField(res, PG_DIAG_CONTEXT) != NULL;

	if (request_succeeded(res))
	{
		import->import_id = 0;
		if (import->book != 0)
			changes_register(atoll(PQgetvalue(res, 0, 0)));
		import_answer(request, res);
	}
	else if (import->book != 0 && !placed && strcmp(pgresult_sqlstate(res), "54000") == 0)
		request_error_code(request, 409, "book_full", PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
	else if (code != NULL)
		import_refuse_csv(request, res, code);
	else if (import_was_blocked(res) && ++import->tries < IMPORT_TRIES)
		import_end(request);
	else
		request_sql_error(request, res);
}

static PgParam
import_text(const char *text)
{
	return pgparam_text(text[0] != '\0' ? text : NULL);
}

static void
import_end(Request *request)
{
	Import *import = request->own;
	const ImportOptions *options = &import->options;
	PgParam target = import->book != 0		  ? request_int64(request, import->book)
					 : import_is_new(request) ? pgparam_null()
											  : request_sheet(request);
	PgParam params[] = {request_int64(request, import->import_id),
						target,
						import_text(import->ref),
						import_text(options->format),
						import_text(options->separator),
						pgparam_text(import_quote(options)),
						pgparam_text(options->csv.dialect.lenient ? "t" : "f"),
						import_text(options->decimal),
						pgparam_text(options->csv.formulas ? "t" : "f"),
						import_text(options->dates),
						pgparam_text(import->name),
						import->before != 0 ? request_int64(request, import->before) : pgparam_null(),
						request_uid(request)};

	import->state = IMPORT_ENDING;
	if (import->book != 0)
		request_query(request, DATABASE_LONG, import_end_tab_sql, 13, params, REQUEST_TEXT_RAW, import_ended);
	else
		request_query(request, DATABASE_LONG, import_end_sql, 10, params, REQUEST_TEXT_RAW, import_ended);
}

static void
import_put_answered(Request *request, PGresult *res)
{
	pace_end(&((Import *) request->own)->turn);
	import_continue(request);
}

static void
import_put_part(Request *request)
{
	Import *import = request->own;
	size_t len = import->bytes.len < IMPORT_PART_BYTES ? import->bytes.len : IMPORT_PART_BYTES;

	request_query(request, DATABASE_WRITES, import_put_sql,
				  PARAMS(request_int64(request, import->import_id), request_int64(request, import->part++),
						 pgparam_bytes(import->bytes.data, (int) len)),
				  REQUEST_TEXT, import_put_answered);
	import->bytes.len -= len;
	memmove(import->bytes.data, import->bytes.data + len, import->bytes.len);
}

static void
import_on_turn(void *arg)
{
	Request *request = arg;

	if (request_is_answered(request))
		pace_end(&((Import *) request->own)->turn);
	else
		import_put_part(request);
}

/* Finds the encoding, in the first bytes of the body. False: answered. */
static bool
import_begin_text(Request *request)
{
	Import *import = request->own;
	const char *name = import->options.encoding;
	size_t len = import->head.len < CSV_HEAD_BYTES ? import->head.len : CSV_HEAD_BYTES;

	if (name == NULL)
		name = charset_guess(import->head.data != NULL ? import->head.data : "", len,
							 import->body_done && len == import->head.len);
	if (!import_check_head(request, import->head.data, import->head.len))
		return false;
	if (charset_begin(&import->charset, name))
		return true;
	request_error(request, 400, "this system has no converter for the encoding");
	return false;
}

/* Converts what has come, once the encoding is known. False: answered. */
static bool
import_convert(Request *request)
{
	Import *import = request->own;
	Buf head;
	bool valid;

	if (import->charset.name == NULL)
	{
		if (import->head.len < (import->options.encoding == NULL ? CSV_HEAD_BYTES : IMPORT_MARK_BYTES) &&
			!import->body_done)
			return true;
		if (!import_begin_text(request))
			return false;
	}
	head = buf_take(&import->head);
	valid = head.len == 0 || charset_convert(&import->charset, head.data, head.len, &import->bytes);
	buf_free(&head);
	if (!valid || (import->body_done && !buf_failed(&import->bytes) && !charset_end(&import->charset, &import->bytes)))
		import_refuse_encoding(request, &import->charset);
	else if (buf_failed(&import->bytes))
		request_out_of_memory(request);
	else
		return true;
	return false;
}

/* Does what can be done, after each piece of the body and each result. Conversion may refuse the request, so it begins
 * only when the import's id is known: an import without a known id cannot be removed. */
static void
import_continue(Request *request)
{
	Import *import = request->own;

	if (request_is_answered(request) || (import->state == IMPORT_WRITING && !import_convert(request)))
		return;
	if (import->state == IMPORT_WRITING)
	{
		if (import->bytes.len >= IMPORT_PART_BYTES || (import->body_done && import->bytes.len > 0))
		{
			if (pace_begin(&import->turn, request->claims.uid, import_on_turn, request))
				import_put_part(request);
		}
		else if (import->body_done && !import->turn.taken)
			import_end(request);
	}
	conn_pause(request->conn, import->head.len + import->bytes.len > IMPORT_PART_BYTES);
}

static void
import_begun(Request *request, PGresult *res)
{
	Import *import = request->own;

	if (request_sql_error_code(request, res, "sheet_name"))
		return;
	if (!request_succeeded(res))
	{
		request_sql_error(request, res);
		return;
	}
	if (PQntuples(res) == 0)
	{
		request_error(request, 403, "only editors of the book may add a tab");
		return;
	}
	import->import_id = atoll(PQgetvalue(res, 0, 0));
	if (import->book != 0 && !PQgetisnull(res, 0, 1))
	{
		request_error_code(request, 409, "name_taken", "another tab of the book has the name");
		return;
	}
	import->state = IMPORT_WRITING;
	import_continue(request);
}

static void
import_authenticated(Request *request)
{
	const char *role = gateway.config.default_link_role;
	const Import *import = request->own;

	if (import->book != 0 && request->by_program && !(request->scopes & SCOPE_ADMIN))
	{
		request_error_code(request, 403, "scope",
						   "the access token does not permit this: to add a tab, the scope admin is needed");
		return;
	}
	request->begins = true;
	if (import->book != 0)
	{
		request_query(request, DATABASE_WRITES, import_tab_sql,
					  PARAMS(request_int64(request, import->book), pgparam_text(import->name), request_uid(request)),
					  REQUEST_TEXT_RAW, import_begun);
		return;
	}
	if (!import_is_new(request))
	{
		request_query(request, DATABASE_WRITES, import_into_sql, PARAMS(request_sheet(request), request_uid(request)),
					  REQUEST_TEXT_RAW, import_begun);
		return;
	}
	request_query(
		request, DATABASE_WRITES, import_begin_sql,
		PARAMS(pgparam_text(import->name), pgparam_text(strcmp(role, "none") == 0 ? NULL : role), request_uid(request)),
		REQUEST_TEXT_RAW, import_begun);
}

/* ---- the request ---- */

static void
import_body(Request *request, const char *data, size_t len)
{
	Import *import = request->own;

	if (request_is_answered(request))
		return;
	buf_put(&import->head, data, len);
	if (buf_failed(&import->head))
		request_out_of_memory(request);
	else if (request->received > gateway.config.max_upload_bytes)
		import_refuse_size(request);
	else
		import_continue(request);
}

/* The name of the new sheet and its place in a book, or the cell of a sheet that is there. False: answered. */
static bool
import_read_target(Request *request)
{
	Import *import = request->own;
	uint32_t row, col;

	if (import_is_new(request))
	{
		if (!request_arg(request, "name", import->name, sizeof(import->name)))
			request_error(request, 400, "name is needed in the query: that of the sheet");
		else if (request_has_arg(request, "book") && !request_arg_id(request, "book", &import->book))
			request_error(request, 400, "book is the id of a book");
		else if (request_has_arg(request, "before") &&
				 (import->book == 0 || !request_arg_id(request, "before", &import->before)))
			request_error(request, 400, "before is the id of a tab of the book");
		else
			return true;
		return false;
	}
	if (request_arg(request, "ref", import->ref, sizeof(import->ref)) &&
		a1_parse_cell(import->ref, strlen(import->ref), &row, &col))
		return true;
	request_error(request, 400, "ref is needed in the query: the upper left cell, as A1");
	return false;
}

bool
import_begin(Request *request)
{
	Import *import = request_own(request, sizeof(Import), import_free);

	if (import == NULL)
		return false;
	request->take_body = import_body;
	if (!import_read_target(request) || !import_read_options(request, &import->options))
		return false;
	if (request->head.content_length > gateway.config.max_upload_bytes)
		import_refuse_size(request);
	else
		request_authenticate(request, import_authenticated);
	return !request_is_answered(request);
}

void
import_body_end(Request *request)
{
	((Import *) request->own)->body_done = true;
	import_continue(request);
}
