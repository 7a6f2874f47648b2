/*
 * storage.h - the journal's relations: opening, inserting, scanning; see storage.c.
 */
#ifndef STORAGE_H
#define STORAGE_H

#include "postgres.h"
#include "access/genam.h"
#include "access/sdir.h"
#include "executor/tuptable.h"
#include "am/directory/log_lookup.h"
#include "storage/lockdefs.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

typedef enum StorageTable
{
	STORAGE_LOG_BATCH,
	STORAGE_SEGMENT,
	STORAGE_VERSION,
	STORAGE_VERSION_TILE,
	STORAGE_OWNERSHIP,
	STORAGE_SHEET,
	STORAGE_ACCOUNT,
	STORAGE_ACCOUNT_OF_ROLE, /* the same table by its SQL role */
	STORAGE_MEMBER,
	STORAGE_CLIENT,
	STORAGE_TABLES
} StorageTable;

/* Columns, in the order of 30-journal.sql. */
typedef enum LogBatchColumn
{
	LOG_BATCH_SHEET_ID = 1,
	LOG_BATCH_FIRST_SEQ,
	LOG_BATCH_LAST_SEQ,
	LOG_BATCH_SEGMENT_ID,
	LOG_BATCH_AT,
	LOG_BATCH_EPOCH,
	LOG_BATCH_ORIGIN,
	LOG_BATCH_BATCH_NO,
	LOG_BATCH_DATA,
	LOG_BATCH_COLUMNS = LOG_BATCH_DATA
} LogBatchColumn;

typedef enum LogHeadColumn
{
	SEGMENT_SHEET_ID = 1,
	SEGMENT_SEGMENT_ID,
	SEGMENT_FIRST_SEQ,
	SEGMENT_AT,
	SEGMENT_COLUMNS = SEGMENT_AT
} LogHeadColumn;

typedef enum VersionColumn
{
	VERSION_SHEET_ID = 1,
	VERSION_VERSION_ID,
	VERSION_SEQ,
	VERSION_AT,
	VERSION_UID,
	VERSION_LABEL,
	VERSION_ROWS,
	VERSION_COLS,
	VERSION_TILES,
	VERSION_DIGEST,
	VERSION_CAUSE,
	VERSION_AXES,
	VERSION_COLUMNS = VERSION_AXES
} VersionColumn;

typedef enum VersionTileColumn
{
	VERSION_TILE_SHEET_ID = 1,
	VERSION_TILE_ROW,
	VERSION_TILE_COL,
	VERSION_TILE_VERSION_ID,
	VERSION_TILE_DATA,
	VERSION_TILE_COLUMNS = VERSION_TILE_DATA
} VersionTileColumn;

typedef enum OwnerColumn
{
	OWNER_SHEET_ID = 1,
	OWNER_EPOCH,
	OWNER_HOLDER,
	OWNER_COLUMNS = OWNER_HOLDER
} OwnerColumn;

typedef enum ClientColumn
{
	CLIENT_SHEET_ID = 1,
	CLIENT_UID,
	CLIENT_CLIENT,
	CLIENT_LANDED,
	CLIENT_AT,
	CLIENT_COLUMNS = CLIENT_AT
} ClientColumn;

#define STORAGE_MAX_COLUMNS 12

/* Registers the callback that forgets what a session knows of the relations. From _PG_init. */
extern void storage_init(void);
/* The lock is kept to the end of the transaction: close with table_close(rel, NoLock). */
extern Relation storage_open(StorageTable table, LOCKMODE lockmode);
/* Locks the table, too; returns the number of its file, without the relation when this session knows it. */
extern Oid storage_lock_file(StorageTable table, LOCKMODE lockmode);
/* Whether this transaction has given it that file. */
extern bool storage_file_is_new(StorageTable table);
/* Takes the locks that a replay needs, so that it waits for nobody later. */
extern void storage_lock_for_replay(void);
/* Takes the locks on tables with which logs and versions are written, for those who read them first: REINDEX holds a
 * lock that keeps writers away while it waits for readers of the index, so who became a writer then would wait for it.
 */
extern void storage_lock_for_versions(void);

/* Appends one row and its index entries. */
extern void storage_insert(StorageTable table, Relation rel, Datum *values, bool *nulls);
extern void storage_update(StorageTable table, Relation rel, ItemPointer tid, Datum *values, bool *nulls);

/* A scan over the primary key; of log_batch, over its directory, in the order of first_seq; of STORAGE_ACCOUNT_OF_ROLE,
 * over the unique index on the role. */
typedef struct StorageScan
{
	Relation rel;
	Relation index;
	IndexScanDesc scan;	  /* of a primary key */
	TupleTableSlot *slot; /* the current row */
	/* of a directory, which is opened when the direction is known */
	LogLookup lookup;
	Snapshot snapshot;
	bool opened;
	int64 key;		   /* of a directory, and of a scan of tiles: the sheet */
	int64 least, most; /* inclusive bounds of the position */
	/* of a scan of tiles */
	ScanKeyData below[3];
} StorageScan;

typedef struct StorageKey
{
	int column;	  /* of the index, from 1: bigint or integer, or the role */
	int strategy; /* BTEqualStrategyNumber ... */
	bool is_int4;
	int64 value;
} StorageKey;

extern void storage_scan_begin(StorageScan *scan, StorageTable table, Snapshot snapshot, const StorageKey *keys,
							   int nkeys);
extern bool storage_scan_next(StorageScan *scan, ScanDirection direction);
extern void storage_scan_end(StorageScan *scan);

/* A scan backward over a sheet's rows of version_tile, in two steps: the key, from the index alone, of a row that
 * may be gone or not there yet; then the row, if the snapshot sees it. Who knows from the key that he does not want the
 * row need not read it. */
extern void storage_tiles_begin(StorageScan *scan, Snapshot snapshot, int64 sheet_id);
extern bool storage_tiles_next(StorageScan *scan);
extern int64 storage_key(StorageScan *scan, int column);
extern bool storage_scan_fetch(StorageScan *scan);
/* Descends the index again: goes on with the first key of the current tile whose version is below version_id, or with
 * the tile before it. Worth it when it saves a page of keys (STORAGE_TILES_PAGE). */
extern void storage_tiles_skip(StorageScan *scan, int64 version_id);
#define STORAGE_TILES_PAGE 200

/* The number of a column of the scanned table. */
extern AttrNumber storage_column(StorageScan *scan, const char *name);
/* A column of the current row, by its name. */
extern Datum storage_value(StorageScan *scan, const char *name, bool *isnull);
/* Of the current row. */
extern int64 storage_int64(StorageScan *scan, int column);
extern int32 storage_int32(StorageScan *scan, int column);
/* Detoasted; *copy tells whether to pfree it. Valid until the next row otherwise. */
extern struct varlena *storage_bytes(StorageScan *scan, int column, bool *copy);
/* How many bytes they would be, of a row of a log, which need not be read for it. */
extern Size storage_raw_size(StorageScan *scan, int column);
/* The full id of the transaction that wrote the current row. */
extern uint64 storage_writer_fxid(StorageScan *scan);

#endif
