/*
 * storage.c - the journal's relations: opening, locking, inserting, updating and deleting rows. Scans are in
 * storage_scan.c.
 *
 * The append path runs thousands of times a second. It therefore bypasses SQL: rows are inserted through the table
 * access method and the indexes directly, and each session caches what it has found out about the relations until a
 * relcache invalidation. The caller has checked permissions; privileges on the tables are not checked, since users of
 * the functions have none on the tables.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "executor/executor.h"
#include "am/handler/sheetlog.h"
#include "journal/store/storage.h"
#include "storage/lmgr.h"
#include "support/stoppoint.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#define STORAGE_MAX_INDEXES 16

static const char *const storage_names[STORAGE_TABLES] = {
	"log_batch", "segment",	 "version", "version_tile", "ownership",	"sheet",	 "account",
	"account",	 "member",	 "client",	"log_trim",		"property_set", "link",		 "link",
	"link_rect", "computed", "value",	"book_tab",		"book_tab",		"referring", "value_source"};

typedef struct StorageInfo
{
	Oid relid;
	Oid file;	  /* relfilenode; InvalidOid: not known yet */
	Oid primary;  /* the index that scans use: the primary key; of log_batch, the directory */
	int nindexes; /* -1: indexes and infos are not known */
	Oid *indexes;
	IndexInfo **infos;
	MemoryContext context;
} StorageInfo;

static StorageInfo storage_infos[STORAGE_TABLES];

static void
storage_forget(StorageInfo *info)
{
	MemoryContext context = info->context;

	memset(info, 0, sizeof(StorageInfo));
	info->nindexes = -1;
	if (context != NULL)
		MemoryContextDelete(context);
}

static void
storage_relcache_callback(Datum arg, Oid relid)
{
	for (int i = 0; i < STORAGE_TABLES; i++)
		if (relid == InvalidOid || relid == storage_infos[i].relid)
			storage_forget(&storage_infos[i]);
}

void
storage_init(void)
{
	for (int i = 0; i < STORAGE_TABLES; i++)
		storage_infos[i].nindexes = -1;
	CacheRegisterRelcacheCallback(storage_relcache_callback, (Datum) 0);
}

static Oid
storage_find(StorageTable table)
{
	Oid namespace = get_namespace_oid("sheet", true);
	Oid relid = OidIsValid(namespace) ? get_relname_relid(storage_names[table], namespace) : InvalidOid;

	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation \"sheet.%s\" does not exist", storage_names[table]),
				 errhint("Run CREATE EXTENSION pg_sheet in this database.")));
	return relid;
}

static bool
storage_is_directory(Relation rel, Relation index)
{
	return am_directory_is(index) && index->rd_index->indisvalid &&
		   index->rd_index->indkey.values[0] == LOG_BATCH_SHEET_ID &&
		   index->rd_index->indkey.values[1] == LOG_BATCH_FIRST_SEQ;
}

/* The unique index of sheet.account on the role. */
static bool
storage_is_role_index(Relation rel, Relation index)
{
	Form_pg_index form = index->rd_index;

	return form->indisunique && form->indisvalid && form->indnkeyatts == 1 &&
		   form->indkey.values[0] == get_attnum(RelationGetRelid(rel), "db_role") &&
		   RelationGetIndexPredicate(index) == NIL;
}

static bool
storage_is_rectangle_index(Relation rel, Relation index)
{
	return index->rd_index->indisvalid && strcmp(RelationGetRelationName(index), "link_rectangle_idx") == 0;
}

static bool
storage_is_tab_index(Relation rel, Relation index)
{
	return index->rd_index->indisvalid && strcmp(RelationGetRelationName(index), "book_tab_idx") == 0;
}

static Oid
storage_find_index(Relation rel, bool (*matches)(Relation rel, Relation index))
{
	List *list = RelationGetIndexList(rel);
	Oid found = InvalidOid;
	ListCell *cell;

	foreach (cell, list)
	{
		Relation index = index_open(lfirst_oid(cell), AccessShareLock);

		if (matches(rel, index))
			found = lfirst_oid(cell);
		index_close(index, NoLock);
	}
	list_free(list);
	return found;
}

