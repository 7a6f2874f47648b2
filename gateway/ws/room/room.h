/*
 * room.h - a sheet that is open at this gateway: its editors, its pending edits, its stream of frames.
 *
 *   room.c     life: the sheet's lock, the claim, members, the end
 *   batch.c    edits and their frames; pending.c  the batches that collect them
 *   commit.c   a batch -> sheet.apply -> frames to all; edits made elsewhere
 *   tell.c     what is committed -> the streams
 *   dirty.c    rooms that are to be looked at; turn.c  what they do at the end of each turn of the loop
 *   backlog.c  senders wait for slow receivers
 *   group.c    which batches share a transaction
 *   held.c     waiting for a sheet that another transaction holds
 *   publish.c  when the stream is written to its receivers
 *   join.c     snapshots for those who come
 *   session.c  one WebSocket
 *   restructure.c  rows and columns come and go: what waits for its commit, locks and selections move along
 *
 * Members of protocol v2 read streams of their own, one for each form of its messages:
 *
 *   v2_session.c  one such WebSocket          v2_join.c    how it begins, and blocks of cells
 *   v2_op.c       operations, exactly once    v2_stream.c  batches as messages
 *   v2_calc.c     computed values
 */
#ifndef ROOM_H
#define ROOM_H

#include "ws/edit/batch.h"
#include "support/buf.h"
#include "ws/session/fanout.h"
#include "ws/room/held.h"
#include "ws/edit/lines.h"
#include "ws/room/locks.h"
#include "db/pgconn.h"
#include "coord/sheet_map.h"
#include "ws/v2/v2.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

/* A v1 sheet is told whole: rows * columns may not exceed this. */
#define ROOM_MAX_RECTANGLE 4194304

struct Session;

typedef enum RoomState
{
	ROOM_LOCKING,  /* waiting for the sheet's lock */
	ROOM_CLAIMING, /* the lock is ours; telling the database */
	ROOM_SERVING,
	ROOM_LOST /* another gateway has the sheet, or it cannot be written: members are being closed */
} RoomState;

/* What the room's one place on the edit connection is used for. */
typedef enum RoomBusy
{
	ROOM_IDLE,
	ROOM_HELD,	   /* another transaction holds the sheet (held.c); nothing is under way */
	ROOM_APPLYING, /* a batch is under way */
	ROOM_RETRYING, /* its outcome is unknown or it must wait: it will be sent again */
	ROOM_FINDING,  /* a batch that was sent again is stored; the rest of what came before it is fetched next */
	ROOM_TAILING,  /* fetching edits made elsewhere */
	ROOM_RESOLVING /* fetching the name of somebody who made them */
} RoomBusy;

/* Where in the stream the frames up to a seq end. */
typedef struct RoomMark
{
	int64_t seq;
	uint64_t position;
} RoomMark;

/* At which seq the newest value of a formula was computed that has been told of a cell (v2_calc.c). */
#define ROOM_VALUES 1024
typedef struct ToldValue
{
	uint32_t row, col;
	int64_t seq;
} ToldValue;

/* How many rows and columns the sheet has. */
typedef struct RoomExtent
{
	uint32_t rows, cols;
} RoomExtent;

