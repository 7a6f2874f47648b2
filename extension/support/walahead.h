/*
 * walahead.h - the next file of the server's log is there before it is needed; see walahead.c.
 */
#ifndef WALAHEAD_H
#define WALAHEAD_H

#include "postgres.h"
#include "access/xlogdefs.h"

extern Size walahead_shmem_size(void);
extern void walahead_shmem_startup(void); /* under AddinShmemInitLock */

/* A commit's record ends here: the launcher is woken when the next file should be made. No allocation, no error. */
extern void walahead_note(XLogRecPtr end);
/* The launcher: makes what has been asked for. */
extern void walahead_make(void);

#endif
