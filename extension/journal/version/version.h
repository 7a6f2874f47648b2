/*
 * version.h - sealing the open log as a version; see version.c.
 */
#ifndef VERSION_H
#define VERSION_H

#include "journal/store/version_store.h"
#include "support/ckptqueue.h"
#include "journal/write/writer.h"

/* Who makes a version, and why. */
typedef struct VersionNote
{
	uint64 uid;		   /* 0: nobody */
	const char *label; /* NULL: none */
	int64 epoch;	   /* 0: none */
	CkptCause cause;
} VersionNote;

/*
 * Appends the commit record, opens the next log and stores the version, whose number is returned. The grid has the
 * tiles that the open log has touched, as they are now, and the sheet's extent and axes; the digest is of all cells.
 */
extern int64 version_seal(WriterSheet *ws, const VersionNote *note, const Grid *grid, uint64 digest, TileSet *tiles);

#endif
