/*
 * room.h - a sheet that is open at this gateway: its members, its pending edits, its streams.
 *
 * Each file calls those above it in this list:
 *
 *   schedule.c   queues of rooms that have something to do; which batches share a transaction
 *   held.c       waits while another transaction holds the sheet
 *   room.c       life: the sheet's lock, the claim, the end
 *   pending.c    edits that wait for their batch to be sent
 *   move.c       structure edits move what names cells
 *   publish.c    committed batches go into the streams, and the streams to their receivers; receivers that lag
 *   members.c    sessions come and leave; locks of cells and ranges
 *   commit.c     sends batches to the database, and reads those of others
 *   admission.c  who may be a member
 *   handover.c   moves the sheet to another gateway
 *   follow.c     hears of commits and changes elsewhere
 *   iteration.c  what rooms do in each iteration of the event loop
 */
#ifndef ROOM_H
#define ROOM_H

#include "common/properties.h"
#include "support/repeat.h"
#include "support/sheet_map.h"
#include "db/pgconn.h"
#include "ws/edit/batch.h"
#include "ws/edit/lines.h"
#include "ws/edit/locks.h"
#include "ws/edit/writes.h"
#include "ws/session/session.h"
#include "ws/wire/fanout.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * LOCKING -> CLAIMING -> SERVING or UNCLAIMED; UNCLAIMED -> SERVING <-> RELEASED; SERVING -> MOVING; each -> LOST.
 * room_set_state() gives up a room of which another one is asked.
 */
typedef enum RoomState
{
	ROOM_LOCKING,	/* waits for the sheet's lock, which another gateway may have */
	ROOM_CLAIMING,	/* has the lock; the database is told, and asked for the sheet's seq and extent */
	ROOM_UNCLAIMED, /* members can read; another transaction holds the sheet, and the claim waits for it */
	ROOM_SERVING,
	ROOM_RELEASED, /* without members; the database is being told so */
	ROOM_MOVING,   /* another gateway gets the sheet; nothing is written any more (handover.c) */
	ROOM_LOST	   /* another gateway has the sheet, or it cannot be written: members are being closed */
} RoomState;

/*
 * What the room's only statement on the edit connections is. room_set_work() gives up a room of which another
 * transition is asked:
 *
 *   IDLE      -> APPLYING, TAILING, HELD (an unclaimed room)
 *   HELD      -> APPLYING, TAILING, IDLE
 *   APPLYING  -> IDLE, HELD, RETRYING, FINDING
 *   RETRYING  -> APPLYING
 *   FINDING   -> TAILING, IDLE
 *   TAILING   -> IDLE, HELD, FINDING
 */
typedef enum RoomWork
{
	ROOM_IDLE,
	ROOM_HELD,	   /* another transaction holds the sheet (held.c); nothing is under way */
	ROOM_APPLYING, /* a batch is under way */
	ROOM_RETRYING, /* the same batch is sent again after a while: its outcome is unknown, or the error is retryable */
	ROOM_FINDING,  /* a batch is stored that was sent again, or has structure edits; what else is stored up to its end
					* has to be read first */
	ROOM_TAILING   /* edits made elsewhere are being read */
} RoomWork;

/* Whether members have been sent everything, and may send. Set by publish_control() and room_watch() only. */
typedef enum RoomFlow
{
	ROOM_EVEN,	 /* every receiver has everything, and every member is read */
	ROOM_UNEVEN, /* some have not, or are not: each member is looked at in each iteration */
	ROOM_PAUSED, /* no member is read: too many edits are pending, or the gateway stops */
	ROOM_LAGGING /* no member is read, and no edits of others are fetched: a receiver lags */
} RoomFlow;

/* The queues of schedule.c. */
typedef enum RoomQueue
{
	ROOM_DIRTY,		 /* something to send, to publish or to wait for */
	ROOM_FOR_GROUP,	 /* waits for the group under way */
	ROOM_TOUCHED,	 /* in this iteration: its receivers are checked at the end */
	ROOM_PUBLISHING, /* its streams have grown */
	ROOM_ANSWERING,	 /* its streams have grown, and authors are among its receivers */
	ROOM_QUEUES
} RoomQueue;

typedef struct RoomLink
{
	struct Room *next;
	bool queued;
} RoomLink;

/* What a room knows of the transaction that holds its sheet. */
typedef struct RoomHeld
{
	LIST_ENTRY(Room) entry;
	bool listed;		   /* the room waits */
	bool due;			   /* its statement is to be sent on a connection that may wait */
	bool trying;		   /* it is under way there */
	bool asks;			   /* the next try must not wait: it finds out which sheet is held */
	bool announced;		   /* editors know of the holder */
	int64_t sheet;		   /* that is held: the room's; for structure edits also a tab that refers to it, or -book */
	uint64_t since;		   /* ms: when the room began to wait */
	uint64_t announced_at; /* ms */
	uint64_t began;		   /* ms: about when the transaction began */
	char transaction[24];  /* "": not known yet */
	char holder[256];	   /* account or role */
	char application[64];  /* application_name */
} RoomHeld;

/* One of the room's streams, and the number of members that read it. */
typedef struct RoomStream
{
	Fanout fanout;
	int readers;
} RoomStream;

/* Number of rows and columns. */
typedef struct RoomExtent
{
	uint32_t rows, cols;
} RoomExtent;

