/*
 * routes_version.c - versions: commit, read, roll back; and the answers of protocol v1 that hold every cell of a sheet.
 *
 * Every reader of a state shares its snapshot (ws/cache/snapshot.h). An answer holds only what precedes the cells, and
 * the piece that is being written.
 */
#include "http/routes/routes.h"
#include "ws/cache/snapshot.h"
#include "ws/cache/cached_range.h"
#include "ws/room/room.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE_WRITE_BYTES 65536

static const char version_commit_sql[] = "SELECT sheet.commit($1, $2, $4, $3)";
static const char version_label_sql[] = "SELECT sheet.label_version($1, $2, $3, $4)";
static const char version_rollback_sql[] = "SELECT sheet.rollback($1, $2, $4, $3)";
/* In the trash the owner alone. */
static const char version_check_sql[] =
	"SELECT FROM sheet.check_role($1, 'viewer', coalesce(sheet.role_of($1, $2) = 'owner', false), $2)";

/* The epoch under which this gateway has the sheet open; NULL if it is not open here. */
static PgParam
version_epoch(Request *request)
{
	const Room *room = room_find(request->sheet_id);

	return room != NULL && room_is_open(room) ? request_int64(request, room->epoch) : pgparam_null();
}

/* fid, and the number that is named. */
static bool
version_check(Request *request, const char *name)
{
	if (request_number(request, "fid", 0, JSON_MAX_NUMBER, &request->sheet_id) &&
		(name == NULL || request_number(request, name, 0, JSON_MAX_NUMBER, &request->number)))
		return true;
	request_error(request, 400, "fid, cid and lid are numbers");
	return false;
}

bool
check_commit(Request *request)
{
	const cJSON *label = request_member(request, "label");

	if (label == NULL || cJSON_IsNull(label) || cJSON_IsString(label))
		return version_check(request, NULL);
	request_error(request, 400, "label is a string");
	return false;
}

bool
check_label(Request *request)
{
	const char *label;

	if (request_string(request, "label", &label) &&
		request_number(request, "version", 1, JSON_MAX_NUMBER, &request->number))
		return true;
	request_error(request, 400, "version is needed as a number, label as a string");
	return false;
}

bool
check_fid_cid(Request *request)
{
	return version_check(request, "cid");
}

bool
check_fid_lid(Request *request)
{
	return version_check(request, "lid");
}

/* 42704 may mean the sheet or the version: the message tells. */
void
version_error(Request *request, const PGresult *res, Msg missing)
{
	const char *text = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	if (strcmp(pgresult_sqlstate(res), "SN001") == 0)
		request_msg(request, MSG_NOTHING_TO_COMMIT);
	else if (strcmp(pgresult_sqlstate(res), "42704") == 0 && text != NULL &&
			 (strstr(text, "version") != NULL || strstr(text, "segment") != NULL))
		request_msg(request, missing);
	else
		request_sql_error(request, res);
}

/* ---- /commitsheet {fid, label}, /rollbacksheet {fid, cid} ---- */

/* Answers an error that is about the label. */
static bool
version_label_error(Request *request, const PGresult *res)
{
	const char *text = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	if (text == NULL || strstr(text, "label") == NULL ||
		(strncmp(pgresult_sqlstate(res), "22", 2) != 0 && strcmp(pgresult_sqlstate(res), "54000") != 0))
		return false;
	request_error_code(request, 400, "label", text);
	return true;
}

static void
version_commit_answered(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	cached_range_invalidate(request->sheet_id);
	if (version_label_error(request, res))
		return;
	if (!request_succeeded(res))
	{
		version_error(request, res, MSG_NO_VERSION);
		return;
	}
	buf_puts(&data, PQgetvalue(res, 0, 0));
	request_data(request, MSG_COMMITTED, &data);
}

void
route_commit(Request *request)
{
	const char *label = request_text(request, "label");

	request_query(request, DATABASE_LONG, version_commit_sql,
				  PARAMS(request_sheet(request), pgparam_text(label[0] != '\0' ? label : NULL), request_uid(request),
						 version_epoch(request)),
				  REQUEST_TEXT_RAW, version_commit_answered);
}

/* ---- POST /v2/sheets/ID/label {version, label} ---- */

static void
label_answered(Request *request, PGresult *res)
{
	const char *text = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	if (version_label_error(request, res))
		return;
	if (strcmp(pgresult_sqlstate(res), "42704") == 0 && text != NULL && strstr(text, "saved version") != NULL)
		request_error_code(request, 404, "no_version", text);
	else
		request_done(request, res);
}

