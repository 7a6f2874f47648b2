/*
 * version.h - sealing the open log as a version; see version.c.
 */
#ifndef VERSION_H
#define VERSION_H

#include "checkpoint.h"
#include "ckptqueue.h"
#include "writer.h"

/* Who makes a version, and why. */
typedef struct VersionNote
{
	uint64 uid;		   /* 0: nobody */
	const char *label; /* NULL: none */
	int64 epoch;	   /* 0: none */
	CkptCause cause;
} VersionNote;

/* The tiles that edits after `since` and up to `until` have touched. */
extern TileSet *version_touched_tiles(int64 sheet_id, int64 since, int64 until, Snapshot snapshot);

/*
 * Appends the commit record, opens the next log and stores the version, whose number is returned. The grid is the
 * sheet's present state, the tiles those that the open log has touched.
 */
extern int64 version_seal(WriterSheet *ws, const VersionNote *note, const Grid *grid, TileSet *tiles);

#endif