typedef struct Room
{
	SheetEntry entry; /* by sheet id; must be first */
	RoomState state;
	RoomBusy busy;
	int64_t epoch;
	bool waiting; /* another gateway holds the lock */
	bool claimed; /* the database refuses gateways that had the sheet before; edits are not sent before */
	Held held;
	bool released;	 /* the database was told that nobody is here */
	bool dirty;		 /* on the list of rooms to look at */
	bool paused;	 /* its senders are not read */
	bool behind;	 /* more has been committed elsewhere than sheet.apply tells: fetched before the next batch goes */
	bool uneven;	 /* some member is not where the stream is, or is held up: each is looked at */
	bool backlog;	 /* a receiver is too far behind */
	bool uncertain;	 /* the batch under way may have been stored */
	bool alone;		 /* its last batch failed: the next one shares no transaction */
	bool queued;	 /* waits for the group under way */
	bool touched;	 /* in this turn: it will be seen who is behind */
	bool publishing; /* its stream has grown, and its receivers wait for their turn */
	struct Room *next_queued;
	struct Room *next_dirty;
	struct Room *next_touched;
	bool answering; /* among its receivers are authors, whose turn comes before the others' */
	struct Room *next_publishing;
	struct Room *next_answering;
	RoomBatch *unacknowledged; /* committed; their operations are acknowledged when their frames have been written */
	int queries;			   /* under way: the room must stay */

	struct Session *sessions;
	struct Session *authors; /* those who wait for a batch that has something of theirs ... */
	uint64_t last_batch;	 /* ... by its number; this is the newest one's ... */
	uint64_t told_batch;	 /* ... and this that of the last one that is in the streams */
	int session_count;
	CellLocks locks;
	LinesMemory lines; /* structure edits that were told */
	ToldValue *values; /* ROOM_VALUES of them, or NULL */

	int v1_sessions;
	Fanout stream;				  /* protocol v1 */
	Fanout v2[V2_ENCODINGS];	  /* protocol v2 ... */
	int v2_readers[V2_ENCODINGS]; /* ... and how many read it */
	uint64_t told;				  /* bytes of these streams when every member had all of its own */
	struct RoomClient *clients;
	bool cursors_moved;
	RoomBatch *pending; /* oldest first; the last one takes new edits */
	RoomBatch *pending_last;
	uint32_t pending_edits;
	RoomBatch *sent;	 /* under way */
	int64_t found_first; /* where it is stored, up to its seq, when that is not told yet; 0 otherwise */
	int64_t refused_seq; /* published_seq when a batch was last refused until the room has caught up; -1: none was */
	int64_t batch_no;
	uint64_t sent_at; /* ns */
	PGresult *answer; /* of the batch, kept while names are being resolved */

	int64_t published_seq; /* of the last edit in the stream (or known before the first) */
	int resolved;		   /* names asked for since something was published */
	int64_t wanted_seq;	   /* edits up to here exist: fetch them ... */
	uint64_t tail_at;	   /* ... not before this, ns: the last time it failed */
	RoomExtent extent;	   /* at that seq */

	int joining;			   /* sessions that wait for a snapshot */
	int join_restarts;		   /* since somebody waits: the stream had grown too long */
	bool snapshot_under_way;   /* asked for ... */
	int64_t snapshot_account;  /* ... on whose behalf */
	struct Snapshot *snapshot; /* held; waits for the stream to reach its seq */
	FanoutCursor join_start;   /* keeps the stream from the first joiner's time on */
	RoomMark *marks;
	size_t mark_count, mark_size;
} Room;

#define room_sheet_id(room) ((room)->entry.sheet_id)

/* Ever put into its streams. */
static inline uint64_t
room_stream_bytes(const Room *room)
{
	uint64_t bytes = room->stream.end;

	for (int i = 0; i < V2_ENCODINGS; i++)
		bytes += room->v2[i].end;
	return bytes;
}

extern size_t room_count(void);
extern size_t room_session_count(void);
extern Room *room_find(int64_t sheet_id);

/* room.c */
extern void room_add_session(int64_t sheet_id, struct Session *session); /* opens the room when it is not open */
extern void room_remove_session(Room *room, struct Session *session);
extern void room_granted(int64_t sheet_id, int64_t epoch);
extern void room_waiting(int64_t sheet_id, const char *holder);
extern void room_lost(int64_t sheet_id, const char *reason);
/* Tells the database again that the sheet is this gateway's, when another transaction has held it. */
extern bool room_claim_held(Room *room);
extern void room_expire_locks(Room *room);
/* Closes all members; nothing more is written. */
extern void room_fail(Room *room, int code, const char *reason);
/* There is no memory for something that its members share: nothing is told any more, and they are closed. */
extern void room_fail_memory(Room *room);
/* Frees the room when nobody and nothing is left. */
extern void room_check_end(Room *room);
extern void room_for_each(void (*fn)(Room *room, void *arg), void *arg);
extern void room_query_done(Room *room); /* a query that kept the room is answered */
/* In the order of the edits: the session has taken the cell, or the cell is free. */
extern void room_tell_lock(Room *room, uint32_t row, uint32_t col, const struct Session *session, bool held);
/* Who holds the cell; NULL when he has gone. */
extern const struct Session *room_find_holder(const Room *room, int64_t holder);

/* join.c */
extern void room_start_join(Room *room, struct Session *session);
extern void room_stop_join(Room *room, struct Session *session);
extern void room_note_mark(Room *room);
extern void room_try_join(Room *room); /* after publishing */

#endif
