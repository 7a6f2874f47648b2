/*
 * watch.c - WebSockets of pages that show a published view (/sheetws?watch=KEY). The gateway sends a message when the
 * view has changed, and the page requests it again.
 *
 *   watch_open() -> the link is asked for, once for all who watch it
 *   watch_tick() -> `changed`, at most once a second, or the end of a link
 *
 * A watcher is an entry of its link's list. It has no cells and no queue: all watchers get the same bytes. If a socket
 * still holds an earlier message, its watcher gets one more message after it. An iteration of the loop sends to at most
 * WATCH_BURST watchers, so that thousands do not delay other clients. The watchers of a link that have not got the
 * message yet are at the head of its list.
 *
 * published_links.c keeps what a link opens. The gateway queries it again whenever the sheet's row or one of its links
 * has changed (ws/cache/changes.c), and compares its end with the clock.
 */
#include "http/share/watch.h"

#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"
#include "http/share/published_links.h"
#include "ws/cache/changes.h"
#include "ws/session/session.h"
#include "ws/wire/v2.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define WATCH_BUCKETS  1024 /* a power of two */
#define WATCH_TICK_MS  100
#define WATCH_PAUSE_MS 1000 /* between two `changed` */
#define WATCH_BURST	   256

typedef struct Watcher
{
	TAILQ_ENTRY(Watcher) entry;
	struct WatchedLink *link; /* NULL: the close frame is sent */
	Socket *socket;
	uint64_t told; /* link->changes when it got the last message */
	bool owed;	   /* it gets a message when its socket takes bytes */
	bool peer_closed;
} Watcher;

typedef struct WatchedLink
{
	LIST_ENTRY(WatchedLink) entry; /* in the bucket */
	TAILQ_HEAD(, Watcher) watchers;
	PublishedLink *link; /* NULL: not known yet */
	bool asking;		 /* it lives until the answer */
	int close_code;		 /* of all watchers; 0: they stay */
	uint64_t changes;	 /* number of messages to each watcher */
	uint64_t told_at;	 /* ms: the last one */
	uint64_t seen;		 /* changes_now() when the last one was found */
	uint64_t asked, began;
	char key[PUBLISHED_KEY_CHARS + 1];
	char digest[PUBLISHED_DIGEST_SIZE];
} WatchedLink;

static LIST_HEAD(WatchedLinks, WatchedLink) buckets[WATCH_BUCKETS];
static size_t watched_links;
static uv_timer_t watch_timer;

static void watch_tick(uv_timer_t *timer);

/* ---- links ---- */

static struct WatchedLinks *
watch_bucket(const char *key)
{
	uint64_t hash;

	memcpy(&hash, key, sizeof(hash));
	return &buckets[hash * UINT64_C(0x9E3779B97F4A7C15) >> 54 & (WATCH_BUCKETS - 1)];
}

static void
watch_start_timer(uint64_t ms)
{
	if (watch_timer.loop == NULL)
	{
		uv_timer_init(&gateway.loop, &watch_timer);
		uv_unref((uv_handle_t *) &watch_timer);
	}
	uv_timer_start(&watch_timer, watch_tick, ms, 0);
}

/* NULL: no memory. */
static WatchedLink *
watched_link_enter(const char *key)
{
	struct WatchedLinks *bucket = watch_bucket(key);
	WatchedLink *watched;

	LIST_FOREACH (watched, bucket, entry)
	{
		if (strcmp(watched->key, key) == 0 && watched->close_code == 0)
			return watched;
	}
	watched = calloc(1, sizeof(WatchedLink));
	if (watched == NULL)
		return NULL;
	TAILQ_INIT(&watched->watchers);
	strcpy(watched->key, key);
	published_digest(key, watched->digest);
	LIST_INSERT_HEAD(bucket, watched, entry);
	if (watched_links++ == 0)
		watch_start_timer(0);
	return watched;
}

static void
watched_link_check_end(WatchedLink *watched)
{
	if (watched->asking || !TAILQ_EMPTY(&watched->watchers))
		return;
	LIST_REMOVE(watched, entry);
	if (watched->link != NULL)
		published_link_unpin(watched->link);
	free(watched);
	watched_links--;
}

static void
watched_link_answered(void *arg, PGresult *res)
{
	WatchedLink *watched = arg;
	PublishedLink *link;

	watched->asking = false;
	if (!pgresult_succeeded(res))
		; /* the next tick asks again */
	else if (PQntuples(res) == 0)
		watched->close_code = CLOSE_NOT_FOUND;
	else if ((link = published_link_put(watched->key, res, watched->asked, watched->began)) != NULL)
	{
		if (watched->link != NULL)
			published_link_unpin(watched->link);
		else
			watched->seen = watched->asked;
		watched->link = link;
	}
	watched_link_check_end(watched);
}

static void
watched_link_ask(WatchedLink *watched)
{
	PgParam digest = pgparam_text(watched->digest);

	if (watched->asking)
		return;
	watched->asked = changes_now();
	watched->began = uv_hrtime();
	watched->asking = database_query(DATABASE_READS, 0, published_sql, 1, &digest, 0, watched_link_answered, watched);
}

/* Finds out whether the link has ended, and whether its sheet has changed. */
static void
watched_link_check(WatchedLink *watched, uint64_t now)
{
	const PublishedLink *link = watched->link;

	if (gateway.stopping)
		watched->close_code = CLOSE_RESTART;
	else if (link == NULL)
		watched_link_ask(watched);
	else if (!published_link_lasts(link))
		watched->close_code = CLOSE_NOT_FOUND;
	else
	{
		if (changes_since(link->sheet_id, link->asked))
			watched_link_ask(watched);
		if (now - watched->told_at < WATCH_PAUSE_MS ||
			!(changes_since(link->sheet_id, watched->seen) || changes_edited_since(link->sheet_id, watched->seen)))
			return;
		watched->seen = changes_now();
		watched->told_at = now;
		watched->changes++;
	}
}

