/*
 * am_visibility.h - which rows a snapshot sees.
 *
 * The order of the questions is law (see heapam_visibility.c): own transaction, then "in progress" by the snapshot,
 * then the commit log. No hint bits: rows come in runs of one xid, and the answer for a run is asked once.
 */
#ifndef AM_VISIBILITY_H
#define AM_VISIBILITY_H

#include "postgres.h"
#include "am/page/am_page.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/* For one scan of one page at a time: remembers the last run and the last deleter. */
typedef struct AmVisibility
{
	Snapshot snapshot;
	Relation rel;
	bool serializable; /* conflicts are to be reported */
	uint16 run_pos;	   /* of the run that run_visible is about; 0: none */
	bool run_visible;
} AmVisibility;

extern void am_visibility_begin(AmVisibility *visibility, Relation rel, Snapshot snapshot);
/* Before the first row of each page. */
static inline void
am_visibility_page(AmVisibility *visibility)
{
	visibility->run_pos = 0;
}
/* Is the current row seen? The page is locked. */
extern bool am_visibility_check(AmVisibility *visibility, const AmWalk *walk);

/* The state of a row for VACUUM, ANALYZE and index builds. */
typedef enum AmRowState
{
	AM_STATE_LIVE,
	AM_STATE_INSERTING,		/* by a transaction in progress */
	AM_STATE_DELETING,		/* likewise */
	AM_STATE_RECENTLY_DEAD, /* deleted, but somebody may still see it */
	AM_STATE_DEAD
} AmRowState;

/* xmin: FrozenTransactionId when frozen. *xid: of the transaction in progress, or of the deleter. */
extern AmRowState am_visibility_state(TransactionId xmin, TransactionId xmax, TransactionId oldest_xmin,
									  TransactionId *xid);

/* The row's deleter; xid InvalidTransactionId when there is none. Not for dead rows. */
static inline AmDeleter
am_row_deleted_by(const AmWalk *walk)
{
	int slot = am_row_deleter(walk->row.tag);

	if (slot == 0 || slot > AM_DELETERS)
		return (AmDeleter){InvalidTransactionId, 0};
	return am_special(walk->page)->deleters[slot - 1];
}

/* The run's writer did not commit, and never will. */
extern bool am_run_has_failed(const AmRun *run);

/* Of the walk's current row. */
extern AmRowState am_row_state(const AmWalk *walk, TransactionId oldest_xmin, TransactionId *xid);

#endif
