/*
 * version_store.c - versions as stored tiles.
 *
 * A version is a row of sheet.version and the tiles that its segment has changed, each as one batch of the edit codec;
 * a tile without cells is stored as no bytes. The cells of a version are the newest row of each tile up to it. Cells
 * are stored under physical rows and columns, which insertions and deletions do not change; the version's row has the
 * row map and column map. The bytes depend on the cells alone, so what is stored can be compared with the result of a
 * replay.
 */
#include "postgres.h"

#include "access/xact.h"
#include "journal/store/version_store.h"
#include "journal/store/property_store.h"
#include "miscadmin.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "journal/store/timeconv.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* An entry of a TileSet. */
typedef struct TileEntry
{
	GridTileNo key;
	uint32 count;	/* cells */
	Size len;		/* of the cells' bytes */
	uint8_t *bytes; /* NULL: not encoded */
} TileEntry;

TileSet *
tileset_create(void)
{
	HASHCTL info = {.keysize = sizeof(GridTileNo), .entrysize = sizeof(TileEntry), .hcxt = CurrentMemoryContext};

	return hash_create("pg_sheet tiles", 256, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

void
tileset_add_edit(TileSet *tiles, const Edit *edit, const LineMaps *maps)
{
	uint32 row = edit->row, col = edit->col;
	TileEntry *entry;
	GridTileNo key;
	bool found;

	if (!edit_is_of_cell(edit->kind))
		return;
	line_maps_locate(maps, &row, &col);
	key = grid_tile_of(row, col);
	entry = hash_search(tiles, &key, HASH_ENTER, &found);
	if (found && entry->bytes != NULL)
		pfree(entry->bytes);
	entry->bytes = NULL;
}

bool
tileset_has(TileSet *tiles, GridTileNo tile)
{
	return hash_search(tiles, &tile, HASH_FIND, NULL) != NULL;
}

void
tileset_free(TileSet *tiles)
{
	hash_destroy(tiles);
}

/* The tile's cells as edits. */
static void
version_store_encode_cells(const Grid *grid, TileEntry *entry)
{
	uint32 row0 = entry->key.row * GRID_TILE_ROWS, col0 = entry->key.col * GRID_TILE_COLS;
	Size bound = 1;
	EditWriter writer;
	GridScan scan;
	GridCell cell;

	entry->count = 0;
	grid_scan_init(&scan, grid, row0, col0, row0 + GRID_TILE_ROWS - 1, col0 + GRID_TILE_COLS - 1);
	for (; grid_scan_next(&scan, &cell); entry->count++)
		bound += 64 + cell.content_len + cell.style_len;
	entry->bytes = palloc(bound);
	edit_write_edits(&writer, entry->bytes);
	grid_scan_init(&scan, grid, row0, col0, row0 + GRID_TILE_ROWS - 1, col0 + GRID_TILE_COLS - 1);
	while (grid_scan_next(&scan, &cell))
	{
		Edit edit = {.kind = EDIT_SET, .row = cell.row, .col = cell.col, .content = {cell.content, cell.content_len}};

		if (cell.style_len > 0)
			edit.style = (EditText){cell.style, cell.style_len};
		edit_write(&writer, &edit);
	}
	entry->len = writer.pos - entry->bytes;
	entry->bytes = repalloc(entry->bytes, entry->len + 1);
}

void
tileset_encode(TileSet *tiles, const Grid *grid)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(tiles));
	HASH_SEQ_STATUS status;
	TileEntry *entry;

	hash_seq_init(&status, tiles);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->bytes == NULL)
			version_store_encode_cells(grid, entry);
		CHECK_FOR_INTERRUPTS();
	}
	MemoryContextSwitchTo(old);
}

/* The tile as stored: one batch, or no bytes if it has no cells. */
static bytea *
version_store_encode_tile(const Grid *grid, const TileEntry *tile, int64 seq, int64 at)
{
	TileEntry entry = *tile;
	EditBatch batch;
	EditWriter writer;
	bytea *data;

	if (entry.bytes == NULL)
		version_store_encode_cells(grid, &entry);
	batch = (EditBatch){seq, at, entry.count};
	data = palloc(VARHDRSZ + EDIT_BATCH_HEAD_MAX + entry.len);
	writer.pos = (uint8_t *) VARDATA(data);
	if (entry.count > 0)
	{
		edit_write_batch(&writer, (uint8_t *) VARDATA(data), &batch);
		memcpy(writer.pos, entry.bytes, entry.len);
		writer.pos += entry.len;
	}
	SET_VARSIZE(data, (char *) writer.pos - (char *) data);
	if (tile->bytes == NULL)
		pfree(entry.bytes);
	return data;
}