/* ---- watchers ---- */

static void
watcher_put_frame(Watcher *watcher, FrameOp op, const char *payload, size_t len)
{
	unsigned char frame[FRAME_SENT_HEADER_MAX + FRAME_CONTROL_MAX];
	size_t header = frame_header(frame, op, len);

	memcpy(frame + header, payload, len);
	socket_put(watcher->socket, frame, header + len);
}

static void
watcher_leave(Watcher *watcher)
{
	WatchedLink *watched = watcher->link;

	if (watched == NULL)
		return;
	TAILQ_REMOVE(&watched->watchers, watcher, entry);
	watcher->link = NULL;
	watched_link_check_end(watched);
}

/* reason: at most 60 characters */
static void
watcher_close(Watcher *watcher, int code, const char *reason)
{
	char payload[64] = {(char) (code >> 8), (char) code};

	if (watcher->link == NULL)
		return;
	strcpy(payload + 2, reason);
	watcher_leave(watcher);
	watcher_put_frame(watcher, FRAME_CLOSE, payload, code == CLOSE_NO_CODE ? 0 : 2 + strlen(reason));
	socket_end_after(watcher->socket, 5);
}

static void
watcher_tell(Watcher *watcher)
{
	static Buf message;

	if (message.len == 0)
		v2_put_notice(&message, V2_JSON, V2_NOTICE_CHANGED);
	watcher->owed = socket_has_rest(watcher->socket);
	if (watcher->owed)
		socket_want_write(watcher->socket);
	else
		watcher_put_frame(watcher, FRAME_TEXT, message.data, message.len);
}

/* Returns whether all are told. */
static bool
watched_link_tell(WatchedLink *watched, int *burst)
{
	Watcher *watcher;
	int code = watched->close_code;

	for (; *burst > 0; (*burst)--)
	{
		watcher = TAILQ_FIRST(&watched->watchers);
		if (watcher == NULL || (code == 0 && watcher->told == watched->changes))
			return true;
		if (code != 0)
		{
			bool last = TAILQ_NEXT(watcher, entry) == NULL; /* the link is freed with it */

			watcher_close(watcher, code, code == CLOSE_NOT_FOUND ? "no such view" : "come again");
			if (last)
				return true;
			continue;
		}
		TAILQ_REMOVE(&watched->watchers, watcher, entry);
		TAILQ_INSERT_TAIL(&watched->watchers, watcher, entry);
		watcher->told = watched->changes;
		watcher_tell(watcher);
	}
	return false;
}

static void
watch_tick(uv_timer_t *timer)
{
	uint64_t now = uv_now(&gateway.loop);
	int burst = WATCH_BURST;
	bool done = true;

	for (size_t i = 0; i < WATCH_BUCKETS && watched_links > 0; i++)
	{
		for (WatchedLink *watched = LIST_FIRST(&buckets[i]), *next; watched != NULL; watched = next)
		{
			next = LIST_NEXT(watched, entry);
			if (watched->close_code == 0)
				watched_link_check(watched, now);
			done &= watched_link_tell(watched, &burst);
		}
	}
	if (watched_links > 0)
		watch_start_timer(done ? WATCH_TICK_MS : 1);
}

/* ---- the socket's events ---- */

static void
watcher_on_message(void *user, const FramePiece *piece)
{
	watcher_close(user, CLOSE_MALFORMED, "a watcher sends nothing");
}

static void
watcher_on_control(void *user, const FramePiece *piece)
{
	Watcher *watcher = user;

	if (piece->op == FRAME_PING && watcher->link != NULL && !socket_has_rest(watcher->socket))
		watcher_put_frame(watcher, FRAME_PONG, piece->data, piece->len);
	else if (piece->op == FRAME_CLOSE)
	{
		watcher_close(watcher, frame_close_code(piece->data, piece->len), "");
		watcher->peer_closed = true;
		socket_finish(watcher->socket);
		socket_want_write(watcher->socket);
	}
}

static void
watcher_on_invalid(void *user, const char *reason)
{
	Watcher *watcher = user;

	watcher_close(watcher, CLOSE_PROTOCOL, "");
	watcher->peer_closed = true; /* nothing more is read */
	socket_finish(watcher->socket);
}

static bool
watcher_on_writable(void *user)
{
	Watcher *watcher = user;

	if (watcher->owed && watcher->link != NULL)
		watcher_tell(watcher);
	return watcher->link != NULL || !watcher->peer_closed || socket_has_rest(watcher->socket);
}

static void
watcher_on_ping_due(void *user)
{
	Watcher *watcher = user;

	if (watcher->link != NULL && !socket_has_rest(watcher->socket))
		watcher_put_frame(watcher, FRAME_PING, "", 0);
}

static void
watcher_on_gone(void *user)
{
	watcher_leave(user);
	free(user);
}

bool
watch_open(Socket *socket, const char *key)
{
	static const SocketEvents events = {watcher_on_message,	 watcher_on_control,  watcher_on_invalid,
										watcher_on_writable, watcher_on_ping_due, watcher_on_gone};
	Watcher *watcher = calloc(1, sizeof(Watcher));

	if (watcher == NULL || (watcher->link = watched_link_enter(key)) == NULL)
	{
		free(watcher);
		return false;
	}
	watcher->socket = socket;
	watcher->told = watcher->link->changes;
	TAILQ_INSERT_TAIL(&watcher->link->watchers, watcher, entry);
	socket_set_user(socket, &events, watcher);
	return true;
}
