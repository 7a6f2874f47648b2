/*
 * replay.h - from stored checkpoints and batches to cells; see replay.c.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "postgres.h"
#include "axes.h"
#include "edit_codec.h"
#include "grid.h"
#include "utils/snapshot.h"

#define REPLAY_NEWEST PG_INT64_MAX

/* The newest edit of a sheet: of its newest batch, or when all batches are trimmed, of its newest version. */
typedef struct ReplayLast
{
	bool found;
	int64 last_seq;
	int64 last_at;		/* of its last edit, microseconds since the Unix epoch */
	uint64 writer_fxid; /* 0: visible to all */
} ReplayLast;

/* A version's row. */
typedef struct ReplayVersion
{
	int64 cid;
	int64 seq;
	int64 at; /* TimestampTz */
	uint32 rows, cols;
	int32 tiles;
	int64 digest;
	uint32 cause; /* CkptCause */
	bytea *axes;  /* as they are stored; NULL: the identity */
} ReplayVersion;

extern void replay_last(int64 sheet_id, Snapshot snapshot, ReplayLast *last);
/* The open log; false when the sheet has no log at all. */
extern bool replay_open_log(int64 sheet_id, Snapshot snapshot, int64 *lid, int64 *first_seq);
/* The newest version with cid <= max_cid; false when there is none. */
extern bool replay_find_version(int64 sheet_id, int64 max_cid, Snapshot snapshot, ReplayVersion *version);

/*
 * The cells of the version (tiles only). The grid is put into *grid as soon as it exists, for the caller's clean-up.
 * False when the allocator has no room.
 */
extern bool replay_version(int64 sheet_id, const ReplayVersion *version, Snapshot snapshot,
						   const GridAllocator *allocator, Grid **grid);
/* The same, but damage is told and not raised: the first tile that does not decode, or error EDIT_END. */
typedef struct ReplayFault
{
	EditError error;
	bool axes;		 /* it is the axes that do not decode, or else ... */
	uint32 row, col; /* ... the tile of these numbers */
} ReplayFault;
extern bool replay_version_try(int64 sheet_id, const ReplayVersion *version, Snapshot snapshot,
							   const GridAllocator *allocator, Grid **grid, ReplayFault *fault);
/* The cells that the snapshot sees: newest version plus the batches after it. */
extern bool replay_sheet(int64 sheet_id, Snapshot snapshot, const GridAllocator *allocator, Grid **grid, int64 *seq);

/* An element of a set of tiles. */
#define REPLAY_CELL_WORDS (GRID_TILE_ROWS * GRID_TILE_COLS / 64)
typedef struct ReplayTile
{
	GridTileNo no;
	bool whole;						 /* all of its cells, else ... */
	uint64 cells[REPLAY_CELL_WORDS]; /* ... those with a bit here */
} ReplayTile;

/* Some of a sheet's tiles: those that a rectangle of cells touches, or those of a set (an HTAB of ReplayTile), whole.
 * Neither: all. */
struct HTAB;
typedef struct ReplayTiles
{
	const GridRect *rect;
	struct HTAB *set;
} ReplayTiles;
static inline GridTileNo
replay_tile_of(uint32 row, uint32 col)
{
	return (GridTileNo){row / GRID_TILE_ROWS, col / GRID_TILE_COLS};
}
extern struct HTAB *replay_make_set(void);						  /* in the current memory context */
extern void replay_add_to_set(struct HTAB *set, GridTileNo tile); /* a whole tile */
/* One cell; false when it is in the set already. */
extern bool replay_add_cell_to_set(struct HTAB *set, uint32 row, uint32 col);
extern bool replay_set_has_cell(struct HTAB *set, uint32 row, uint32 col);

/* The same as replay_sheet(), but only the tiles that are wanted; the grid notes the others as missing. */
extern bool replay_sheet_tiles(int64 sheet_id, const ReplayTiles *wanted, Snapshot snapshot,
							   const GridAllocator *allocator, Grid **grid, int64 *seq);
/*
 * Adds the tiles, or cells, of a set as they were at seq `until` to a grid that does not hold them yet; its extent
 * becomes the whole sheet's. *seq is where the log ended, at `until` unless it is shorter. False when the allocator has
 * no room.
 */
