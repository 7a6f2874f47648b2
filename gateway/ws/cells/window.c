/*
 * window.c - windows of cells, encoded once and kept.
 *
 * What is promised (docs/PROTOCOL.md), and why it holds:
 *
 * - An answer holds at its seq. It is given again only while the gateway knows of no newer seq of its sheet. It learns
 * of its own commits before it acknowledges them (commit.c), of others' by following (follow.c), and of any by an
 * answer from the database that is newer. So nobody who has been told of an edit by this gateway, in whatever way, is
 * given cells from before it, and the seqs that it gives of a sheet do not go back.
 * - News from others take their time. While following is not known to be up to date (follow_is_current()) nothing that
 * is kept is used, so what comes from here is never older than that; a gateway that was frozen, or cut off, asks anew.
 * - What changes cells and cannot say at which seq (a request of ours whose outcome is not known, events that were
 * lost) is a doubt: what was asked for before it counts no more, also when the answer comes after it. Doubts and
 * questions have their order by a clock that ticks with each.
 * - A room's batch whose outcome is unknown may be stored any moment, and nobody will tell: until it is settled the
 *   database is asked. A room that is given up does not settle it; its batch is a doubt when it is answered.
 * - A batch that was given up, whose connection broke, and that is stored later all the same, is heard of by nobody: an
 *   answer is used for WINDOW_MAX_AGE_S at most.
 *
 * Questions for a window that is being read wait for that answer. It is theirs if it is as new as they may expect: not
 * older than what the gateway knew when they came. Otherwise the window is read once more, for all of them.
 *
 * Memory: answers are kept in the order of their last use, and the last ones go when all together are more than
 * window-cache-bytes. Who holds an answer that has gone keeps it: slow readers of large ones could hold any amount, so
 * none is made while such answers are more than WINDOW_LOOSE_MAX. Small ones are always made; there are no more of them
 * than connections. The records of sheets stay as long as one of their windows does.
 */
#include "ws/cells/window.h"

#include "common/edit_codec.h"
#include "ws/room/follow.h"
#include "core/database.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "db/pgresult.h"
#include "ws/room/room.h"
#include "coord/sheet_map.h"
#include "ws/v2/v2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BUCKETS	   16384 /* a power of two */
#define WINDOW_MAX_AGE_S   10
#define WINDOW_SMALL	   65536
#define WINDOW_SHORT_CELLS 8192				  /* a window of more is read where statements may take long */
#define WINDOW_LOOSE_MAX   (64 * 1024 * 1024) /* of answers that are held and not kept */
#define WINDOW_SHARE	   8				  /* an answer of more than this part of the memory is not kept */

/* A sheet of which there are windows. */
typedef struct WindowSheet
{
	SheetEntry entry; /* by sheet id; must be first */
	int64_t known_seq;
	uint64_t doubted; /* by the clock; 0: never */
	int windows;
} WindowSheet;

/* Somebody who waits for an answer, and how new it must be. */
typedef struct WindowWaiter
{
	struct WindowWaiter *next;
	WindowFn fn;
	void *arg;
	int64_t account;
	int64_t needs_seq;
	uint64_t needs_asked; /* asked for after this */
	bool again;			  /* the next answer was asked for after he came: it is good, whatever its seq */
} WindowWaiter;

typedef struct Window
{
	WindowKey key;
	WindowSheet *sheet;
	struct Window *next;		  /* in the bucket */
	struct Window *newer, *older; /* by use; only with an answer */
	WindowAnswer *answer;		  /* NULL: none is kept */
	bool reading;
	uint64_t asked; /* the question under way */
	uint64_t began;
	WindowWaiter *waiters;
	WindowWaiter **waiters_end;
} Window;

static Window *buckets[WINDOW_BUCKETS];
static Window *newest, *oldest;
static SheetMap sheets;
static uint64_t clock_now = 1;
static uint64_t doubted_all;

static struct
{
	uint64_t hits, misses, evictions;
	uint64_t bytes, answers;
	uint64_t loose; /* bytes of answers that are held and not kept */
} stats;

/* ---- sheets ---- */

