/*
 * paste_cache.c - texts of pastes that are being read, for a moment.
 *
 * A text never changes, but its paste may be blocked, deleted or evicted at any moment, of which no gateway is told. So
 * a text is given out only for PASTE_LIFE_NS after a question to the database that found the paste. Twice in that time
 * the gateway asks again for the texts that were given out since, and reports their views by the same statement. A text
 * that nobody wants is dropped. A question counts from when it was sent, so a late answer does not prolong anything,
 * and the end of a paste needs no equal clocks.
 *
 * Memory: PASTE_CACHE_BYTES, least recently used first. A text that is being sent stays in memory after it was dropped;
 * there are no more of these than connections.
 */
#include "http/share/paste_cache.h"

#include "core/database.h"
#include "core/gateway.h"
#include "db/pgresult.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASTE_BUCKETS	  4096 /* a power of two */
#define PASTE_CACHE_BYTES (16 * 1024 * 1024)
#define PASTE_LIFE_NS	  UINT64_C(1500000000)
#define PASTE_TICK_MS	  500

typedef struct CachedPaste
{
	PasteContent *content;
	struct CachedPaste *next;		   /* in the bucket */
	struct CachedPaste *newer, *older; /* in order of use */
	uint64_t asked;					   /* uv_hrtime() of the last question that found the paste */
	int64_t views;					   /* not reported */
	bool used;						   /* since the last tick */
} CachedPaste;

/* A question whether a paste is still there. */
typedef struct PasteQuestion
{
	char id[PASTE_ID_CHARS + 1];
	uint64_t asked;
} PasteQuestion;

static const char paste_viewed_sql[] = "SELECT sheet.paste_viewed($1, $2)";

static CachedPaste *buckets[PASTE_BUCKETS];
static CachedPaste *newest, *oldest;
static size_t cached_bytes;
static uv_timer_t tick;
static bool ticking;

/* ---- texts ---- */

void
paste_content_pin(PasteContent *content)
{
	content->pins++;
}

void
paste_content_unpin(PasteContent *content)
{
	if (--content->pins == 0)
		free(content);
}

/* ---- the table ---- */

/* Ids are random. */
static CachedPaste **
paste_bucket(const char *id)
{
	uint64_t hash;

	memcpy(&hash, id, sizeof(hash));
	return &buckets[hash * UINT64_C(0x9E3779B97F4A7C15) >> 52 & (PASTE_BUCKETS - 1)];
}

static CachedPaste *
paste_look_up(const char *id)
{
	for (CachedPaste *paste = *paste_bucket(id); paste != NULL; paste = paste->next)
	{
		if (strcmp(paste->content->id, id) == 0)
			return paste;
	}
	return NULL;
}

static size_t
paste_size(const CachedPaste *paste)
{
	return sizeof(CachedPaste) + sizeof(PasteContent) + paste->content->len;
}

static void
paste_unlink(CachedPaste *paste)
{
	*(paste->newer != NULL ? &paste->newer->older : &newest) = paste->older;
	*(paste->older != NULL ? &paste->older->newer : &oldest) = paste->newer;
}

static void
paste_link_newest(CachedPaste *paste)
{
	paste->newer = NULL;
	paste->older = newest;
	*(newest != NULL ? &newest->newer : &oldest) = paste;
	newest = paste;
}

static void
paste_drop(CachedPaste *paste)
{
	CachedPaste **link = paste_bucket(paste->content->id);

	while (*link != paste)
		link = &(*link)->next;
	*link = paste->next;
	paste_unlink(paste);
	cached_bytes -= paste_size(paste);
	paste_content_unpin(paste->content);
	free(paste);
}

static bool
paste_may_be_given(const CachedPaste *paste, uint64_t now)
{
	return now < paste->content->ends_at && now - paste->asked < PASTE_LIFE_NS;
}

/* ---- questions ---- */

