/*
 * sheet_map.h - a hash table from sheet ids to records, for coordinators and rooms. One thread.
 */
#ifndef SHEET_MAP_H
#define SHEET_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Embedded as the first member of a record. */
typedef struct SheetEntry
{
	int64_t sheet_id;
	struct SheetEntry *next; /* in the bucket */
	LIST_ENTRY(SheetEntry) all;
} SheetEntry;

typedef struct SheetMap
{
	SheetEntry **buckets; /* NULL: there is one, `bucket`, before the first entry, or for want of memory */
	SheetEntry *bucket;
	size_t bucket_count; /* a power of two; 0 if buckets is NULL */
	size_t count;
	LIST_HEAD(, SheetEntry) all;
	struct SheetWalk *walks; /* under way, the innermost first */
} SheetMap;

/* A walk over all entries, during which entries may come, which are not visited, and go. */
typedef struct SheetWalk
{
	SheetMap *map;
	SheetEntry *next;
	struct SheetWalk *outer;
} SheetWalk;

extern void *sheet_map_find(const SheetMap *map, int64_t sheet_id);
/* The id must not be in the map. */
extern void sheet_map_add(SheetMap *map, SheetEntry *entry);
extern void sheet_map_remove(SheetMap *map, SheetEntry *entry);
extern void sheet_walk_begin(SheetWalk *walk, SheetMap *map);
/* Returns the next entry. NULL: the walk has ended, as it must. */
extern void *sheet_walk_next(SheetWalk *walk);
/* Frees the table; the entries must be gone. */
extern void sheet_map_free(SheetMap *map);

#endif
