/*
 * follow.c - publishing changes of sheets to gateways, through shared memory.
 *
 * Why not NOTIFY: it holds one lock of the whole cluster from before the commit's flush until after it, and so
 * serialises all commits (measured: 13 to 22 times fewer at 16 writers). Here a commit writes one event to a ring and
 * sets the latches of the followers it concerns, after it has become durable and visible.
 *
 * The ring holds the last FOLLOW_EVENTS events of the cluster. Event numbers only grow, also over restarts of the
 * server (the first one is the time of the start). A follower whose cursor has left the ring is told that it has lost
 * events, and reads its sheets again.
 *
 * Cursors outlive connections. A follower that connects again may reach another database, which was created or renamed
 * meanwhile. Both publish an event: a follower that finds one for its database after its cursor has lost all others.
 *
 * A gateway learns of its own commits from their results. Events of its own origin, and those of other databases,
 * advance the cursor of a follower that has read everything else, without waking it.
 *
 * FollowShared.lock protects everything here. It is a leaf: no other lock is taken while it is held.
 */
#include "postgres.h"

#include "access/xact.h"
#include "journal/follow/follow.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define FOLLOW_EVENTS	 16384 /* a power of two */
#define FOLLOW_FOLLOWERS 64
#define FOLLOW_TAKEN	 128 /* events copied at once */
/* The seq of an event, not of an answer: the database was made or altered. The numbers of answers are in follow.h. */
#define FOLLOW_DATABASE PG_INT64_MIN

typedef struct FollowEvent
{
	Oid database;
	int64 sheet_id;
	int64 seq;
	int64 origin;
} FollowEvent;

typedef struct FollowSlot
{
	PGPROC *proc; /* NULL: free */
	Oid database;
	int64 origin;
	uint64 cursor; /* number of the first event that it has not read */
} FollowSlot;

typedef struct FollowShared
{
	LWLock lock;
	int tranche;
	int followers; /* used slots */
	uint64 head;   /* number of the next event */
	FollowSlot slots[FOLLOW_FOLLOWERS];
	FollowEvent events[FOLLOW_EVENTS];
} FollowShared;

/* A change of a sheet's row (or of the account -sheet_id), to be published when the transaction commits. */
typedef struct FollowPending
{
	struct FollowPending *next;
	int64 sheet_id;
	int64 seq; /* FOLLOW_STATUS or another number of common/sql_interface.h */
	SubTransactionId subxact;
} FollowPending;

static FollowShared *follow_shared = NULL;
static FollowPending *follow_pending = NULL; /* in TopTransactionContext, newest first */
static FollowSlot *follow_slot = NULL;		 /* of this backend, while it waits */
static bool follow_exit_registered = false;

Size
follow_shmem_size(void)
{
	return MAXALIGN(sizeof(FollowShared));
}

void
follow_shmem_startup(bool preloaded)
{
	bool found;

	follow_shared = NULL; /* the hook runs again after a crash restart */
	if (!preloaded)
		return;
	follow_shared = ShmemInitStruct("pg_sheet follow", follow_shmem_size(), &found);
	if (!found)
	{
		memset(follow_shared, 0, sizeof(FollowShared));
		follow_shared->tranche = LWLockNewTrancheId();
		LWLockInitialize(&follow_shared->lock, follow_shared->tranche);
		follow_shared->head = (uint64) GetCurrentTimestamp();
	}
	LWLockRegisterTranche(follow_shared->tranche, "pg_sheet_follow");
}

/* An event concerns the followers of its database, except those of its origin. */
static inline bool
follow_concerns(const FollowSlot *slot, const FollowEvent *event)
{
	return slot->database == event->database && (event->origin == 0 || slot->origin != event->origin);
}

