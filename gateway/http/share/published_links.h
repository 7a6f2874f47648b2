/*
 * published_links.h - what keys of published views open, kept for a moment; see published_links.c.
 */
#ifndef PUBLISHED_LINKS_H
#define PUBLISHED_LINKS_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#define PUBLISHED_KEY_CHARS	  22
#define PUBLISHED_DIGEST_SIZE 67

/* Constant while pinned, but for head_digests. */
typedef struct PublishedLink
{
	int pins;
	char key[PUBLISHED_KEY_CHARS + 1];
	int64_t link_id, sheet_id;
	bool rectangle;
	bool index_ok;
	const char *title;		  /* in this allocation, as the next two */
	const char *embed;		  /* sources of frame-ancestors; "": none */
	const char *file_name;	  /* the title, percent-encoded */
	uint64_t asked;			  /* changes_now() before the question */
	uint64_t began;			  /* uv_hrtime(): when the question was sent */
	uint64_t ends_at;		  /* uv_hrtime(); UINT64_MAX: no end */
	uint64_t head_digests[2]; /* of published.c: of JSON and of the page; 0: not computed */
} PublishedLink;

/* The length of the text's beginning that can be one of a key. */
extern size_t published_key_chars(const char *text);
/* The digest of a key as the text of a bytea, which the database gets instead of the key: a server may log it. */
extern void published_digest(const char *key, char to[PUBLISHED_DIGEST_SIZE]);
/* The statement that asks for a link by its key. */
extern const char published_sql[];
/* The link, pinned for the caller, if it is kept and may be used without a question. NULL otherwise. */
extern PublishedLink *published_link_find(const char *key);
/* Keeps the row of an answer; pinned for the caller. NULL: no memory. */
extern PublishedLink *published_link_put(const char *key, const PGresult *res, uint64_t asked, uint64_t began);
/* The link has not ended. */
extern bool published_link_lasts(const PublishedLink *link);
extern void published_link_unpin(PublishedLink *link);

#endif
