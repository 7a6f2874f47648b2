/*
 * recheck.c - which sheets are checked after a crash or a takeover: those that are opened for the first time since the
 * server has crashed, and those that a gateway claims from one that did not release them.
 *
 * The session that opens such a sheet puts it into the queue of the background workers (workqueue.h) and continues. A
 * worker runs the quick check, repairs what can be repaired, and writes to the server log.
 *
 * A sheet was opened since the crash if its newest edit is of the current run of the server (serverlife.h), or if it
 * was queued before. The test reads the last entry of the sheet's directory, once for each cache entry, and only after
 * a crash. After a clean shutdown the list of sheets that were not opened yet is lost: use sheet.fsck_all(). A standby
 * pins no entries and queues nothing; its promotion counts as a crash.
 */
#include "postgres.h"

#include "journal/store/history.h"
#include "journal/store/recheck.h"
#include "utils/snapmgr.h"

/* A sheet without an edit is just being created. */
static bool
recheck_is_unopened(int64 sheet_id)
{
	HistoryLast last;

	if (server_life_remembers(sheet_id))
		return false;
	history_last_edit(sheet_id, GetActiveSnapshot(), &last);
	return !server_life_has_written(last.writer_fxid) && last.found;
}

void
recheck_examine(int64 sheet_id, CacheEntry *entry)
{
	CheckCause why = entry->check;

	if (why == CHECK_NONE && recheck_is_unopened(sheet_id))
		why = CHECK_AFTER_CRASH;
	entry->opened = true;
	entry->check = why;
	if (why == CHECK_NONE || !workqueue_add_check(sheet_id, why))
		return; /* if the queue is full, the next user asks again */
	entry->check = CHECK_NONE;
	if (why == CHECK_AFTER_CRASH)
		server_life_remember(sheet_id);
}

void
recheck_taken_over(int64 sheet_id, CacheEntry *entry)
{
	if (!workqueue_add_check(sheet_id, CHECK_AFTER_TAKEOVER))
		entry->check = CHECK_AFTER_TAKEOVER;
}
