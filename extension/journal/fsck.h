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

/*
 * Checks what is noted of the sheet's clients of protocol v2 (fsck_clients.c); returns the number of findings. With
 * repair it takes the sheet lock, and deletes rows of accounts that are gone. The other one: there is no such sheet,
 * but rows of it.
 */
extern int fsck_clients(int64 sheet_id, bool repair, FsckReportFn report, void *arg);
extern int fsck_clients_without_sheet(int64 sheet_id, bool repair, FsckReportFn report, void *arg);

#endif
