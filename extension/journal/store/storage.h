/*
 * storage.h - the journal's relations: opening and changing them (storage.c), scanning them (storage_scan.c).
 */
#ifndef JOURNAL_STORAGE_H
#define JOURNAL_STORAGE_H

#include "postgres.h"
#include "access/genam.h"
#include "access/sdir.h"
#include "access/stratnum.h"
#include "executor/tuptable.h"
#include "am/directory/am_lookup.h"
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
	STORAGE_ACCOUNT_OF_ROLE, /* sheet.account, scanned by the SQL role */
	STORAGE_MEMBER,
	STORAGE_CLIENT,
	STORAGE_LOG_TRIM,
	STORAGE_PROPERTY_SET,
	STORAGE_LINK,
	STORAGE_LINK_OF_RECTANGLE, /* sheet.link, scanned by the sheet: links to rectangles that were not revoked */
	STORAGE_LINK_RECT,
	STORAGE_COMPUTED,
	STORAGE_VALUE,
	STORAGE_BOOK_TAB,
	STORAGE_TAB_OF_BOOK, /* sheet.book_tab, scanned by the book */
	STORAGE_REFERRING,
	STORAGE_VALUE_SOURCE,
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

typedef enum SegmentColumn
{
	SEGMENT_SHEET_ID = 1,
	SEGMENT_SEGMENT_ID,
	SEGMENT_FIRST_SEQ,
	SEGMENT_AT,
	SEGMENT_COLUMNS = SEGMENT_AT
} SegmentColumn;

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
	VERSION_LINE_MAPS,
	VERSION_PROPERTIES,
	VERSION_COLUMNS = VERSION_PROPERTIES
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

typedef enum OwnershipColumn
{
	OWNERSHIP_SHEET_ID = 1,
	OWNERSHIP_EPOCH,
	OWNERSHIP_HOLDER,
	OWNERSHIP_COLUMNS = OWNERSHIP_HOLDER
} OwnershipColumn;

typedef enum ClientColumn
{
	CLIENT_SHEET_ID = 1,
	CLIENT_UID,
	CLIENT_CLIENT,
	CLIENT_ACKNOWLEDGED,
	CLIENT_AT,
	CLIENT_COLUMNS = CLIENT_AT
} ClientColumn;

typedef enum LogTrimColumn
{
	LOG_TRIM_SHEET_ID = 1,
	LOG_TRIM_VERSION_ID,
	LOG_TRIM_SEQ,
	LOG_TRIM_AT,
	LOG_TRIM_UID,
	LOG_TRIM_COLUMNS = LOG_TRIM_UID
} LogTrimColumn;

typedef enum PropertySetColumn
{
	PROPERTY_SET_SHEET_ID = 1,
	PROPERTY_SET_DATA,
	PROPERTY_SET_COLUMNS = PROPERTY_SET_DATA
} PropertySetColumn;

/* In the order of 46-links.sql. */
typedef enum LinkRectColumn
{
	LINK_RECT_SHEET_ID = 1,
	LINK_RECT_LINK_ID,
	LINK_RECT_SEQ,
	LINK_RECT_ROW0,
	LINK_RECT_COL0,
	LINK_RECT_ROW1,
	LINK_RECT_COL1,
	LINK_RECT_COLUMNS = LINK_RECT_COL1
} LinkRectColumn;

/* In the order of 61-values.sql. */
typedef enum ComputedColumn
{
	COMPUTED_SHEET_ID = 1,
	COMPUTED_SEQ,
	COMPUTED_AGAIN_AT,
	COMPUTED_COLUMNS = COMPUTED_AGAIN_AT
} ComputedColumn;

typedef enum ValueColumn
{
	VALUE_SHEET_ID = 1,
	VALUE_TILE,
	VALUE_DATA,
	VALUE_COLUMNS = VALUE_DATA
} ValueColumn;

typedef enum ValueSourceColumn
{
	VALUE_SOURCE_SHEET_ID = 1,
	VALUE_SOURCE_ID, /* 0: the names of tabs */
	VALUE_SOURCE_SEQ /* -1: the tab may not be read */
} ValueSourceColumn;

/* In the order of 66-books.sql. */
typedef enum BookTabColumn
{
	BOOK_TAB_SHEET_ID = 1,
	BOOK_TAB_BOOK_ID
} BookTabColumn;

typedef enum ReferringColumn
{
	REFERRING_SHEET_ID = 1,
	REFERRING_COLUMNS = REFERRING_SHEET_ID
} ReferringColumn;

#define STORAGE_MAX_COLUMNS 13

/* Registers the callback that clears what a session has cached of the relations. From _PG_init. */
extern void storage_init(void);
/* The lock is held to the end of the transaction: close with table_close(rel, NoLock). */
extern Relation storage_open(StorageTable table, LOCKMODE lockmode);
/* The index that scans of the table use. The table must be open. */
extern Relation storage_open_index(StorageTable table);
/* Locks the table and returns its relfilenode, without opening it if this session knows the number. */
extern Oid storage_lock_file(StorageTable table, LOCKMODE lockmode);
/* Whether the current transaction has created that file. */
extern bool storage_file_is_new(StorageTable table);
/* Takes all locks that a replay needs, so that the replay waits for nobody. */
extern void storage_lock_for_replay(void);
/*
 * Takes the locks with which segments and versions are written. For functions that read these tables first: REINDEX
 * blocks writers while it waits for readers of the index, so a reader that became a writer would deadlock with it.
 */
