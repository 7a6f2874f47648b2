/*
 * journal.h - what the SQL functions call: append, read, versions.
 *
 * The caller (api) has checked permissions. Functions raise errors by ereport. See docs/design/journal.md for the
 * protocol.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "postgres.h"
#include "support/workqueue.h"
#include "common/edit_codec.h"
#include "common/properties.h"
#include "grid/grid.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

/* ---- append ---- */
/* The operations first to last of a client of protocol v2, which are in a batch. */
typedef struct JournalClient
{
	int64 uid;
	int64 client;
	int64 first, last;
} JournalClient;

typedef struct JournalApply
{
	int64 sheet_id;
	const void *edits; /* one or more encoded batches (edit_codec.h); their seq and at are ignored */
	Size edits_len;
	int64 known_seq; /* last seq that the caller has; -1: any, and duplicates are not searched for */
	int64 epoch;	 /* 0: none (SQL) */
	int64 origin;	 /* 0: none (SQL) */
	int64 batch_no;	 /* 0: none */
	const JournalClient *clients;
	int nclients;
	bool nowait; /* do not wait for the sheet lock */
} JournalApply;

typedef struct JournalApplied
{
	int64 first_seq; /* 0: no edit changed anything */
	int64 last_seq;	 /* then the sheet's last seq */
	TimestampTz at;
	bool duplicate; /* nothing was appended: (origin, batch_no), or all of its clients' operations (then first_seq is
					   0), are stored already */
	bytea *missed;	/* stored batches after known_seq and before first_seq (of a duplicate: up to the last one, or as
					   many as fit: journal_tail() has the others); NULL if there are none */
	int64 held;		/* nowait: another transaction has the sheet lock of this sheet, which is the call's or a tab that
					   refers to it, or the reference lock of this book, negative, and nothing was done; 0: none */
} JournalApplied;

extern void journal_apply(const JournalApply *call, JournalApplied *result);
/* Applies edits of SQL functions: at most SHEET_MAX_BATCH_EDITS, with their uids. Copies their texts; sets `old`.
 * Returns the sheet's last seq. */
extern int64 journal_edit(int64 sheet_id, Edit *edits, uint32 nedits);
/* The highest acknowledged operation of a client; 0 if none is known. */
extern int64 journal_acknowledged(int64 sheet_id, int64 uid, int64 client);
/*
 * Claims the sheet for an owner: later applies with a lower epoch are refused (SF001). Sets the last seq. Returns
 * false, and does nothing, if nowait is set and another transaction has the sheet lock.
 */
extern bool journal_claim(int64 sheet_id, int64 epoch, const char *holder, bool nowait, int64 *last_seq);
/* The owner releases the sheet. Does not wait; returns false if another transaction has the sheet lock, or the epoch is
 * not the highest. */
extern bool journal_release(int64 sheet_id, int64 epoch);
/* Forgets the epochs of all sheets, after the coordinator has started again with low ones. No gateway may be running.
 */
extern void journal_reset_epochs(void);
/* Opens segment 1 of a new sheet, and appends an edit that sets its size. */
extern void journal_create(int64 sheet_id, uint64 uid, uint32 rows, uint32 cols);
/* Removes the edits and versions before a version. Returns the number of edits. */
extern int64 journal_trim(int64 sheet_id, int64 version_id, uint64 uid);
/* Deletes all rows of the sheet; for readers and followers it does not exist. */
extern void journal_purge(int64 sheet_id);

/* ---- read: the cells that the caller's snapshot sees ---- */
typedef struct JournalView
{
	int64 seq; /* of the last edit that is seen */
	uint32 rows, cols;
	TimestampTz at; /* of a version */
} JournalView;
/* Receives the cells, row by row. The texts are valid during the call, which must not call the journal: it may run
 * while the entry's lock is held. */
typedef struct JournalSink
{
	void (*begin)(void *arg); /* the first cells follow; called again if the sheet has changed: discard those before */
	void (*cells)(void *arg, const GridCell *cells, uint32 count);
	void *arg;
	/* Told after begin(): the sheet's maps, which are valid during the call. NULL: not wanted. */
	void (*maps)(void *arg, const LineMaps *maps);
} JournalSink;
/* Passes the cells of the inclusive rectangle to the sink. sink NULL: only sets the view. fresh: the function is
 * volatile, so a new snapshot may be taken in READ COMMITTED. */
extern void journal_read(int64 sheet_id, const uint32 rect[4] /* row0 col0 row1 col1, or NULL for all */, bool fresh,
						 JournalView *view, const JournalSink *sink);
/* A stored value of a formula, in the form of a content. */
typedef struct ValueEntry
{
	uint8 place; /* in its tile (journal/store/value_store.h) */
	bool filled; /* of a cell that an array of another cell's formula fills */
	uint32 len;
	const char *text; /* not terminated */
} ValueEntry;
/* A value of a formula, or of a cell that an array fills, at its present row and column. */
typedef void (*JournalValueFn)(void *arg, uint32 row, uint32 col, const ValueEntry *entry);
/*
 * Passes the stored values of the rectangle, in no order; maps: the sheet's, as the sink got them. Returns whether the
 * sheet has, or had, formulas; *computed: the seq of the state whose values are stored; 0 if another tab that they
 * depend on has changed since, too.
 */
