/*
 * paste_cache.h - texts of pastes that are being read, for a moment; see paste_cache.c.
 */
#ifndef PASTE_CACHE_H
#define PASTE_CACHE_H

#include "common/sql_interface.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text of a paste, which never changes. */
typedef struct PasteContent
{
	int pins;
	char id[PASTE_ID_CHARS + 1];
	char etag[PASTE_ID_CHARS + 3];
	uint64_t ends_at; /* uv_hrtime() */
	size_t len;
	char text[];
} PasteContent;

/* Returns the text of a paste that may still be given out, and counts a view of it; NULL: ask the database. */
extern PasteContent *paste_cache_find(const char *id, bool view);
/*
 * Keeps a text that the database has given: asked_ns: when it was asked. left_ms: until the paste's end, as of the
 * answer. Returns it pinned; NULL: no memory.
 */
extern PasteContent *paste_cache_put(const char *id, const char *text, size_t len, uint64_t asked_ns, int64_t left_ms);
extern void paste_content_pin(PasteContent *content);
extern void paste_content_unpin(PasteContent *content);
/* Returns the views that the database does not know of, for the caller to report. */
extern int64_t paste_cache_take_views(const char *id);

#endif
