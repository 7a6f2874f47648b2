/*
 * sheet_map.c - a chained hash table keyed by sheet id (see sheet_map.h).
 */
#include "support/sheet_map.h"

#include "support/log.h"

#include <stdlib.h>

#define FIRST_SIZE 64

static SheetEntry **
bucket_of(const SheetMap *map, int64_t sheet_id)
{
	uint64_t hash = (uint64_t) sheet_id * 0x9e3779b97f4a7c15u; /* Fibonacci hashing; the high bits are the good ones */

	return &map->buckets[hash >> 32 & (map->bucket_count - 1)];
}

/* A table that cannot grow goes on with longer chains. */
static void
resize(SheetMap *map, size_t bucket_count)
{
	SheetMap larger = {calloc(bucket_count, sizeof(*larger.buckets)), bucket_count, map->count};

	if (map->bucket_count == 0)
		(void) must_have(larger.buckets);
	if (!larger.buckets)
		return;
	for (size_t i = 0; i < map->bucket_count; i++)
		while (map->buckets[i])
		{
			SheetEntry *entry = map->buckets[i];
			SheetEntry **bucket = bucket_of(&larger, entry->sheet_id);

			map->buckets[i] = entry->next;
			entry->next = *bucket;
			*bucket = entry;
		}
	free(map->buckets);
	*map = larger;
}

void *
sheet_map_find(const SheetMap *map, int64_t sheet_id)
{
	if (map->bucket_count == 0)
		return NULL;
	for (SheetEntry *entry = *bucket_of(map, sheet_id); entry; entry = entry->next)
		if (entry->sheet_id == sheet_id)
			return entry;
	return NULL;
}

void
sheet_map_add(SheetMap *map, SheetEntry *entry)
{
	SheetEntry **bucket;

	if (map->count >= map->bucket_count)
		resize(map, map->bucket_count ? map->bucket_count * 2 : FIRST_SIZE);
	bucket = bucket_of(map, entry->sheet_id);
	entry->next = *bucket;
	*bucket = entry;
	map->count++;
}

void
sheet_map_remove(SheetMap *map, SheetEntry *entry)
{
	SheetEntry **link = bucket_of(map, entry->sheet_id);

	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	map->count--;
}

int64_t *
sheet_map_ids(const SheetMap *map, size_t *count)
{
	int64_t *ids = must_have(malloc((map->count + 1) * sizeof(*ids)));

	*count = 0;
	for (size_t i = 0; i < map->bucket_count; i++)
		for (SheetEntry *entry = map->buckets[i]; entry; entry = entry->next)
			ids[(*count)++] = entry->sheet_id;
	return ids;
}

void
sheet_map_free(SheetMap *map)
{
	free(map->buckets);
	*map = (SheetMap){0};
}
