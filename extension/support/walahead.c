/*
 * walahead.c - the next file of the server's log is there before it is needed.
 *
 * PostgreSQL uses files of its log again after a checkpoint, but a server that is new, or writes more than it did, has
 * none left: then the session whose commit needs the next one fills 16 MB with zeros and waits until they are on the
 * disk, and with it everybody who commits: 20 to 100 ms, on a disk that flushes a commit in a fraction of one. So a
 * commit of edits that lies in the second half of a file asks the launcher of the background workers to make the next
 * one meanwhile, as PostgreSQL's own checkpointer does at the end of a checkpoint. Where the file exists already,
 * nothing is done but to open it.
 *
 * Shared memory has one number, that of the newest file that was asked for. A commit reads it; one in each file sets
 * it.
 */
#include "walahead.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "ckptqueue.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "stoppoint.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/memutils.h"

#include <unistd.h>

static pg_atomic_uint64 *walahead_wanted = NULL;

Size
walahead_shmem_size(void)
{
	return MAXALIGN(sizeof(pg_atomic_uint64));
}

void
walahead_shmem_startup(void)
{
	bool found;

	walahead_wanted = ShmemInitStruct("pg_sheet log ahead", walahead_shmem_size(), &found);
	if (!found)
		pg_atomic_init_u64(walahead_wanted, 0);
}

void
walahead_note(XLogRecPtr end)
{
	uint64 next = end / wal_segment_size + 1, seen;

	if (walahead_wanted == NULL || XLogSegmentOffset(end, wal_segment_size) < wal_segment_size / 2)
		return;
	seen = pg_atomic_read_u64(walahead_wanted);
	if (seen < next && pg_atomic_compare_exchange_u64(walahead_wanted, &seen, next))
		ckptqueue_wake_launcher();
}

/*
 * A checkpoint must not remove the file between our look and our making it: a file of zeros would come back, and would
 * be archived. Checkpoints that begin when we have announced ourselves, as only a transaction can, wait for us; the
 * others remove what lies before the end of the log as it was then.
 */
static void
walahead_make_file(uint64 number)
{
	MyProc->delayChkptFlags |= DELAY_CHKPT_START;
	/* It has been needed meanwhile; or a launcher that was started again finds what its predecessor was asked for. */
	if (number > GetXLogInsertRecPtr() / wal_segment_size)
	{
		STOP_POINT("log-ahead");
		(void) close(XLogFileInit(number, GetWALInsertionTimeLine()));
	}
	MyProc->delayChkptFlags &= ~DELAY_CHKPT_START;
}

/* The disk may be full: whoever needs the file will say so, too. */
static void
walahead_try(uint64 number)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		StartTransactionCommand();
		walahead_make_file(number);
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		HOLD_INTERRUPTS();
		EmitErrorReport();
		AbortCurrentTransaction();
		FlushErrorState();
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
}

void
walahead_make(void)
{
	static uint64 made = 0;
	uint64 wanted = pg_atomic_read_u64(walahead_wanted);

	if (wanted == made)
		return;
	made = wanted;
	walahead_try(wanted);
}
