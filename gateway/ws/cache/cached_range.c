/*
 * cached_range.c - cached ranges of cells: read from the database, encoded once, and kept.
 *
 * What PROTOCOL.md promises, and why it holds:
 *
 * - An answer holds at its seq, and is reused only while the gateway knows of no newer seq of the sheet. The gateway
 *   registers its own commits before it acknowledges them (commit.c), those of others by following (follow.c), and any
 *   seq that an answer of the database shows. So a client that knows of an edit never gets cells from before it, and
 *   the seqs given out for a sheet never decrease.
 * - Nothing cached is used while following is not current (changes_are_current()). A gateway that was frozen or cut
 *   off asks the database.
 * - A change without a known seq (a request whose outcome is unknown, lost events) invalidates the sheet's cached
 *   ranges: answers to questions asked before it are not kept, even if they arrive after it. A clock that advances with
 *   each question and each invalidation tells their order.
 * - A batch of a room whose outcome is unknown may be stored at any moment. The caller asks the room first
 *   (room_may_be_ahead()) and does not use the cache then. A room that ends invalidates the sheet when its batch is
 *   answered.
 * - A batch whose connection broke may be stored after its room has ended, unnoticed. An answer is therefore used for
 *   RANGE_MAX_AGE_S at most.
 * - The gateway hears of values of formulas that are stored. It does not hear of it if none has changed, and then those
 *   that are stored are of a later seq, which answers tell (RangeAnswer.computed). So while they are not of the last
 *   seq, an answer is used for RANGE_STALE_AGE_MS at most, from when it is there: reading it may have taken longer.
 *
 * Requests for a range that is being read wait for that answer. They take it if it is as new as what the gateway knew
 * when they came. Otherwise the range is read once more for all of them.
 *
 * Memory: answers are kept in order of their last use; the oldest are dropped beyond range-cache-bytes. A pinned
 * answer stays in memory after it was dropped. Slow readers could so pin any amount, so no large answer is made while
 * unlisted ones take more than RANGE_UNLISTED_MAX. Small answers are always made: there are no more of them than
 * connections. A RangeSheet lives as long as one of its ranges.
 */
#include "ws/cache/cached_range.h"

#include "support/sheet_map.h"
#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "db/pgresult.h"
#include "ws/cache/cached_range_encode.h"
#include "ws/cache/changes.h"

#include <stdlib.h>
#include <string.h>

#define RANGE_BUCKETS	   16384 /* a power of two */
#define RANGE_MAX_AGE_S	   10
#define RANGE_STALE_AGE_MS 500 /* of an answer whose values are not yet computed for its seq */
#define RANGE_SMALL		   65536
#define RANGE_SHORT_CELLS  8192				  /* a larger range is read on a connection for long statements */
#define RANGE_UNLISTED_MAX (64 * 1024 * 1024) /* bytes of answers that are pinned and not kept */
#define RANGE_TORN_MAX	   10				  /* questions again for an answer of one seq */
#define RANGE_SHARE		   8				  /* an answer of more than this part of the memory is not kept */

/* A sheet with cached ranges. */
typedef struct RangeSheet
{
	SheetEntry entry; /* by sheet id; must be first */
	int64_t known_seq;
	uint64_t invalidated; /* the clock when its answers were invalidated; 0: never */
	int ranges;
} RangeSheet;

/* A request that waits for an answer, and how new that must be. */
typedef struct RangeWaiter
{
	struct RangeWaiter *next;
	RangeFn fn;
	void *arg;
	int64_t account;
	int64_t needs_seq;
	uint64_t needs_asked; /* by the clock */
	bool again;			  /* the next answer was asked for after this request: it is new enough */
} RangeWaiter;

typedef struct CachedRange
{
	RangeKey key;
	RangeSheet *sheet;
	struct CachedRange *next;		   /* in the bucket */
	struct CachedRange *newer, *older; /* in order of use; only with an answer */
	RangeAnswer *answer;			   /* NULL: none is kept */
	bool reading;
	int64_t computed; /* of the answer that is being encoded */
	int torn;		  /* answers to the question under way whose parts were of different seqs */
	uint64_t asked;	  /* the clock at the question under way */
	uint64_t began;
	RangeWaiter *waiters;
	RangeWaiter **waiters_last;
} CachedRange;

