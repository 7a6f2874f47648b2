/* fsck_auto.h - sheets that are checked by themselves; see fsck_auto.c. */
#ifndef FSCK_AUTO_H
#define FSCK_AUTO_H

#include "cache/cache.h"
#include "support/serverlife.h"

extern void fsck_auto_look(int64 sheet_id, CacheEntry *entry);

/* Whoever opens a sheet calls this with its entry pinned, before he changes the sheet. */
static inline void
fsck_auto_open(int64 sheet_id, CacheEntry *entry)
{
	if (unlikely(entry->check != CHECK_NONE || (!entry->opened && server_life_is_after_crash())))
		fsck_auto_look(sheet_id, entry);
}

/* A claim has been committed whose former holder did not release the sheet. No error, no allocation. */
extern void fsck_auto_take_over(int64 sheet_id, CacheEntry *entry);

#endif
