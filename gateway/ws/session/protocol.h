/*
 * protocol.h - what a protocol does for its sessions and for the rooms that they are in: the interface that v1/ and v2/
 * implement. Sessions and rooms know of protocols only this. A function that is NULL does nothing, or returns false.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include "common/edit_codec.h"
#include "ws/edit/batch.h"
#include "ws/edit/lines.h"
#include "ws/wire/v2.h"

struct Room;
struct Session;

/* The forms in which a room publishes: one stream each. */
typedef enum StreamForm
{
	STREAM_V1,
	STREAM_V2,									 /* version 2 of protocol v2; V2Encoding is added */
	STREAM_V2_RANGES = STREAM_V2 + V2_ENCODINGS, /* from version 3 on, whose clients know of locked ranges; the same */
	STREAM_FORMS = STREAM_V2_RANGES + V2_ENCODINGS
} StreamForm;

/* The transaction of another session that holds a sheet (room/held.c). */
typedef struct SheetHolder
{
	bool held;				 /* false: the sheet is free again, and the others are not set */
	const char *name;		 /* account or role */
	const char *application; /* its application_name */
	uint64_t ms;			 /* age of the transaction */
} SheetHolder;

typedef struct Protocol
{
	/* ---- a session ---- */

	/* Its locks are its own; false: all sessions of the account have them. */
	bool locks_itself;

	/* A whole message, in the states GREETING and LIVE. */
	void (*receive)(struct Session *session, const char *data, size_t len, bool binary);
	/* The room serves: WAITING -> JOINING, and later LIVE. */
	void (*join)(struct Session *session);
	/* A session in state JOINING closes or leaves. */
	void (*stop_joining)(struct Session *session);
	/* Closes the session, whose sheet is served at this ws:// address. */
	void (*close_moved)(struct Session *session, const char *address);
	/* The session closes: its locks, its selection and its presence end with this iteration of the loop. */
	void (*closing)(struct Session *session);
	/* Its connection has ended: the session leaves its room. */
	void (*leave)(struct Session *session);
	/* The connection is alive: the session's locks are renewed. */
	void (*renew)(struct Session *session);
	/* The connection has ended. */
	void (*gone)(struct Session *session);
	/* Frees the protocol's part of the session. */
	void (*free)(struct Session *session);
	/* A private frame has been written. */
	void (*written)(struct Session *session);
	/* Nothing more is to be read from the session at present. */
	bool (*is_busy)(const struct Session *session);
	/* The stream must not be written to the session at present. */
	bool (*holds_stream)(const struct Session *session);
	void (*send_role)(struct Session *session, V2Role role);
	void (*send_holder)(struct Session *session, const SheetHolder *holder);
	/* The reminders of its account or the book of its sheet have changed. */
	void (*send_notice)(struct Session *session, V2Notice notice);

	/* ---- a room: called whether or not it has sessions of the protocol ---- */

	/* Publishes a committed batch of this gateway. */
	void (*publish_own)(struct Room *room, const RoomBatch *batch, int64_t seq);
	/* Publishes a batch that was committed elsewhere; the reader is at its edits. */
	void (*publish_stored)(struct Room *room, const EditBatch *batch, EditReader reader);
	/* Publishes a run of batches that were committed elsewhere: from the one that the reader begins, to the one that
	 * ends at seq `last`. A batch with structure edits is a run of its own. */
	void (*publish_run)(struct Room *room, EditReader reader, int64_t last);
	/* The streams are complete up to the room's published_seq. done: no more is published in this iteration. */
	void (*published)(struct Room *room, bool done);
	/* Rows or columns have moved. */
	void (*moved)(struct Room *room, const LineChange *changes, size_t n);
	/* A member has come, or leaves. */
	void (*publish_member)(struct Room *room, const struct Session *session, bool here);
	/* The batch is stored and published: acknowledges its operations. */
	void (*acknowledge)(struct Room *room, RoomBatch *batch);
	/* The database has refused the batch, which is refusable. */
	void (*refuse)(struct Room *room, RoomBatch *batch);
	/* Frees the protocol's part of the room. */
	void (*free_room)(struct Room *room);
} Protocol;

/* In v1/v1_session.c and v2/v2_session.c. */
extern const Protocol protocol_v1, protocol_v2;

#endif
