/*
 * replay_find.h - where a replay begins and ends: a sheet's versions, its open log, its newest edit; see replay_find.c.
 */
#ifndef REPLAY_FIND_H
#define REPLAY_FIND_H

#include "postgres.h"
#include "common/edit_codec.h"
#include "utils/snapshot.h"

#define REPLAY_NEWEST PG_INT64_MAX

/* The newest edit of a sheet: of its newest batch, or when all batches are trimmed, of its newest version. */
typedef struct ReplayLast
{
	bool found;
	int64 last_seq;
	int64 last_at;		/* of its last edit, microseconds since the Unix epoch */
	uint64 writer_fxid; /* 0: visible to all */
} ReplayLast;

/* A version's row. */
typedef struct ReplayVersion
{
	int64 version_id;
	int64 seq;
	int64 at; /* TimestampTz */
	uint32 rows, cols;
	int32 tiles;
	int64 digest;
	uint32 cause; /* VersionCause */
	bytea *axes;  /* as they are stored; NULL: the identity */
} ReplayVersion;

extern void replay_last(int64 sheet_id, Snapshot snapshot, ReplayLast *last);
/* The open log; false when the sheet has no log at all. */
extern bool replay_open_log(int64 sheet_id, Snapshot snapshot, int64 *segment_id, int64 *first_seq);
/* The newest version with version_id <= max_cid; false when there is none. */
extern bool replay_find_version(int64 sheet_id, int64 max_cid, Snapshot snapshot, ReplayVersion *version);
/* The newest version with seq <= until; version 0, an empty sheet of one cell, when there is none. */
extern void replay_find_version_at(int64 sheet_id, int64 until, Snapshot snapshot, ReplayVersion *version);

/* ERRCODE_DATA_CORRUPTED with the place and a hint to sheet.fsck. */
extern void replay_corrupted(int64 sheet_id, const char *what, int64 place, EditError error) pg_attribute_noreturn();

#endif
