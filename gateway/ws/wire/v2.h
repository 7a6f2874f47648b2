/*
 * v2.h - messages of protocol v2 (docs/PROTOCOL.md): one set, written as JSON or in a binary form. Pure C.
 *
 *   v2_layout.c  the fields of clients' messages, and checks of them, for both forms
 *   v2_read.c    messages of clients, from JSON
 *   v2_binary.c  messages of clients, from the binary form
 *   v2_encode.c  messages of the gateway, in both forms
 */
#ifndef V2_H
#define V2_H

#include "support/buf.h"
#include "support/json.h"
#include "common/edit_codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define V2_VERSION			 2
#define V2_VERSION_RANGES	 3 /* with locks of ranges */
#define V2_VERSION_REMINDERS 4 /* with reminders */
#define V2_VERSION_BOOKS	 5 /* with changes of books */
#define V2_VERSION_LAST		 V2_VERSION_BOOKS
#define V2_MAX_TOKEN		 4096 /* bytes */
#define V2_MAX_OP_EDITS		 16384
#define V2_MAX_VALUES		 1024  /* of one `calc` */
#define V2_MAX_OP_CHANGES	 64	   /* structure edits among them */
#define V2_MAX_BLOCK_CELLS	 65536 /* of one `get` */

typedef enum V2Encoding
{
	V2_JSON,
	V2_BINARY,
	V2_ENCODINGS
} V2Encoding;

/* ---- from clients ---- */

typedef enum V2Type
{
	V2_HELLO = 1,
	V2_AUTH = 2,
	V2_GET = 3,
	V2_OP = 4,
	V2_LOCK = 5,
	V2_UNLOCK = 6,
	V2_CURSOR = 7,
	V2_WHO = 8,
	V2_CALC = 9,
	/* From version 3 on: */
	V2_LOCK_RANGE = 10,
	V2_UNLOCK_RANGE = 11
} V2Type;

typedef enum V2Reason
{
	V2_REASON_NONE,
	V2_REASON_ROLE,	  /* the role does not allow it */
	V2_REASON_LOCKED, /* another session holds a cell of it, or waits for one */
	V2_REASON_RANGE,  /* no such row or column can be */
	V2_REASON_SIZE,	  /* too many edits or characters */
	V2_REASON_BUSY,	  /* too many locks */
	V2_REASON_BASE,	  /* the places of its `base` can no longer be found, or another wrote them since `seen` */
	V2_REASONS
} V2Reason;

extern const char *const v2_reason_names[V2_REASONS];

/* Of structure edits in JSON: by kind, from EDIT_INSERT_ROWS on. */
#define V2_CHANGE_KINDS (EDIT_DELETE_COLUMNS - EDIT_INSERT_ROWS + 1)
extern const char *const v2_change_names[V2_CHANGE_KINDS];
extern const char v2_property_name[];

/* What a type does not have is 0. */
typedef struct V2Message
{
	V2Type type;
	uint64_t version;
	EditText token;
	uint64_t client;
	uint64_t acked;
	uint64_t since;
	uint64_t id;
	uint64_t row, col;		 /* of a cell, or the first of a range ... */
	uint64_t to_row, to_col; /* ... and its last */
	uint64_t n;
	uint64_t nacks;
	uint64_t base; /* of `calc`: its seq */
	uint64_t seen; /* others must not have written the cells since this seq; 0: they may have */
	uint64_t uid;
	uint64_t wait; /* 1: a range that is not free is waited for */
	/* The edits of an operation, in edit_codec.h's form, uid 0; all kinds and texts have been checked. */
	const uint8_t *edits;
	size_t edits_len;
	uint32_t count;
	uint32_t changes;		   /* structure edits among them */
	uint32_t properties;	   /* property edits among them */
	uint32_t plain;			   /* of the edits, contents without a style */
	V2Reason reason;		   /* why they cannot be taken, V2_REASON_NONE when they can ... */
	uint32_t bad_row, bad_col; /* ... and the first that cannot */
	uint32_t rect[4];		   /* row, column, last row, last column: around those that are within the limits */
	bool bounded;			   /* there is such a rectangle */
} V2Message;

/* Memory that v2_read_json() needs, for a message of len bytes: for its edits, and then for one text. */
#define V2_SCRATCH_EDITS(len) ((len) *3 + 128)
#define V2_SCRATCH(len)		  (V2_SCRATCH_EDITS(len) + (len) + 128)

/*
 * NULL, or what is wrong with the message: then the connection ends. Texts and edits point into the message or into
 * scratch. text need not have been checked for UTF-8.
 */
extern const char *v2_read_json(const char *text, size_t len, char *scratch, V2Message *message);
extern const char *v2_read_binary(const void *bytes, size_t len, V2Message *message);

/* ---- for both readers ---- */

typedef enum V2FieldKind
{
	V2_FIELD_NUMBER,
	V2_FIELD_FLAG, /* a number that is 0 or 1 */
	V2_FIELD_TEXT,
	V2_FIELD_EDITS
} V2FieldKind;

typedef struct V2Field
{
	const char *name;
	V2FieldKind kind;
	bool optional; /* in JSON: 0 when it is absent */
	size_t offset; /* in V2Message */
} V2Field;

#define V2_MAX_FIELDS 7 /* with the end */

typedef struct V2Layout
{
	const char *name;
	V2Field fields[V2_MAX_FIELDS]; /* the binary form has them in this order; ends with a name NULL */
} V2Layout;