/* NULL: no memory. */
static WindowSheet *
sheet_enter(int64_t sheet_id)
{
	WindowSheet *sheet = sheet_map_find(&sheets, sheet_id);

	if (sheet == NULL)
	{
		sheet = calloc(1, sizeof(WindowSheet));
		if (sheet == NULL)
			return NULL;
		sheet->entry.sheet_id = sheet_id;
		sheet_map_add(&sheets, &sheet->entry);
		stats.bytes += sizeof(WindowSheet);
	}
	sheet->windows++;
	return sheet;
}

static void
sheet_leave(WindowSheet *sheet)
{
	if (--sheet->windows > 0)
		return;
	sheet_map_remove(&sheets, &sheet->entry);
	free(sheet);
	stats.bytes -= sizeof(WindowSheet);
}

/* Answers that were asked for up to here count no more. */
static uint64_t
sheet_doubted(const WindowSheet *sheet)
{
	return sheet->doubted > doubted_all ? sheet->doubted : doubted_all;
}

void
window_committed(int64_t sheet_id, int64_t seq)
{
	WindowSheet *sheet = sheet_map_find(&sheets, sheet_id);

	if (sheet != NULL && seq > sheet->known_seq)
		sheet->known_seq = seq;
}

void
window_doubt(int64_t sheet_id)
{
	WindowSheet *sheet = sheet_map_find(&sheets, sheet_id);

	if (sheet != NULL)
		sheet->doubted = ++clock_now;
}

void
window_doubt_all(void)
{
	size_t count;
	int64_t *ids = sheet_map_ids(&sheets, &count);

	/* Another server may have taken over, with fewer edits. */
	for (size_t i = 0; i < count; i++)
		((WindowSheet *) sheet_map_find(&sheets, ids[i]))->known_seq = 0;
	free(ids);
	doubted_all = ++clock_now;
}

/* ---- the table ---- */

static Window **
window_bucket(const WindowKey *key)
{
	uint64_t hash = (uint64_t) key->sheet_id * UINT64_C(0x9E3779B97F4A7C15);

	hash = (hash ^ ((uint64_t) key->row << 32 | key->col)) * UINT64_C(0x9E3779B97F4A7C15);
	hash = (hash ^ ((uint64_t) key->to_row << 32 | key->to_col)) * UINT64_C(0x9E3779B97F4A7C15);
	return &buckets[(hash >> 40 ^ key->styles) & (WINDOW_BUCKETS - 1)];
}

static bool
window_has_key(const Window *window, const WindowKey *key)
{
	return window->key.sheet_id == key->sheet_id && window->key.row == key->row && window->key.col == key->col &&
		   window->key.to_row == key->to_row && window->key.to_col == key->to_col && window->key.styles == key->styles;
}

static Window *
window_look_up(const WindowKey *key)
{
	for (Window *window = *window_bucket(key); window != NULL; window = window->next)
	{
		if (window_has_key(window, key))
			return window;
	}
	return NULL;
}

/* NULL: no memory. */
static Window *
window_enter(const WindowKey *key)
{
	Window *window = window_look_up(key);
	Window **bucket = window_bucket(key);

	if (window != NULL)
		return window;
	window = calloc(1, sizeof(Window));
	if (window == NULL || (window->sheet = sheet_enter(key->sheet_id)) == NULL)
	{
		free(window);
		return NULL;
	}
	window->key = *key;
	window->waiters_end = &window->waiters;
	window->next = *bucket;
	*bucket = window;
	stats.bytes += sizeof(Window);
	return window;
}

/* A window without an answer, and for which nobody waits, is forgotten. */
static void
window_check_end(Window *window)
{
	Window **link = window_bucket(&window->key);

	if (window->answer != NULL || window->reading)
		return;
	while (*link != window)
		link = &(*link)->next;
	*link = window->next;
	sheet_leave(window->sheet);
	free(window);
	stats.bytes -= sizeof(Window);
}

/* ---- answers that are kept ---- */

void
window_hold(WindowAnswer *answer)
{
	answer->holders++;
}

static size_t
answer_size(const WindowAnswer *answer)
{
	return sizeof(WindowAnswer) + answer->len;
}