typedef struct Room
{
	SheetEntry entry; /* by sheet id; must be first */
	RoomState state;
	RoomWork work;
	RoomFlow flow;
	RoomLink links[ROOM_QUEUES];
	RoomHeld held;
	int64_t epoch;
	char *holder;		 /* in state LOCKING: who has the lock, by its own words; NULL: not known yet */
	uint64_t wait_until; /* ms: in state LOCKING, when members are told that the lock is not to be had; 0: not set */
	uint64_t move_at;	 /* ms: when the sheet is to be moved to its owner, or in state MOVING, is moved whatever the
						  * database says; 0: it is not to be moved */
	uint64_t move_began; /* ms: nothing is read from members since then, for the move; 0: they are read */
	uint32_t move_pause; /* ms: how long that may last; 0: the first one */
	int queries;		 /* under way; the room is freed after the last */

	/* Members. */
	SessionList sessions;
	Session *authors;	 /* who wait for a batch with edits of theirs */
	SessionList closing; /* members that are closing, and have not resigned */
	int session_count;
	SheetLocks locks;
	bool ranges_freed; /* requests for ranges may wait for nothing any more */

	/* What is published. */
	RoomStream streams[STREAM_FORMS];
	uint64_t delivered;		   /* bytes of all streams when every receiver had everything */
	int64_t published_seq;	   /* of the last edit in the streams, or before the first */
	RoomExtent extent;		   /* at that seq */
	Properties properties;	   /* at that seq */
	LinesHistory lines;		   /* structure edits that were published */
	Writes writes;			   /* cells that were written lately, as published */
	uint64_t last_batch;	   /* number of the newest batch */
	uint64_t published_batch;  /* number of the last one in the streams */
	RoomBatch *unacknowledged; /* committed; acknowledged after their frames have been written */

	/* Batches. */
	RoomBatch *pending; /* oldest first; the last one takes new edits */
	RoomBatch *pending_last;
	uint32_t pending_edits;
	RoomBatch *sent; /* under way */
	bool alone;		 /* the last batch failed: the next one shares no transaction */
	int64_t batch_no;
	uint64_t sent_at;	 /* ns; in state RETRYING: when it is to be sent again */
	int64_t found_first; /* FINDING: the first seq of `sent` in the sheet; 0 otherwise */
	Repeat refused;		 /* `sent`, by an error that is retryable */
	Repeat unread;		 /* the edits of others, likewise */
	int64_t refused_seq; /* published_seq when a batch was refused until the room has caught up; -1: none was */

	/* Edits made elsewhere. */
	bool must_catch_up; /* more than sheet.apply returns: fetched before the next batch is sent */
	int64_t wanted_seq; /* edits up to here exist */
	uint64_t tail_at;	/* ns: not fetched before */

	/* Protocols. */
	struct V1Join *v1_join;		  /* sessions of v1 that are joining */
	struct V1Stream *v1_stream;	  /* what is to be published to v1, and waits */
	struct V2Client *clients;	  /* of v2 */
	struct ComputedValue *values; /* of v2 */
	bool cursors_moved;			  /* of v2 */
} Room;

#define room_sheet_id(room) ((room)->entry.sheet_id)

/* Returns whether members can read the sheet. */
#define room_is_open(room) ((room)->state == ROOM_UNCLAIMED || (room)->state == ROOM_SERVING)

extern const Protocol *const room_protocols[];
/* Calls the function of each protocol that has it. */
#define room_each_protocol(function, ...)                                                                              \
	do                                                                                                                 \
	{                                                                                                                  \
		for (int protocol_ = 0; room_protocols[protocol_] != NULL; protocol_++)                                        \
			if (room_protocols[protocol_]->function != NULL)                                                           \
				room_protocols[protocol_]->function(__VA_ARGS__);                                                      \
	} while (0)

/* ---- all rooms ---- */
extern size_t room_count(void);
extern Room *room_find(int64_t sheet_id);
/* Opens a room for the sheet, which has none. Returns NULL when there is no memory. */
extern Room *room_open(int64_t sheet_id);
extern void room_for_each(void (*fn)(Room *room, void *arg), void *arg);
/* Returns true when the sheet may have edits that its room does not know of, because a batch's outcome is unknown. */
extern bool room_may_be_ahead(int64_t sheet_id);

/* ---- events of the coordinator ---- */
extern void room_granted(int64_t sheet_id, int64_t epoch);
extern void room_lost(int64_t sheet_id, const char *reason);

/* ---- life ---- */
extern void room_set_state(Room *room, RoomState state);
extern void room_set_work(Room *room, RoomWork work);
/* Claims the sheet again, after another transaction has held it. Returns false when no statement can be sent now. */
extern bool room_claim_again(Room *room);
/* Closes all members; nothing more is written. */
extern void room_fail(Room *room, int code, const char *reason);
/* The same for want of memory. Nothing more is published, since something is missing. */
extern void room_fail_memory(Room *room);
/*
 * Tells the database that the sheet is given up. Returns false when there is nothing to tell or nobody to be told, and
 * then the state is unchanged. fn gets the room, and must call room_query_done().
 */
extern bool room_release(Room *room, RoomState state, PgResultFn fn);
/* Frees the room if it has neither members nor work. */
extern void room_check_end(Room *room);
/* A query that counted in room->queries is answered. */
extern void room_query_done(Room *room);

/* ---- what happens ---- */
/* Edits up to seq were committed, perhaps elsewhere: those that were not published are fetched. */
extern void room_catch_up(Room *room, int64_t seq);
/* Has every member looked at in this iteration. */
extern void room_watch(Room *room);
/* Bytes ever put into the streams. */
extern uint64_t room_stream_bytes(const Room *room);

#endif