extern bool journal_read_values(int64 sheet_id, const uint32 rect[4], const LineMaps *maps, bool fresh, int64 *computed,
								JournalValueFn fn, void *arg);
/* Whether the sheet has, or had, formulas. fresh: see journal_read(). */
extern bool journal_has_formulas(int64 sheet_id, bool fresh);
/*
 * The structure edits after `since` and up to `until`, oldest first, in the current memory context. False: there are
 * more than `most`, or some may have been trimmed.
 */
extern bool journal_line_changes(int64 sheet_id, int64 since, int64 until, uint32 most, LineChange **changes,
								 uint32 *count);
/* The last seq, for estimates: from shared memory, else the one that the snapshot sees. 0: no edit. */
extern int64 journal_guess_seq(int64 sheet_id, Snapshot snapshot);
/* The time of the last edit, or if all edits were trimmed, of the newest version; false if there is neither. */
extern bool journal_edited_at(int64 sheet_id, Snapshot snapshot, TimestampTz *at);
/* The id of the newest version (0: none). *cols: the number of columns that the cache knows, else that of the version,
 * else unchanged. */
extern int64 journal_newest_version(int64 sheet_id, Snapshot snapshot, uint32 *cols);
/* The cells of a version, in a grid of the current memory context. 42704 if the version does not exist. */
extern Grid *journal_read_version(int64 sheet_id, int64 version_id, bool cells, JournalView *view);
/* The cells at a time; none before the sheet was created. 42704 if they were trimmed. */
extern Grid *journal_read_past(int64 sheet_id, TimestampTz at, JournalView *view);
/* The properties that the snapshot sees, of a version, and at a time; into an empty set of the current memory context
 * (property_store_init). Errors as for the cells. */
extern void journal_read_properties(int64 sheet_id, Snapshot snapshot, Properties *set);
extern void journal_read_version_properties(int64 sheet_id, int64 version_id, Properties *set);
extern void journal_read_past_properties(int64 sheet_id, TimestampTz at, Properties *set);
/* Stored batches with last_seq > since, oldest first, at most about max_bytes (at least one batch); NULL if there are
 * none. 22023 if edits after `since` were trimmed. */
extern bytea *journal_tail(int64 sheet_id, int64 since, Size max_bytes, int64 *last_seq);

/* ---- versions ---- */
/* 54000: it is too long. */
extern void journal_check_label(const char *label);
extern int64 journal_commit(int64 sheet_id, uint64 uid, const char *label,
							int64 epoch); /* SN001: nothing has changed */
extern int64 journal_rollback(int64 sheet_id, int64 version_id, uint64 uid, int64 epoch); /* returns the new version */

/* ---- automatic versions, which the background worker makes ---- */
typedef struct JournalVersionCall
{
	int64 sheet_id;
	int64 seq; /* a version that includes this seq is sufficient */
	VersionCause cause;
	int interval_ms; /* the least time between the sheet's last version and this one */
} JournalVersionCall;

typedef enum JournalVersion
{
	JOURNAL_VERSION_MADE,
	JOURNAL_VERSION_NEEDLESS, /* there is a version already, or the sheet does not exist */
	JOURNAL_VERSION_EARLY	  /* not before *due */
} JournalVersion;

/* Stores a version of what is committed. The caller's transaction must do nothing else, and commit at once: writers of
 * the sheet wait from *locked_at until then. */
extern JournalVersion journal_save_version(const JournalVersionCall *call, TimestampTz *due, TimestampTz *locked_at);
/* Returns the sheet's last seq if its open segment has so many edits, or so many bytes of them before compression
 * (0: no limit); otherwise 0. */
extern int64 journal_long_segment(int64 sheet_id, int64 edits, int64 bytes);

/* ---- for functions that change the sheet's own row ---- */
/* Takes the sheet lock until the end of the transaction: no other transaction can edit the sheet. */
extern void journal_lock_sheet(int64 sheet_id);
/* At commit, drops what shared memory knows of the sheet, the state of its row included. Takes the sheet lock. Must be
 * called before the rows are changed. */
extern void journal_forget(int64 sheet_id);

/* ---- for functions that rename a tab ---- */
/*
 * Calls `change_name`, which changes the name in the sheet's row, and rewrites the name in the formulas of all tabs of
 * the book, as edits of the account. Takes the sheet locks of the tabs whose formulas have names before. Caller must
 * hold the book's row.
 */
extern void journal_rename_tab(int64 sheet_id, int64 book_id, const char *name, uint64 uid,
							   void (*change_name)(void *arg), void *arg);

/* ---- calendars ---- */
/* Calls `run` for each calendar of which the transaction has made edits that will be committed. */
extern void journal_each_edited_calendar(void (*run)(int64 sheet_id));

/* Allocates in the current memory context, for private grids; raises an error if there is no memory. */
extern GridAllocator journal_context_allocator(void);

#endif
