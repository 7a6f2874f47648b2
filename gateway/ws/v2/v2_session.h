/*
 * v2_session.h - members of protocol v2 (docs/PROTOCOL.md): what session.c, room.c, commit.c and tell.c call, and what
 * the files of v2 share.
 */
#ifndef V2_SESSION_H
#define V2_SESSION_H

#include "ws/room/room.h"
#include "ws/session/session.h"
#include "ws/v2/v2.h"

#define V2_MAX_HELLO	 8192 /* bytes of a message before anybody is known */
#define V2_HELLO_MS		 10000
#define V2_MAX_QUESTIONS 64				 /* `get` and `who` of a session under way */
#define V2_RETENTION	 (7 * 24 * 3600) /* seconds; sheet.client_acknowledged() keeps them as long */

/*
 * Who sends operations, with what number: (account, client). It belongs to a room and outlives its session while
 * operations are under way, so that one that is sent again over another connection is known.
 */
typedef struct RoomClient
{
	struct RoomClient *next;
	int64_t uid;
	uint64_t id;
	Session *session;	/* the last that came as this client; NULL when it has gone */
	bool known;			/* the database has said what has landed */
	bool undecided;		/* its last operation has structure edits, and the database may refuse it yet */
	uint64_t taken;		/* highest operation that is in a batch or before */
	uint64_t committed; /* highest that is durable ... */
	int64_t seq;		/* ... and in the sheet as of this seq */
	RoomBatch *batch;	/* the one that its last operation is in, until that is committed ... */
	size_t batch_index; /* ... and its place in batch->clients */
} RoomClient;

typedef struct V2Session
{
	V2Encoding encoding;
	uint64_t opened; /* ms */
	bool greeted;
	uint64_t client_id;
	uint64_t acked;
	uint64_t since;
	RoomClient *client;
	bool attached;				  /* counted as a reader of the room's stream */
	int64_t joined_seq;			  /* where the stream begins for it */
	int tails;					  /* asked for, of what it has missed */
	uint64_t moved_seq;			  /* rows or columns may have moved up to here since it was here last */
	uint64_t nacks;				  /* sent */
	int questions;				  /* `get` and `who` that are not answered yet */
	struct BlockQuestion *blocks; /* that are to be read, one after the other */
	struct BlockQuestion **blocks_last;
	struct BlockQuestion *reading;	/* the one whose turn it is */
	bool holding;					/* the database is reading it: the stream waits for it */
	struct WaitingMessage *waiting; /* for the client's operation that is undecided, oldest first */
	struct WaitingMessage **waiting_last;
	bool has_cursor;
	bool cursor_moved;
	V2Cursor cursor;
} V2Session;

/* ---- v2_session.c ---- */
extern Session *v2_session_open(struct Socket *socket, int64_t sheet_id, const char *link);
/* Its connection has gone. This and the next two do nothing for sessions of v1. */
extern void v2_session_gone(Session *session);
extern void v2_session_free(Session *session);
/* It leaves its room. */
extern void v2_leave(Session *session);
extern void v2_handle(Session *session, const char *data, size_t len, bool binary);
/* Once a second: who has not said hello in time? */
extern void v2_tick(void);
extern V2Role v2_role_of(const char *name);
extern void v2_tell_role(Session *session, V2Role role);
extern void v2_send(Session *session, Buf *payload); /* and frees it */

/* Answers wait for it: until it has read some, nothing is read from it (room_control_senders()). */
extern bool v2_is_full(const Session *session);
/* Another question may be put to the database for it. */
extern bool v2_may_ask(const Session *session);

/* Messages of it wait: no more is read. */
static inline bool
v2_waits(const Session *session)
{
	return session->v2 != NULL && session->v2->waiting != NULL;
}

static inline bool
v2_holds_stream(const Session *session)
{
	return session->v2 != NULL && session->v2->holding;
}

/* The client's operation is decided: what has waited for that is handled. */
extern void v2_resume_messages(Session *session);

/* The message's cell cannot be had, or told of. */
extern void v2_deny(Session *session, uint32_t row, uint32_t col, V2Reason reason);

/* ---- v2_join.c ---- */
extern void v2_start_join(Room *room, Session *session);
extern void v2_send_user(Session *session, int64_t uid);

/* ---- v2_block.c, v2_lane.c ---- */
/* Reads a range and tells it, when its turn has come. */
extern void v2_send_block(Session *session, uint64_t id, const uint32_t rect[4]);
/* Reads the next block, unless the client has enough to read as it is. */
extern void v2_read_blocks(Session *session);
extern void v2_free_blocks(V2Session *v2);
/* The client has taken something: a large block of it goes on. */
extern void v2_resume_block(const Session *session);
/* Large blocks that wait for a connection. */
extern int v2_blocks_waiting(void);
/* Once a second: who does not take a large block in time? */
extern void v2_tick_blocks(void);

/* ---- v2_op.c ---- */
extern bool v2_open_client(Room *room, Session *session);
extern void v2_close_client(Room *room, Session *session);
extern void v2_free_clients(Room *room);
extern void v2_handle_op(Session *session, V2Message *message);
/* The batch is committed: its operations are acknowledged. */
extern void v2_ack_batch(Room *room, RoomBatch *batch, int64_t seq);
/* The database has refused the batch, which is one operation with structure edits. */
extern void v2_refuse_batch(Room *room, RoomBatch *batch);
/* A place as of `base` (0: as it is): where it is now. */
typedef enum V2Place
{
	V2_PLACE_THERE,
	V2_PLACE_GONE,	 /* in a line that was deleted */
	V2_PLACE_UNKNOWN /* base is too old, or from nowhere */
} V2Place;
extern bool v2_knows_base(const Session *session, uint64_t base);
extern V2Place v2_find_place(const Session *session, uint64_t base, uint32_t *row, uint32_t *col);

/* ---- v2_calc.c ---- */
extern void v2_handle_calc(Session *session, const V2Message *message);

/* ---- v2_stream.c ---- */
typedef void (*V2Emit)(void *arg, const Buf *payload);
/* The batch that begins at the reader, without old contents, as messages; the last one is `edits`, with `more` or not.
 */
extern void v2_put_batch(V2Encoding encoding, const EditBatch *batch, EditReader reader, bool more, V2Emit emit,
						 void *arg);
extern void v2_publish_batch(Room *room, const RoomBatch *batch, int64_t seq);
extern void v2_publish_foreign(Room *room, const EditBatch *batch, const EditReader *reader);
/* Computed values, told to all that read the room's streams. */
extern void v2_tell_values(Room *room, uint64_t session, uint64_t seq, const Buf *edits, uint32_t count);
extern void v2_tell_peer(Room *room, const Session *session, bool here);
extern void v2_cursor_moved(Room *room);

#endif
