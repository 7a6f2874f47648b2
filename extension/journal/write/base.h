/* base.h - the cells before the transaction's own changes; see base.c. */
#ifndef BASE_H
#define BASE_H

#include "journal/write/writer.h"

/* Tries to have the entry's grid loaded, without any tile. */
extern void base_load_grid(WriterSheet *ws);
/*
 * Finds the tiles of the edits, NULL where a tile has no cells or the edit is not of a cell. After it the extent and
 * the maps are known. Returns the edits with physical rows and columns: `edits` itself if the maps are the identity.
 */
extern Edit *base_find_tiles(WriterSheet *ws, Edit *edits, uint32 nedits, GridTile **tiles);
/* The grid with all its tiles, never NULL. */
extern const Grid *base_whole_grid(WriterSheet *ws);
/* Whether the shared grid may be loaded from what this transaction sees. */
extern bool base_may_load(const WriterSheet *ws);

#endif
