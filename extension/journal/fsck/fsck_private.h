/* fsck_private.h - between the files of sheet.fsck: fsck.c calls fsck_versions.c, and both call fsck_segments.c. */
#ifndef FSCK_PRIVATE_H
#define FSCK_PRIVATE_H

#include "postgres.h"
#include "journal/fsck/fsck.h"
#include "journal/store/trimmark.h"
#include "utils/snapshot.h"

/* What is stored of one segment, and of the version that its commit record makes. */
typedef struct FsckSegment
{
	int64 segment_id;
	bool has_row, has_edits, has_version;
	bool sealed;		 /* ends in a commit record */
	bool broken;		 /* edits are missing or damaged */
	int64 row_seq;		 /* where its row says it begins */
	int64 first_seq;	 /* of its first batch */
	int64 last_seq;		 /* of its last batch */
	int64 last_batch;	 /* first_seq of its last batch */
	int64 last_at;		 /* of its last edit, microseconds since the Unix epoch */
	int64 version_seq;	 /* of the version's row */
	int32 version_tiles; /* number of tiles according to the version's row */
	int32 tiles;		 /* number of tiles that are stored */
} FsckSegment;

typedef struct Fsck
{
	int64 sheet_id;
	bool full;
	bool repair;		 /* the sheet lock is held */
	bool wrote;			 /* repairs were written */
	FsckReportFn report; /* NULL: findings are counted only */
	void *report_arg;
	int findings;
	bool mendable; /* some findings can be repaired */
	Snapshot snapshot;
	TrimMark start;		   /* the history begins after this version */
	FsckSegment *segments; /* from segment_id start.version_id + 1 on */
	int count, allocated;
	bool want_replay; /* a version is missing, or differs from its segment */
	/* while rows are read */
	int64 newest;	  /* segment of the previous batch */
	int64 expected;	  /* the seq after the previous batch */
	bool has_start;	  /* the version with which the history begins is stored, or there is none */
	int64 stray_tile; /* version of a tile that has no segment */
} Fsck;

/* ---- fsck_segments.c ---- */
/* Reports a finding. mendable: it follows from the rest of what is stored, and is repaired if fsck->repair is set. */
extern void fsck_report(Fsck *fsck, FsckSeverity severity, bool mendable, const char *place, const char *what);
/* To be called after each repair, so that the rest of the check sees it. */
extern void fsck_written(Fsck *fsck);
extern char *fsck_seq_place(int64 segment_id, int64 seq);
extern char *fsck_version_place(int64 version_id);
/* Reads what is stored of each segment. Checks and repairs commit records and segment rows. */
extern void fsck_check_segments(Fsck *fsck);

/* ---- fsck_versions.c ---- */
/* Replays the log, and compares and repairs each version. */
extern void fsck_check_versions(Fsck *fsck);

#endif
