/* side.c - see side.h. */
#include "side.h"

#include "edit_codec.h"

#include <endian.h>
#include <string.h>

#define BYTEAOID	 17
#define INT8OID		 20
#define INT4OID		 23
#define TEXTOID		 25
#define MAX_EDIT	 (64 + 2 * WORKLOAD_MAX_TEXT)
#define ARRAY_HEADER 20

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
		PQclear(session_check(session, PQprepare(session->conn, statements[i][0], statements[i][1], 0, NULL)));
}

/* ---- binary parameters ---- */

typedef struct Params
{
	int count;
	const char *values[8];
	int lens[8];
	int64_t numbers[8];
} Params;

static void
param_bytes(Params *params, const void *data, int len)
{
	params->values[params->count] = data;
	params->lens[params->count++] = len;
}

static void
param_int8(Params *params, int64_t value)
{
	int64_t *number = &params->numbers[params->count];

	*number = htobe64(value);
	param_bytes(params, number, sizeof(*number));
}

static void
param_int4(Params *params, int32_t value)
{
	int32_t *number = (int32_t *) &params->numbers[params->count];

	*number = htobe32(value);
	param_bytes(params, number, sizeof(*number));
}

static char *
put_int4(char *to, int32_t value)
{
	value = htobe32(value);
	return mempcpy(to, &value, sizeof(value));
}

/* An array's elements follow, each with its length before it. */
static char *
put_array(char *to, int32_t type, int count)
{
	to = put_int4(to, 1); /* dimensions */
	to = put_int4(to, 0); /* no nulls */
	to = put_int4(to, type);
	to = put_int4(to, count);
	return put_int4(to, 1); /* lower bound */
}

static char *
put_text(char *to, const WorkloadText *text)
{
	return mempcpy(put_int4(to, text->len), text->data, text->len);
}

static char *
put_number(char *to, int32_t value)
{
	return put_int4(put_int4(to, sizeof(value)), value);
}

static char *
put_uid(char *to, int64_t uid)
{
	uid = htobe64(uid);
	return mempcpy(put_int4(to, sizeof(uid)), &uid, sizeof(uid));
}

static PGresult *
side_execute(Session *session, const char *name, const Params *params)
{
	static const int binary[8] = {1, 1, 1, 1, 1, 1, 1, 1};

	return session_check(session,
						 PQexecPrepared(session->conn, name, params->count, params->values, params->lens, binary, 1));
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
	PQclear(side_execute(session, "heap_one", &params));
}

static void
heap_append(Session *session, const Feed *feed, const WorkloadEdit *edits, int count)
{
	static const int32_t types[5] = {INT8OID, INT4OID, INT4OID, TEXTOID, TEXTOID};
	char arrays[5][ARRAY_HEADER + SIDE_MAX_EDITS * (4 + WORKLOAD_MAX_TEXT)];
	char *ends[5];
	Params params = {0};

	for (int i = 0; i < 5; i++)
		ends[i] = put_array(arrays[i], types[i], count);
	for (const WorkloadEdit *edit = edits; edit < edits + count; edit++)
	{
		ends[0] = put_uid(ends[0], edit->uid);
		ends[1] = put_number(ends[1], edit->row);
		ends[2] = put_number(ends[2], edit->col);
		ends[3] = put_text(ends[3], &edit->old);
		ends[4] = put_text(ends[4], &edit->new);
	}
	param_int8(&params, feed->sheet_id);
	param_int8(&params, feed->next_seq - 1); /* ordinality counts from 1 */
	for (int i = 0; i < 5; i++)
		param_bytes(&params, arrays[i], (int) (ends[i] - arrays[i]));
	PQclear(side_execute(session, "heap_batch", &params));
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
	result = side_execute(session, "sheet_batch", &params);
	memcpy(&last_seq, PQgetvalue(result, 0, 0), sizeof(last_seq));
	PQclear(result);
	last_seq = be64toh(last_seq);
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
