/*
 * fsck.h - checks a sheet's log and versions against each other, and restores what can be rebuilt; see fsck.c.
 */
#ifndef FSCK_H
#define FSCK_H

#include "postgres.h"
#include "lib/stringinfo.h"

typedef enum FsckSeverity
{
	FSCK_INFO,	  /* nothing is wrong */
	FSCK_WARNING, /* something was missing that follows from the rest */
	FSCK_ERROR	  /* content is damaged or lost */
} FsckSeverity;

/* One finding. what and place are valid during the call. */
typedef void (*FsckReportFn)(void *arg, int64 sheet_id, FsckSeverity severity, const char *what, const char *place,
							 bool repaired);

typedef struct FsckCall
{
	int64 sheet_id;
	bool full;
	bool repair;
	bool clients; /* also what is noted of the sheet's clients of protocol v2 (fsck_clients.c) */
	FsckReportFn report;
	void *arg;
} FsckCall;

/*
 * Checks one sheet; returns the number of findings. Brief: segment_id = version_id + 1, seq gapless, sealed logs end in
 * a commit, every sealed log has its checkpoint. Full: also every record decodes, every edit's old content is what the
 * log says, every checkpoint is the replay of its logs, byte for byte. With repair, what can be derived from the log is
 * written again; only a sheet with findings is locked for that, to the end of the transaction.
 */
extern int fsck_sheet(const FsckCall *call);

/* The next sheet behind *after, into *after; also one of which nothing is left but notes of clients. False: none. */
extern bool fsck_next_sheet(int64 *after);

extern int64 fsck_count_sheets(int64 after);

/* What was found in a sheet, as text: a line for each finding, as many as fit a message. */
typedef struct FsckSummary
{
	int findings, repaired;
	StringInfoData lines;
} FsckSummary;

/* Checks the sheet of the call, whose report is not used. The lines are of the current memory context. */
extern void fsck_summarize(const FsckCall *call, FsckSummary *summary);

#endif
