/*
 * history.h - the rows of a sheet's versions and segments, and its newest edit; see history.c.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include "postgres.h"
#include "common/edit_codec.h"
#include "utils/snapshot.h"

#define HISTORY_NEWEST PG_INT64_MAX

/* The newest edit of a sheet: of its newest batch, or if all batches were trimmed, of its newest version. */
typedef struct HistoryLast
{
	bool found;
	int64 last_seq;
	int64 last_at;		/* its time, microseconds since the Unix epoch */
	uint64 writer_fxid; /* 0: visible to all */
} HistoryLast;

/* A row of sheet.version. */
typedef struct HistoryVersion
{
	int64 version_id;
	int64 seq;
	int64 at; /* TimestampTz */
	uint32 rows, cols;
	int32 tiles;
	int64 digest;
	uint32 cause; /* VersionCause */
	bytea *maps;  /* as stored; NULL: the identity */
} HistoryVersion;

extern void history_last_edit(int64 sheet_id, Snapshot snapshot, HistoryLast *last);
/* The open segment; false if the sheet has no segment. */
extern bool history_open_segment(int64 sheet_id, Snapshot snapshot, int64 *segment_id, int64 *first_seq);
/* The newest version up to max_id; false if there is none. */
extern bool history_find_version(int64 sheet_id, int64 max_id, Snapshot snapshot, HistoryVersion *version);
/* The newest version with seq <= until; version 0, an empty sheet of one cell, if there is none. */
extern void history_version_at(int64 sheet_id, int64 until, Snapshot snapshot, HistoryVersion *version);

/* Stores the row that opens a segment. at: microseconds since the Unix epoch. */
extern void history_store_segment(int64 sheet_id, int64 segment_id, int64 first_seq, int64 at);
extern void history_delete_segment(int64 sheet_id, int64 segment_id);

/* ERRCODE_DATA_CORRUPTED, naming `what` and its number, with a hint to sheet.fsck. */
_Noreturn extern void history_corrupted(int64 sheet_id, const char *what, int64 number, EditError error);

#endif
