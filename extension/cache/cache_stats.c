/*
 * cache_stats.c - what the sheet cache holds and has done, for sheet.cache_stats and sheet.cache_entries.
 */
#include "postgres.h"

#include "cache/cache.h"
#include "compat.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_cache_stats);
PG_FUNCTION_INFO_V1(sheet_cache_entries);

#define CACHE_STATS_COLUMNS	  16
#define CACHE_ENTRIES_COLUMNS 11

static Datum
cache_stats_counter(pg_atomic_uint64 *counter)
{
	return Int64GetDatum((int64) pg_atomic_read_u64(counter));
}

static int
cache_stats_count_entries(void)
{
	dlist_iter iter;
	int count = 0;

	LWLockAcquire(&CacheState->directory, LW_SHARED);
	dlist_foreach(iter, &CacheState->lru) count++;
	LWLockRelease(&CacheState->directory);
	return count;
}

/* One row; no row without shared memory. */
Datum
sheet_cache_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum values[CACHE_STATS_COLUMNS];
	bool nulls[CACHE_STATS_COLUMNS] = {0};
	int n = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (!cache_enabled())
		return (Datum) 0;
	values[n++] = cache_stats_counter(&CacheState->used);
	values[n++] = Int64GetDatum((int64) CacheState->budget);
	values[n++] = Int32GetDatum(cache_stats_count_entries());
	values[n++] = Int32GetDatum(cache_max_sheets);
	values[n++] = cache_stats_counter(&CacheState->hits);
	values[n++] = cache_stats_counter(&CacheState->misses);
	values[n++] = cache_stats_counter(&CacheState->loads);
	values[n++] = cache_stats_counter(&CacheState->load_failures);
	values[n++] = cache_stats_counter(&CacheState->evictions);
	values[n++] = cache_stats_counter(&CacheState->waits);
	for (int i = 0; i < CACHE_PRIVATE_REASONS; i++)
		values[n++] = cache_stats_counter(&CacheState->private_reads[i]);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}

typedef struct CacheListed
{
	CacheKey key;
	uint64 bytes;
	uint32 pins;
	bool cached, writing, loading, counted;
	int32 tiles_cached, tiles;
	int64 seq;
} CacheListed;

/* A grid is there as long as its entry is locked. Who changes it at the moment is not waited for. */
static void
cache_count_tiles(CacheEntry *entry, CacheListed *listed)
{
	listed->counted = LWLockConditionalAcquire(&entry->lock, LW_SHARED);
	if (!listed->counted)
		return;
	if (entry->grid != NULL)
	{
		listed->tiles_cached = grid_tiles_resident(entry->grid);
		listed->tiles = listed->tiles_cached + grid_tiles_nonresident(entry->grid);
	}
	LWLockRelease(&entry->lock);
}

/*
 * Copies the entries, most recently used first. The fields under the entries' own locks are read without them: each is
 * one word, and the picture is only a picture.
 */
static CacheListed *
cache_list(int *count)
{
	CacheListed *list = palloc0(sizeof(CacheListed) * cache_max_sheets);
	dlist_iter iter;
	int n = 0;

	LWLockAcquire(&CacheState->directory, LW_SHARED);
	dlist_foreach(iter, &CacheState->lru)
	{
		CacheEntry *entry = dlist_container(CacheEntry, link, iter.cur);

		list[n].key = entry->key;
		list[n].bytes = pg_atomic_read_u64(&entry->bytes);
		list[n].pins = pg_atomic_read_u32(&entry->pins);
		list[n].cached = entry->grid != NULL;
		list[n].writing = entry->writer_fxid != 0;
		list[n].loading = cache_is_loading(entry);
		list[n].seq = entry->seq;
		cache_count_tiles(entry, &list[n]);
		n++;
	}
	LWLockRelease(&CacheState->directory);
	*count = n;
	return list;
}

Datum
sheet_cache_entries(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	CacheListed *list;
	int count;

	InitMaterializedSRF(fcinfo, 0);
	if (!cache_enabled())
		return (Datum) 0;
	list = cache_list(&count);
	for (int i = 0; i < count; i++)
	{
		Datum values[CACHE_ENTRIES_COLUMNS] = {Int32GetDatum(i + 1),
											   ObjectIdGetDatum(list[i].key.database),
											   Int64GetDatum(list[i].key.sheet_id),
											   BoolGetDatum(list[i].cached),
											   Int64GetDatum((int64) list[i].bytes),
											   Int64GetDatum(list[i].seq),
											   Int32GetDatum((int32) list[i].pins),
											   BoolGetDatum(list[i].writing),
											   BoolGetDatum(list[i].loading),
											   Int32GetDatum(list[i].tiles_cached),
											   Int32GetDatum(list[i].tiles)};
		bool nulls[CACHE_ENTRIES_COLUMNS] = {0};

		nulls[CACHE_ENTRIES_COLUMNS - 2] = nulls[CACHE_ENTRIES_COLUMNS - 1] = !list[i].counted;

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
