/* side.c - see side.h. */
#include "side.h"

#include "common/edit_codec.h"
#include "params.h"

#include <string.h>

#define MAX_EDIT (64 + 2 * TEXT_MAX)

void
feed_init(Feed *feed, SideName side, int64_t sheet_id, uint64_t seed)
{
	*feed = (Feed){side, sheet_id, 2, workload_create(seed)};
}

int64_t
feed_edits(const Feed *feed)
{
	return feed->next_seq - 2;
}

void
side_create(Session *session)
{
	session_run(session,
				"CREATE SCHEMA bench;"
				"CREATE TABLE bench.log (sheet_id bigint, seq bigint, ts timestamptz, uid bigint, \"row\" int, "
				"col int, old text, new text, PRIMARY KEY (sheet_id, seq))");
}

void
side_prepare(Session *session)
{
	static const char *const statements[][2] = {
		{"heap_batch", "INSERT INTO bench.log SELECT $1::int8, $2::int8 + o, now(), uid, \"row\", col, old, new"
					   " FROM unnest($3::int8[], $4::int4[], $5::int4[], $6::text[], $7::text[]) WITH ORDINALITY"
					   " AS e(uid, \"row\", col, old, new, o)"},
		{"heap_one", "INSERT INTO bench.log VALUES ($1::int8, $2::int8, now(), $3::int8, $4::int4, $5::int4, $6::text,"
					 " $7::text)"},
		{"sheet_batch", "SELECT last_seq FROM sheet.apply($1::int8, $2::bytea)"},
	};

	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		session_prepare(session, statements[i][0], statements[i][1]);
}

/* ---- heap ---- */

static void
heap_append_one(Session *session, const Feed *feed, const WorkloadEdit *edit)
{
	Params params = {0};

	param_int8(&params, feed->sheet_id);
	param_int8(&params, feed->next_seq);
	param_int8(&params, edit->uid);
	param_int4(&params, edit->row);
	param_int4(&params, edit->col);
	param_bytes(&params, edit->old.data, edit->old.len);
	param_bytes(&params, edit->new.data, edit->new.len);
	PQclear(params_execute(session, "heap_one", &params));
}

static void
heap_append(Session *session, const Feed *feed, const WorkloadEdit *edits, int count)
{
	static const int32_t types[5] = {INT8OID, INT4OID, INT4OID, TEXTOID, TEXTOID};
	char arrays[5][ARRAY_HEAD + SIDE_MAX_EDITS * (4 + TEXT_MAX)];
	char *ends[5];
	Params params = {0};

	for (int i = 0; i < 5; i++)
		ends[i] = array_begin(arrays[i], types[i], count);
	for (const WorkloadEdit *edit = edits; edit < edits + count; edit++)
	{
		ends[0] = array_put_int8(ends[0], edit->uid);
		ends[1] = array_put_int4(ends[1], edit->row);
		ends[2] = array_put_int4(ends[2], edit->col);
		ends[3] = array_put_bytes(ends[3], edit->old.data, edit->old.len);
		ends[4] = array_put_bytes(ends[4], edit->new.data, edit->new.len);
	}
	param_int8(&params, feed->sheet_id);
	param_int8(&params, feed->next_seq - 1); /* ordinality counts from 1 */
	for (int i = 0; i < 5; i++)
		param_bytes(&params, arrays[i], (int) (ends[i] - arrays[i]));
	PQclear(params_execute(session, "heap_batch", &params));
}

/* ---- sheet ---- */

static size_t
sheet_encode(uint8_t *to, const WorkloadEdit *edits, int count)
{
	EditWriter writer;
	EditBatch batch = {.count = count};

	edit_write_batch(&writer, to, &batch);
	for (const WorkloadEdit *from = edits; from < edits + count; from++)
	{
		Edit edit = {.kind = EDIT_SET, .uid = from->uid, .row = from->row, .col = from->col};

		edit.content = (EditText){from->new.data, from->new.len};
		edit_write(&writer, &edit);
	}
	return writer.pos - to;
}

/* The answer says how far the sheet's log has come: an edit that was not logged shows at once. */
static void
sheet_append(Session *session, const Feed *feed, const WorkloadEdit *edits, int count)
{
	uint8_t bytes[EDIT_BATCH_HEAD_MAX + SIDE_MAX_EDITS * MAX_EDIT];
	Params params = {0};
	PGresult *result;
	int64_t last_seq;

	param_int8(&params, feed->sheet_id);
	param_bytes(&params, bytes, (int) sheet_encode(bytes, edits, count));
	result = params_execute(session, "sheet_batch", &params);
	last_seq = answer_int8(result, 0, 0);
	PQclear(result);
	if (last_seq != feed->next_seq + count - 1)
		fail("sheet.apply() came to seq %ld of sheet %ld instead of %ld", (long) last_seq, (long) feed->sheet_id,
			 (long) (feed->next_seq + count - 1));
}

void
side_append(Session *session, Feed *feed, int count)
{
	WorkloadEdit edits[SIDE_MAX_EDITS];

	for (int i = 0; i < count; i++)
		workload_next(feed->sheet, &edits[i]);
	if (feed->side == SHEET)
		sheet_append(session, feed, edits, count);
	else if (count == 1)
		heap_append_one(session, feed, edits);
	else
		heap_append(session, feed, edits, count);
	feed->next_seq += count;
}