/* The index that scans use. */
static Oid
storage_find_primary(StorageTable table, Relation rel)
{
	const char *what = "primary key";
	Oid primary;

	if (table == STORAGE_LOG_BATCH)
	{
		what = "directory";
		primary = storage_find_index(rel, storage_is_directory);
		if (!sheetlog_is(rel))
			ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
							errmsg("table \"sheet.log_batch\" does not use access method \"sheetlog\""),
							errhint("Use ALTER TABLE sheet.log_batch SET ACCESS METHOD sheetlog.")));
	}
	else if (table == STORAGE_ACCOUNT_OF_ROLE)
	{
		what = "unique index on column \"db_role\"";
		primary = storage_find_index(rel, storage_is_role_index);
	}
	else if (table == STORAGE_LINK_OF_RECTANGLE)
	{
		what = "index \"link_rectangle_idx\"";
		primary = storage_find_index(rel, storage_is_rectangle_index);
	}
	else if (table == STORAGE_TAB_OF_BOOK)
	{
		what = "index \"book_tab_idx\"";
		primary = storage_find_index(rel, storage_is_tab_index);
	}
	else
		primary = compat_primary_key(rel);
	if (!OidIsValid(primary))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"sheet.%s\" has lost its %s", storage_names[table], what),
				 table == STORAGE_LOG_BATCH
					 ? errhint("Use CREATE INDEX ON sheet.log_batch USING sheetlog_directory (sheet_id, first_seq).")
					 : 0));
	return primary;
}

Relation
storage_open(StorageTable table, LOCKMODE lockmode)
{
	StorageInfo *info = &storage_infos[table];
	Oid relid = OidIsValid(info->relid) ? info->relid : storage_find(table);
	Relation rel = table_open(relid, lockmode); /* may run the callback */

	info->relid = relid;
	if (!OidIsValid(info->primary))
	{
		Oid primary = storage_find_primary(table, rel); /* may run it, too */

		info->relid = relid;
		info->primary = primary;
	}
	return rel;
}

/* Taking the lock processes the invalidations of all earlier changes of the table. */
Oid
storage_lock_file(StorageTable table, LOCKMODE lockmode)
{
	StorageInfo *info = &storage_infos[table];
	Relation rel;

	if (OidIsValid(info->file))
		LockRelationOid(info->relid, lockmode); /* may run the callback */
	if (OidIsValid(info->file))
		return info->file;
	rel = storage_open(table, lockmode);
	info->file = compat_relfilenode(rel);
	table_close(rel, NoLock);
	return info->file;
}

Relation
storage_open_index(StorageTable table)
{
	return index_open(storage_infos[table].primary, AccessShareLock);
}

bool
storage_file_is_new(StorageTable table)
{
	Relation rel = storage_open(table, AccessShareLock);
	bool is_new =
		rel->rd_createSubid != InvalidSubTransactionId || compat_first_file_subid(rel) != InvalidSubTransactionId;

	table_close(rel, NoLock);
	return is_new;
}

static void
storage_lock_indexes(Relation rel)
{
	List *list = RelationGetIndexList(rel);
	ListCell *cell;

	foreach (cell, list)
		LockRelationOid(lfirst_oid(cell), AccessShareLock);
	list_free(list);
}

/* The table, its indexes, and its TOAST table. */
static void
storage_lock_table(StorageTable table)
{
	Relation rel = storage_open(table, AccessShareLock);

	storage_lock_indexes(rel);
	if (OidIsValid(rel->rd_rel->reltoastrelid))
	{
		Relation toast = table_open(rel->rd_rel->reltoastrelid, AccessShareLock);

		storage_lock_indexes(toast);
		table_close(toast, NoLock);
	}
	table_close(rel, NoLock);
}

void
storage_lock_for_replay(void)
{
	storage_lock_table(STORAGE_LOG_BATCH);
	storage_lock_table(STORAGE_VERSION);
	storage_lock_table(STORAGE_VERSION_TILE);
}

void
storage_lock_for_versions(void)
{
	static const StorageTable tables[] = {STORAGE_LOG_BATCH, STORAGE_SEGMENT, STORAGE_VERSION, STORAGE_VERSION_TILE,
										  STORAGE_PROPERTY_SET};

	for (int i = 0; i < lengthof(tables); i++)
		table_close(storage_open(tables[i], RowExclusiveLock), NoLock);
}

/* ---- writing ---- */

/*
 * Caches the relation's indexes. Opening an index may run the relcache callback, which clears the cache. So everything
 * is collected first, in a context that an error frees, and stored at the end; the lock on the table keeps it valid.
 */
