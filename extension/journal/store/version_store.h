/*
 * version_store.h - storing versions as tiles, and comparing what is stored with what should be; see version_store.c.
 */
#ifndef VERSION_STORE_H
#define VERSION_STORE_H

#include "postgres.h"
#include "grid/axes.h"
#include "common/edit_codec.h"
#include "grid/grid.h"
#include "utils/hsearch.h"
#include "utils/snapshot.h"

/* The tiles that edits have touched; of the memory context in which it was made. */
typedef HTAB TileSet;

extern TileSet *tileset_create(void);
/* The axes are those that the edit was made with. What was encoded of its tile is forgotten. */
extern void tileset_add_edit(TileSet *tiles, const Edit *edit, const Axes *axes);
extern bool tileset_has(TileSet *tiles, GridTileNo tile);
/* Encodes the tiles as they are in grid, so that version_store_write has less to do. */
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

/* The axes as they are stored; NULL for the identity. */
extern bytea *version_store_axes(const Axes *axes);
/* Stores the version: its row, and the tiles of `tiles` as they are in grid. The digest is that of all cells; the grid
 * need not have others than those of the tiles. */
extern void version_store_write(const VersionHead *head, const Grid *grid, uint64 digest, TileSet *tiles);

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

/* Is this what is stored, byte for byte? Tiles that should not be there are not looked for. */
extern VersionDiff version_store_compare(const VersionHead *head, const Grid *grid, TileSet *tiles, Snapshot snapshot,
										 VersionFault *fault);
/* Fills in time, account, label and cause of the version's row; false when there is none with the head's seq. */
extern bool version_store_read_head(VersionHead *head, Snapshot snapshot);
/* Removes what is stored of the version. */
extern void version_store_delete(int64 sheet_id, int64 version_id);

#endif
