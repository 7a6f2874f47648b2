/*
 * am_directory.h - the index access method sheetlog_directory: which pages hold rows of a key.
 *
 *   CREATE INDEX ON t USING sheetlog_directory (key, position)
 *
 * Two bigint columns: a key, and a position that grows with every row of the key. A B-tree keeps an entry for each row;
 * this index keeps one for each page that a key's rows begin to fill: (key, position of the first of them, block). As
 * long as rows of a key go to the page that its last entry names, nothing is added. It is stored as a B-tree, by
 * PostgreSQL's own code: an entry's TID is (block, AM_PAGE_OFFSET).
 *
 * Invariant: a row (k, p) of block b is found through an entry (k, e, b) with e <= p such that no entry (k, e', b') has
 * e < e' <= p. Entries of one position name several blocks, each of which has to be looked into. Entries are not
 * subject to visibility: they are there when rows are, and may be there when rows are not. VACUUM removes them when it
 * frees the page.
 *
 * SQL uses it for conditions on the key, by bitmap scans; the journal reads rows in the order of their positions
 * (am_lookup.h).
 */
#ifndef AM_DIRECTORY_H
#define AM_DIRECTORY_H

#include "postgres.h"
#include "access/genam.h"
#include "access/sdir.h"
#include "utils/rel.h"

extern bool am_directory_is(Relation index);

/* The entries of a key in the order of positions. */
typedef struct AmDirectoryScan
{
	IndexScanDesc scan;
	ScanDirection direction;
} AmDirectoryScan;

/* In both directions the scan begins at the last entry with a position <= from. */
extern void am_directory_begin(AmDirectoryScan *scan, Relation index, Snapshot snapshot, int64 key, int64 from,
							   ScanDirection direction);
/* The position and the block of the next entry. Returns false if there is none. */
extern bool am_directory_next(AmDirectoryScan *scan, int64 *position, BlockNumber *block);
extern void am_directory_end(AmDirectoryScan *scan);

/* Whether the entries lead to the block for a row of this key and position. */
extern bool am_directory_has(Relation index, int64 key, int64 position, BlockNumber block);

#endif
