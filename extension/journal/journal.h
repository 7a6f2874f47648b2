/*
 * journal.h - what the SQL functions call: append, read, versions, fsck, following.
 *
 * Functions raise errors by ereport; permission has been checked by the caller (api). See docs/ARCHITECTURE.md for the
 * protocol.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "postgres.h"
#include "support/ckptqueue.h"
#include "common/edit_codec.h"
#include "grid/grid.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

/* ---- append ---- */
/* Operations of protocol v2 that a batch has: of one client, first to last. */
typedef struct JournalClient
{
	int64 uid;
	int64 client;
	int64 first, last;
} JournalClient;

typedef struct JournalApply
{
	int64 sheet_id;
	const void *edits; /* a stream of one or more batches (edit_codec.h), headers' seq and at ignored */
	Size edits_len;
	int64 known_seq; /* last seq that the caller has; -1: does not care, and duplicates are not looked for */
	int64 epoch;	 /* 0: none (SQL) */
	int64 origin;	 /* 0: none (SQL) */
	int64 batch_no;	 /* 0: none */
	const JournalClient *clients;
	int nclients;
	bool nowait; /* do not wait while another transaction holds the sheet */
} JournalApply;

typedef struct JournalApplied
{
	int64 first_seq; /* 0 when every edit was a no-op */
	int64 last_seq;	 /* with no-ops only: the sheet's last seq */
	TimestampTz at;
	bool duplicate; /* (origin, batch_no), or all of its clients' operations (then first_seq is 0), were there already:
					   nothing appended */
	bytea *missed; /* stored batches after known_seq and before first_seq (with duplicate: up to the last, or as many as
					  fit: journal_tail() has the others), NULL when none */
	bool held;	   /* nowait: another transaction holds the sheet, and nothing was done */
} JournalApplied;

extern void journal_apply(const JournalApply *call, JournalApplied *result);
/* Inserts or deletes n rows or columns at `at`, which are within the limits of sheets; returns the sheet's last seq. */
extern int64 journal_restructure(int64 sheet_id, EditKind kind, uint32 at, uint32 n, uint64 uid);
/* The highest operation of a client that has landed; 0 when none is known. */
extern int64 journal_landed(int64 sheet_id, int64 uid, int64 client);
/*
 * The new owner's claim: later applies with a lower epoch are refused (SF001). Sets the last seq. Returns false, and
 * does nothing, when another transaction holds the sheet and nowait is set.
 */
extern bool journal_claim(int64 sheet_id, int64 epoch, const char *holder, bool nowait, int64 *last_seq);
/* The owner gives the sheet back: the next claim takes it over from nobody. False when it cannot be noted now, since
 * somebody has the sheet lock, which is not waited for, or when the epoch is not the highest. */
extern bool journal_release(int64 sheet_id, int64 epoch);
/* Forgets the epochs of all sheets, after the coordinator has begun anew with low ones. No gateway may be running. */
extern void journal_reset_epochs(void);
/* Opens log 1 of a new sheet and appends its EDIT_RESIZE record. */
extern void journal_create(int64 sheet_id, uint64 uid, uint32 rows, uint32 cols);
/* Removes the edits and versions before a version, which is the oldest from then on; returns the number of edits. */
extern int64 journal_trim(int64 sheet_id, int64 version_id, uint64 uid);
/* Removes every stored trace of the sheet; readers and followers see an empty, unknown sheet. */
extern void journal_purge(int64 sheet_id);

/* ---- read: the cells that the caller's snapshot sees ---- */
typedef struct JournalView
{
	int64 seq; /* of the last edit that is seen */
	uint32 rows, cols;
	TimestampTz at; /* of a version */
} JournalView;
/* Who takes the cells, row by row, some at a time. The texts are valid during the call, which must not call back into
 * the journal (it may run under the entry's lock). */
typedef struct JournalSink
{
	void (*begin)(void *arg); /* the first cells follow; once more when the sheet has changed: those before are void */
	void (*cells)(void *arg, const GridCell *cells, uint32 count);
	void *arg;
} JournalSink;
/* Gives the cells of the inclusive rectangle to the sink; without one, the view alone is wanted. fresh: the function is
 * volatile, a new snapshot may be taken in READ COMMITTED. */
extern void journal_read(int64 sheet_id, const uint32 rect[4] /* row0 col0 row1 col1, or NULL for all */, bool fresh,
						 JournalView *view, const JournalSink *sink);
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
/* Stored batches with last_seq > since, oldest first, at most about max_bytes (at least one batch); NULL if there are
 * none. 22023 if edits after `since` were trimmed. */
extern bytea *journal_tail(int64 sheet_id, int64 since, Size max_bytes, int64 *last_seq);

/* ---- versions ---- */
extern int64 journal_commit(int64 sheet_id, uint64 uid, const char *label, int64 epoch);  /* SN001: nothing to commit */
extern int64 journal_rollback(int64 sheet_id, int64 version_id, uint64 uid, int64 epoch); /* returns the new version */

/* ---- versions that the background worker makes (autoversion.c) ---- */
typedef struct JournalVersionCall
{
	int64 sheet_id;
	int64 seq; /* a version from this one on is all that is asked for */
	CkptCause cause;
	int interval_ms; /* between the sheet's last version and this one, at least */
} JournalVersionCall;

typedef enum JournalVersion
{
	JOURNAL_VERSION_MADE,
	JOURNAL_VERSION_NEEDLESS, /* there is a version already, or no sheet */
	JOURNAL_VERSION_EARLY	  /* not before *due */
} JournalVersion;

/* Makes a version of what is committed. The caller's transaction must do nothing else, and commit at once: from
 * *locked_at until then writers of the sheet wait. */
extern JournalVersion journal_save_version(const JournalVersionCall *call, TimestampTz *due, TimestampTz *locked_at);
/* Ids of sheets greater than `after`, in their order. */
extern int64 *journal_list_sheets(int64 after, int limit, int *count);
/* Has the sheet so many edits since its last version, or so many bytes of them before compression? 0: however many. */
extern bool journal_log_is_long(int64 sheet_id, int64 edits, int64 bytes, int64 *last_seq);

/* ---- for functions that change the sheet's own row ---- */
/* Takes the sheet lock until the end of the transaction: no edit of the sheet can be under way in another one. */
extern void journal_lock_sheet(int64 sheet_id);
/* At commit, drops what shared memory knows of the sheet (its row's state included). Takes the sheet lock. Call it
 * before changing the sheet's rows. */
extern void journal_forget(int64 sheet_id);

/* The allocator of the current memory context, for private grids. */
extern GridAllocator journal_context_allocator(void);

#endif