extern void storage_lock_for_versions(void);

/* Inserts a row and its index entries. nulls NULL: no column is null. */
extern void storage_insert(StorageTable table, Datum *values, bool *nulls);
/* For heap tables only. Caller must hold the sheet lock, so that nobody else changes the row. */
extern void storage_update(StorageTable table, ItemPointer tid, Datum *values, bool *nulls);

/* A scan over the primary key; of log_batch, over its directory, ordered by first_seq; of STORAGE_ACCOUNT_OF_ROLE, over
 * the unique index on the role; of STORAGE_LINK_OF_RECTANGLE, over link_rectangle_idx; of STORAGE_TAB_OF_BOOK, over
 * book_tab_idx. */
typedef struct StorageScan
{
	Relation rel;
	Relation index;
	IndexScanDesc scan;	  /* NULL: a scan of the directory */
	TupleTableSlot *slot; /* the current row */
	/* a scan of the directory, which begins when the direction is known */
	AmLookup lookup;
	Snapshot snapshot;
	bool opened;
	int64 key;		   /* the sheet; also in a scan of tiles */
	int64 least, most; /* inclusive bounds of first_seq */
	/* a scan of tiles */
	ScanKeyData below[3];
} StorageScan;

/* A condition on a column of the index. */
typedef struct StorageKey
{
	int column;	  /* from 1 */
	int strategy; /* BTEqualStrategyNumber ... */
	bool is_int4; /* the column is an integer, else a bigint (or the role) */
	int64 value;
	const char *name; /* of a role; must outlive the call that begins the scan */
} StorageKey;

static inline StorageKey
storage_key_int64(int column, int strategy, int64 value)
{
	return (StorageKey){column, strategy, false, value};
}

static inline StorageKey
storage_key_int32(int column, int strategy, int32 value)
{
	return (StorageKey){column, strategy, true, value};
}

static inline StorageKey
storage_key_name(int column, const char *name)
{
	return (StorageKey){.column = column, .strategy = BTEqualStrategyNumber, .name = name};
}

extern void storage_scan_begin(StorageScan *scan, StorageTable table, Snapshot snapshot, const StorageKey *keys,
							   int nkeys);
extern bool storage_scan_next(StorageScan *scan, ScanDirection direction);
extern void storage_scan_end(StorageScan *scan);
/* Begins a scan of the sheet's rows and fetches the first one, or with BackwardScanDirection the last one. Returns
 * false if there is none. The caller ends the scan in either case. */
extern bool storage_scan_first(StorageScan *scan, StorageTable table, Snapshot snapshot, int64 sheet_id,
							   ScanDirection direction);

/* Whether to delete the current row of the scan. */
typedef bool (*StorageFilter)(StorageScan *scan, const void *arg);
/*
 * Deletes the sheet's rows that the filter accepts (NULL: all of them), and returns their number. The only function
 * that deletes rows of append-only tables. Older snapshots still see the rows; VACUUM reclaims their space. Caller must
 * hold the sheet lock.
 */
extern int64 storage_delete_rows(StorageTable table, int64 sheet_id, StorageFilter filter, const void *arg);
/* The same for rows that match the keys, in index order. Examines at most *most rows and subtracts their number. */
extern int64 storage_delete_some(StorageTable table, const StorageKey *keys, int nkeys, StorageFilter filter,
								 const void *arg, int *most);

/*
 * A backward scan of a sheet's rows of version_tile in two steps: storage_tiles_next() reads the key from the index
 * alone, whether or not the row is visible; storage_tiles_fetch() reads the row and returns false if the snapshot does
 * not see it. A caller that does not want the tile skips the second step.
 */
extern void storage_tiles_begin(StorageScan *scan, Snapshot snapshot, int64 sheet_id);
extern bool storage_tiles_next(StorageScan *scan);
extern int64 storage_tiles_key(StorageScan *scan, int column);
extern bool storage_tiles_fetch(StorageScan *scan);
/* Descends the index again and continues with the current tile's first key below version_id, or with the tile before
 * it. Worth its cost if it saves a page of keys (STORAGE_TILES_PAGE). */
extern void storage_tiles_skip(StorageScan *scan, int64 version_id);
#define STORAGE_TILES_PAGE 200

/* The number of a column of the scanned table. */
extern AttrNumber storage_column(StorageScan *scan, const char *name);
/* A column of the current row, by its name or number. */
extern Datum storage_value(StorageScan *scan, const char *name, bool *isnull);
extern int64 storage_int64(StorageScan *scan, int column);
extern int32 storage_int32(StorageScan *scan, int column);
/* Detoasted. *copy: the caller may pfree it; otherwise it is valid until the next row. */
extern struct varlena *storage_bytes(StorageScan *scan, int column, bool *copy);
/* The size of these bytes, of a row of log_batch, without reading them. */
extern Size storage_raw_size(StorageScan *scan, int column);
/* The full id of the transaction that wrote the current row. */
extern uint64 storage_writer_fxid(StorageScan *scan);

#endif