void
route_label_version(Request *request)
{
	request_query(request, DATABASE_WRITES, version_label_sql,
				  PARAMS(request_sheet(request), request_int64(request, request->number),
						 pgparam_text(request_text(request, "label")), request_uid(request)),
				  REQUEST_TEXT_RAW, label_answered);
}

static void
rollback_answered(Request *request, PGresult *res)
{
	cached_range_invalidate(request->sheet_id);
	if (request_succeeded(res))
		request_msg(request, MSG_ROLLED_BACK);
	else
		version_error(request, res, MSG_NO_VERSION);
}

void
route_rollback(Request *request)
{
	request_query(request, DATABASE_LONG, version_rollback_sql,
				  PARAMS(request_sheet(request), request_int64(request, request->number), request_uid(request),
						 version_epoch(request)),
				  REQUEST_TEXT_RAW, rollback_answered);
}

/* ---- /getsheetchkp {fid, cid} ---- */

static void
version_checked(Request *request, PGresult *res)
{
	if (!request_succeeded(res))
		version_error(request, res, MSG_NO_VERSION);
	else if (request->number == 0)
		request_msg(request, MSG_NO_VERSION);
	else
		whole_sheet_answer(request, request->number);
}

void
route_get_version(Request *request)
{
	request_query(request, DATABASE_READS, version_check_sql, PARAMS(request_sheet(request), request_uid(request)),
				  REQUEST_TEXT_RAW, version_checked);
}

/* ---- every cell ---- */

typedef struct WholeSheet
{
	SnapshotReader reader;
	Buf head;
} WholeSheet;

static const char whole_tail[] = "]}}";

static void
whole_free(void *own)
{
	WholeSheet *sheet = own;

	snapshot_reader_end(&sheet->reader);
	buf_free(&sheet->head);
	free(sheet);
}

/* Others need the memory, and this client is slow: its answer ends short of its length. */
static void
whole_end(void *arg)
{
	Request *request = arg;

	if (!request_is_gone(request))
		conn_abort(request->conn);
}

static bool
whole_fill(Request *request, Buf *to)
{
	WholeSheet *sheet = request->own;
	size_t before = to->len, len;
	const char *data;

	if (request->written == 0)
		buf_put(to, sheet->head.data, sheet->head.len);
	len = snapshot_reader_take(&sheet->reader, WHOLE_WRITE_BYTES, &data);
	if (len > 0)
		buf_put(to, data, len);
	else
		buf_puts(to, whole_tail);
	request->written += to->len - before;
	return request->written == request->length;
}

static void
whole_begin(Request *request, Snapshot *snapshot)
{
	WholeSheet *sheet = request_own(request, sizeof(WholeSheet), whole_free);
	Msg msg = snapshot->key.version == 0 ? MSG_SHEET : MSG_VERSION;

	if (sheet == NULL)
		return;
	snapshot_reader_begin(&sheet->reader, snapshot, &snapshot->content, whole_end, request);
	buf_printf(&sheet->head, "{\"success\":true,\"msg\":%d,\"data\":", msg);
	buf_put_buf(&sheet->head, &request->data);
	if (snapshot->key.version != 0)
	{
		buf_printf(&sheet->head, "{\"cid\":%lld", (long long) snapshot->key.version);
		routes_put_time_member(&sheet->head, "timestamp", snapshot->at);
		buf_printf(&sheet->head, ",\"rows\":%u", snapshot->rows);
	}
	buf_printf(&sheet->head, ",\"columns\":%u,\"content\":[", snapshot->cols);
	buf_free(&request->data);
	if (buf_failed(&sheet->head))
	{
		request_out_of_memory(request);
		return;
	}
	request->length = sheet->head.len + snapshot->content.len + sizeof(whole_tail) - 1;
	request->fill = whole_fill;
	request_json(request, 200, NULL);
}

static void
whole_answered(void *arg, SnapshotStatus status, Snapshot *snapshot, const PGresult *res)
{
	Request *request = arg;

	if (request_is_gone(request))
		;
	else if (status == SNAPSHOT_READY)
		whole_begin(request, snapshot);
	else if (status == SNAPSHOT_TOO_LARGE)
		request_error_code(request, 413, "large_version", "the sheet is too large for protocol v1");
	else if (status == SNAPSHOT_BUSY)
		request_too_busy(request);
	else if (status == SNAPSHOT_MALFORMED)
		request_error(request, 500, "the sheet's cells cannot be read");
	else if (request->number != 0)
		version_error(request, res, MSG_NO_VERSION);
	else
		request_sql_error(request, res);
	request_end_step(request);
}

void
whole_sheet_answer(Request *request, int64_t version)
{
	SnapshotKey key = {request->sheet_id, version};

	request_begin_step(request);
	snapshot_ask(&key, request->claims.uid, 0, whole_answered, request);
}
