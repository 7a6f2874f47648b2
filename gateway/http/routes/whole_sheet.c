/*
 * whole_sheet.c - answers of protocol v1 that hold every cell of a sheet.
 *
 * The cells are a snapshot's (ws/cache/snapshot.h), which all who read the same state share. An answer holds only what
 * goes before them, and a piece on its way to the socket, however slowly its client reads.
 */
#include "http/routes/whole_sheet.h"

#include "http/server/conn.h"
#include "core/gateway.h"
#include "http/routes/routes.h"
#include "ws/cache/snapshot.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE_WRITE_BYTES 65536

typedef struct WholeSheet
{
	SnapshotReader reader;
	Buf head;
} WholeSheet;

static const char whole_tail[] = "]}}";

void
whole_sheet_free(WholeSheet *sheet)
{
	if (sheet == NULL)
		return;
	snapshot_reader_end(&sheet->reader);
	buf_free(&sheet->head);
	free(sheet);
}

/* Others need the memory, and this client has been slow: it finds its answer short. */
static void
whole_end(void *arg)
{
	Request *request = arg;

	if (request->conn != NULL)
		conn_abort(request->conn);
}

static bool
whole_fill(Request *request, Buf *to)
{
	WholeSheet *sheet = request->whole;
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
	WholeSheet *sheet = request->whole = calloc(1, sizeof(WholeSheet));
	Msg msg = snapshot->key.version == 0 ? MSG_SHEET : MSG_VERSION;

	if (sheet == NULL)
	{
		request_out_of_memory(request);
		return;
	}
	snapshot_reader_begin(&sheet->reader, snapshot, &snapshot->content, whole_end, request);
	buf_printf(&sheet->head, "{\"success\":true,\"msg\":%d,\"data\":", msg);
	buf_put_buf(&sheet->head, &request->data);
	if (snapshot->key.version != 0)
	{
		buf_printf(&sheet->head, "{\"cid\":%lld,\"timestamp\":", (long long) snapshot->key.version);
		routes_put_time(&sheet->head, snapshot->at);
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
	request->constant = "";
	request->fill = whole_fill;
	request_answer(request, 200, "application/json", NULL);
}

static void
whole_asked(void *arg, SnapshotStatus status, Snapshot *snapshot, const PGresult *res)
{
	Request *request = arg;

	if (request->conn == NULL)
		;
	else if (status == SNAPSHOT_READY)
		whole_begin(request, snapshot);
	else if (status == SNAPSHOT_TOO_LARGE)
		request_error(request, 413, "the sheet is too large for protocol v1");
	else if (status == SNAPSHOT_BUSY)
		request_error_later(request, 503, REQUEST_BUSY_S, "too many requests of this kind are under way: try again");
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
	snapshot_ask(&key, request->claims.uid, 0, whole_asked, request);
}
