/*
 * storage.c - the journal's relations: opening, inserting, scanning.
 *
 * The append path runs thousands of times a second, so it goes past SQL: rows are inserted through the table access
 * method and the indexes directly, and what a session has found out about the relations is kept until the relation
 * cache says that one of them has changed. The caller has checked permissions; access rights on the tables are not
 * looked at, since the users of the functions have none on the tables.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "cache/cache.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "am/handler/sheetlog.h"
#include "journal/store/storage.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#define STORAGE_MAX_INDEXES 16

static const char *const storage_names[STORAGE_TABLES] = {
	"log_batch", "segment", "version", "version_tile", "ownership", "sheet", "account", "account", "member", "client"};

typedef struct StorageInfo
{
	Oid relid;
	Oid file;	  /* relfilenode, once it was asked for */
	Oid primary;  /* the index that scans use: its primary key; of log_batch, its directory */
	int nindexes; /* -1: the arrays are not there */
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

/* The directory of log_batch. */
static Oid
storage_find_directory(Relation rel)
{
	List *list = RelationGetIndexList(rel);
	Oid found = InvalidOid;
	ListCell *cell;

	foreach (cell, list)
	{
		Relation index = index_open(lfirst_oid(cell), AccessShareLock);

		if (log_directory_is(index) && index->rd_index->indisvalid &&
			index->rd_index->indkey.values[0] == LOG_BATCH_SHEET_ID &&
			index->rd_index->indkey.values[1] == LOG_BATCH_FIRST_SEQ)
			found = lfirst_oid(cell);
		index_close(index, NoLock);
	}
	list_free(list);
	return found;
}

/* The unique index of sheet.account on the role. */
static Oid
storage_find_role_index(Relation rel)
{
	AttrNumber role = get_attnum(RelationGetRelid(rel), "db_role");
	List *list = RelationGetIndexList(rel);
	Oid found = InvalidOid;
	ListCell *cell;

	foreach (cell, list)
	{
		Relation index = index_open(lfirst_oid(cell), AccessShareLock);
		Form_pg_index form = index->rd_index;

		if (form->indisunique && form->indisvalid && form->indnkeyatts == 1 && form->indkey.values[0] == role &&
			RelationGetIndexPredicate(index) == NIL)
			found = lfirst_oid(cell);
		index_close(index, NoLock);
	}
	list_free(list);
	return found;
}

static const char *
storage_index_name(StorageTable table)
{
	switch (table)
	{
		case STORAGE_LOG_BATCH:
			return "directory";
		case STORAGE_ACCOUNT_OF_ROLE:
			return "unique index on column \"db_role\"";
		default:
			return "primary key";
	}
}

static Oid
storage_find_primary(StorageTable table, Relation rel)
{
	Oid primary = table == STORAGE_LOG_BATCH		 ? storage_find_directory(rel)
				  : table == STORAGE_ACCOUNT_OF_ROLE ? storage_find_role_index(rel)
													 : RelationGetPrimaryKeyIndex(rel);

	if (table == STORAGE_LOG_BATCH && !sheetlog_is(rel))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("table \"sheet.log_batch\" does not use access method \"sheetlog\""),
						errhint("Use ALTER TABLE sheet.log_batch SET ACCESS METHOD sheetlog.")));
	if (!OidIsValid(primary))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"sheet.%s\" has lost its %s", storage_names[table], storage_index_name(table)),
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

/* Locking has told of everything that was done to the table before. */
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

/* The table, its indexes, and where its long values are. */
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
	static const StorageTable tables[] = {STORAGE_LOG_BATCH, STORAGE_SEGMENT, STORAGE_VERSION, STORAGE_VERSION_TILE};

	for (int i = 0; i < lengthof(tables); i++)
		table_close(storage_open(tables[i], RowExclusiveLock), NoLock);
}

/* ---- writing ---- */

/*
 * The relation's indexes. Opening an index may run the relcache callback, so everything is built aside first, and the
 * caller gets what is right for the lock it holds on the table. Until then an error takes the memory along.
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

	/* Open all first: opening takes locks, and taking a lock may say that what is known here is old. */
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
storage_insert(StorageTable table, Relation rel, Datum *values, bool *nulls)
{
	TupleTableSlot *slot = storage_make_slot(rel, values, nulls);

	table_tuple_insert(rel, slot, GetCurrentCommandId(true), 0, NULL);
	storage_insert_index_entries(table, rel, slot);
	ExecDropSingleTupleTableSlot(slot);
}

