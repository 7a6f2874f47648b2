/* fsck_private.h - between the files of sheet.fsck: fsck.c, fsck_read.c, fsck_logs.c, fsck_replay.c, fsck_clients.c. */
#ifndef FSCK_PRIVATE_H
#define FSCK_PRIVATE_H

#include "postgres.h"
#include "journal/store/version_store.h"
#include "journal/fsck/fsck.h"
#include "grid/grid.h"
#include "journal/store/trimmark.h"
#include "utils/snapshot.h"

/* What storage holds of one log and of the version that its commit record makes. */
typedef struct FsckLog
{
	int64 segment_id;
	bool has_head, has_edits, has_version;
	bool sealed;		 /* ends in a commit record */
	bool broken;		 /* edits are missing or damaged */
	bool unrecorded;	 /* its commit record is lost (C1) */
	bool unopened;		 /* its commit did not open the next log (C2) */
	int64 head_seq;		 /* where its head says it begins */
	int64 first_seq;	 /* of its first batch */
	int64 last_seq;		 /* of its last batch */
	int64 last_batch;	 /* first_seq of its last batch */
	int64 last_at;		 /* of its last edit, microseconds since the Unix epoch */
	int64 version_seq;	 /* of the version's row */
	int32 version_tiles; /* that the version's row tells */
	int32 tiles;		 /* that are stored with it */
} FsckLog;

typedef struct Fsck
{
	int64 sheet_id;
	bool full;
	bool repair; /* the sheet lock is held */
	bool wrote;
	FsckReportFn report; /* NULL: findings are counted only */
	void *report_arg;
	int findings;
	bool mends; /* some of them can be repaired */
	Snapshot snapshot;
	TrimMark start; /* the history begins after this version */
	FsckLog *logs;	/* from segment_id start.version_id + 1 on */
	int nlogs, room;
	int64 newest_version; /* that is stored, of a log */
	bool want_replay;	  /* a version is missing, or not what it should be */
	/* while the rows are read */
	int64 newest;	  /* the log of the batch before ... */
	int64 expected;	  /* ... and the seq after it */
	bool has_start;	  /* the version with which the history begins is stored, or there is none */
	int64 stray_tile; /* a tile's version that has no log */
} Fsck;

/* mends: it follows from the rest, and with fsck->repair it has been written again. */
extern void fsck_report(Fsck *fsck, FsckSeverity severity, bool mends, const char *place, const char *what);
/* Something is about to be written: not where nothing may be. */
extern void fsck_before_write(Fsck *fsck);
/* Something was written: from here on it is seen. */
extern void fsck_written(Fsck *fsck);

/* Where something was found. */
extern char *fsck_log_place(int64 segment_id);
extern char *fsck_seq_place(int64 segment_id, int64 seq);
extern char *fsck_version_place(int64 version_id);
/* The log of that number, made when it is not there yet; NULL when it cannot be one. */
extern FsckLog *fsck_get_log(Fsck *fsck, int64 segment_id);
/* fsck_read.c: what is stored of each log. */
extern void fsck_read_logs(Fsck *fsck);
/* fsck_logs.c: commit records, heads and versions of all logs; mends what follows from them. */
extern void fsck_check_logs(Fsck *fsck);
/* fsck_replay.c: replays the logs, and compares each version with them. */
extern void fsck_replay(Fsck *fsck);
/* fsck_clients.c: what is noted of clients of the sheet, or of one that is gone. */
extern void fsck_check_clients(Fsck *fsck, bool exists);

#endif