void
window_release(WindowAnswer *answer)
{
	if (answer == NULL || --answer->holders > 0)
		return;
	stats.loose -= answer_size(answer);
	free(answer);
}

static void
window_link(Window *window)
{
	window->newer = NULL;
	window->older = newest;
	if (newest != NULL)
		newest->newer = window;
	else
		oldest = window;
	newest = window;
}

static void
window_unlink(Window *window)
{
	if (window->newer != NULL)
		window->newer->older = window->older;
	else
		newest = window->older;
	if (window->older != NULL)
		window->older->newer = window->newer;
	else
		oldest = window->newer;
}

static void
window_drop(Window *window)
{
	if (window->answer == NULL)
		return;
	window_unlink(window);
	stats.bytes -= answer_size(window->answer);
	stats.loose += answer_size(window->answer);
	stats.answers--;
	window_release(window->answer);
	window->answer = NULL;
}

static void
window_keep(Window *window, WindowAnswer *answer)
{
	uint64_t limit = (uint64_t) gateway.config.window_cache_bytes;

	window_drop(window);
	if (answer_size(answer) > limit / WINDOW_SHARE)
		return;
	window_hold(answer);
	window->answer = answer;
	window_link(window);
	stats.bytes += answer_size(answer);
	stats.loose -= answer_size(answer);
	stats.answers++;
	while (stats.bytes > limit && oldest != window)
	{
		Window *last = oldest;

		window_drop(last);
		window_check_end(last);
		stats.evictions++;
	}
}

/* A batch is under way of which only its room will hear whether it is stored. */
static bool
window_is_uncertain(int64_t sheet_id)
{
	const Room *room = room_find(sheet_id);

	return room != NULL && room->uncertain && room->sent != NULL;
}

static bool
window_is_true(const Window *window)
{
	const WindowAnswer *answer = window->answer;

	return answer != NULL && answer->seq >= window->sheet->known_seq && answer->asked > sheet_doubted(window->sheet) &&
		   uv_hrtime() - answer->began < WINDOW_MAX_AGE_S * UINT64_C(1000000000) && follow_is_current() &&
		   !window_is_uncertain(window->key.sheet_id);
}

WindowAnswer *
window_find(const WindowKey *key)
{
	Window *window = window_look_up(key);

	if (window == NULL || !window_is_true(window))
	{
		stats.misses++;
		return NULL;
	}
	stats.hits++;
	if (newest != window)
	{
		window_unlink(window);
		window_link(window);
	}
	window_hold(window->answer);
	return window->answer;
}

/* ---- encoding ---- */