/* For heap tables only; the caller holds the sheet lock, so that nobody else changes the row. */
void
storage_update(StorageTable table, Relation rel, ItemPointer tid, Datum *values, bool *nulls)
{
	TupleTableSlot *slot = storage_make_slot(rel, values, nulls);
	CompatUpdateIndexes update;

	simple_table_tuple_update(rel, tid, slot, GetLatestSnapshot(), &update);
	if (compat_must_update_indexes(update))
		storage_insert_index_entries(table, rel, slot);
	ExecDropSingleTupleTableSlot(slot);
}

/* ---- reading ---- */

static RegProcedure
storage_key_procedure(int strategy, bool is_int4)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return is_int4 ? F_INT4LT : F_INT8LT;
		case BTLessEqualStrategyNumber:
			return is_int4 ? F_INT4LE : F_INT8LE;
		case BTEqualStrategyNumber:
			return is_int4 ? F_INT4EQ : F_INT8EQ;
		case BTGreaterEqualStrategyNumber:
			return is_int4 ? F_INT4GE : F_INT8GE;
		default:
			return is_int4 ? F_INT4GT : F_INT8GT;
	}
}

static void
storage_key_init(ScanKey to, StorageTable table, const StorageKey *key)
{
	if (table == STORAGE_ACCOUNT_OF_ROLE)
		ScanKeyInit(to, key->column, key->strategy, F_OIDEQ, ObjectIdGetDatum((Oid) key->value));
	else
		ScanKeyInit(to, key->column, key->strategy, storage_key_procedure(key->strategy, key->is_int4),
					key->is_int4 ? Int32GetDatum((int32) key->value) : Int64GetDatum(key->value));
}

/* Turns the conditions on sheet and first_seq into bounds. */
static void
storage_scan_bounds(StorageScan *scan, const StorageKey *keys, int nkeys)
{
	scan->least = PG_INT64_MIN;
	scan->most = PG_INT64_MAX;
	for (int i = 0; i < nkeys; i++)
	{
		const StorageKey *key = &keys[i];

		if (key->column == LOG_BATCH_SHEET_ID)
		{
			scan->key = key->value;
			continue;
		}
		if (key->strategy >= BTEqualStrategyNumber)
			scan->least = key->value + (key->strategy == BTGreaterStrategyNumber);
		if (key->strategy <= BTEqualStrategyNumber)
			scan->most = key->value - (key->strategy == BTLessStrategyNumber);
	}
}

/* The next row of log_batch within the bounds. */
static bool
storage_scan_directory(StorageScan *scan, ScanDirection direction)
{
	bool backward = ScanDirectionIsBackward(direction);

	if (!scan->opened)
		log_lookup_begin(&scan->lookup, scan->rel, scan->index, scan->snapshot, scan->key,
						 backward ? scan->most : scan->least, direction);
	scan->opened = true;
	while (log_lookup_next(&scan->lookup, scan->slot))
	{
		int64 position = storage_int64(scan, LOG_BATCH_FIRST_SEQ);

		if (backward ? position < scan->least : position > scan->most)
			return false;
		if (position >= scan->least && position <= scan->most)
			return true;
	}
	return false;
}

static void
storage_scan_open(StorageScan *scan, StorageTable table, Snapshot snapshot)
{
	scan->rel = storage_open(table, AccessShareLock);
	scan->index = index_open(storage_infos[table].primary, AccessShareLock);
	scan->slot = table_slot_create(scan->rel, NULL);
	scan->scan = NULL;
	scan->opened = false;
	scan->snapshot = snapshot;
}

void
storage_scan_begin(StorageScan *scan, StorageTable table, Snapshot snapshot, const StorageKey *keys, int nkeys)
{
	ScanKeyData scankeys[4];

	Assert(nkeys <= 4);
	storage_scan_open(scan, table, snapshot);
	if (table == STORAGE_LOG_BATCH)
	{
		storage_scan_bounds(scan, keys, nkeys);
		return;
	}
	for (int i = 0; i < nkeys; i++)
		storage_key_init(&scankeys[i], table, &keys[i]);
	scan->scan = compat_index_beginscan(scan->rel, scan->index, snapshot, nkeys);
	index_rescan(scan->scan, scankeys, nkeys, NULL, 0);
}

bool
storage_scan_next(StorageScan *scan, ScanDirection direction)
{
	CHECK_FOR_INTERRUPTS();
	if (scan->scan == NULL)
		return storage_scan_directory(scan, direction);
	return index_getnext_slot(scan->scan, direction, scan->slot);
}

int64
storage_key(StorageScan *scan, int column)
{
	TupleDesc desc = scan->scan->xs_itupdesc;
	bool isnull;
	Datum datum = index_getattr(scan->scan->xs_itup, column, desc, &isnull);

	return TupleDescAttr(desc, column - 1)->attlen == sizeof(int32) ? DatumGetInt32(datum) : DatumGetInt64(datum);
}

