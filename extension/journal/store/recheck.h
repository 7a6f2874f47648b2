/* recheck.h - which sheets are checked after a crash or a takeover; see recheck.c. */
#ifndef RECHECK_H
#define RECHECK_H

#include "cache/cache.h"
#include "support/serverlife.h"

extern void recheck_examine(int64 sheet_id, CacheEntry *entry);

/* Called by each user of the sheet, with its entry pinned, before the user changes the sheet. */
static inline void
recheck_open(int64 sheet_id, CacheEntry *entry)
{
	if (unlikely(entry->check != CHECK_NONE || (!entry->opened && server_life_is_after_crash())))
		recheck_examine(sheet_id, entry);
}

/* A claim was committed whose previous holder did not release the sheet. Cannot fail, does not allocate. */
extern void recheck_taken_over(int64 sheet_id, CacheEntry *entry);

#endif
