/*
 * sheet_map.h - a hash table from sheet ids to records, for coordinators and rooms. One thread.
 */
#ifndef SHEET_MAP_H
#define SHEET_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Embedded as the first member of a record. */
typedef struct SheetEntry
{
	int64_t sheet_id;
	struct SheetEntry *next;
} SheetEntry;

typedef struct SheetMap
{
	SheetEntry **buckets;
	size_t bucket_count; /* a power of two; 0 before the first entry */
	size_t count;
} SheetMap;

extern void *sheet_map_find(const SheetMap *map, int64_t sheet_id);
/* The id must not be in the map. */
extern void sheet_map_add(SheetMap *map, SheetEntry *entry);
extern void sheet_map_remove(SheetMap *map, SheetEntry *entry);
/*
 * All ids, for a walk during which entries may come and go: look each up again. *count is set; the caller frees. Never
 * NULL.
 */
extern int64_t *sheet_map_ids(const SheetMap *map, size_t *count);
/* Frees the table; the entries must be gone. */
extern void sheet_map_free(SheetMap *map);

#endif
