/*
 * published_links.c - what keys of published views open, kept for a moment.
 *
 * The database publishes changes of a link, and of the sheet's name, as changes of its sheet. So a row is used while
 * its sheet has not changed, while all changes up to two seconds ago have been heard of, and for PUBLISHED_LIFE_NS at
 * most. The end of a link is kept as a time of the gateway's own clock, counted from before the question. Keys that
 * open nothing are not kept: each is a question.
 *
 * The table has a fixed size; a new row replaces the one in its place. A row has at most 5.5 kB, which is 22 MB for
 * all.
 */
#include "http/share/published_links.h"

#include "support/buf.h"
#include "ws/cache/changes.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define PUBLISHED_SLOTS	  4096 /* a power of two */
#define PUBLISHED_LIFE_NS UINT64_C(5000000000)

const char published_sql[] =
	"SELECT link_id, sheet_id, title, rectangle, embed, index_ok, left_ms FROM sheet.published($1)";

static PublishedLink *slots[PUBLISHED_SLOTS];

size_t
published_key_chars(const char *text)
{
	return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");
}

void
published_digest(const char *key, char to[PUBLISHED_DIGEST_SIZE])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];

	(void) SHA256((const unsigned char *) key, PUBLISHED_KEY_CHARS, digest);
	strcpy(to, "\\x");
	for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
		snprintf(to + 2 + 2 * i, 3, "%02x", digest[i]);
}

/* Keys that are kept are random. */
static PublishedLink **
published_slot(const char *key)
{
	uint64_t hash;

	memcpy(&hash, key, sizeof(hash));
	return &slots[hash * UINT64_C(0x9E3779B97F4A7C15) >> 52 & (PUBLISHED_SLOTS - 1)];
}

void
published_link_unpin(PublishedLink *link)
{
	if (--link->pins == 0)
		free(link);
}

bool
published_link_lasts(const PublishedLink *link)
{
	return uv_hrtime() < link->ends_at;
}

PublishedLink *
published_link_find(const char *key)
{
	PublishedLink *link = *published_slot(key);

	if (link == NULL || strcmp(link->key, key) != 0 || !published_link_lasts(link) ||
		uv_hrtime() - link->began >= PUBLISHED_LIFE_NS || changes_since(link->sheet_id, link->asked) ||
		!changes_are_current())
		return NULL;
	link->pins++;
	return link;
}

PublishedLink *
published_link_put(const char *key, const PGresult *res, uint64_t asked, uint64_t began)
{
	const char *title = PQgetvalue(res, 0, 2), *embed = PQgetvalue(res, 0, 4);
	size_t title_size = strlen(title) + 1, embed_size = strlen(embed) + 1;
	PublishedLink *link = NULL, **slot = published_slot(key);
	Buf file_name = {NULL, 0, 0};
	char *texts;

	buf_puts_url(&file_name, title);
	buf_put(&file_name, "", 1);
	if (!buf_failed(&file_name))
		link = malloc(sizeof(PublishedLink) + title_size + embed_size + file_name.len);
	if (link == NULL)
	{
		buf_free(&file_name);
		return NULL;
	}
	texts = (char *) (link + 1);
	memcpy(texts, title, title_size);
	memcpy(texts + title_size, embed, embed_size);
	memcpy(texts + title_size + embed_size, file_name.data, file_name.len);
	buf_free(&file_name);
	*link = (PublishedLink){.pins = 2,
							.link_id = atoll(PQgetvalue(res, 0, 0)),
							.sheet_id = atoll(PQgetvalue(res, 0, 1)),
							.rectangle = PQgetvalue(res, 0, 3)[0] == 't',
							.index_ok = PQgetvalue(res, 0, 5)[0] == 't',
							.title = texts,
							.embed = texts + title_size,
							.file_name = texts + title_size + embed_size,
							.asked = asked,
							.began = began,
							.ends_at = UINT64_MAX};
	strcpy(link->key, key);
	if (!PQgetisnull(res, 0, 6))
	{
		uint64_t left = (uint64_t) atoll(PQgetvalue(res, 0, 6));

		if (left < UINT64_MAX / 1000000 - began / 1000000 - 1)
			link->ends_at = began + left * 1000000;
	}
	if (*slot != NULL)
		published_link_unpin(*slot);
	*slot = link;
	return link;
}
