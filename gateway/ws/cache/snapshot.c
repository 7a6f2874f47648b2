/*
 * snapshot.c - whole sheets in the form of protocol v1: read once, encoded once, shared by their readers.
 *
 * Protocol v1 has no ranges: /getsheet, /getsheetchkp and onConn send every cell. The text is encoded once for each seq
 * of a sheet, in pieces, and each reader has a position in it. It is read by one statement, hence consistent, as fast
 * as the database sends it: no connection waits for a slow client. An unpinned large snapshot stays for
 * SNAPSHOT_STAY_MS, unless its memory is wanted, and is reused if the sheet is still at its seq.
 *
 * The database is first asked for seq and extent, which is cheap, unless the caller knows that the sheet is small. A
 * sheet too large for the protocol is refused then, and a snapshot that is as new, or is being read, is shared. A small
 * sheet is read in one row; a larger one in rows of 256 kB, on a connection for long statements.
 *
 * Memory: all snapshots together take snapshot-bytes. Small ones are always made; there are no more of them than
 * connections. An account with several gets a quarter of it. Other requests are refused (BUSY). While memory is short,
 * the oldest snapshot is ended after block-seconds, and its readers with it.
 */
#include "ws/cache/snapshot.h"

#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "db/pgresult.h"
#include "support/log.h"
#include "ws/wire/v1_encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SNAPSHOT_SMALL		65536 /* bytes */
#define SNAPSHOT_STAY_MS	3000
#define SNAPSHOT_SHARE		4	 /* part of snapshot-bytes for an account that has several */
#define READING_SHORT_CELLS 8192 /* a larger sheet is read on a connection for long statements */

/* A request that waits for a snapshot. */
typedef struct SnapshotWaiter
{
	struct SnapshotWaiter *next;
	SnapshotKey key;
	int64_t account;
	int64_t needs_seq; /* the sheet's seq when the request came */
	bool again;		   /* the next one is begun after this request: it is new enough */
	uint64_t cells;	   /* of the sheet, about */
	char at[40];
	SnapshotFn fn;
	void *arg;
} SnapshotWaiter;

/* A snapshot that is not complete yet. */
typedef struct SnapshotReading
{
	V1Content encoder;
	SnapshotStatus status; /* SNAPSHOT_READY while nothing is wrong */
	SnapshotWaiter *waiters;
	SnapshotWaiter **waiters_last;
} SnapshotReading;

static Snapshot *snapshots; /* newest first */
static bool memory_wanted;	/* a request was refused for want of memory since the last tick */

static Buf cells_scratch, styles_scratch;

static struct
{
	uint64_t reads, shared, refused, ended;
	size_t bytes;
	size_t pinned;
} stats;

static bool
snapshot_has_key(const Snapshot *snapshot, const SnapshotKey *key)
{
	return snapshot->key.sheet_id == key->sheet_id && snapshot->key.version == key->version;
}

/* ---- memory ---- */

static void
text_free(SnapshotText *text)
{
	SnapshotPiece *next;

	for (SnapshotPiece *piece = text->first; piece != NULL; piece = next)
	{
		next = piece->next;
		free(piece);
	}
	*text = (SnapshotText){.last = &text->first};
}

static void
snapshot_empty(Snapshot *snapshot)
{
	stats.bytes -= snapshot->bytes;
	snapshot->bytes = 0;
	text_free(&snapshot->content);
	text_free(&snapshot->styles);
}

/* Frees the snapshots that are unpinned since `until` (ms) or longer, of one key, or of all (NULL). */
static void
snapshot_free_left(const SnapshotKey *key, uint64_t until)
{
	Snapshot **link = &snapshots;

	while (*link != NULL)
	{
		Snapshot *snapshot = *link;

		if (snapshot->pins > 0 || snapshot->left > until || (key != NULL && !snapshot_has_key(snapshot, key)))
		{
			link = &snapshot->next;
			continue;
		}
		*link = snapshot->next;
		snapshot_empty(snapshot);
		free(snapshot);
	}
}

/* Bytes of the account's other snapshots. */
static size_t
snapshot_bytes_of_others(const Snapshot *snapshot)
{
	size_t bytes = 0;

	for (const Snapshot *other = snapshots; other != NULL; other = other->next)
	{
		if (other != snapshot && other->account == snapshot->account && other->pins > 0)
			bytes += other->bytes;
	}
	return bytes;
}