/* A scan of keys below (row, column, version) of a sheet: a comparison of rows, from which a B-tree can begin. */
static void
storage_tiles_rescan(StorageScan *scan, int32 row, int32 col, int64 version_id)
{
	ScanKeyData keys[2] = {0};

	ScanKeyInit(&keys[0], VERSION_TILE_SHEET_ID, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(scan->key));
	ScanKeyEntryInitialize(&scan->below[0], SK_ROW_MEMBER, VERSION_TILE_ROW, BTLessStrategyNumber, InvalidOid,
						   InvalidOid, F_BTINT4CMP, Int32GetDatum(row));
	ScanKeyEntryInitialize(&scan->below[1], SK_ROW_MEMBER, VERSION_TILE_COL, BTLessStrategyNumber, InvalidOid,
						   InvalidOid, F_BTINT4CMP, Int32GetDatum(col));
	ScanKeyEntryInitialize(&scan->below[2], SK_ROW_MEMBER | SK_ROW_END, VERSION_TILE_VERSION_ID, BTLessStrategyNumber,
						   InvalidOid, InvalidOid, F_BTINT8CMP, Int64GetDatum(version_id));
	keys[1].sk_flags = SK_ROW_HEADER;
	keys[1].sk_attno = VERSION_TILE_ROW;
	keys[1].sk_strategy = BTLessStrategyNumber;
	keys[1].sk_argument = PointerGetDatum(scan->below);
	index_rescan(scan->scan, keys, lengthof(keys), NULL, 0);
}

void
storage_tiles_begin(StorageScan *scan, Snapshot snapshot, int64 sheet_id)
{
	storage_scan_open(scan, STORAGE_VERSION_TILE, snapshot);
	scan->key = sheet_id;
	scan->scan = compat_index_beginscan(scan->rel, scan->index, snapshot, 2);
	scan->scan->xs_want_itup = true;
	storage_tiles_rescan(scan, PG_INT32_MAX, PG_INT32_MAX, PG_INT64_MAX);
}

bool
storage_tiles_next(StorageScan *scan)
{
	CHECK_FOR_INTERRUPTS();
	return index_getnext_tid(scan->scan, BackwardScanDirection) != NULL;
}

void
storage_tiles_skip(StorageScan *scan, int64 version_id)
{
	storage_tiles_rescan(scan, (int32) storage_key(scan, VERSION_TILE_ROW), (int32) storage_key(scan, VERSION_TILE_COL),
						 version_id);
}

bool
storage_scan_fetch(StorageScan *scan)
{
	return index_fetch_heap(scan->scan, scan->slot);
}

void
storage_scan_end(StorageScan *scan)
{
	if (scan->scan != NULL)
		index_endscan(scan->scan);
	else if (scan->opened)
		log_lookup_end(&scan->lookup);
	ExecDropSingleTupleTableSlot(scan->slot);
	index_close(scan->index, NoLock);
	table_close(scan->rel, NoLock);
}

AttrNumber
storage_column(StorageScan *scan, const char *name)
{
	AttrNumber number = get_attnum(RelationGetRelid(scan->rel), name);

	if (number == InvalidAttrNumber)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
						errmsg("table \"sheet.%s\" has no column \"%s\"", RelationGetRelationName(scan->rel), name)));
	return number;
}

Datum
storage_value(StorageScan *scan, const char *name, bool *isnull)
{
	return slot_getattr(scan->slot, storage_column(scan, name), isnull);
}

static Datum
storage_datum(StorageScan *scan, int column)
{
	bool isnull;
	Datum datum = slot_getattr(scan->slot, column, &isnull);

	if (isnull)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("column %d of table \"sheet.%s\" is null", column, RelationGetRelationName(scan->rel))));
	return datum;
}

int64
storage_int64(StorageScan *scan, int column)
{
	return DatumGetInt64(storage_datum(scan, column));
}

int32
storage_int32(StorageScan *scan, int column)
{
	return DatumGetInt32(storage_datum(scan, column));
}

struct varlena *
storage_bytes(StorageScan *scan, int column, bool *copy)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(storage_datum(scan, column));
	struct varlena *bytes = pg_detoast_datum_packed(stored);

	*copy = bytes != stored;
	return bytes;
}

Size
storage_raw_size(StorageScan *scan, int column)
{
	return log_slot_raw_size(scan->slot, column);
}

uint64
storage_writer_fxid(StorageScan *scan)
{
	bool isnull;
	Datum xmin = slot_getsysattr(scan->slot, MinTransactionIdAttributeNumber, &isnull);

	if (isnull || !TransactionIdIsNormal(DatumGetTransactionId(xmin)))
		return 0;
	return compat_widen_xid(DatumGetTransactionId(xmin), ReadNextFullTransactionId());
}
