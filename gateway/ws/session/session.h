/*
 * session.h - one WebSocket: what both protocols have in common (session.c), and protocol v1 (session.c); v2_session.h
 * has the other.
 */
#ifndef SESSION_H
#define SESSION_H

#include "ws/room/access.h"
#include "support/buf.h"
#include "ws/session/fanout.h"
#include "auth/jwt.h"
#include "ws/room/room.h"
#include "ws/cells/snapshot.h"
#include "ws/v2/v2.h"

#include <stdbool.h>
#include <stdint.h>

struct Socket;

/* Close codes: RFC 6455's, and ours from 4000 on (HTTP's number with 4 in front). */
#define CLOSE_NORMAL	   1000
#define CLOSE_PROTOCOL	   1002
#define CLOSE_NO_CODE	   1005 /* of a close frame without one; never sent */
#define CLOSE_NOT_UTF8	   1007
#define CLOSE_TOO_BIG	   1009
#define CLOSE_ERROR		   1011
#define CLOSE_RESTART	   1012 /* come again: this gateway stops or has lost the sheet */
#define CLOSE_SLOW		   1013
#define CLOSE_UNAUTHORIZED 4401
#define CLOSE_FORBIDDEN	   4403
#define CLOSE_NOT_FOUND	   4404
#define CLOSE_MOVED		   4307
#define CLOSE_MALFORMED	   4400
#define CLOSE_TIMEOUT	   4408
#define CLOSE_REPLACED	   4409 /* the same client has connected again */
#define CLOSE_FORGOTTEN	   4412 /* what was acknowledged to the client is not known here */
#define CLOSE_GONE		   4410 /* the sheet is in the trash */

typedef enum SessionState
{
	SESSION_GREETING, /* protocol v2: its first message is awaited */
	SESSION_CHECKING, /* asking the database about user and sheet */
	SESSION_WAITING,  /* for the room */
	SESSION_JOINING,  /* for the snapshot */
	SESSION_LIVE,
	SESSION_CLOSING
} SessionState;

/* A frame for one receiver only. */
typedef struct PrivateFrame
{
	struct PrivateFrame *next;
	size_t len;
	bool pong;
	bool begun;			   /* it is the rest of one that the socket has taken a part of */
	SnapshotReader reader; /* in use: its text is sent instead, in parts of a message */
	unsigned char data[];  /* with its header */
} PrivateFrame;

typedef struct Session
{
	struct Session *next, *prev; /* of the room */
	uint64_t author_of;			 /* no batch before this one has something of it that it waits for; 0: none has ... */
	uint64_t author_to;			 /* ... nor one behind this one */
	struct Session *next_author; /* of the room, when there is one */
	uint64_t number;			 /* names the session to others, for as long as the process lives */
	struct Socket *socket;		 /* NULL when the connection is gone */
	struct V2Session *v2;		 /* NULL: protocol v1 */
	Room *room;
	SessionState state;
	int queries; /* under way: the session must stay */
	int64_t sheet_id;
	int64_t uid;
	int64_t generation;
	int64_t expires; /* of the token, seconds */
	char *name;		 /* of the user */
	Buf name_json;
	char *sheet_name;
	char link[LINK_KEY_MAX + 1]; /* by which the sheet is opened before it is checked; "": none */
	char peer[48];
	char request_id[68]; /* of the upgrade, for the log */
	V2Role role;
	bool may_edit;
	bool unchecked;	  /* the database could not be asked whether the user may still be here: ask again */
	bool checking;	  /* it is being asked ... */
	bool check_again; /* ... and has to be once more, since something has changed meanwhile */
	uint64_t changes; /* that had been heard of when it was asked (follow.h) */
	bool nack;
	bool paused;	 /* not read */
	bool blocked;	 /* the socket is full: nothing is written before session_writable() is called */
	bool close_sent; /* our close frame is the last one in `out`, or has been written */
	int peer_code;	 /* of the peer's close frame; 0: none has come */
	int close_code;
	char close_reason[124];

	Fanout *stream; /* of the room, what the cursor is in */
	FanoutCursor cursor;
	uint64_t until; /* CLOSING: what comes behind this position is not for it any more */
	PrivateFrame *out;
	PrivateFrame **out_last;
	size_t out_written;		 /* bytes of the first one */
	size_t out_bytes;		 /* that these take */
	int pongs;				 /* of these */
	PrivateFrame *last_pong; /* when there is one */
	bool out_open;			 /* the last of them is not the end of its message */
	int refusals;			 /* being answered */
	uint64_t renewed;		 /* ms: when its locks were last renewed by a pong */
	/* While it is too far behind (backlog.c). */
	uint64_t behind_since; /* ms: when the window began over which its rate is measured; 0: it is not behind */
	uint64_t behind_from;  /* bytes that had been delivered then */
	uint64_t moved_at;	   /* ms: when bytes were last seen to be delivered */
	uint64_t moved;		   /* bytes that had been delivered then */

	Buf rx;
	Buf scratch;
} Session;

extern Session *session_open(struct Socket *socket, const JwtClaims *claims, int64_t sheet_id, const char *link,
							 bool nack);
/* A session without a user, who says later who he is. link: the key of the sheet's link, or "". v2: the session's from
 * then on; NULL for protocol v1. NULL, here and above: no memory. */
extern Session *session_create(struct Socket *socket, int64_t sheet_id, const char *link, struct V2Session *v2);
/* As whom it holds cells (locks.h). */
extern int64_t session_holder(const Session *session);
/* When a lease that begins now ends. */
extern uint64_t session_lease_end(void);
/* The connection is gone. */
extern void session_gone(Session *session);
/* Ends the session: every end goes through here. What is queued before is still sent. */
extern void session_close(Session *session, int code, const char *reason);
/* There is no memory for something of its own: it is told nothing that would come behind it, and closed. */
extern void session_fail(Session *session);
/* CLOSING: what is queued is still sent, and a close frame behind it. */
extern void session_begin_close(Session *session);
extern void session_free_frames(Session *session);
/* A piece of a message. */
extern void session_receive(Session *session, const char *data, size_t len, bool first, bool last, bool binary);
/* The socket takes more. False: end the connection. */
extern bool session_writable(Session *session);
/* The peer's close frame has come: nothing behind it counts. */
extern void session_peer_closes(Session *session, int code);
/* The peer's ping has come, and is answered. */
extern void session_ping(Session *session, const char *payload, size_t len);
extern void session_send_ping(Session *session);
/* Leaves the room's stream; the rest of a frame that has begun is still sent. */
extern void session_leave_stream(Session *session);
/* The room's stream has grown: what the socket takes is written at once. */
extern void session_deliver(Session *session);
extern void session_pong(Session *session);
/* payload NULL, here and below: there was no memory for it. */
extern void session_send(Session *session, const char *payload, size_t len);
extern void session_want_write(Session *session);
/* The part of a text message behind what was sent before; the first part of one that is sent so begins it. */
extern void session_send_part(Session *session, const char *payload, size_t len, bool last);
/* The same, with a text of the snapshot, which is held until it is sent. */
extern void session_send_text(Session *session, Snapshot *snapshot, const SnapshotText *text);
extern void session_send_message(Session *session, const char *payload, size_t len, bool binary);
extern void session_query_done(Session *session);
/* Asks the database again whether the user may (still) be here. */
extern void session_check(Session *session);
/* Once a second: token, leases are the room's. */
extern void session_tick(Session *session, int64_t now);

#endif
