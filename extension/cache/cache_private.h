/*
 * cache_private.h - what the parts of the cache share.
 */
#ifndef CACHE_PRIVATE_H
#define CACHE_PRIVATE_H

#include "cache/cache.h"

/* cache.c */
extern void cache_attach_area(void);
/* Tells the worker that the cells of a sheet have gone. The entry, or the directory, is locked. */
extern void cache_note_eviction(const CacheEntry *entry);

/* cache_evict.c; the directory is locked */
/* Queues an entry whose grid has tiles none of which was used before `oldest`; nothing when it is queued. */
extern void cache_queue(CacheEntry *entry, uint64 oldest);
extern void cache_unqueue(CacheEntry *entry);

/* cache_slack.c */
/* Makes tiles that are edited no more as small as their cells, until about `wanted` bytes are free; false when it were
 * none. */
extern bool cache_take_slack(size_t wanted);
/* For an entry that becomes another sheet's; the directory is locked. */
extern void cache_unqueue_slack(CacheEntry *entry);

/* cache_memory.c */
/* Has some tiles of a locked entry's grid give back what they do not need; how many bytes, and whether more tiles have
 * been edited. The budget is not asked: a copy counts when it has taken the place of what was copied. */
extern size_t cache_pack(CacheEntry *entry, uint32 tiles, bool *more);
extern char *cache_area_place;
extern struct dsa_area *cache_area; /* this process's handle */

/* cache_load.c */
extern void cache_abort_load(void);	 /* ends this process's load, if there is one */
extern void cache_forget_load(void); /* after a crash of another process */

#endif