static CachedRange *buckets[RANGE_BUCKETS];
static CachedRange *newest, *oldest;
static SheetMap sheets;
static uint64_t clock_now = 1;
static uint64_t invalidated_all;

static struct
{
	uint64_t hits, misses, evictions;
	uint64_t bytes, answers;
	uint64_t unlisted; /* bytes of answers that are pinned and not kept, and of rows being encoded */
} stats;

/* ---- sheets ---- */

/* NULL: no memory. */
static RangeSheet *
sheet_enter(int64_t sheet_id)
{
	RangeSheet *sheet = sheet_map_find(&sheets, sheet_id);

	if (sheet == NULL)
	{
		sheet = calloc(1, sizeof(RangeSheet));
		if (sheet == NULL)
			return NULL;
		sheet->entry.sheet_id = sheet_id;
		sheet_map_add(&sheets, &sheet->entry);
		stats.bytes += sizeof(RangeSheet);
	}
	sheet->ranges++;
	return sheet;
}

static void
sheet_leave(RangeSheet *sheet)
{
	if (--sheet->ranges > 0)
		return;
	sheet_map_remove(&sheets, &sheet->entry);
	free(sheet);
	stats.bytes -= sizeof(RangeSheet);
}

/* Answers to questions asked up to this clock are invalid. */
static uint64_t
sheet_invalidated(const RangeSheet *sheet)
{
	return sheet->invalidated > invalidated_all ? sheet->invalidated : invalidated_all;
}

void
cached_range_committed(int64_t sheet_id, int64_t seq)
{
	RangeSheet *sheet = sheet_map_find(&sheets, sheet_id);

	if (sheet != NULL && seq > sheet->known_seq)
		sheet->known_seq = seq;
	changes_register_edits(sheet_id, seq);
}

void
cached_range_invalidate(int64_t sheet_id)
{
	RangeSheet *sheet = sheet_map_find(&sheets, sheet_id);

	if (sheet != NULL)
		sheet->invalidated = ++clock_now;
	changes_register_edits(sheet_id, 0);
}

void
cached_range_invalidate_all(void)
{
	RangeSheet *sheet;
	SheetWalk walk;

	/* Another server, with fewer edits, may have taken over. */
	sheet_walk_begin(&walk, &sheets);
	while ((sheet = sheet_walk_next(&walk)) != NULL)
		sheet->known_seq = 0;
	invalidated_all = ++clock_now;
}

/* ---- the table ---- */

static CachedRange **
range_bucket(const RangeKey *key)
{
	uint64_t hash = (uint64_t) key->sheet_id * UINT64_C(0x9E3779B97F4A7C15);

	hash = (hash ^ ((uint64_t) key->row << 32 | key->col)) * UINT64_C(0x9E3779B97F4A7C15);
	hash = (hash ^ ((uint64_t) key->to_row << 32 | key->to_col)) * UINT64_C(0x9E3779B97F4A7C15);
	hash = (hash ^ (uint64_t) key->link_id) * UINT64_C(0x9E3779B97F4A7C15);
	return &buckets[(hash >> 40 ^ (uint64_t) key->form << 2 ^ key->formulas << 1 ^ key->styles) & (RANGE_BUCKETS - 1)];
}

static bool
range_has_key(const CachedRange *range, const RangeKey *key)
{
	return range->key.sheet_id == key->sheet_id && range->key.row == key->row && range->key.col == key->col &&
		   range->key.to_row == key->to_row && range->key.to_col == key->to_col && range->key.styles == key->styles &&
		   range->key.formulas == key->formulas && range->key.form == key->form && range->key.link_id == key->link_id;
}

static CachedRange *
range_look_up(const RangeKey *key)
{
	for (CachedRange *range = *range_bucket(key); range != NULL; range = range->next)
	{
		if (range_has_key(range, key))
			return range;
	}
	return NULL;
}