static bool
window_put_cells(Buf *to, const WindowKey *key, const char *cells, size_t len)
{
	EditReader reader;
	EditBatch batch;
	EditError error;
	Edit edit;
	bool first = true;

	edit_reader_init(&reader, cells, len);
	while ((error = edit_read_batch(&reader, &batch)) == EDIT_OK)
	{
		while ((error = edit_read(&reader, &edit)) == EDIT_OK)
		{
			if (!key->styles)
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

/* FNV-1a: tells apart what has the same seq, as after a failover that has lost edits. */
static uint64_t
window_digest(const Buf *body)
{
	uint64_t digest = UINT64_C(0xCBF29CE484222325);

	for (size_t i = 0; i < body->len; i++)
		digest = (digest ^ (unsigned char) body->data[i]) * UINT64_C(0x100000001B3);
	return digest;
}

/*
 * An answer that is being encoded. A thread of libuv's pool encodes large ones, because one takes the loop several
 * milliseconds. The thread uses only this struct, which has a copy of the database's row. One is encoded at a time, and
 * a pause of the same length follows, so that a client that reads large ranges in a loop uses half of a processor.
 */
typedef struct WindowWork
{
	uv_work_t work; /* must be first */
	struct WindowWork *next;
	uint64_t began; /* ns */
	Window *window;
	WindowKey key;
	int64_t seq;
	uint32_t rows, cols;
	WindowStatus status;
	WindowAnswer *answer; /* of WINDOW_READY */
	size_t len;
	char cells[];
} WindowWork;

static WindowWork *
window_work(Window *window, const PGresult *res)
{
	size_t len = (size_t) PQgetlength(res, 0, 3);
	WindowWork *work = malloc(sizeof(WindowWork) + len);

	if (work == NULL)
		return NULL;
	*work = (WindowWork){.window = window,
						 .key = window->key,
						 .seq = pgresult_int64(res, 0, 0),
						 .rows = pgresult_uint32(res, 0, 1),
						 .cols = pgresult_uint32(res, 0, 2),
						 .status = WINDOW_BUSY,
						 .len = len};
	memcpy(work->cells, PQgetvalue(res, 0, 3), len);
	stats.loose += len;
	return work;
}

/* On any thread. */
static void
window_encode(uv_work_t *handle)
{
	WindowWork *work = (WindowWork *) handle;
	const WindowKey *key = &work->key;
	Buf body = {NULL, 0, 0};

	buf_printf(&body,
			   "{\"seq\":%lld,\"rows\":%u,\"cols\":%u,\"row\":%u,\"col\":%u,\"toRow\":%u,\"toCol\":%u,\"cells\":[",
			   (long long) work->seq, work->rows, work->cols, key->row, key->col, key->to_row, key->to_col);
	if (!window_put_cells(&body, key, work->cells, work->len))
		work->status = WINDOW_FAILED;
	buf_puts(&body, "]}");
	if (work->status == WINDOW_BUSY && !buf_failed(&body))
		work->answer = malloc(sizeof(WindowAnswer) + body.len);
	if (work->answer != NULL)
	{
		*work->answer = (WindowAnswer){.holders = 1, .seq = work->seq, .len = body.len};
		snprintf(work->answer->etag, sizeof(work->answer->etag), "\"%lld-%016llx\"", (long long) work->seq,
				 (unsigned long long) window_digest(&body));
		memcpy(work->answer->body, body.data, body.len);
		work->status = WINDOW_READY;
	}
	buf_free(&body);
}

/* ---- asking ---- */

/* Two rows say that there is more than one answer's worth. */
static const char window_sql[] = "SELECT seq, rows, cols, cells FROM sheet.read_cells($1, $2, $3, $4, $5, $6) LIMIT 2";

static void window_read(Window *window);

static bool
waiter_takes(const WindowWaiter *waiter, const WindowAnswer *answer)
{
	return waiter->again || (answer->seq >= waiter->needs_seq && answer->asked > waiter->needs_asked);
}

/* Tells those who wait; those for whom the answer is too old go on waiting. */
static void
window_tell(Window *window, WindowStatus status, WindowAnswer *answer, const PGresult *res)
{
	WindowWaiter *waiters = window->waiters, *next;

	window->waiters = NULL;
	window->waiters_end = &window->waiters;
	for (WindowWaiter *waiter = waiters; waiter != NULL; waiter = next)
	{
		next = waiter->next;
		if (status == WINDOW_READY && !waiter_takes(waiter, answer))
		{
			waiter->again = true;
			waiter->next = NULL;
			*window->waiters_end = waiter;
			window->waiters_end = &waiter->next;
			continue;
		}
		waiter->fn(waiter->arg, status, answer, res);
		free(waiter);
	}
}

static bool
window_has_room(const PGresult *res)
{
	size_t len = (size_t) PQgetlength(res, 0, 3);

	return len <= WINDOW_SMALL || stats.loose + len <= WINDOW_LOOSE_MAX;
}

/* The answer is here, or status and res tell why not. */
static void
window_finish(Window *window, WindowStatus status, WindowAnswer *answer, const PGresult *res)
{
	if (answer != NULL)
	{
		window_committed(window->key.sheet_id, answer->seq);
		window_keep(window, answer);
	}
	window_tell(window, status, answer, res);
	window_release(answer);
	window->reading = false;
	if (window->waiters != NULL)
		window_read(window);
	else
		window_check_end(window);
}

static void
window_take_work(WindowWork *work)
{
	Window *window = work->window;
	WindowAnswer *answer = work->answer;

	stats.loose -= work->len;
	if (answer != NULL)
	{
		answer->asked = window->asked;
		answer->began = window->began;
		stats.loose += answer_size(answer);
	}
	window_finish(window, work->status, answer, NULL);
	free(work);
}

static WindowWork *works; /* large ones: the first is being encoded, unless there is a pause */
static WindowWork **works_last = &works;
static uv_timer_t works_pause;

static void works_start(uv_timer_t *timer);

static void
works_encoded(uv_work_t *handle, int status)
{
	WindowWork *work = works;

	works = work->next;
	if (works == NULL)
		works_last = &works;
	uv_timer_start(&works_pause, works_start, (uv_hrtime() - work->began) / 1000000, 0);
	window_take_work(work);
}

static void
works_start(uv_timer_t *timer)
{
	if (works == NULL)
		return;
	works->began = uv_hrtime();
	(void) uv_queue_work(&gateway.loop, &works->work, window_encode, works_encoded);
}

static void
works_add(WindowWork *work)
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

static void
window_answered(void *arg, PGresult *res)
{
	Window *window = arg;
	WindowStatus status = WINDOW_FAILED;
	WindowWork *work = NULL;

	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) == 0)
		;
	else if (PQntuples(res) > 1)
		status = WINDOW_TOO_LARGE;
	else if (!window_has_room(res) || (work = window_work(window, res)) == NULL)
		status = WINDOW_BUSY;
	if (work == NULL)
		window_finish(window, status, NULL, res);
	else if (work->len > WINDOW_SMALL)
		works_add(work);
	else
	{
		window_encode(&work->work);
		window_take_work(work);
	}
}

/* Other reads do not wait behind a large one. */
static DatabaseClass
window_class(const WindowKey *key)
{
	uint64_t cells = (uint64_t) (key->to_row - key->row + 1) * (key->to_col - key->col + 1);

	return cells > WINDOW_SHORT_CELLS ? DATABASE_LONG : DATABASE_READS;
}

static void
window_read(Window *window)
{
	const WindowKey *key = &window->key;
	char texts[6][24];
	PgParam params[] = {pgparam_int64(texts[0], key->sheet_id), pgparam_int64(texts[1], key->row),
						pgparam_int64(texts[2], key->col),		pgparam_int64(texts[3], key->to_row),
						pgparam_int64(texts[4], key->to_col),	pgparam_int64(texts[5], WINDOW_BYTES_MAX)};

	window->reading = true;
	window->asked = ++clock_now;
	window->began = uv_hrtime();
	if (database_query(window_class(key), window->waiters->account, window_sql, 6, params, 1, window_answered, window))
		return;
	window_tell(window, WINDOW_BUSY, NULL, NULL);
	window->reading = false;
	window_check_end(window);
}

void
window_ask(const WindowKey *key, int64_t account, WindowFn fn, void *arg)
{
	Window *window = window_enter(key);
	WindowWaiter *waiter = window != NULL ? malloc(sizeof(WindowWaiter)) : NULL;

	if (waiter == NULL)
	{
		if (window != NULL)
			window_check_end(window);
		fn(arg, WINDOW_BUSY, NULL, NULL);
		return;
	}
	*waiter = (WindowWaiter){.fn = fn,
							 .arg = arg,
							 .account = account,
							 .needs_seq = window->sheet->known_seq,
							 .needs_asked = sheet_doubted(window->sheet),
							 .again = !window->reading};
	*window->waiters_end = waiter;
	window->waiters_end = &waiter->next;
	if (!window->reading)
		window_read(window);
}

/* ---- /metrics ---- */

void
window_print(Buf *buf)
{
	metrics_print_counter(buf, "window_hits_total", "Cached ranges that were answered from memory.", stats.hits);
	metrics_print_counter(buf, "window_misses_total", "Ranges that were read from the database.", stats.misses);
	metrics_print_counter(buf, "window_evictions_total", "Cached ranges that were evicted.", stats.evictions);
	metrics_print_gauge(buf, "window_bytes", "Memory of cached ranges (window-cache-bytes).", stats.bytes);
	metrics_print_gauge(buf, "windows", "Cached ranges.", stats.answers);
}