/* Returns the number of tiles. */
static int32
version_store_tiles(const VersionHead *head, const Grid *grid, TileSet *tiles)
{
	HASH_SEQ_STATUS status;
	TileEntry *tile;
	int32 count = 0;

	hash_seq_init(&status, tiles);
	while ((tile = hash_seq_search(&status)) != NULL)
	{
		bytea *data = version_store_encode_tile(grid, tile, head->seq, head->at);
		Datum values[STORAGE_MAX_COLUMNS] = {
			[VERSION_TILE_SHEET_ID - 1] = Int64GetDatum(head->sheet_id),
			[VERSION_TILE_ROW - 1] = Int32GetDatum((int32) tile->key.row),
			[VERSION_TILE_COL - 1] = Int32GetDatum((int32) tile->key.col),
			[VERSION_TILE_VERSION_ID - 1] = Int64GetDatum(head->version_id),
			[VERSION_TILE_DATA - 1] = PointerGetDatum(data),
		};

		storage_insert(STORAGE_VERSION_TILE, values, NULL);
		pfree(data);
		count++;
		STOP_POINT("version-tile");
	}
	return count;
}

bytea *
version_store_maps(const LineMaps *maps)
{
	bytea *bytes;

	if (maps == NULL)
		return NULL;
	bytes = palloc(VARHDRSZ + line_maps_encode_bound(maps));
	SET_VARSIZE(bytes, VARHDRSZ + line_maps_encode(maps, (uint8_t *) VARDATA(bytes)));
	return bytes;
}

void
version_store_write(const VersionHead *head, const Grid *grid, uint64 digest, TileSet *tiles, const bytea *properties)
{
	int32 count = version_store_tiles(head, grid, tiles);
	bytea *maps = version_store_maps(grid_maps(grid));
	bool nulls[STORAGE_MAX_COLUMNS] = {[VERSION_LABEL - 1] = head->label.len == 0,
									   [VERSION_LINE_MAPS - 1] = maps == NULL,
									   [VERSION_PROPERTIES - 1] = properties == NULL};
	Datum values[STORAGE_MAX_COLUMNS] = {
		[VERSION_SHEET_ID - 1] = Int64GetDatum(head->sheet_id),
		[VERSION_VERSION_ID - 1] = Int64GetDatum(head->version_id),
		[VERSION_SEQ - 1] = Int64GetDatum(head->seq),
		[VERSION_AT - 1] = TimestampTzGetDatum(timeconv_from_unix(head->at)),
		[VERSION_UID - 1] = Int64GetDatum((int64) head->uid),
		[VERSION_ROWS - 1] = Int32GetDatum((int32) grid_rows(grid)),
		[VERSION_COLS - 1] = Int32GetDatum((int32) grid_cols(grid)),
		[VERSION_TILES - 1] = Int32GetDatum(count),
		[VERSION_DIGEST - 1] = Int64GetDatum((int64) (digest + property_store_digest(properties))),
		[VERSION_CAUSE - 1] = Int32GetDatum((int32) head->cause),
		[VERSION_LINE_MAPS - 1] = PointerGetDatum(maps),
		[VERSION_PROPERTIES - 1] = PointerGetDatum(properties),
	};

	if (head->label.len > 0)
		values[VERSION_LABEL - 1] = PointerGetDatum(cstring_to_text_with_len(head->label.data, head->label.len));
	STOP_POINT("version-row");
	storage_insert(STORAGE_VERSION, values, nulls);
}

/* ---- comparing ---- */

/* Whether the version's row exists. The caller ends the scan. */
static bool
version_store_scan(StorageScan *scan, const VersionHead *head, Snapshot snapshot)
{
	StorageKey keys[] = {storage_key_int64(VERSION_SHEET_ID, BTEqualStrategyNumber, head->sheet_id),
						 storage_key_int64(VERSION_VERSION_ID, BTEqualStrategyNumber, head->version_id)};

	storage_scan_begin(scan, STORAGE_VERSION, snapshot, keys, 2);
	return storage_scan_next(scan, ForwardScanDirection);
}

/* Whether the column holds these bytes. */
static bool
version_store_bytes_match(StorageScan *scan, int column, const bytea *wanted)
{
	bool copy;
	struct varlena *stored = storage_bytes(scan, column, &copy);
	bool same = VARSIZE_ANY_EXHDR(stored) == VARSIZE_ANY_EXHDR(wanted) &&
				memcmp(VARDATA_ANY(stored), VARDATA_ANY(wanted), VARSIZE_ANY_EXHDR(wanted)) == 0;

	if (copy)
		pfree(stored);
	return same;
}

static EditText
version_store_label(StorageScan *scan)
{
	bool isnull, copy;
	struct varlena *label;

	(void) slot_getattr(scan->slot, VERSION_LABEL, &isnull);
	if (isnull)
		return (EditText){"", 0};
	label = storage_bytes(scan, VERSION_LABEL, &copy);
	return (EditText){text_to_cstring((text *) label), VARSIZE_ANY_EXHDR(label)};
}

/* The same for a column that may be null. */
static bool
version_store_column_matches(StorageScan *scan, int column, const bytea *wanted)
{
	bool isnull;

	(void) slot_getattr(scan->slot, column, &isnull);
	if (isnull || wanted == NULL)
		return isnull && wanted == NULL;
	return version_store_bytes_match(scan, column, wanted);
}

