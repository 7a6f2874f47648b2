/*
 * session.h - one WebSocket: what both protocols have in common; see session.c and output.c.
 */
#ifndef SESSION_H
#define SESSION_H

#include "auth/access_token.h"
#include "support/buf.h"
#include "ws/cache/snapshot.h"
#include "ws/edit/locks.h"
#include "ws/session/protocol.h"
#include "ws/wire/fanout.h"
#include "ws/wire/socket.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Close codes: RFC 6455's, and ours from 4000 on (4000 + HTTP's status). */
#define CLOSE_PROTOCOL	   1002
#define CLOSE_NO_CODE	   1005 /* of a close frame without a code; never sent */
#define CLOSE_NOT_UTF8	   1007
#define CLOSE_TOO_BIG	   1009
#define CLOSE_ERROR		   1011
#define CLOSE_RESTART	   1012 /* connect again: the gateway stops, or has lost the sheet */
#define CLOSE_SLOW		   1013
#define CLOSE_UNAUTHORIZED 4401
#define CLOSE_FORBIDDEN	   4403
#define CLOSE_NOT_FOUND	   4404
#define CLOSE_MOVED		   4307
#define CLOSE_MALFORMED	   4400
#define CLOSE_TIMEOUT	   4408
#define CLOSE_REPLACED	   4409 /* the same client has connected again */
#define CLOSE_FORGOTTEN	   4412 /* what was acknowledged to the client is not known */
#define CLOSE_GONE		   4410 /* the sheet is in the trash */

#define LINK_KEY_MAX 43 /* characters of a link's key */

/*
 * GREETING -> CHECKING -> WAITING -> JOINING -> LIVE, and from each of these -> CLOSING. A session of protocol v1
 * begins in CHECKING. session_set_state() closes a session of which another one is asked.
 */
typedef enum SessionState
{
	SESSION_GREETING, /* protocol v2: waits for the first message */
	SESSION_CHECKING, /* the database is asked about account, sheet and role */
	SESSION_WAITING,  /* for the room, whose lock another gateway may hold */
	SESSION_JOINING,  /* for the snapshot or the missed edits */
	SESSION_LIVE,
	SESSION_CLOSING /* what is queued is sent, then the close frame */
} SessionState;

/* The question to the database whether the account may be here (room/admission.c). */
typedef enum SessionCheck
{
	CHECK_DONE,
	CHECK_ASKED,	   /* under way */
	CHECK_ASKED_AGAIN, /* under way, and to be repeated, because something has changed meanwhile */
	CHECK_FAILED	   /* the database did not answer: repeated each second */
} SessionCheck;

/* A frame for one receiver. */
typedef struct PrivateFrame
{
	struct PrivateFrame *next;
	size_t len;
	bool pong;
	bool begun;			   /* the rest of a frame of which the socket has taken a part */
	SnapshotReader reader; /* if in use: its text is sent instead, in continuation frames */
	unsigned char data[];  /* with the header */
} PrivateFrame;

