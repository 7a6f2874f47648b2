/*
 * checkpoint.c - storing versions as tiles.
 *
 * A version is a row of sheet.checkpoint and the tiles that its log has touched, each as one batch of the edit codec; a
 * tile that has become empty is stored as no bytes. The cells of a version are the newest row of each tile up to it.
 * The bytes follow from the cells alone, so what is stored can be compared with what a replay gives.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "checkpoint.h"
#include "sheetlog.h"
#include "stoppoint.h"
#include "storage.h"
#include "timeconv.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

typedef struct TileKey
{
	uint32 row, col; /* numbers of tiles */
} TileKey;

TileSet *
tileset_create(void)
{
	HASHCTL info = {.keysize = sizeof(TileKey), .entrysize = sizeof(TileKey), .hcxt = CurrentMemoryContext};

	return hash_create("pg_sheet tiles", 256, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

void
tileset_add_edit(TileSet *tiles, const Edit *edit)
{
	TileKey key = {edit->row / GRID_TILE_ROWS, edit->col / GRID_TILE_COLS};

	if (edit->kind == EDIT_SET || edit->kind == EDIT_STYLE)
		(void) hash_search(tiles, &key, HASH_ENTER, NULL);
}

void
tileset_free(TileSet *tiles)
{
	hash_destroy(tiles);
}

/* The tile's cells as one batch; empty when it holds nothing. */
static bytea *
checkpoint_encode_tile(const Grid *grid, const TileKey *key, int64 seq, int64 at)
{
	uint32 row0 = key->row * GRID_TILE_ROWS, col0 = key->col * GRID_TILE_COLS;
	EditBatch batch = {seq, at, 0};
	Size bound = VARHDRSZ + EDIT_BATCH_HEAD_MAX;
	EditWriter writer;
	GridScan scan;
	GridCell cell;
	bytea *data;

	grid_scan_init(&scan, grid, row0, col0, row0 + GRID_TILE_ROWS - 1, col0 + GRID_TILE_COLS - 1);
	for (; grid_scan_next(&scan, &cell); batch.count++)
		bound += 64 + cell.content_len + cell.style_len;
	data = palloc(bound);
	if (batch.count == 0)
	{
		SET_VARSIZE(data, VARHDRSZ);
		return data;
	}
	edit_write_batch(&writer, (uint8_t *) VARDATA(data), &batch);
	grid_scan_init(&scan, grid, row0, col0, row0 + GRID_TILE_ROWS - 1, col0 + GRID_TILE_COLS - 1);
	while (grid_scan_next(&scan, &cell))
	{
		Edit edit = {.kind = EDIT_SET, .row = cell.row, .col = cell.col, .content = {cell.content, cell.content_len}};

		if (cell.style_len > 0)
			edit.style = (EditText){cell.style, cell.style_len};
		edit_write(&writer, &edit);
	}
	SET_VARSIZE(data, (char *) writer.pos - (char *) data);
	return data;
}

/* Returns the number of tiles. */
static int32
checkpoint_store_tiles(const CheckpointHead *head, const Grid *grid, TileSet *tiles)
{
	Relation rel = storage_open(STORAGE_CHECKPOINT_TILE, RowExclusiveLock);
	HASH_SEQ_STATUS status;
	TileKey *key;
	int32 count = 0;

	hash_seq_init(&status, tiles);
	while ((key = hash_seq_search(&status)) != NULL)
	{
		Datum values[STORAGE_MAX_COLUMNS] = {0};
		bool nulls[STORAGE_MAX_COLUMNS] = {0};
		bytea *data = checkpoint_encode_tile(grid, key, head->seq, head->at);

		values[CHECKPOINT_TILE_SHEET_ID - 1] = Int64GetDatum(head->sheet_id);
		values[CHECKPOINT_TILE_ROW - 1] = Int32GetDatum((int32) key->row);
		values[CHECKPOINT_TILE_COL - 1] = Int32GetDatum((int32) key->col);
		values[CHECKPOINT_TILE_CID - 1] = Int64GetDatum(head->cid);
		values[CHECKPOINT_TILE_DATA - 1] = PointerGetDatum(data);
		storage_insert(STORAGE_CHECKPOINT_TILE, rel, values, nulls);
		pfree(data);
		count++;
		STOP_POINT("checkpoint-tile");
	}
	table_close(rel, NoLock);
	return count;
}

void
checkpoint_write(const CheckpointHead *head, const Grid *grid, TileSet *tiles)
{
	int32 count = checkpoint_store_tiles(head, grid, tiles);
	Relation rel = storage_open(STORAGE_CHECKPOINT, RowExclusiveLock);
	Datum values[STORAGE_MAX_COLUMNS] = {0};
	bool nulls[STORAGE_MAX_COLUMNS] = {0};

	values[CHECKPOINT_SHEET_ID - 1] = Int64GetDatum(head->sheet_id);
	values[CHECKPOINT_CID - 1] = Int64GetDatum(head->cid);
	values[CHECKPOINT_SEQ - 1] = Int64GetDatum(head->seq);
	values[CHECKPOINT_AT - 1] = TimestampTzGetDatum(timeconv_from_unix(head->at));
	values[CHECKPOINT_UID - 1] = Int64GetDatum((int64) head->uid);
	nulls[CHECKPOINT_LABEL - 1] = head->label.len == 0;
	if (head->label.len > 0)
		values[CHECKPOINT_LABEL - 1] = PointerGetDatum(cstring_to_text_with_len(head->label.data, head->label.len));
	values[CHECKPOINT_ROWS - 1] = Int32GetDatum((int32) grid_rows(grid));
	values[CHECKPOINT_COLS - 1] = Int32GetDatum((int32) grid_cols(grid));
	values[CHECKPOINT_TILES - 1] = Int32GetDatum(count);
	values[CHECKPOINT_DIGEST - 1] = Int64GetDatum((int64) grid_digest(grid));
	STOP_POINT("checkpoint-row");
	storage_insert(STORAGE_CHECKPOINT, rel, values, nulls);
	table_close(rel, NoLock);
}

/* ---- comparing ---- */

static bool
checkpoint_row_matches(StorageScan *scan, const CheckpointHead *head, const Grid *grid, TileSet *tiles)
{
	return storage_int64(scan, CHECKPOINT_SEQ) == head->seq &&
		   storage_int32(scan, CHECKPOINT_ROWS) == (int32) grid_rows(grid) &&
		   storage_int32(scan, CHECKPOINT_COLS) == (int32) grid_cols(grid) &&
		   storage_int32(scan, CHECKPOINT_TILES) == (int32) hash_get_num_entries(tiles) &&
		   storage_int64(scan, CHECKPOINT_DIGEST) == (int64) grid_digest(grid);
}

/* Is the tile stored with this version, as it should be? */
static bool
checkpoint_tile_matches(const CheckpointHead *head, const Grid *grid, const TileKey *tile, Snapshot snapshot)
{
	StorageKey keys[] = {{1, BTEqualStrategyNumber, false, head->sheet_id},
						 {2, BTEqualStrategyNumber, true, tile->row},
						 {3, BTEqualStrategyNumber, true, tile->col},
						 {4, BTEqualStrategyNumber, false, head->cid}};
	bytea *wanted = checkpoint_encode_tile(grid, tile, head->seq, head->at);
	StorageScan scan;
	bool same;

	storage_scan_begin(&scan, STORAGE_CHECKPOINT_TILE, snapshot, keys, 4);
	same = storage_scan_next(&scan, ForwardScanDirection);
	if (same)
	{
		bool copy;
		struct varlena *stored = storage_bytes(&scan, CHECKPOINT_TILE_DATA, &copy);

		same = VARSIZE_ANY_EXHDR(stored) == VARSIZE_ANY_EXHDR(wanted) &&
			   memcmp(VARDATA_ANY(stored), VARDATA_ANY(wanted), VARSIZE_ANY_EXHDR(wanted)) == 0;
		if (copy)
			pfree(stored);
	}
	storage_scan_end(&scan);
	pfree(wanted);
	return same;
}

static bool
checkpoint_tiles_match(const CheckpointHead *head, const Grid *grid, TileSet *tiles, Snapshot snapshot)
{
	HASH_SEQ_STATUS status;
	TileKey *tile;

	hash_seq_init(&status, tiles);
	while ((tile = hash_seq_search(&status)) != NULL)
	{
		if (!checkpoint_tile_matches(head, grid, tile, snapshot))
		{
			hash_seq_term(&status);
			return false;
		}
	}
	return true;
}

CheckpointDiff
checkpoint_compare(const CheckpointHead *head, const Grid *grid, TileSet *tiles)
{
	StorageKey keys[] = {{1, BTEqualStrategyNumber, false, head->sheet_id},
						 {2, BTEqualStrategyNumber, false, head->cid}};
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	CheckpointDiff diff = CHECKPOINT_MISSING;
	StorageScan scan;

	storage_scan_begin(&scan, STORAGE_CHECKPOINT, snapshot, keys, 2);
	if (storage_scan_next(&scan, ForwardScanDirection))
		diff = checkpoint_row_matches(&scan, head, grid, tiles) ? CHECKPOINT_SAME : CHECKPOINT_ROW_DIFFERS;
	storage_scan_end(&scan);
	if (diff == CHECKPOINT_SAME && !checkpoint_tiles_match(head, grid, tiles, snapshot))
		diff = CHECKPOINT_TILE_DIFFERS;
	UnregisterSnapshot(snapshot);
	return diff;
}

/* ---- removing ---- */

/* Deletes the rows of a table that belong to the version; tiles are found by a scan over the sheet. */
static void
checkpoint_delete_rows(StorageTable table, int cid_column, int64 sheet_id, int64 cid)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};
	Relation rel = storage_open(table, RowExclusiveLock);
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageScan scan;

	sheetlog_begin_purge();
	storage_scan_begin(&scan, table, snapshot, &key, 1);
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		if (storage_int64(&scan, cid_column) == cid)
			simple_table_tuple_delete(rel, &scan.slot->tts_tid, snapshot);
	}
	storage_scan_end(&scan);
	sheetlog_end_purge();
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
}

void
checkpoint_delete(int64 sheet_id, int64 cid)
{
	checkpoint_delete_rows(STORAGE_CHECKPOINT, CHECKPOINT_CID, sheet_id, cid);
	checkpoint_delete_rows(STORAGE_CHECKPOINT_TILE, CHECKPOINT_TILE_CID, sheet_id, cid);
	CommandCounterIncrement();
}