static bool
version_store_row_matches(StorageScan *scan, const VersionHead *head, const Grid *grid, TileSet *tiles,
						  const bytea *properties)
{
	EditText label = version_store_label(scan);

	return storage_int64(scan, VERSION_SEQ) == head->seq &&
		   timeconv_to_unix(storage_int64(scan, VERSION_AT)) == head->at &&
		   storage_int64(scan, VERSION_UID) == (int64) head->uid && label.len == head->label.len &&
		   memcmp(label.data, head->label.data, label.len) == 0 &&
		   storage_int32(scan, VERSION_ROWS) == (int32) grid_rows(grid) &&
		   storage_int32(scan, VERSION_COLS) == (int32) grid_cols(grid) &&
		   storage_int32(scan, VERSION_TILES) == (int32) hash_get_num_entries(tiles) &&
		   storage_int64(scan, VERSION_DIGEST) == (int64) (grid_digest(grid) + property_store_digest(properties)) &&
		   storage_int32(scan, VERSION_CAUSE) == (int32) head->cause &&
		   version_store_column_matches(scan, VERSION_LINE_MAPS, version_store_maps(grid_maps(grid))) &&
		   version_store_column_matches(scan, VERSION_PROPERTIES, properties);
}

/* Whether the tile is stored with this version, as it should be. */
static bool
version_store_tile_matches(const VersionHead *head, const Grid *grid, const TileEntry *tile, Snapshot snapshot,
						   VersionFault *fault)
{
	StorageKey keys[] = {storage_key_int64(VERSION_TILE_SHEET_ID, BTEqualStrategyNumber, head->sheet_id),
						 storage_key_int32(VERSION_TILE_ROW, BTEqualStrategyNumber, tile->key.row),
						 storage_key_int32(VERSION_TILE_COL, BTEqualStrategyNumber, tile->key.col),
						 storage_key_int64(VERSION_TILE_VERSION_ID, BTEqualStrategyNumber, head->version_id)};
	StorageScan scan;
	bytea *wanted;
	bool same = false;

	*fault = (VersionFault){tile->key.row, tile->key.col, false};
	storage_scan_begin(&scan, STORAGE_VERSION_TILE, snapshot, keys, 4);
	fault->missing = !storage_scan_next(&scan, ForwardScanDirection);
	if (!fault->missing)
	{
		wanted = version_store_encode_tile(grid, tile, head->seq, head->at);
		same = version_store_bytes_match(&scan, VERSION_TILE_DATA, wanted);
		pfree(wanted);
	}
	storage_scan_end(&scan);
	return same;
}

static bool
version_store_tiles_match(const VersionHead *head, const Grid *grid, TileSet *tiles, Snapshot snapshot,
						  VersionFault *fault)
{
	HASH_SEQ_STATUS status;
	TileEntry *tile;

	hash_seq_init(&status, tiles);
	while ((tile = hash_seq_search(&status)) != NULL)
	{
		if (!version_store_tile_matches(head, grid, tile, snapshot, fault))
		{
			hash_seq_term(&status);
			return false;
		}
	}
	return true;
}

VersionDiff
version_store_compare(const VersionHead *head, const Grid *grid, TileSet *tiles, const bytea *properties,
					  Snapshot snapshot, VersionFault *fault)
{
	VersionDiff diff = VERSION_MISSING;
	StorageScan scan;

	if (version_store_scan(&scan, head, snapshot))
		diff = version_store_row_matches(&scan, head, grid, tiles, properties) ? VERSION_SAME : VERSION_ROW_DIFFERS;
	storage_scan_end(&scan);
	if (diff == VERSION_SAME && !version_store_tiles_match(head, grid, tiles, snapshot, fault))
		diff = VERSION_TILE_DIFFERS;
	return diff;
}

bool
version_store_read_head(VersionHead *head, Snapshot snapshot)
{
	StorageScan scan;
	bool found = version_store_scan(&scan, head, snapshot) && storage_int64(&scan, VERSION_SEQ) == head->seq;

	if (found)
	{
		head->at = timeconv_to_unix(storage_int64(&scan, VERSION_AT));
		head->uid = (uint64) storage_int64(&scan, VERSION_UID);
		head->label = version_store_label(&scan);
		head->cause = (uint32) storage_int32(&scan, VERSION_CAUSE);
	}
	storage_scan_end(&scan);
	return found;
}

/* ---- removing ---- */

static bool
version_store_is_row(StorageScan *scan, const void *version_id)
{
	return storage_int64(scan, VERSION_VERSION_ID) == *(const int64 *) version_id;
}

static bool
version_store_is_tile(StorageScan *scan, const void *version_id)
{
	return storage_int64(scan, VERSION_TILE_VERSION_ID) == *(const int64 *) version_id;
}

void
version_store_delete(int64 sheet_id, int64 version_id)
{
	(void) storage_delete_rows(STORAGE_VERSION, sheet_id, version_store_is_row, &version_id);
	(void) storage_delete_rows(STORAGE_VERSION_TILE, sheet_id, version_store_is_tile, &version_id);
	CommandCounterIncrement();
}