static void
paste_answered(void *arg, PGresult *res)
{
	PasteQuestion *question = arg;
	CachedPaste *paste = paste_look_up(question->id);

	if (paste != NULL && res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1)
	{
		if (PQgetisnull(res, 0, 0))
			paste_drop(paste);
		else if (question->asked > paste->asked)
			paste->asked = question->asked;
	}
	free(question);
}

static void
paste_ask(CachedPaste *paste)
{
	PasteQuestion *question = malloc(sizeof(PasteQuestion));
	char views[24];
	PgParam params[2];

	if (question == NULL)
		return;
	strcpy(question->id, paste->content->id);
	question->asked = uv_hrtime();
	params[0] = pgparam_text(question->id);
	params[1] = pgparam_int64(views, paste->views);
	if (database_query(DATABASE_READS, 0, paste_viewed_sql, 2, params, 0, paste_answered, question))
		paste->views = 0;
	else
		free(question);
}

/* Drops a text, and reports its views. */
static void
paste_retire(CachedPaste *paste)
{
	if (paste->views > 0)
		paste_ask(paste);
	paste_drop(paste);
}

static void
paste_tick(uv_timer_t *timer)
{
	uint64_t now = uv_hrtime();

	for (CachedPaste *paste = newest; paste != NULL && paste->used; paste = paste->older)
	{
		paste->used = false;
		paste_ask(paste);
	}
	while (oldest != NULL && !paste_may_be_given(oldest, now))
		paste_retire(oldest);
	if (oldest == NULL)
		uv_timer_stop(timer);
}

static void
paste_start_ticks(void)
{
	if (!ticking)
	{
		uv_timer_init(&gateway.loop, &tick);
		uv_unref((uv_handle_t *) &tick);
	}
	ticking = true;
	if (!uv_is_active((uv_handle_t *) &tick))
		uv_timer_start(&tick, paste_tick, PASTE_TICK_MS, PASTE_TICK_MS);
}

/* ---- for routes ---- */

PasteContent *
paste_cache_find(const char *id, bool view)
{
	CachedPaste *paste = paste_look_up(id);

	if (paste == NULL || !paste_may_be_given(paste, uv_hrtime()))
		return NULL;
	paste->views += view;
	paste->used = true;
	if (paste != newest)
	{
		paste_unlink(paste);
		paste_link_newest(paste);
	}
	return paste->content;
}

static void
paste_keep(PasteContent *content, uint64_t asked)
{
	CachedPaste *paste = calloc(1, sizeof(CachedPaste)), **bucket = paste_bucket(content->id);

	if (paste == NULL)
		return;
	paste_content_pin(content);
	*paste = (CachedPaste){.content = content, .next = *bucket, .asked = asked, .used = true};
	*bucket = paste;
	paste_link_newest(paste);
	cached_bytes += paste_size(paste);
	paste_start_ticks();
	while (cached_bytes > PASTE_CACHE_BYTES && oldest != paste)
		paste_retire(oldest);
}

PasteContent *
paste_cache_put(const char *id, const char *text, size_t len, uint64_t asked_ns, int64_t left_ms)
{
	CachedPaste *paste = paste_look_up(id);
	PasteContent *content;

	if (paste != NULL)
	{
		if (asked_ns > paste->asked)
			paste->asked = asked_ns;
		paste_content_pin(paste->content);
		return paste->content;
	}
	content = calloc(1, sizeof(PasteContent) + len);
	if (content == NULL)
		return NULL;
	content->pins = 1;
	content->len = len;
	content->ends_at = asked_ns + (uint64_t) left_ms * 1000000;
	strcpy(content->id, id);
	snprintf(content->etag, sizeof(content->etag), "\"%s\"", id);
	memcpy(content->text, text, len);
	paste_keep(content, asked_ns);
	return content;
}

int64_t
paste_cache_take_views(const char *id)
{
	CachedPaste *paste = paste_look_up(id);
	int64_t views = paste != NULL ? paste->views : 0;

	if (paste != NULL)
		paste->views = 0;
	return views;
}
