/*
 * trim.h - sheets whose oldest edits and versions have been removed; see trimmark.c, and trim.c for the removal.
 */
#ifndef TRIM_H
#define TRIM_H

#include "postgres.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

/* Where a sheet's history begins: with this version, whose cells are what its tiles hold. */
typedef struct TrimMark
{
	int64 version_id; /* 0: with log 1 */
	int64 seq;		  /* of that version; edits up to it are not there */
	TimestampTz at;
} TrimMark;

extern void trim_mark(int64 sheet_id, Snapshot snapshot, TrimMark *mark);
/* 42704: there is no such version or log, or it has been trimmed. */
extern void trim_no_version(int64 sheet_id, int64 version_id, Snapshot snapshot) pg_attribute_noreturn();
extern void trim_no_log(int64 sheet_id, int64 segment_id, Snapshot snapshot) pg_attribute_noreturn();
/* For a time before all that is kept: 42704, unless the sheet was not made yet. */
extern void trim_check_past(int64 sheet_id, TimestampTz at, Snapshot snapshot);
/* 22023 when edits after since are not there any more: whoever asks needs the cells. */
extern void trim_check_since(int64 sheet_id, int64 since, Snapshot snapshot);
extern void trim_store(int64 sheet_id, int64 version_id, int64 seq, uint64 uid);
/* For the purge of a sheet. */
extern void trim_forget(int64 sheet_id);

#endif
