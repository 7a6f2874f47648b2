/*
 * snapshot.h - whole sheets in the form of protocol v1, read once and shared by their readers; see snapshot.c.
 */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include "support/buf.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* A part of a text. Constant while its snapshot is pinned. */
typedef struct SnapshotPiece
{
	struct SnapshotPiece *next;
	size_t len;
	char data[];
} SnapshotPiece;

typedef struct SnapshotText
{
	SnapshotPiece *first;
	SnapshotPiece **last;
	size_t len;
} SnapshotText;

typedef struct SnapshotKey
{
	int64_t sheet_id;
	int64_t version; /* 0: the present state */
} SnapshotKey;

/* A state of a sheet. Constant once complete. */
typedef struct Snapshot
{
	SnapshotKey key;
	int64_t seq;
	uint32_t rows, cols;
	char at[40];		  /* when the version was made; "" of the present state */
	SnapshotText content; /* "a","b",... of each cell, row by row */
	SnapshotText styles;  /* {"row":..,"col":..,"info":..},... */
	LIST_HEAD(, SnapshotReader) readers;
	int pins;						 /* 0: kept for SNAPSHOT_STAY_MS at most */
	struct SnapshotReading *reading; /* NULL: it is complete */
	struct Snapshot *next;			 /* of all that are in memory, newest first */
	int64_t account;				 /* that the memory is charged to */
	size_t bytes;
	uint64_t began; /* ms */
	uint64_t left;	/* ms: when it was unpinned last */
	bool outdated;	/* not given to new readers */
} Snapshot;

typedef enum SnapshotStatus
{
	SNAPSHOT_READY,
	SNAPSHOT_FAILED,	/* the database has refused, or does not answer: see res, which may be NULL */
	SNAPSHOT_MALFORMED, /* the cells do not decode */
	SNAPSHOT_TOO_LARGE, /* for protocol v1, or for snapshot-bytes */
	SNAPSHOT_BUSY		/* too many are being read, or in memory */
} SnapshotStatus;

/* snapshot: only with SNAPSHOT_READY; the callee pins it to keep it. res: only with SNAPSHOT_FAILED. */
typedef void (*SnapshotFn)(void *arg, SnapshotStatus status, Snapshot *snapshot, const PGresult *res);

/*
 * Gets a snapshot that contains everything committed before the call, and calls fn, perhaps at once. The caller has
 * checked that the account may read the sheet. cells: about how many it has; 0: not known.
 */
extern void snapshot_ask(const SnapshotKey *key, int64_t account, uint64_t cells, SnapshotFn fn, void *arg);
extern void snapshot_pin(Snapshot *snapshot);
extern void snapshot_unpin(Snapshot *snapshot); /* snapshot may be NULL */

/*
 * A reader that takes a text piece by piece. It pins the snapshot. end: called when the reader was too slow and others
 * need the memory; it must call snapshot_reader_end().
 */
typedef struct SnapshotReader
{
	Snapshot *snapshot; /* NULL: the reader is not in use */
	const SnapshotPiece *piece;
	size_t offset;
	void (*end)(void *arg);
	void *arg;
	LIST_ENTRY(SnapshotReader) entry; /* in the snapshot */
} SnapshotReader;

extern void snapshot_reader_begin(SnapshotReader *reader, Snapshot *snapshot, const SnapshotText *text,
								  void (*end)(void *arg), void *arg);
/* Takes the next bytes, `most` at most. Returns their number, 0 at the end. */
extern size_t snapshot_reader_take(SnapshotReader *reader, size_t most, const char **data);
extern void snapshot_reader_end(SnapshotReader *reader);

/* Appends a whole text. */
extern void snapshot_put_text(Buf *to, const SnapshotText *text);

/* Events were lost; another server may have other edits at the same seqs. */
extern void snapshot_invalidate_all(void);
/* Called once a second. */
extern void snapshot_tick(void);
/* For /metrics. */
extern void snapshot_print(Buf *buf);

#endif
