/*
 * checkpoint.h - storing versions as tiles, and comparing what is stored with what should be; see checkpoint.c.
 */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "postgres.h"
#include "edit_codec.h"
#include "grid.h"
#include "utils/hsearch.h"

/* The tiles that edits have touched; of the memory context in which it was made. */
typedef HTAB TileSet;

extern TileSet *tileset_create(void);
extern void tileset_add_edit(TileSet *tiles, const Edit *edit);
extern void tileset_free(TileSet *tiles);

typedef struct CheckpointHead
{
	int64 sheet_id;
	int64 cid;
	int64 seq; /* of the commit record */
	int64 at;  /* of the commit record, microseconds since the Unix epoch */
	uint64 uid;
	EditText label; /* len 0: none */
} CheckpointHead;

/* Stores the version: its row, and the tiles of `tiles` as they are in grid. */
extern void checkpoint_write(const CheckpointHead *head, const Grid *grid, TileSet *tiles);

typedef enum CheckpointDiff
{
	CHECKPOINT_SAME,
	CHECKPOINT_MISSING,
	CHECKPOINT_ROW_DIFFERS,
	CHECKPOINT_TILE_DIFFERS
} CheckpointDiff;

/* Is this what is stored, byte for byte? */
extern CheckpointDiff checkpoint_compare(const CheckpointHead *head, const Grid *grid, TileSet *tiles);
/* Removes what is stored of the version. */
extern void checkpoint_delete(int64 sheet_id, int64 cid);

#endif