static void
follow_push(const FollowEvent *new)
{
	FollowEvent *event;
	int left;

	if (follow_shared == NULL)
		return;
	LWLockAcquire(&follow_shared->lock, LW_EXCLUSIVE);
	event = &follow_shared->events[follow_shared->head % FOLLOW_EVENTS];
	*event = *new;
	left = follow_shared->followers;
	for (int i = 0; i < FOLLOW_FOLLOWERS && left > 0; i++)
	{
		FollowSlot *slot = &follow_shared->slots[i];

		if (slot->proc == NULL)
			continue;
		left--;
		if (follow_concerns(slot, event))
			SetLatch(&slot->proc->procLatch);
		else if (slot->cursor == follow_shared->head)
			slot->cursor++;
	}
	follow_shared->head++;
	LWLockRelease(&follow_shared->lock);
}

void
follow_publish(int64 sheet_id, int64 seq, int64 origin)
{
	FollowEvent event = {MyDatabaseId, sheet_id, seq, origin};

	follow_push(&event);
}

void
follow_publish_database(Oid database)
{
	FollowEvent event = {database, 0, FOLLOW_DATABASE, 0};

	follow_push(&event);
}

static void
follow_register(int64 sheet_id, int64 seq)
{
	FollowPending *pending = MemoryContextAlloc(TopTransactionContext, sizeof(FollowPending));

	pending->sheet_id = sheet_id;
	pending->seq = seq;
	pending->subxact = GetCurrentSubTransactionId();
	pending->next = follow_pending;
	follow_pending = pending;
}

void
follow_register_status(int64 sheet_id)
{
	follow_register(sheet_id, FOLLOW_STATUS);
}

void
follow_register_account(int64 uid)
{
	if (uid > 0)
		follow_register(-uid, FOLLOW_STATUS);
}

void
follow_register_reminders(int64 uid)
{
	follow_register(-uid, FOLLOW_REMINDERS);
}

void
follow_register_values(int64 sheet_id)
{
	follow_register(sheet_id, FOLLOW_VALUES);
}

void
follow_register_book(int64 sheet_id)
{
	follow_register(sheet_id, FOLLOW_BOOK);
}

static void
follow_xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			for (FollowPending *pending = follow_pending; pending != NULL; pending = pending->next)
				follow_publish(pending->sheet_id, pending->seq, 0);
			follow_pending = NULL;
			break;
		case XACT_EVENT_ABORT:
			follow_pending = NULL;
			break;
		case XACT_EVENT_PRE_PREPARE:
			if (follow_pending != NULL)
				ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
								errmsg("cannot prepare a transaction that has changed a sheet"),
								errhint("Use COMMIT instead of PREPARE TRANSACTION.")));
			break;
		default:
			break;
	}
}

static void
follow_subxact_callback(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	/* They are pushed in the order of their subtransactions: those of `mine` and its children come first. */
	if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		while (follow_pending != NULL && follow_pending->subxact >= mine)
			follow_pending = follow_pending->next;
	}
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
	{
		for (FollowPending *pending = follow_pending; pending != NULL && pending->subxact >= mine;
			 pending = pending->next)
			pending->subxact = parent;
	}
}

void
follow_init(void)
{
	RegisterXactCallback(follow_xact_callback, NULL);
	RegisterSubXactCallback(follow_subxact_callback, NULL);
}

/* Frees the slot; also called if the backend exits while it waits. */
static void
follow_leave(int code, Datum arg)
{
	if (follow_slot == NULL || follow_shared == NULL)
		return;
	LWLockAcquire(&follow_shared->lock, LW_EXCLUSIVE);
	follow_slot->proc = NULL;
	follow_shared->followers--;
	LWLockRelease(&follow_shared->lock);
	follow_slot = NULL;
}

static void
follow_join(int64 origin, uint64 cursor)
{
	if (!follow_exit_registered)
	{
		before_shmem_exit(follow_leave, (Datum) 0);
		follow_exit_registered = true;
	}
	LWLockAcquire(&follow_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < FOLLOW_FOLLOWERS && follow_slot == NULL; i++)
	{
		if (follow_shared->slots[i].proc == NULL)
			follow_slot = &follow_shared->slots[i];
	}
	if (follow_slot != NULL)
	{
		follow_slot->proc = MyProc;
		follow_slot->database = MyDatabaseId;
		follow_slot->origin = origin;
		follow_slot->cursor = cursor;
		follow_shared->followers++;
	}
	LWLockRelease(&follow_shared->lock);
	if (follow_slot == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_CONNECTIONS), errmsg("too many sessions follow the sheets of this server"),
				 errdetail("At most %d sessions may call sheet.follow at the same time.", FOLLOW_FOLLOWERS)));
}

