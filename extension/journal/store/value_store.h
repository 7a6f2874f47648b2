/*
 * value_store.h - the stored values of formulas; see value_store.c.
 */
#ifndef VALUE_STORE_H
#define VALUE_STORE_H

#include "postgres.h"
#include "common/edit_codec.h"
#include "journal/journal.h"
#include "lib/stringinfo.h"
#include "utils/snapshot.h"

/* Values are stored by blocks of cells, in physical rows and columns: so they move with their cells. */
#define VALUE_TILE_ROWS 64
#define VALUE_TILE_COLS 4

static inline int64
value_tile_at(uint32 row, uint32 col)
{
	return (int64) (row / VALUE_TILE_ROWS) * (SHEET_MAX_COLS / VALUE_TILE_COLS) + col / VALUE_TILE_COLS;
}

static inline uint8
value_place_at(uint32 row, uint32 col)
{
	return (uint8) (row % VALUE_TILE_ROWS * VALUE_TILE_COLS + col % VALUE_TILE_COLS);
}

/* ---- the bytes of a tile ---- */

typedef struct ValueReader
{
	const uint8 *pos, *end;
	int last; /* place of the entry before; -1: none */
} ValueReader;

extern void value_reader_init(ValueReader *reader, const struct varlena *data);
/* The next entry; false at the end. 22P03: the bytes are damaged. */
extern bool value_reader_next(ValueReader *reader, ValueEntry *entry);
/* Entries must come in the order of their places. */
extern void value_write(StringInfo to, const ValueEntry *entry);

/* ---- rows ---- */

/* Whether the sheet has, or had, formulas; then the seq up to which values are computed. */
extern bool value_store_state(int64 sheet_id, Snapshot snapshot, int64 *seq);
/* Whether another tab that the values depend on has changed since they were computed. */
extern bool value_store_is_behind(int64 sheet_id, Snapshot snapshot);
/* A formula was stored: notes that the sheet has some. Caller must hold the sheet lock, and make the change visible. */
extern void value_store_mark(int64 sheet_id);

/* Called for each value with its physical row and column. */
typedef void (*ValueFn)(void *arg, uint32 row, uint32 col, const ValueEntry *entry);
/* The values of physical rows row0 to row1; also some of others. */
extern void value_store_read(int64 sheet_id, uint32 row0, uint32 row1, Snapshot snapshot, ValueFn fn, void *arg);

#endif
