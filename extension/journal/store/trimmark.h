/*
 * trimmark.h - where the history of a trimmed sheet begins; see trimmark.c. The trim itself is in version/trim.c.
 */
#ifndef TRIMMARK_H
#define TRIMMARK_H

#include "postgres.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

/* The history begins with this version, whose cells are in its tiles. */
typedef struct TrimMark
{
	int64 version_id; /* 0: the sheet was not trimmed */
	int64 seq;		  /* of that version; edits up to it have been removed */
	TimestampTz at;
} TrimMark;

extern void trim_mark(int64 sheet_id, Snapshot snapshot, TrimMark *mark);
/* 42704: the version does not exist, or was trimmed. */
_Noreturn extern void trim_no_version(int64 sheet_id, int64 version_id, Snapshot snapshot);
/* 42704 if the sheet's cells at that time, before all that is stored, were trimmed; returns if it did not exist yet. */
extern void trim_check_past(int64 sheet_id, TimestampTz at, Snapshot snapshot);
/* 22023 if edits after `since` have been removed: the caller must read the cells. */
extern void trim_check_since(int64 sheet_id, int64 since, Snapshot snapshot);
extern void trim_store(int64 sheet_id, int64 version_id, int64 seq, uint64 uid);
/* For the purge of a sheet. */
extern void trim_forget(int64 sheet_id);

#endif