/* NULL: no memory. */
static CachedRange *
range_enter(const RangeKey *key)
{
	CachedRange *range = range_look_up(key);
	CachedRange **bucket = range_bucket(key);

	if (range != NULL)
		return range;
	range = calloc(1, sizeof(CachedRange));
	if (range == NULL || (range->sheet = sheet_enter(key->sheet_id)) == NULL)
	{
		free(range);
		return NULL;
	}
	range->key = *key;
	range->waiters_last = &range->waiters;
	range->next = *bucket;
	*bucket = range;
	stats.bytes += sizeof(CachedRange);
	return range;
}

/* Frees a range that has no answer and is not being read. */
static void
range_check_end(CachedRange *range)
{
	CachedRange **link = range_bucket(&range->key);

	if (range->answer != NULL || range->reading)
		return;
	while (*link != range)
		link = &(*link)->next;
	*link = range->next;
	sheet_leave(range->sheet);
	free(range);
	stats.bytes -= sizeof(CachedRange);
}

/* ---- answers ---- */

void
cached_range_pin(RangeAnswer *answer)
{
	answer->pins++;
}

static size_t
answer_size(const RangeAnswer *answer)
{
	return sizeof(RangeAnswer) + answer->len;
}

void
cached_range_unpin(RangeAnswer *answer)
{
	if (answer == NULL || --answer->pins > 0)
		return;
	stats.unlisted -= answer_size(answer);
	free(answer);
}

static void
range_link(CachedRange *range)
{
	range->newer = NULL;
	range->older = newest;
	if (newest != NULL)
		newest->newer = range;
	else
		oldest = range;
	newest = range;
}

static void
range_unlink(CachedRange *range)
{
	if (range->newer != NULL)
		range->newer->older = range->older;
	else
		newest = range->older;
	if (range->older != NULL)
		range->older->newer = range->newer;
	else
		oldest = range->newer;
}

static void
range_drop(CachedRange *range)
{
	if (range->answer == NULL)
		return;
	range_unlink(range);
	stats.bytes -= answer_size(range->answer);
	stats.unlisted += answer_size(range->answer);
	stats.answers--;
	cached_range_unpin(range->answer);
	range->answer = NULL;
}

static void
range_keep(CachedRange *range, RangeAnswer *answer)
{
	uint64_t limit = (uint64_t) gateway.config.range_cache_bytes;

	range_drop(range);
	if (answer_size(answer) > limit / RANGE_SHARE)
		return;
	cached_range_pin(answer);
	range->answer = answer;
	range_link(range);
	stats.bytes += answer_size(answer);
	stats.unlisted -= answer_size(answer);
	stats.answers++;
	while (stats.bytes > limit && oldest != range)
	{
		CachedRange *last = oldest;

		range_drop(last);
		range_check_end(last);
		stats.evictions++;
	}
}

static bool
range_is_valid(const CachedRange *range)
{
	const RangeAnswer *answer = range->answer;
	uint64_t now = uv_hrtime();
	bool is_stale = answer != NULL && answer->computed >= 0 && answer->computed < answer->seq;

	return answer != NULL && answer->seq >= range->sheet->known_seq &&
		   answer->asked > sheet_invalidated(range->sheet) &&
		   now - answer->began < RANGE_MAX_AGE_S * UINT64_C(1000000000) &&
		   (!is_stale || now - answer->ready < RANGE_STALE_AGE_MS * UINT64_C(1000000)) && changes_are_current();
}

RangeAnswer *
cached_range_find(const RangeKey *key)
{
	CachedRange *range = range_look_up(key);

	if (range == NULL || !range_is_valid(range))
	{
		stats.misses++;
		return NULL;
	}
	stats.hits++;
	if (newest != range)
	{
		range_unlink(range);
		range_link(range);
	}
	cached_range_pin(range->answer);
	return range->answer;
}

/* ---- asking ---- */

/* A second row means that the cells are more than RANGE_BYTES_MAX. */
static const char range_sql[] =
	"SELECT seq, rows, cols, cells, sheet.computed_seq($1) FROM sheet.read_cells($1, $2, $3, $4, $5, $6, $7) LIMIT 2";
#define COMPUTED_COLUMN 4