/* NULL for a number that is no type. */
extern const V2Layout *v2_layout(uint64_t type);
/* Notes an edit of the operation: its rectangle, and whether it can be taken. False: malformed. */
extern bool v2_note_edit(V2Message *message, const Edit *edit);
/* Makes the operation's rectangle large enough to have the edit's cell. */
extern void v2_widen(V2Message *message, const Edit *edit);
/* What both forms promise of a whole message; NULL or what is wrong. */
extern const char *v2_check(const V2Message *message);
/* Whether the text is one JSON object, and nothing else. */
extern bool v2_is_json_object(const char *text, size_t len);

/* ---- to clients ---- */

typedef enum V2Role
{
	V2_ROLE_VIEWER,
	V2_ROLE_COMMENTER,
	V2_ROLE_EDITOR,
	V2_ROLE_OWNER,
	V2_ROLES
} V2Role;

extern const char *const v2_role_names[V2_ROLES];

/* Messages without members, in the order of their types. */
typedef enum V2Notice
{
	V2_NOTICE_CHANGED, /* for those who watch a published view */
	V2_NOTICE_REMINDERS,
	V2_NOTICE_BOOK
} V2Notice;

typedef enum V2VersionKind
{
	V2_KIND_COMMIT,
	V2_KIND_ROLLBACK,
	V2_KINDS
} V2VersionKind;

typedef struct V2Cursor
{
	uint64_t session;
	uint32_t row, col, to_row, to_col;
} V2Cursor;

typedef struct V2Peer
{
	uint64_t session;
	uint64_t uid;
	const char *name;
} V2Peer;

typedef struct V2Lock
{
	uint32_t rect[4]; /* row, column, last row, last column */
	bool range;		  /* false: of a cell */
	uint64_t session; /* 0: a user of protocol v1, with any of their connections */
	uint64_t uid;
} V2Lock;

typedef struct V2Hello
{
	uint64_t version; /* the client's */
	uint64_t session;
	uint64_t uid;
	const char *name; /* of the sheet */
	V2Role role;
	uint64_t seq;
	uint64_t epoch;
	uint32_t rows, cols;
	uint64_t landed;	/* the client's highest operation that is in the log */
	bool resumed;		/* what came after `since` follows */
	uint64_t retention; /* seconds for which an operation may be sent again */
	uint64_t lease;		/* seconds */
	uint64_t max_bytes; /* of a client's message */
	const V2Peer *peers;
	uint32_t peer_count;
	const V2Lock *locks; /* of cells and ranges */
	uint32_t lock_count;
} V2Hello;

/* The answer to the request for a range that is not free. */
typedef struct V2Blocked
{
	uint32_t rect[4]; /* as the client named it */
	V2Reason reason;
	bool waits;				 /* the request waits; false: it is refused */
	uint32_t at_row, at_col; /* for V2_REASON_LOCKED: the first cell that another holds, or waits for ... */
	uint64_t session, uid;	 /* ... and who that is */
} V2Blocked;

typedef struct V2Block
{
	uint64_t id;
	uint32_t row, col, to_row, to_col;
	uint64_t seq;
	bool more;
} V2Block;

extern void v2_put_hello(Buf *to, V2Encoding encoding, const V2Hello *hello);
/* Edits with their uids, in the codec's form without header; `old` contents must have been taken out. */
extern void v2_put_edits(Buf *to, V2Encoding encoding, uint64_t seq, bool more, const void *edits, size_t len,
						 uint32_t count);
/* Cells as edits of uid 0. */
extern void v2_put_block(Buf *to, V2Encoding encoding, const V2Block *block, const void *edits, size_t len,
						 uint32_t count);
/* Properties, as property edits of uid 0. */
extern void v2_put_properties(Buf *to, V2Encoding encoding, uint64_t seq, bool more, const void *edits, size_t len,
							  uint32_t count);
/* One of these cells, in JSON. */
extern void v2_put_cell(Buf *to, const Edit *cell);
extern void v2_put_notice(Buf *to, V2Encoding encoding, V2Notice notice);
extern void v2_put_ack(Buf *to, V2Encoding encoding, uint64_t n, uint64_t seq);
extern void v2_put_nack(Buf *to, V2Encoding encoding, uint64_t n, V2Reason reason, uint32_t row, uint32_t col,
						bool block);
/* session and uid 0: the cell or range is free. */
extern void v2_put_lock(Buf *to, V2Encoding encoding, const V2Lock *lock);
extern void v2_put_blocked(Buf *to, V2Encoding encoding, const V2Blocked *blocked);
extern void v2_put_denied(Buf *to, V2Encoding encoding, uint32_t row, uint32_t col, V2Reason reason);
extern void v2_put_peer(Buf *to, V2Encoding encoding, const V2Peer *peer, bool here);
extern void v2_put_cursors(Buf *to, V2Encoding encoding, const V2Cursor *cursors, uint32_t count);
extern void v2_put_user(Buf *to, V2Encoding encoding, uint64_t uid, const char *name);
/* cid: of the version that was brought back; 0 for a commit. */
extern void v2_put_version(Buf *to, V2Encoding encoding, uint64_t seq, uint64_t uid, V2VersionKind kind, uint64_t cid,
						   const char *label, size_t label_len);
extern void v2_put_role(Buf *to, V2Encoding encoding, V2Role role);
/* Computed values, as edits of uid 0 that set contents; seq: that they were computed at. */
extern void v2_put_calc(Buf *to, V2Encoding encoding, uint64_t session, uint64_t seq, const void *edits, size_t len,
						uint32_t count);
/* held: since `ms` a transaction of `holder` has held the sheet, and edits wait; otherwise it does no more. */
extern void v2_put_held(Buf *to, V2Encoding encoding, bool held, const char *holder, const char *application,
						uint64_t ms);
extern void v2_put_authed(Buf *to, V2Encoding encoding, uint64_t expires);

#endif