/* Returns SNAPSHOT_READY if the snapshot may grow by so many bytes. */
static SnapshotStatus
snapshot_may_grow(const Snapshot *snapshot, size_t more)
{
	size_t limit = (size_t) gateway.config.snapshot_bytes;
	size_t size = snapshot->bytes + more;
	size_t others;

	if (size <= SNAPSHOT_SMALL)
		return SNAPSHOT_READY;
	if (size > limit)
		return SNAPSHOT_TOO_LARGE;
	if (stats.bytes + more > limit)
		snapshot_free_left(NULL, UINT64_MAX);
	if (stats.bytes + more > limit)
	{
		memory_wanted = true;
		return SNAPSHOT_BUSY;
	}
	others = snapshot_bytes_of_others(snapshot);
	return others > SNAPSHOT_SMALL && others + size > limit / SNAPSHOT_SHARE ? SNAPSHOT_BUSY : SNAPSHOT_READY;
}

void
snapshot_pin(Snapshot *snapshot)
{
	stats.pinned += snapshot->pins++ == 0;
}

void
snapshot_unpin(Snapshot *snapshot)
{
	if (snapshot == NULL || --snapshot->pins > 0)
		return;
	stats.pinned--;
	snapshot->left = snapshot->outdated || snapshot->bytes <= SNAPSHOT_SMALL ? 0 : uv_now(&gateway.loop);
	if (snapshot->left == 0)
		snapshot_free_left(&snapshot->key, 0);
}

/* ---- encoding ---- */

/* Makes the scratch a piece of the text. */
static void
text_add(Snapshot *snapshot, SnapshotText *text, Buf *scratch)
{
	SnapshotReading *reading = snapshot->reading;
	size_t size = sizeof(SnapshotPiece) + scratch->len;
	SnapshotPiece *piece;

	if (buf_failed(scratch) && reading->status == SNAPSHOT_READY)
		reading->status = SNAPSHOT_BUSY;
	if (scratch->len == 0 || reading->status != SNAPSHOT_READY)
		;
	else if ((reading->status = snapshot_may_grow(snapshot, size)) != SNAPSHOT_READY)
		;
	else if ((piece = malloc(size)) == NULL)
		reading->status = SNAPSHOT_BUSY;
	else
	{
		piece->next = NULL;
		piece->len = scratch->len;
		memcpy(piece->data, scratch->data, scratch->len);
		*text->last = piece;
		text->last = &piece->next;
		text->len += piece->len;
		snapshot->bytes += size;
		stats.bytes += size;
	}
	scratch->len = 0;
	if (buf_failed(scratch))
		buf_free(scratch); /* for the next snapshot */
}

/* From the encoder, when its scratch is full; and at the end of a row. */
static void
snapshot_take_scratch(void *arg)
{
	Snapshot *snapshot = arg;

	text_add(snapshot, &snapshot->content, &cells_scratch);
	text_add(snapshot, &snapshot->styles, &styles_scratch);
}

static void
snapshot_put_row(Snapshot *snapshot, const PGresult *res, int row)
{
	SnapshotReading *reading = snapshot->reading;
	V1Content *encoder = &reading->encoder;

	if (reading->status != SNAPSHOT_READY)
		return;
	if (encoder->full == NULL)
	{
		snapshot->seq = pgresult_int64(res, row, 0);
		snapshot->rows = pgresult_uint32(res, row, 1);
		snapshot->cols = pgresult_uint32(res, row, 2);
		*encoder = (V1Content){.rows = snapshot->rows,
							   .cols = snapshot->cols,
							   .cells = &cells_scratch,
							   .styles = &styles_scratch,
							   .full = snapshot_take_scratch,
							   .arg = snapshot};
		if ((uint64_t) snapshot->rows * snapshot->cols > V1_MAX_RECTANGLE)
			reading->status = SNAPSHOT_TOO_LARGE;
	}
	if (reading->status == SNAPSHOT_READY &&
		!v1_put_cells(encoder, PQgetvalue(res, row, 3), (size_t) PQgetlength(res, row, 3)))
		reading->status = SNAPSHOT_MALFORMED;
	snapshot_take_scratch(snapshot);
	if (reading->status != SNAPSHOT_READY)
		snapshot_empty(snapshot);
}