/* The rectangle of a link: it and its cells are of one seq. No row: no cell of it is left. */
static const char link_sql[] = "SELECT seq, rows, cols, cells, \"row\", col FROM sheet.published_cells($1, $2, $3)";

/* The same with the properties, and the seq at which these are valid. */
static const char html_sql[] =
	"SELECT c.seq, c.rows, c.cols, c.cells, NULL::integer, NULL::integer, p.seq, p.properties, sheet.computed_seq($1) "
	"FROM sheet.read_cells($1, $2, $3, $4, $5, $6, $7) c, sheet.read_properties($1) p LIMIT 2";
static const char html_link_sql[] = "SELECT c.seq, c.rows, c.cols, c.cells, c.\"row\", c.col, p.seq, p.properties "
									"FROM sheet.published_cells($1, $2, $3) c, sheet.read_properties($1) p";
#define HTML_SEQ_COLUMN		 6
#define HTML_COMPUTED_COLUMN 8

static void range_read(CachedRange *range);
static bool range_send(CachedRange *range);

static bool
waiter_takes(const RangeWaiter *waiter, const RangeAnswer *answer)
{
	return waiter->again || (answer->seq >= waiter->needs_seq && answer->asked > waiter->needs_asked);
}

/* Answers the requests that wait. Those for which the answer is too old go on waiting. */
static void
range_answer(CachedRange *range, RangeStatus status, RangeAnswer *answer, const PGresult *res)
{
	RangeWaiter *waiters = range->waiters, *next;

	range->waiters = NULL;
	range->waiters_last = &range->waiters;
	for (RangeWaiter *waiter = waiters; waiter != NULL; waiter = next)
	{
		next = waiter->next;
		if (status == RANGE_READY && !waiter_takes(waiter, answer))
		{
			waiter->again = true;
			waiter->next = NULL;
			*range->waiters_last = waiter;
			range->waiters_last = &waiter->next;
			continue;
		}
		waiter->fn(waiter->arg, status, answer, res);
		free(waiter);
	}
}

static bool
range_fits(const PGresult *res)
{
	size_t len = (size_t) PQgetlength(res, 0, 3);

	return len <= RANGE_SMALL || stats.unlisted + len <= RANGE_UNLISTED_MAX;
}

/* The answer has come, or status and res say why not. */
static void
range_finish(CachedRange *range, RangeStatus status, RangeAnswer *answer, const PGresult *res)
{
	if (answer != NULL)
	{
		cached_range_committed(range->key.sheet_id, answer->seq);
		range_keep(range, answer);
	}
	range_answer(range, status, answer, res);
	cached_range_unpin(answer);
	range->reading = false;
	if (range->waiters != NULL)
		range_read(range);
	else
		range_check_end(range);
}

/* From cached_range_encode(). */
static void
range_encoded(void *arg, RangeStatus status, RangeAnswer *answer, size_t row_bytes)
{
	CachedRange *range = arg;

	stats.unlisted -= row_bytes;
	if (answer != NULL)
	{
		answer->computed = range->computed;
		answer->asked = range->asked;
		answer->began = range->began;
		answer->ready = uv_hrtime();
		stats.unlisted += answer_size(answer);
	}
	range_finish(range, status, answer, NULL);
}

/* An edit came between the cells and the properties. They would not fit to each other. */
static bool
range_is_torn(const CachedRange *range, const PGresult *res)
{
	return range->key.form == RANGE_HTML && pgresult_int64(res, 0, 0) != pgresult_int64(res, 0, HTML_SEQ_COLUMN);
}

/* The seq of the values that the answer has; -1: it has none. Those of a rectangle's formulas are not shown. */
static int64_t
range_computed(const RangeKey *key, const PGresult *res)
{
	int column = key->form == RANGE_HTML ? HTML_COMPUTED_COLUMN : COMPUTED_COLUMN;

	return key->link_id != 0 || key->formulas || PQgetisnull(res, 0, column) ? -1 : pgresult_int64(res, 0, column);
}