extern bool replay_add_tiles(int64 sheet_id, int64 until, Snapshot snapshot, const GridAllocator *allocator, Grid *grid,
							 struct HTAB *tiles, int64 *seq);

/* What a structure edit does; false when it says something that cannot be. */
extern bool replay_change_of(const Edit *edit, AxesChange *change);
/* Axes that change with the edits of a log, and the extent, on which it depends how they do. */
typedef struct AxesFollower
{
	const GridAllocator *allocator;
	Axes *axes;
	uint32 rows, cols;
} AxesFollower;
extern void replay_follow_axes(AxesFollower *follower, const Edit *edit);
/* Makes it what it is after the edit at seq `until`. The axes come from its allocator. */
extern void replay_find_axes(int64 sheet_id, int64 until, Snapshot snapshot, AxesFollower *follower);

/* Applies one edit of the log; false when the allocator has no room. */
extern bool replay_edit_into(Grid *grid, const GridAllocator *allocator, const Edit *edit);

/* The edits of a stored batch: of the row's `data`, whose bytes must outlive the reader. */
extern void replay_stored_edits(EditReader *reader, const struct varlena *data, int64 first_seq, int64 last_seq);
/* After a read that gave `error`: EDIT_END when the edits are as many as the row says, and nothing is left of them. */
static inline EditError
replay_stored_end(const EditReader *reader, EditError error)
{
	return error == EDIT_END && reader->pos != reader->end ? EDIT_TRUNCATED : error;
}

/* Calls fn for each edit stored in batches with seq after `since` and up to `until`, in their order. */
typedef void (*ReplayEditFn)(void *arg, int64 seq, int64 at /* Unix microseconds */, const Edit *edit);
extern void replay_edits(int64 sheet_id, int64 since, int64 until, Snapshot snapshot, ReplayEditFn fn, void *arg);

/* ---- one batch at a time ---- */
typedef struct ReplayBatch
{
	int64 first_seq, last_seq;
	int64 lid;
	int64 at; /* TimestampTz of the first edit; the others follow by one microsecond each */
	int64 epoch, origin, batch_no;
} ReplayBatch;
typedef struct ReplayBatches ReplayBatches;

/* The batches that hold any seq from low to high, oldest or newest first. Begin keeps the snapshot, which must outlive
 * the iterator; everything is in the current memory context. */
extern ReplayBatches *replay_batches_begin(int64 sheet_id, int64 low, int64 high, bool backward, Snapshot snapshot);
extern bool replay_batches_next(ReplayBatches *batches, ReplayBatch *batch);
/* Sets the reader on the first of the current batch's edits; its texts are valid until the next batch. */
extern void replay_batches_edits(ReplayBatches *batches, EditReader *reader);
extern void replay_batches_end(ReplayBatches *batches);

/* What grows from batch to batch. */
typedef enum ReplayField
{
	REPLAY_LID,
	REPLAY_AT,		/* of the first edit */
	REPLAY_LAST_AT, /* of the last edit */
} ReplayField;
/* first_seq of the first batch whose field is at least value, PG_INT64_MAX when there is none. Bisects; the number of
 * batches that were looked at is added to *probes. */
extern int64 replay_seek(int64 sheet_id, ReplayField field, int64 value, Snapshot snapshot, int64 *probes);

/* Stored batches with last_seq > since, oldest first: all of them up to seq whole_to, and behind them those that fit
 * into max_bytes; one at least. NULL when there are none. *last_seq: of the last that is in. 54000 when they are more
 * than one value can hold. */
extern bytea *replay_tail(int64 sheet_id, int64 since, int64 whole_to, Size max_bytes, Snapshot snapshot,
						  int64 *last_seq);
/* Finds (origin, batch_no) in the batches with last_seq > since. */
extern bool replay_find_batch(int64 sheet_id, int64 since, int64 origin, int64 batch_no, Snapshot snapshot,
							  int64 *first_seq, int64 *last_seq, int64 *at);

/* ERRCODE_DATA_CORRUPTED with the place and a hint to sheet.fsck. */
extern void replay_corrupted(int64 sheet_id, const char *what, int64 place, EditError error) pg_attribute_noreturn();

#endif