/* ---- reading ---- */

/* A second row means that the sheet is large. */
static const char snapshot_short_sql[] =
	"SELECT seq, rows, cols, cells FROM sheet.read_cells($1, NULL, NULL, NULL, NULL, 524288) LIMIT 2";
static const char snapshot_long_sql[] =
	"SELECT seq, rows, cols, cells FROM sheet.read_cells($1, NULL, NULL, NULL, NULL, 262144)";
static const char snapshot_version_sql[] = "SELECT seq, rows, cols, cells FROM sheet.read_version($1, $2, 262144)";

static void snapshot_wait(SnapshotWaiter *waiter);

static void
snapshot_answer(SnapshotWaiter *waiter, SnapshotStatus status, Snapshot *snapshot, const PGresult *res)
{
	stats.refused += status == SNAPSHOT_BUSY;
	waiter->fn(waiter->arg, status, snapshot, res);
	free(waiter);
}

/* The reading has ended. Requests that need a newer state wait for the next one. */
static void
snapshot_finish(Snapshot *snapshot, const PGresult *res)
{
	SnapshotStatus status = snapshot->reading->status;
	SnapshotWaiter *waiters = snapshot->reading->waiters, *next;

	if (status != SNAPSHOT_READY)
		snapshot->outdated = true;
	else
		snapshot_free_left(&snapshot->key, UINT64_MAX); /* older states of the sheet */
	free(snapshot->reading);
	snapshot->reading = NULL;
	for (SnapshotWaiter *waiter = waiters; waiter != NULL; waiter = next)
	{
		next = waiter->next;
		if (status == SNAPSHOT_READY && !waiter->again && snapshot->seq < waiter->needs_seq)
		{
			waiter->again = true;
			snapshot_wait(waiter);
		}
		else
			snapshot_answer(waiter, status, snapshot, res);
	}
	snapshot_unpin(snapshot);
}

static void
snapshot_row(void *arg, PGresult *row)
{
	snapshot_put_row(arg, row, 0);
}

static void
snapshot_done(void *arg, PGresult *res)
{
	Snapshot *snapshot = arg;
	SnapshotReading *reading = snapshot->reading;

	if (!pgresult_succeeded(res) || (reading->encoder.full == NULL))
		reading->status = SNAPSHOT_FAILED;
	if (reading->status == SNAPSHOT_READY)
	{
		v1_put_cells_end(&reading->encoder);
		snapshot_take_scratch(snapshot);
	}
	snapshot_finish(snapshot, res);
}

/* Reads on behalf of the first request whose account may have another statement; the requests before it are refused. */
static void
snapshot_read_long(Snapshot *snapshot)
{
	SnapshotReading *reading = snapshot->reading;
	char sheet[24], version[24];
	PgParam params[] = {pgparam_int64(sheet, snapshot->key.sheet_id), pgparam_int64(version, snapshot->key.version)};
	bool present = snapshot->key.version == 0;

	while (reading->waiters != NULL)
	{
		SnapshotWaiter *waiter = reading->waiters;

		snapshot->account = waiter->account;
		if (database_stream(DATABASE_LONG, waiter->account, false, present ? snapshot_long_sql : snapshot_version_sql,
							present ? 1 : 2, params, 1, snapshot_row, snapshot_done, snapshot))
			return;
		reading->waiters = waiter->next;
		if (reading->waiters == NULL)
			reading->waiters_last = &reading->waiters;
		snapshot_answer(waiter, SNAPSHOT_BUSY, NULL, NULL);
	}
	reading->status = SNAPSHOT_BUSY;
	snapshot_finish(snapshot, NULL);
}

static void
snapshot_short_done(void *arg, PGresult *res)
{
	Snapshot *snapshot = arg;

	if (pgresult_succeeded(res) && PQntuples(res) > 1)
	{
		snapshot_read_long(snapshot);
		return;
	}
	if (pgresult_succeeded(res) && PQntuples(res) == 1)
		snapshot_put_row(snapshot, res, 0);
	snapshot_done(snapshot, res);
}

static void
snapshot_read(Snapshot *snapshot, uint64_t cells)
{
	char sheet[24];
	PgParam param = pgparam_int64(sheet, snapshot->key.sheet_id);

	stats.reads++;
	if (snapshot->key.version != 0 || cells > READING_SHORT_CELLS ||
		!database_query(DATABASE_READS, 0, snapshot_short_sql, 1, &param, 1, snapshot_short_done, snapshot))
		snapshot_read_long(snapshot);
}

