/* am_lookup.h - the rows of a key in the order of their positions, by way of a directory (am_directory.h). */
#ifndef AM_LOOKUP_H
#define AM_LOOKUP_H

#include "postgres.h"
#include "access/sdir.h"
#include "am/directory/am_directory.h"
#include "am/page/am_row.h"
#include "am/page/am_visibility.h"
#include "nodes/pg_list.h"
#include "utils/snapshot.h"

/* A row that was found. */
typedef struct AmFound
{
	int64 position;
	AmSource *source;
	AmRowRef ref;
} AmFound;

typedef struct AmLookup
{
	Relation rel;
	int64 key;
	ScanDirection direction;
	AmDirectoryScan entries;
	AmVisibility visibility;
	TupleTableSlot *probe; /* to look at key and position */
	/* the entry that was read ahead */
	bool more;
	int64 next_position;
	BlockNumber next_block;
	/* rows of the current range of positions */
	int64 range_begin, range_end; /* [begin, end) */
	AmFound *found;
	int nfound, room, current;
	MemoryContext context; /* of what is allocated */
	List *sources;		   /* pages of the current range that have rows of it: pinned, or copied in recovery */
} AmLookup;

/*
 * Rows with column 1 = key, in the order of column 2, that the snapshot sees: forward those whose positions are not
 * before the row that is at or before `from`, backward those that are not behind `from`. A row at `from` itself need
 * not exist.
 */
extern void am_lookup_begin(AmLookup *lookup, Relation rel, Relation directory, Snapshot snapshot, int64 key,
							int64 from, ScanDirection direction);
/* The next row, in a slot of the table. */
extern bool am_lookup_next(AmLookup *lookup, TupleTableSlot *slot);
extern void am_lookup_end(AmLookup *lookup);

#endif