static void
range_answered(void *arg, PGresult *res)
{
	CachedRange *range = arg;
	RangeStatus status = RANGE_FAILED;

	if (strcmp(pgresult_sqlstate(res), "54000") == 0)
		status = RANGE_TOO_LARGE;
	else if (!pgresult_succeeded(res) || PQntuples(res) == 0)
		;
	else if (PQntuples(res) > 1)
		status = RANGE_TOO_LARGE;
	else if (!range_fits(res))
		status = RANGE_BUSY;
	else if (range_is_torn(range, res))
	{
		if (range->torn++ < RANGE_TORN_MAX && range_send(range))
			return;
		status = RANGE_BUSY;
	}
	else
	{
		size_t bytes = (size_t) PQgetlength(res, 0, 3);

		stats.unlisted += bytes;
		range->computed = range_computed(&range->key, res);
		/* A few cells that are far from each other are a large table. */
		if (cached_range_encode(&range->key, res, bytes > RANGE_SMALL || range->key.form != RANGE_CELLS, range_encoded,
								range))
			return;
		stats.unlisted -= bytes;
		status = RANGE_BUSY;
	}
	range_finish(range, status, NULL, res);
}

/* A large read must not delay others. */
static DatabaseClass
range_class(const RangeKey *key)
{
	uint64_t cells = (uint64_t) (key->to_row - key->row + 1) * (key->to_col - key->col + 1);

	return cells > RANGE_SHORT_CELLS || key->link_id != 0 ? DATABASE_LONG : DATABASE_READS;
}

static bool
range_send(CachedRange *range)
{
	const RangeKey *key = &range->key;
	char texts[6][24], link_text[24];
	PgParam params[] = {pgparam_int64(texts[0], key->sheet_id),
						pgparam_int64(texts[1], key->row),
						pgparam_int64(texts[2], key->col),
						pgparam_int64(texts[3], key->to_row),
						pgparam_int64(texts[4], key->to_col),
						pgparam_int64(texts[5], RANGE_BYTES_MAX),
						pgparam_text(key->formulas ? "false" : "true")};
	PgParam link_params[] = {params[0], pgparam_int64(link_text, key->link_id), params[5]};

	const char *sql = key->form == RANGE_HTML ? html_sql : range_sql;

	if (key->link_id != 0)
		return database_query(range_class(key), range->waiters->account,
							  key->form == RANGE_HTML ? html_link_sql : link_sql, 3, link_params, 1, range_answered,
							  range);
	return database_query(range_class(key), range->waiters->account, sql, 7, params, 1, range_answered, range);
}

static void
range_read(CachedRange *range)
{
	range->reading = true;
	range->torn = 0;
	range->asked = ++clock_now;
	range->began = uv_hrtime();
	if (range_send(range))
		return;
	range_answer(range, RANGE_BUSY, NULL, NULL);
	range->reading = false;
	range_check_end(range);
}

void
cached_range_ask(const RangeKey *key, int64_t account, RangeFn fn, void *arg)
{
	CachedRange *range = range_enter(key);
	RangeWaiter *waiter = range != NULL ? malloc(sizeof(RangeWaiter)) : NULL;

	if (waiter == NULL)
	{
		if (range != NULL)
			range_check_end(range);
		fn(arg, RANGE_BUSY, NULL, NULL);
		return;
	}
	*waiter = (RangeWaiter){.fn = fn,
							.arg = arg,
							.account = account,
							.needs_seq = range->sheet->known_seq,
							.needs_asked = sheet_invalidated(range->sheet),
							.again = !range->reading};
	*range->waiters_last = waiter;
	range->waiters_last = &waiter->next;
	if (!range->reading)
		range_read(range);
}

/* ---- /metrics ---- */

void
cached_range_print(Buf *buf)
{
	metrics_print_counter(buf, "window_hits_total", "Cached ranges that were answered from memory.", stats.hits);
	metrics_print_counter(buf, "window_misses_total", "Ranges that were read from the database.", stats.misses);
	metrics_print_counter(buf, "window_evictions_total", "Cached ranges that were evicted.", stats.evictions);
	metrics_print_gauge(buf, "window_bytes", "Memory of cached ranges (range-cache-bytes).", stats.bytes);
	metrics_print_gauge(buf, "windows", "Cached ranges.", stats.answers);
}
