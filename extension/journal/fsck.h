/*
 * fsck.h - checks a sheet's log and versions against each other, and restores what can be rebuilt; see fsck.c.
 */
#ifndef FSCK_H
#define FSCK_H

#include "postgres.h"

typedef enum FsckSeverity
{
	FSCK_INFO,	  /* nothing is wrong */
	FSCK_WARNING, /* something was missing that follows from the rest */
	FSCK_ERROR	  /* content is damaged or lost */
} FsckSeverity;

/* One finding. what and place are valid during the call. */
typedef void (*FsckReportFn)(void *arg, int64 sheet_id, FsckSeverity severity, const char *what, const char *place,
							 bool repaired);

/*
 * Checks one sheet; returns the number of findings. Brief: lid = cid + 1, seq gapless, sealed logs end in a commit,
 * every sealed log has its checkpoint. Full: also every record decodes, every edit's old content is what the
 * log says, every checkpoint is the replay of its logs, byte for byte. With repair, what can be derived from
 * the log is written again. Needs an SPI connection; with repair it takes the sheet lock.
 */
extern int fsck_sheet(int64 sheet_id, bool full, bool repair, FsckReportFn report, void *arg);

#endif