/* Adds an event: one entry for the cells of a sheet (the newest seq), and one for each of the other kinds. False if the
 * answer is full. */
static bool
follow_answer_add(FollowAnswer *answer, const FollowEvent *event)
{
	/* From the newest entry on: a sheet that is edited is mostly edited again soon. */
	for (int i = answer->count - 1; i >= 0; i--)
	{
		if (answer->sheet_ids[i] != event->sheet_id || Min(answer->seqs[i], 0) != Min(event->seq, 0))
			continue;
		answer->seqs[i] = Max(answer->seqs[i], event->seq);
		return true;
	}
	if (answer->count == FOLLOW_ANSWER_MAX)
		return false;
	answer->sheet_ids[answer->count] = event->sheet_id;
	answer->seqs[answer->count++] = event->seq;
	return true;
}

/* Copies the next events and advances the cursor; *from: its old value. Commits wait for the lock, so nothing else is
 * done while it is held. */
static int
follow_take(FollowAnswer *answer, FollowEvent *events, uint64 *from)
{
	FollowSlot *slot = follow_slot;
	int count = 0;

	LWLockAcquire(&follow_shared->lock, LW_EXCLUSIVE);
	*from = slot->cursor;
	answer->lost = slot->cursor > follow_shared->head || follow_shared->head - slot->cursor > FOLLOW_EVENTS;
	while (!answer->lost && slot->cursor < follow_shared->head && count < FOLLOW_TAKEN)
	{
		events[count] = follow_shared->events[slot->cursor % FOLLOW_EVENTS];
		answer->lost = events[count].seq == FOLLOW_DATABASE && events[count].database == slot->database;
		slot->cursor++;
		count++;
	}
	if (answer->lost)
		slot->cursor = follow_shared->head;
	LWLockRelease(&follow_shared->lock);
	return answer->lost ? 0 : count;
}

static void
follow_set_cursor(uint64 cursor)
{
	LWLockAcquire(&follow_shared->lock, LW_EXCLUSIVE);
	follow_slot->cursor = cursor;
	LWLockRelease(&follow_shared->lock);
}

/* Collects the events after the cursor; true if the answer is not empty. */
static bool
follow_collect(FollowAnswer *answer)
{
	FollowEvent events[FOLLOW_TAKEN];
	uint64 from;
	int count;

	do
	{
		count = follow_take(answer, events, &from);
		for (int i = 0; i < count; i++)
		{
			if (!follow_concerns(follow_slot, &events[i]) || follow_answer_add(answer, &events[i]))
				continue;
			follow_set_cursor(from + i);
			return true;
		}
	} while (count == FOLLOW_TAKEN);
	if (answer->lost)
		answer->count = 0;
	return answer->lost || answer->count > 0;
}

/* Waits until there is an event, or the timeout. */
static void
follow_wait(FollowAnswer *answer, int timeout_ms)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);

	for (;;)
	{
		long left;

		ResetLatch(MyLatch);
		if (follow_collect(answer))
			return;
		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);
		if (left <= 0)
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, left, PG_WAIT_EXTENSION);
		CHECK_FOR_INTERRUPTS();
	}
}

bool
follow_possible(void)
{
	return follow_shared != NULL;
}

uint64
follow_head(void)
{
	uint64 head;

	LWLockAcquire(&follow_shared->lock, LW_SHARED);
	head = follow_shared->head;
	LWLockRelease(&follow_shared->lock);
	return head;
}

uint64
follow_next(int64 origin, uint64 cursor, int timeout_ms, FollowAnswer *answer)
{
	follow_join(origin, cursor);
	PG_TRY();
	{
		follow_wait(answer, timeout_ms);
		cursor = follow_slot->cursor;
	}
	PG_FINALLY();
	{
		follow_leave(0, (Datum) 0);
	}
	PG_END_TRY();
	return cursor;
}