/* ---- asking ---- */

/* The newest snapshot of the key, complete or being read. */
static Snapshot *
snapshot_find(const SnapshotKey *key)
{
	for (Snapshot *snapshot = snapshots; snapshot != NULL; snapshot = snapshot->next)
	{
		if (snapshot_has_key(snapshot, key) && !snapshot->outdated)
			return snapshot;
	}
	return NULL;
}

static Snapshot *
snapshot_create(const SnapshotWaiter *waiter)
{
	Snapshot *snapshot = calloc(1, sizeof(Snapshot));
	SnapshotReading *reading = calloc(1, sizeof(SnapshotReading));

	if (snapshot == NULL || reading == NULL)
	{
		free(snapshot);
		free(reading);
		return NULL;
	}
	reading->waiters_last = &reading->waiters;
	snapshot->key = waiter->key;
	snapshot->account = waiter->account;
	snapshot->began = uv_now(&gateway.loop);
	snprintf(snapshot->at, sizeof(snapshot->at), "%s", waiter->at);
	snapshot->content.last = &snapshot->content.first;
	snapshot->styles.last = &snapshot->styles.first;
	snapshot_pin(snapshot); /* while it is being read */
	snapshot->reading = reading;
	snapshot->next = snapshots;
	snapshots = snapshot;
	return snapshot;
}

/* Answers the request from memory, or has the sheet read. */
static void
snapshot_wait(SnapshotWaiter *waiter)
{
	Snapshot *snapshot = snapshot_find(&waiter->key);
	bool created = snapshot == NULL || (snapshot->reading == NULL && snapshot->seq < waiter->needs_seq);

	if (!created && snapshot->reading == NULL)
	{
		stats.shared++;
		snapshot_answer(waiter, SNAPSHOT_READY, snapshot, NULL);
		return;
	}
	if (created && (snapshot = snapshot_create(waiter)) == NULL)
	{
		snapshot_answer(waiter, SNAPSHOT_BUSY, NULL, NULL);
		return;
	}
	waiter->again |= created;
	stats.shared += !created;
	waiter->next = NULL;
	*snapshot->reading->waiters_last = waiter;
	snapshot->reading->waiters_last = &waiter->next;
	if (created)
		snapshot_read(snapshot, waiter->cells);
}

static void
snapshot_head(void *arg, PGresult *res)
{
	SnapshotWaiter *waiter = arg;

	if (!pgresult_succeeded(res) || PQntuples(res) == 0)
	{
		snapshot_answer(waiter, SNAPSHOT_FAILED, NULL, res);
		return;
	}
	waiter->needs_seq = pgresult_int64(res, 0, 0);
	waiter->cells = (uint64_t) pgresult_uint32(res, 0, 1) * pgresult_uint32(res, 0, 2);
	snprintf(waiter->at, sizeof(waiter->at), "%.*s", PQgetlength(res, 0, 3), PQgetvalue(res, 0, 3));
	if (waiter->cells <= V1_MAX_RECTANGLE)
		snapshot_wait(waiter);
	else
		snapshot_answer(waiter, SNAPSHOT_TOO_LARGE, NULL, NULL);
}

static const char head_present_sql[] = "SELECT seq, rows, cols, '' FROM sheet.read_cells($1)";
static const char head_version_sql[] = "SELECT seq, rows, cols, at::text FROM sheet.read_version($1, $2, 0)";

void
snapshot_ask(const SnapshotKey *key, int64_t account, uint64_t cells, SnapshotFn fn, void *arg)
{
	char sheet[24], version[24];
	PgParam params[] = {pgparam_int64(sheet, key->sheet_id), pgparam_int64(version, key->version)};
	bool present = key->version == 0;
	SnapshotWaiter *waiter = calloc(1, sizeof(SnapshotWaiter));

	if (waiter == NULL)
	{
		fn(arg, SNAPSHOT_BUSY, NULL, NULL);
		return;
	}
	*waiter = (SnapshotWaiter){.key = *key, .account = account, .fn = fn, .arg = arg};
	if (present && cells > 0 && cells <= READING_SHORT_CELLS)
	{
		waiter->needs_seq = INT64_MAX; /* only one whose reading begins now */
		waiter->cells = cells;
		snapshot_wait(waiter);
	}
	else if (!database_query(DATABASE_READS, account, present ? head_present_sql : head_version_sql, present ? 1 : 2,
							 params, 1, snapshot_head, waiter))
		snapshot_answer(waiter, SNAPSHOT_BUSY, NULL, NULL);
}

