/*
 * fsck_auto.c - which sheets are checked by themselves: those that are opened for the first time after the server has
 * crashed, and those that a gateway takes over from one that did not release them.
 *
 * Whoever opens such a sheet puts it into the queue of the background workers (workqueue.h), and goes on; a worker
 * checks it briefly, repairs it, and says so in the server's log.
 *
 * A sheet has been opened since the crash if its newest edit is of this life of the server (serverlife.h), or if it was
 * queued before. The first costs a look at the end of its log, once for each entry of the cache, and nothing in a life
 * after a shutdown. Such a life forgets what was not opened in the one before: sheet.fsck_all() is for that. On a
 * standby nothing is pinned, so nothing is queued; its promotion counts as a crash of the server before it.
 */
#include "postgres.h"

#include "journal/store/fsck_auto.h"
#include "journal/store/replay_find.h"
#include "utils/snapmgr.h"

/* A sheet without a log is just being made. */
static bool
fsck_auto_is_unopened(int64 sheet_id)
{
	ReplayLast last;

	if (server_life_remembers(sheet_id))
		return false;
	replay_last(sheet_id, GetActiveSnapshot(), &last);
	return !server_life_has_written(last.writer_fxid) && last.found;
}

void
fsck_auto_look(int64 sheet_id, CacheEntry *entry)
{
	CheckCause why = entry->check;

	if (why == CHECK_NONE && fsck_auto_is_unopened(sheet_id))
		why = CHECK_AFTER_CRASH;
	entry->opened = true;
	entry->check = why;
	if (why == CHECK_NONE || !workqueue_add_check(sheet_id, why))
		return;
	entry->check = CHECK_NONE;
	if (why == CHECK_AFTER_CRASH)
		server_life_remember(sheet_id);
}

void
fsck_auto_take_over(int64 sheet_id, CacheEntry *entry)
{
	if (!workqueue_add_check(sheet_id, CHECK_AFTER_TAKEOVER))
		entry->check = CHECK_AFTER_TAKEOVER;
}