static void
storage_learn_indexes(StorageTable table, Relation rel)
{
	StorageInfo *info = &storage_infos[table];
	Oid primary = storage_find_primary(table, rel);
	List *list = RelationGetIndexList(rel);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet relation", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Oid *oids = palloc0(sizeof(Oid) * (list_length(list) + 1));
	IndexInfo **infos = palloc0(sizeof(IndexInfo *) * (list_length(list) + 1));
	int n = 0;
	ListCell *cell;

	if (list_length(list) > STORAGE_MAX_INDEXES)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("table \"sheet.%s\" has more than %d indexes",
																		storage_names[table], STORAGE_MAX_INDEXES)));
	foreach (cell, list)
	{
		Relation index = index_open(lfirst_oid(cell), RowExclusiveLock);

		oids[n] = lfirst_oid(cell);
		infos[n] = BuildIndexInfo(index);
		if (infos[n]->ii_Expressions != NIL || infos[n]->ii_Predicate != NIL)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("table \"sheet.%s\" has an index on an expression or with a predicate",
								   storage_names[table]),
							errhint("Drop index \"%s\".", RelationGetRelationName(index))));
		n++;
		index_close(index, NoLock);
	}
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, TopMemoryContext);
	storage_forget(info);
	info->relid = RelationGetRelid(rel);
	info->primary = primary;
	info->nindexes = n;
	info->indexes = oids;
	info->infos = infos;
	info->context = context;
}

static void
storage_insert_index_entries(StorageTable table, Relation rel, TupleTableSlot *slot)
{
	StorageInfo *info = &storage_infos[table];
	Relation index[STORAGE_MAX_INDEXES];
	int n;

	/* Open all of them first: taking a lock may invalidate the cached list of indexes. */
	for (;;)
	{
		if (info->nindexes < 0)
			storage_learn_indexes(table, rel);
		for (n = 0; n < info->nindexes; n++)
			index[n] = index_open(info->indexes[n], RowExclusiveLock);
		if (n == info->nindexes)
			break;
		while (n > 0)
			index_close(index[--n], NoLock);
	}
	for (int i = 0; i < n; i++)
	{
		Datum values[INDEX_MAX_KEYS];
		bool nulls[INDEX_MAX_KEYS];
		IndexInfo *ii = info->infos[i];

		if (!ii->ii_ReadyForInserts)
			continue;
		FormIndexDatum(ii, slot, NULL, values, nulls);
		index_insert(index[i], values, nulls, &slot->tts_tid, rel, ii->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO,
					 false, ii);
	}
	for (int i = 0; i < n; i++)
		index_close(index[i], NoLock);
}

static TupleTableSlot *
storage_make_slot(Relation rel, Datum *values, bool *nulls)
{
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	int natts = RelationGetDescr(rel)->natts;

	for (int i = 0; i < natts; i++)
	{
		slot->tts_values[i] = i < STORAGE_MAX_COLUMNS ? values[i] : (Datum) 0;
		slot->tts_isnull[i] = i < STORAGE_MAX_COLUMNS ? nulls[i] : true;
	}
	ExecStoreVirtualTuple(slot);
	return slot;
}

void
storage_insert(StorageTable table, Datum *values, bool *nulls)
{
	static bool none[STORAGE_MAX_COLUMNS];
	Relation rel = storage_open(table, RowExclusiveLock);
	TupleTableSlot *slot = storage_make_slot(rel, values, nulls != NULL ? nulls : none);

	table_tuple_insert(rel, slot, GetCurrentCommandId(true), 0, NULL);
	storage_insert_index_entries(table, rel, slot);
	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, NoLock);
}

void
storage_update(StorageTable table, ItemPointer tid, Datum *values, bool *nulls)
{
	static bool none[STORAGE_MAX_COLUMNS];
	Relation rel = storage_open(table, RowExclusiveLock);
	TupleTableSlot *slot = storage_make_slot(rel, values, nulls != NULL ? nulls : none);
	CompatUpdateIndexes update;

	simple_table_tuple_update(rel, tid, slot, GetLatestSnapshot(), &update);
	if (compat_must_update_indexes(update))
		storage_insert_index_entries(table, rel, slot);
	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, NoLock);
}

/* ---- deleting ---- */

int64
storage_delete_some(StorageTable table, const StorageKey *keys, int nkeys, StorageFilter filter, const void *arg,
					int *most)
{
	Relation rel = storage_open(table, RowExclusiveLock);
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageScan scan;
	int64 deleted = 0;

	sheetlog_begin_purge();
	storage_scan_begin(&scan, table, snapshot, keys, nkeys);
	while ((most == NULL || (*most)-- > 0) && storage_scan_next(&scan, ForwardScanDirection))
	{
		if (filter != NULL && !filter(&scan, arg))
			continue;
		simple_table_tuple_delete(rel, &scan.slot->tts_tid, snapshot);
		deleted++;
		STOP_POINT("remove-row");
	}
	storage_scan_end(&scan);
	sheetlog_end_purge();
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	STOP_POINT("remove-table");
	return deleted;
}

int64
storage_delete_rows(StorageTable table, int64 sheet_id, StorageFilter filter, const void *arg)
{
	StorageKey key = storage_key_int64(1, BTEqualStrategyNumber, sheet_id);

	return storage_delete_some(table, &key, 1, filter, arg, NULL);
}
