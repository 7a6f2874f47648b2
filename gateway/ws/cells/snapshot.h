/*
 * snapshot.h - whole sheets as protocol v1 tells them, read once and shared by all who are told; see snapshot.c.
 */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include "support/buf.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a text: as long as its snapshot is held. */
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

/* A state of a sheet. It does not change once it is given to somebody. */
typedef struct Snapshot
{
	SnapshotKey key;
	int64_t seq;
	uint32_t rows, cols;
	char at[40];		  /* when the version was made; "" of the present state */
	SnapshotText content; /* "a","b",... of each cell, row by row */
	SnapshotText styles;  /* {"row":..,"col":..,"info":..},... */
	struct SnapshotReader *readers;
	int holders;					 /* 0: it waits for somebody else, for a moment */
	struct SnapshotReading *reading; /* NULL: it is complete */
	struct Snapshot *next;			 /* of all that are in memory, newest first */
	int64_t account;				 /* on whose behalf it was read */
	size_t bytes;
	uint64_t began; /* ms */
	uint64_t left;	/* ms: since when nobody holds it */
	bool doubted;	/* nobody new gets it */
} Snapshot;

typedef enum SnapshotStatus
{
	SNAPSHOT_READY,
	SNAPSHOT_FAILED,	/* the database has refused, or does not answer: res tells, or is NULL */
	SNAPSHOT_MALFORMED, /* the cells do not decode */
	SNAPSHOT_TOO_LARGE, /* for protocol v1, or for snapshot-bytes */
	SNAPSHOT_BUSY		/* too many are being read, or in memory */
} SnapshotStatus;

/* snapshot: of SNAPSHOT_READY; it is the callee's to hold. res: of SNAPSHOT_FAILED. */
typedef void (*SnapshotFn)(void *arg, SnapshotStatus status, Snapshot *snapshot, const PGresult *res);

/*
 * The sheet as of now, or as of its version: what was committed before the call is in it. Whether the account may see
 * it is the caller's to know. cells: how many it has, about; 0: that is not known. fn is called, perhaps at once.
 */
extern void snapshot_ask(const SnapshotKey *key, int64_t account, uint64_t cells, SnapshotFn fn, void *arg);
extern void snapshot_hold(Snapshot *snapshot);
extern void snapshot_release(Snapshot *snapshot); /* NULL: nothing */

/*
 * Somebody who takes a text piece by piece. end: he has to give the snapshot up, since he has held it for long and
 * there is no room for others'; what he has taken stays cut short.
 */
typedef struct SnapshotReader
{
	Snapshot *snapshot; /* held; NULL: the reader is not in use */
	const SnapshotPiece *piece;
	size_t offset;
	void (*end)(void *arg);
	void *arg;
	struct SnapshotReader *next, **place; /* of the snapshot */
} SnapshotReader;

extern void snapshot_reader_begin(SnapshotReader *reader, Snapshot *snapshot, const SnapshotText *text,
								  void (*end)(void *arg), void *arg);
/* The next bytes, `most` of them at most; 0 at the end. */
extern size_t snapshot_reader_take(SnapshotReader *reader, size_t most, const char **data);
extern void snapshot_reader_end(SnapshotReader *reader);

/* A whole text. */
extern void snapshot_put_text(Buf *to, const SnapshotText *text);

/* Another server may have taken over, with other edits at the same seqs. */
extern void snapshot_doubt_all(void);
/* Once a second. */
extern void snapshot_tick(void);
/* For /metrics. */
extern void snapshot_print(Buf *buf);

#endif
