/*
 * sheet_map.c - a chained hash table keyed by sheet id (see sheet_map.h).
 */
#include "support/sheet_map.h"

#include <stdlib.h>

#define FIRST_SIZE 64

static SheetEntry **
bucket_of(SheetMap *map, int64_t sheet_id)
{
	uint64_t hash = (uint64_t) sheet_id * 0x9e3779b97f4a7c15u; /* Fibonacci hashing; the high bits are the good ones */

	return map->buckets != NULL ? &map->buckets[hash >> 32 & (map->bucket_count - 1)] : &map->bucket;
}

static void
bucket_add(SheetMap *map, SheetEntry *entry)
{
	SheetEntry **bucket = bucket_of(map, entry->sheet_id);

	entry->next = *bucket;
	*bucket = entry;
}

/* A table that cannot grow goes on with longer chains. */
static void
resize(SheetMap *map, size_t bucket_count)
{
	SheetEntry **buckets = calloc(bucket_count, sizeof(*buckets));
	SheetEntry *entry;

	if (buckets == NULL)
		return;
	free(map->buckets);
	map->buckets = buckets;
	map->bucket_count = bucket_count;
	LIST_FOREACH (entry, &map->all, all)
		bucket_add(map, entry);
}

void *
sheet_map_find(const SheetMap *map, int64_t sheet_id)
{
	for (SheetEntry *entry = *bucket_of((SheetMap *) map, sheet_id); entry != NULL; entry = entry->next)
	{
		if (entry->sheet_id == sheet_id)
			return entry;
	}
	return NULL;
}

void
sheet_map_add(SheetMap *map, SheetEntry *entry)
{
	if (map->count >= map->bucket_count)
		resize(map, map->bucket_count > 0 ? map->bucket_count * 2 : FIRST_SIZE);
	bucket_add(map, entry);
	LIST_INSERT_HEAD(&map->all, entry, all);
	map->count++;
}

void
sheet_map_remove(SheetMap *map, SheetEntry *entry)
{
	SheetEntry **link = bucket_of(map, entry->sheet_id);

	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	for (SheetWalk *walk = map->walks; walk != NULL; walk = walk->outer)
	{
		if (walk->next == entry)
			walk->next = LIST_NEXT(entry, all);
	}
	LIST_REMOVE(entry, all);
	map->count--;
}

void
sheet_walk_begin(SheetWalk *walk, SheetMap *map)
{
	*walk = (SheetWalk){map, LIST_FIRST(&map->all), map->walks};
	map->walks = walk;
}

void *
sheet_walk_next(SheetWalk *walk)
{
	SheetEntry *entry = walk->next;

	if (entry != NULL)
		walk->next = LIST_NEXT(entry, all);
	else
		walk->map->walks = walk->outer;
	return entry;
}

void
sheet_map_free(SheetMap *map)
{
	free(map->buckets);
	*map = (SheetMap){0};
}
