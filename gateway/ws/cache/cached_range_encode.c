/*
 * cached_range_encode.c - a row of sheet.read_cells() or sheet.published_cells() as the text of a range.
 *
 * A thread of libuv's pool encodes large answers, since one takes the loop several milliseconds. The thread uses only
 * the RangeWork, which has a copy of the row. One is encoded at a time, and a pause as long as that took follows, so
 * that a client that reads large ranges in a loop uses half of a processor at most.
 */
#include "ws/cache/cached_range_encode.h"

#include "common/edit_codec.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "ws/cache/cached_table.h"
#include "ws/wire/v2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct RangeWork
{
	uv_work_t work; /* must be first */
	struct RangeWork *next;
	uint64_t began; /* ns */
	RangeKey key;
	int64_t seq;
	uint32_t rows, cols;
	uint32_t row, col; /* where the rectangle of a link is */
	RangeStatus status;
	RangeAnswer *answer; /* with RANGE_READY */
	RangeEncodedFn fn;
	void *arg;
	size_t len;
	size_t properties_len; /* of the sheet; behind the cells */
	char cells[];
} RangeWork;

static RangeWork *works; /* large ones; the first is being encoded, unless works_pause runs */
static RangeWork **works_last = &works;
static uv_timer_t works_pause;

static bool
work_put_cells(Buf *to, const RangeWork *work)
{
	EditReader reader;
	EditBatch batch;
	EditError error;
	Edit edit;
	bool first = true;

	edit_reader_init(&reader, work->cells, work->len);
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
		{
			if (!work->key.styles)
				edit.style = (EditText){NULL, 0};
			if (edit.content.len == 0 && edit.style.len == 0)
				continue;
			buf_puts(to, first ? "" : ",");
			v2_put_cell(to, &edit);
			first = false;
		}
		if (error != EDIT_END)
			return false;
	}
	return error == EDIT_END;
}

/* FNV-1a. Distinguishes states of the same seq, as after a failover that has lost edits. */
static uint64_t
work_digest(const Buf *body)
{
	uint64_t digest = UINT64_C(0xCBF29CE484222325);

	for (size_t i = 0; i < body->len; i++)
		digest = (digest ^ (unsigned char) body->data[i]) * UINT64_C(0x100000001B3);
	return digest;
}

/* Readers of a part learn nothing of edits elsewhere, and get it again only when it has changed. */
static void
work_put_etag(RangeWork *work, uint64_t digest)
{
	char *to = work->answer->etag;

	if (work->key.form == RANGE_PART)
		snprintf(to, sizeof(work->answer->etag), "\"%016llx\"", (unsigned long long) digest);
	else
		snprintf(to, sizeof(work->answer->etag), "\"%lld-%016llx\"", (long long) work->seq,
				 (unsigned long long) digest);
}

static RangeStatus
work_put_json(Buf *body, const RangeWork *work)
{
	const RangeKey *key = &work->key;

	buf_printf(body,
			   "{\"seq\":%lld,\"rows\":%u,\"cols\":%u,\"row\":%u,\"col\":%u,\"toRow\":%u,\"toCol\":%u,\"cells\":[",
			   (long long) work->seq, work->rows, work->cols, key->row, key->col, key->to_row, key->to_col);
	if (!work_put_cells(body, work))
		return RANGE_FAILED;
	buf_puts(body, "]}");
	return buf_failed(body) ? RANGE_BUSY : RANGE_READY;
}

static RangeStatus
work_put_table(Buf *body, const RangeWork *work)
{
	TableSource source = {.cells = work->cells, .len = work->len, .seq = work->seq};

	source.properties = work->cells + work->len;
	source.properties_len = work->properties_len;
	if (work->key.link_id != 0)
	{
		source.row = work->row;
		source.col = work->col;
		source.rows = work->rows;
		source.cols = work->cols;
		source.hide_formulas = true;
	}
	return cached_table_put(body, work->key.form, &source);
}

/* On any thread. */
static void
work_encode(uv_work_t *handle)
{
	RangeWork *work = (RangeWork *) handle;
	Buf body = {NULL, 0, 0};

	work->status = work->key.form == RANGE_CELLS ? work_put_json(&body, work) : work_put_table(&body, work);
	if (work->status == RANGE_READY)
		work->answer = malloc(sizeof(RangeAnswer) + body.len);
	if (work->answer != NULL)
	{
		*work->answer = (RangeAnswer){.pins = 1, .seq = work->seq, .len = body.len};
		work_put_etag(work, work_digest(&body));
		if (body.len > 0) /* the CSV of an empty sheet has nothing */
			memcpy(work->answer->body, body.data, body.len);
	}
	else if (work->status == RANGE_READY)
		work->status = RANGE_BUSY;
	buf_free(&body);
}

static void
work_finish(RangeWork *work)
{
	work->fn(work->arg, work->status, work->answer, work->len);
	free(work);
}

/* ---- large ones ---- */

static void works_start(uv_timer_t *timer);

static void
works_encoded(uv_work_t *handle, int status)
{
	RangeWork *work = works;

	works = work->next;
	if (works == NULL)
		works_last = &works;
	uv_timer_start(&works_pause, works_start, (uv_hrtime() - work->began) / 1000000, 0);
	work_finish(work);
}

static void
works_start(uv_timer_t *timer)
{
	if (works == NULL)
		return;
	works->began = uv_hrtime();
	(void) uv_queue_work(&gateway.loop, &works->work, work_encode, works_encoded);
}

static void
works_add(RangeWork *work)
{
	bool idle = works == NULL;

	if (works_pause.loop == NULL)
	{
		uv_timer_init(&gateway.loop, &works_pause);
		uv_unref((uv_handle_t *) &works_pause);
	}
	*works_last = work;
	works_last = &work->next;
	if (idle && !uv_is_active((uv_handle_t *) &works_pause))
		works_start(&works_pause);
}

bool
cached_range_encode(const RangeKey *key, const PGresult *res, bool large, RangeEncodedFn fn, void *arg)
{
	size_t len = (size_t) PQgetlength(res, 0, 3);
	int column = PQfnumber(res, "properties");
	size_t properties_len = column >= 0 ? (size_t) PQgetlength(res, 0, column) : 0;
	RangeWork *work = malloc(sizeof(RangeWork) + len + properties_len);

	if (work == NULL)
		return false;
	*work = (RangeWork){.key = *key,
						.seq = pgresult_int64(res, 0, 0),
						.rows = pgresult_uint32(res, 0, 1),
						.cols = pgresult_uint32(res, 0, 2),
						.status = RANGE_BUSY,
						.fn = fn,
						.arg = arg,
						.len = len,
						.properties_len = properties_len};
	if (key->link_id != 0)
	{
		work->row = pgresult_uint32(res, 0, 4);
		work->col = pgresult_uint32(res, 0, 5);
	}
	memcpy(work->cells, PQgetvalue(res, 0, 3), len);
	if (properties_len > 0)
		memcpy(work->cells + len, PQgetvalue(res, 0, column), properties_len);
	if (large)
		works_add(work);
	else
	{
		work_encode(&work->work);
		work_finish(work);
	}
	return true;
}
