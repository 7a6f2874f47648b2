/*
 * log_visibility.h - which rows a snapshot sees.
 *
 * The order of the questions is law (see heapam_visibility.c): own transaction, then "in progress" by the snapshot,
 * then the commit log. No hint bits: rows come in runs of one xid, and the answer for a run is asked once.
 */
#ifndef LOG_VISIBILITY_H
#define LOG_VISIBILITY_H

#include "postgres.h"
#include "am/page/log_page.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/* For one scan of one page at a time: remembers the last run and the last deleter. */
typedef struct LogVisibility
{
	Snapshot snapshot;
	Relation rel;
	bool serializable; /* conflicts are to be reported */
	uint16 run_pos;	   /* of the run that run_visible is about; 0: none */
	bool run_visible;
} LogVisibility;

extern void log_visibility_begin(LogVisibility *visibility, Relation rel, Snapshot snapshot);
/* Before the first row of each page. */
static inline void
log_visibility_page(LogVisibility *visibility)
{
	visibility->run_pos = 0;
}
/* Is the current row seen? The page is locked. */
extern bool log_visibility_check(LogVisibility *visibility, const LogWalk *walk);

/* What VACUUM, ANALYZE and index builds want to know. */
typedef enum LogRowState
{
	LOG_STATE_LIVE,
	LOG_STATE_INSERTING,	 /* by a transaction in progress */
	LOG_STATE_DELETING,		 /* likewise */
	LOG_STATE_RECENTLY_DEAD, /* deleted, but somebody may still see it */
	LOG_STATE_DEAD
} LogRowState;

/* xmin: FrozenTransactionId when frozen. *xid: of the transaction in progress, or of the deleter. */
extern LogRowState log_visibility_state(TransactionId xmin, TransactionId xmax, TransactionId oldest_xmin,
										TransactionId *xid);

/* The row's deleter; xid InvalidTransactionId when there is none. Not for dead rows. */
static inline LogDeleter
log_row_deleted_by(const LogWalk *walk)
{
	int slot = log_row_deleter(walk->row.tag);

	if (slot == 0 || slot > LOG_DELETERS)
		return (LogDeleter){InvalidTransactionId, 0};
	return log_special(walk->page)->deleters[slot - 1];
}

/* The run's writer did not commit, and never will. */
extern bool log_run_has_failed(const LogRun *run);

/* Of the walk's current row. */
extern LogRowState log_row_state(const LogWalk *walk, TransactionId oldest_xmin, TransactionId *xid);

#endif
