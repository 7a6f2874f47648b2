/*
 * version_store.h - storing versions as tiles, and comparing stored versions with replayed ones; see version_store.c.
 */
#ifndef VERSION_STORE_H
#define VERSION_STORE_H

#include "postgres.h"
#include "grid/line_maps.h"
#include "common/edit_codec.h"
#include "grid/grid.h"
#include "utils/hsearch.h"
#include "utils/snapshot.h"

/* The tiles that edits have changed. Lives in the memory context that was current when it was created. */
typedef HTAB TileSet;

extern TileSet *tileset_create(void);
/* maps: the maps before the edit. Discards what was encoded of the tile. */
extern void tileset_add_edit(TileSet *tiles, const Edit *edit, const LineMaps *maps);
extern bool tileset_has(TileSet *tiles, GridTileNo tile);
/* Encodes the tiles from the grid in advance, so that version_store_write() has less to do. */
extern void tileset_encode(TileSet *tiles, const Grid *grid);
extern void tileset_free(TileSet *tiles);

typedef struct VersionHead
{
	int64 sheet_id;
	int64 version_id;
	int64 seq; /* of the commit record */
	int64 at;  /* of the commit record, microseconds since the Unix epoch */
	uint64 uid;
	EditText label; /* len 0: none */
	uint32 cause;	/* VersionCause */
} VersionHead;

/* The row map and column map in their stored form; NULL for the identity. */
extern bytea *version_store_maps(const LineMaps *maps);
/* Stores the version's row, and the tiles of `tiles` from the grid. The grid need not have other tiles; `digest` is
 * that of all cells. properties: as stored (property_store.h); NULL: none. */
extern void version_store_write(const VersionHead *head, const Grid *grid, uint64 digest, TileSet *tiles,
								const bytea *properties);

typedef enum VersionDiff
{
	VERSION_SAME,
	VERSION_MISSING,
	VERSION_ROW_DIFFERS,
	VERSION_TILE_DIFFERS,
	VERSION_TILES_STRAY /* more tiles than there should be */
} VersionDiff;

/* The first tile that differs. */
typedef struct VersionFault
{
	uint32 row, col; /* numbers of the tile */
	bool missing;
} VersionFault;

/* Compares the stored version with this one, byte for byte. Does not search for tiles that should not exist. */
extern VersionDiff version_store_compare(const VersionHead *head, const Grid *grid, TileSet *tiles,
										 const bytea *properties, Snapshot snapshot, VersionFault *fault);
/* Sets time, account, label and cause from the version's row; false if there is none with the head's seq. */
extern bool version_store_read_head(VersionHead *head, Snapshot snapshot);
/* Deletes the version's row and tiles. */
extern void version_store_delete(int64 sheet_id, int64 version_id);

#endif