/* ---- readers ---- */

void
snapshot_reader_begin(SnapshotReader *reader, Snapshot *snapshot, const SnapshotText *text, void (*end)(void *arg),
					  void *arg)
{
	snapshot_pin(snapshot);
	*reader = (SnapshotReader){.snapshot = snapshot, .piece = text->first, .end = end, .arg = arg};
	LIST_INSERT_HEAD(&snapshot->readers, reader, entry);
}

size_t
snapshot_reader_take(SnapshotReader *reader, size_t most, const char **data)
{
	const SnapshotPiece *piece = reader->piece;
	size_t len;

	if (piece == NULL)
		return 0;
	len = piece->len - reader->offset < most ? piece->len - reader->offset : most;
	*data = piece->data + reader->offset;
	reader->offset += len;
	if (reader->offset == piece->len) /* no piece is empty */
	{
		reader->piece = piece->next;
		reader->offset = 0;
	}
	return len;
}

void
snapshot_reader_end(SnapshotReader *reader)
{
	if (reader->snapshot == NULL)
		return;
	LIST_REMOVE(reader, entry);
	snapshot_unpin(reader->snapshot);
	reader->snapshot = NULL;
}

void
snapshot_put_text(Buf *to, const SnapshotText *text)
{
	for (const SnapshotPiece *piece = text->first; piece != NULL; piece = piece->next)
		buf_put(to, piece->data, piece->len);
}

/* ---- events ---- */

void
snapshot_invalidate_all(void)
{
	for (Snapshot *snapshot = snapshots; snapshot != NULL; snapshot = snapshot->next)
		snapshot->outdated = true;
}

/* The oldest large snapshot with readers; NULL if it is not old enough to be ended. */
static Snapshot *
snapshot_to_end(void)
{
	Snapshot *oldest = NULL;

	for (Snapshot *snapshot = snapshots; snapshot != NULL; snapshot = snapshot->next)
	{
		if (snapshot->bytes > SNAPSHOT_SMALL && !LIST_EMPTY(&snapshot->readers))
			oldest = snapshot;
	}
	if (oldest != NULL && uv_now(&gateway.loop) - oldest->began < (uint64_t) gateway.config.block_seconds * 1000)
		oldest = NULL;
	return oldest;
}

void
snapshot_tick(void)
{
	Snapshot *snapshot = memory_wanted ? snapshot_to_end() : NULL;

	memory_wanted = false;
	snapshot_free_left(NULL, uv_now(&gateway.loop) - SNAPSHOT_STAY_MS);
	if (snapshot == NULL)
		return;
	log_event(LOG_INFO, "readers of a whole sheet were too slow: others need the memory",
			  LOG_INT("sheet", snapshot->key.sheet_id), LOG_INT("bytes", (int64_t) snapshot->bytes));
	snapshot->outdated = true;
	stats.ended++;
	for (SnapshotReader *reader = LIST_FIRST(&snapshot->readers), *next; reader != NULL; reader = next)
	{
		next = LIST_NEXT(reader, entry);
		reader->end(reader->arg);
	}
}

/* ---- /metrics ---- */

void
snapshot_print(Buf *buf)
{
	metrics_print_counter(buf, "snapshot_reads_total", "Whole sheets read for protocol v1.", stats.reads);
	metrics_print_counter(buf, "snapshot_shared_total", "Whole sheets shared with other readers.", stats.shared);
	metrics_print_counter(buf, "snapshot_refused_total",
						  "Whole sheets refused for lack of memory (snapshot-bytes) or connections.", stats.refused);
	metrics_print_counter(buf, "snapshot_ended_total",
						  "Whole sheets whose readers were closed, after block-seconds, for lack of memory.",
						  stats.ended);
	metrics_print_gauge(buf, "snapshot_bytes", "Memory of whole sheets being sent (snapshot-bytes).", stats.bytes);
	metrics_print_gauge(buf, "snapshots", "Whole sheets being read or sent.", stats.pinned);
}
