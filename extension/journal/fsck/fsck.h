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

/* Takes one finding. what and place are valid during the call. */
typedef void (*FsckReportFn)(void *arg, int64 sheet_id, FsckSeverity severity, const char *what, const char *place,
							 bool repaired);

typedef struct FsckCall
{
	int64 sheet_id;
	bool full;
	bool repair;
	bool clients; /* also check what is stored of the sheet's clients of protocol v2 */
	FsckReportFn report;
	void *arg;
} FsckCall;

/*
 * Checks one sheet and returns the number of findings. Brief: segments follow each other, seqs have no gaps, every
 * segment but the newest ends in a commit record and has its version. Full: also every record decodes, every edit's old
 * content is what the log has before it, and every version is the replay of its segments, byte for byte. With repair,
 * what can be derived is written again. Only a sheet with findings is locked for that, to the end of the transaction.
 */
extern int fsck_sheet(const FsckCall *call);

/* Finds the next sheet after *after, and stores its id there. Includes sheets of which only clients are left. */
extern bool fsck_next_sheet(int64 *after);

extern int64 fsck_count_sheets(int64 after);

/* The findings of a sheet as text: a line for each, as many as fit into a message. */
typedef struct FsckSummary
{
	int findings, repaired;
	StringInfoData lines; /* in the memory context of the call */
} FsckSummary;

/* Checks the sheet of the call, whose report function is not used. */
extern void fsck_summarize(const FsckCall *call, FsckSummary *summary);

#endif
