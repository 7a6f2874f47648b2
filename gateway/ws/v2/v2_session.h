/*
 * v2_session.h - members of protocol v2 (docs/PROTOCOL.md): what the files of v2/ share, and what opens
 * sessions and reports metrics.
 */
#ifndef V2_SESSION_H
#define V2_SESSION_H

#include "auth/jwt.h"
#include "ws/room/room.h"

#define V2_HELLO_MS		  10000
#define V2_MAX_QUESTIONS  64			  /* `get` and `who` of a session under way */
#define V2_RANGES_AT_ONCE 64			  /* requests for ranges, of a session in an iteration */
#define V2_RETENTION	  (7 * 24 * 3600) /* seconds; sheet.client_acknowledged() keeps operations as long */

/*
 * The sender of numbered operations (protocol v2): (account, client). It outlives its session while operations are
 * under way, so that one that is sent again over another connection is recognised.
 */
typedef struct V2Client
{
	struct V2Client *next;
	int64_t uid;
	uint64_t id;
	Session *session;	/* the last one of this client; NULL when it has left */
	bool known;			/* the database has been asked for its last operation */
	bool undecided;		/* the database may refuse its last operation */
	uint64_t taken;		/* the last operation that is in a batch, or committed */
	uint64_t committed; /* the last committed operation */
	int64_t seq;		/* the sheet's seq with it */
	RoomBatch *batch;	/* of the last operation, until it is committed */
	size_t batch_index; /* in batch->clients */
} V2Client;

typedef struct V2Session
{
	V2Encoding encoding;
	uint64_t version; /* from hello */
	uint64_t opened;  /* ms */
	uint64_t client_id;
	uint64_t acked;	 /* from hello */
	uint64_t since;	 /* from hello */
	bool asks_token; /* the database is asked for the access token of hello */
	V2Client *client;
	int64_t joined_seq; /* everything up to here is before its position in the stream */
	int tails;			/* questions for what it has missed */
	uint64_t moved_seq; /* rows or columns may have moved, unnoticed, up to here */
	uint64_t nacks;		/* sent */
	int questions;		/* `get` and `who` that are not answered */
	int range_requests; /* for ranges, in the iteration that began at: */
	uint64_t ranges_ms;
	struct BlockQuestion *blocks; /* to be read, one after the other */
	struct BlockQuestion **blocks_last;
	struct BlockQuestion *reading;	/* the block that is being read */
	bool holding;					/* the database is reading it: the stream waits */
	struct WaitingMessage *waiting; /* received while the client was undecided, oldest first */
	struct WaitingMessage **waiting_last;
	bool has_cursor;
	bool cursor_moved;
	V2Cursor cursor;
} V2Session;

/* ---- v2_session.c ---- */
/* Returns NULL when there is no memory. */
extern Session *v2_session_open(Socket *socket, int64_t sheet_id, const char *link);
/* Once a second: closes sessions that have not said hello in time. */
extern void v2_tick(void);
/* The token of hello is valid: the database is asked about account and sheet, if it is served here. */
extern void v2_identify(Session *session, const JwtClaims *claims);
/* Returns whether the session has much to read: none of its questions is answered before it has. */
extern bool v2_is_full(const Session *session);
/* Returns whether the client knows of locked ranges: its version is 3 or later. */
extern bool v2_knows_ranges(const Session *session);
/* Returns whether it may ask another question. */
extern bool v2_may_ask(const Session *session);
/* Its client's operation is decided: handles the messages that have waited. */
extern void v2_resume_messages(Session *session);
/* The message's cell cannot be locked or set. */
extern void v2_deny(Session *session, const V2Message *message, V2Reason reason);

/* ---- v2_program.c ---- */
/* Hello has an access token. */
extern void v2_greet_program(Session *session, EditText token);

/* ---- v2_join.c ---- */
extern void v2_join(Session *session);
extern void v2_send_user(Session *session, int64_t uid);

/* ---- v2_block.c, v2_large_block.c ---- */
/* Reads a range in its turn and sends it. */
extern void v2_send_block(Session *session, uint64_t id, const uint32_t rect[4]);
/* A private frame was written: the next block is read, and a large one is read on. */
extern void v2_read_blocks(Session *session);
extern void v2_resume_large_block(const Session *session);
extern void v2_free_blocks(V2Session *v2);
/* Number of large blocks that wait for a connection. */
extern int v2_blocks_waiting(void);
/* Once a second: closes clients that do not take a large block in time. */
extern void v2_tick_blocks(void);

/* ---- v2_op.c ---- */
/* Returns false when there is no memory. */
extern bool v2_open_client(Session *session);
extern void v2_close_client(Session *session);
extern void v2_free_clients(Room *room);
extern void v2_handle_op(Session *session, V2Message *message);
extern void v2_acknowledge(Room *room, RoomBatch *batch);
extern void v2_refuse(Room *room, RoomBatch *batch);
/* Returns whether cells named as of `base` (0: as of now) can be found. */
extern bool v2_knows_base(const Session *session, uint64_t base);
typedef enum V2Found
{
	V2_FOUND,
	V2_DELETED,
	V2_UNKNOWN /* !v2_knows_base() */
} V2Found;
/* Moves a range (row, column, last row, last column) named as of `base` to the present one; a deleted one to the line
 * that is in its place. */
extern V2Found v2_find_range(const Session *session, uint64_t base, uint32_t rect[4]);

/* ---- v2_calc.c ---- */
extern void v2_handle_calc(Session *session, const V2Message *message);

/* ---- v2_stream.c ---- */
/* Returns the lock in the form in which messages have it. */
extern V2Lock v2_lock_of(const uint32_t rect[4], bool range, LockHolder holder);
typedef void (*V2Emit)(void *arg, Buf *payload);
/* Emits the batches from the reader on, which must begin one, up to the one that ends at seq `last`, as messages. Those
 * after which the sheet has a state that existed have no `more`: the last one, and, unless `whole`, some that end with
 * a batch. */
extern void v2_put_batches(V2Encoding encoding, EditReader reader, int64_t last, bool whole, V2Emit emit, void *arg);
extern void v2_publish_own(Room *room, const RoomBatch *batch, int64_t seq);
extern void v2_publish_run(Room *room, EditReader reader, int64_t last);
extern void v2_publish_values(Room *room, uint64_t session, uint64_t seq, const Buf *edits, uint32_t count);
extern void v2_publish_member(Room *room, const Session *session, bool here);
/* Selections have moved: they are published soon. */
extern void v2_publish_cursors_soon(Room *room);

#endif