typedef struct Session
{
	LIST_ENTRY(Session) in_room;	/* before hello: among those that have not said it */
	uint64_t author_of;				/* lowest batch not published yet that has edits of the session; 0: none */
	uint64_t author_to;				/* and the highest */
	struct Session *next_author;	/* in the room, if author_of is set */
	LIST_ENTRY(Session) in_closing; /* of the room, until it resigns */
	uint64_t number;				/* names the session to others; unique in this process */
	const Protocol *protocol;
	Socket *socket; /* NULL: the connection has ended */
	struct V2Session *v2;
	struct Room *room;
	SessionState state;
	SessionCheck check;
	int queries; /* under way; the session is freed after the last */
	int64_t sheet_id;
	int64_t uid;
	int64_t generation; /* of the token */
	int64_t token_id;
	int64_t expires; /* of the token, seconds; INT64_MAX: never */
	uint64_t ends;	 /* of a guest's link, in ms of the loop's clock; 0: no end */
	char *guest;	 /* the name that a guest is shown by; NULL: an account, or protocol v1 */
	char *name;		 /* of the account, or of the guest */
	uint64_t named;	 /* changes_now() when name_json was asked for */
	/* Of an access token. SCOPE_NONE: the session has the token of a sign-in. */
	int scopes;
	unsigned char digest[ACCESS_TOKEN_DIGEST];

	Buf name_json;
	char *sheet_name;
	char link[LINK_KEY_MAX + 1]; /* the link to open before the check; "": none */
	char peer[48];
	char request_id[68]; /* of the upgrade, for the log */
	V2Role role;
	bool may_edit;
	bool resigned;		  /* the others take it for gone: it is closing */
	uint64_t check_began; /* changes_now() when the database was asked */
	uint64_t asked_ms;	  /* the loop's clock then */
	bool nack;			  /* protocol v1: the client understands `refused` and `held` */
	bool paused;		  /* not read */
	bool blocked;		  /* the socket is full: nothing is written before session_on_writable() */
	bool close_sent;	  /* our close frame is the last one in `out`, or written */
	int peer_code;		  /* of the peer's close frame; 0: none has come */
	int close_code;
	char close_reason[124];

	StreamForm form;
	bool binary;	/* its messages are frames of bytes */
	Fanout *stream; /* of the room, in which the cursor is */
	FanoutCursor cursor;
	uint64_t stream_end; /* CLOSING: the stream is sent up to this position */
	PrivateFrame *out;
	PrivateFrame **out_last;
	size_t out_written;		 /* bytes of the first frame */
	size_t out_bytes;		 /* memory of all */
	int pongs;				 /* among them */
	PrivateFrame *last_pong; /* if pongs > 0 */
	bool out_open;			 /* the last frame does not end its message */
	int refusals;			 /* of protocol v1, whose cell is being read */
	uint64_t renewed;		 /* ms: when its locks were last renewed by a pong */
	/* While it lags (room/publish.c). */
	uint64_t lagging_since; /* ms: begin of the interval over which its rate is measured; 0: it does not lag */
	uint64_t lagging_from;	/* bytes delivered at that time */
	uint64_t moved_at;		/* ms: when bytes were last seen to be delivered */
	uint64_t moved;			/* bytes delivered at that time */

	Buf rx;				/* the fragments of a message */
	bool rx_incomplete; /* its beginning was not read, so nor is its rest */
	Buf scratch;
} Session;

typedef LIST_HEAD(SessionList, Session) SessionList;

/* Creates a session in state GREETING. link: "" for none. Returns NULL when there is no memory. */
extern Session *session_create(Socket *socket, const Protocol *protocol, int64_t sheet_id, const char *link);
extern void session_set_state(Session *session, SessionState state);
/* As whom the session locks cells. */
extern LockHolder session_lock_holder(const Session *session);
/* Closes the session of a guest whose link has ended. Returns whether it did. */
extern bool session_close_ended(Session *session);
/* Returns whether the session has a connection and is not closing. */
extern bool session_is_open(const Session *session);
/* Closes the session, after what is queued has been sent. Every close goes through here or session_fail(). */
extern void session_close(Session *session, int code, const char *reason);
/* Closes the session for want of memory. Nothing more of the stream is sent, since something before it is missing. */
extern void session_fail(Session *session);
/* A query that counted in session->queries is answered. */
extern void session_query_done(Session *session);

/* ---- output.c ---- */

/* The socket's events. */
extern bool session_on_writable(void *user);
extern void session_on_ping_due(void *user);
extern void session_answer_ping(Session *session, const char *payload, size_t len);
/* Sends what the socket takes of the room's stream and of the private frames. */
extern void session_deliver(Session *session);
/* Detaches from the room's stream. The rest of a frame that has begun is still sent. */
extern void session_leave_stream(Session *session);
extern void session_want_write(Session *session);
/* Drops the queued frames that have not begun. */
extern void session_drop_queue(Session *session);
extern void session_free_frames(Session *session);

/* Queues a message and frees the payload. One that has failed fails the session. */
extern void session_send(Session *session, Buf *payload);
/* Queues a part of a text message; the first part begins the message. Does not free the payload. */
extern void session_send_part(Session *session, const Buf *payload, bool last);
/* Queues a text of the snapshot as a part. The snapshot is pinned until it is sent. */
extern void session_send_text(Session *session, Snapshot *snapshot, const SnapshotText *text);

#endif
