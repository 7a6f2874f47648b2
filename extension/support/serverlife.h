/*
 * serverlife.h - how the server's life before this one ended, and which sheets have been opened in this one; see
 * serverlife.c. Needs shared memory: without it every life is in order.
 */
#ifndef SERVERLIFE_H
#define SERVERLIFE_H

#include "postgres.h"

extern Size server_life_shmem_size(void);
extern void server_life_shmem_startup(void); /* under AddinShmemInitLock */

/* Did the last life end without a shutdown? The end of a standby's is none either. */
extern bool server_life_is_after_crash(void);
/* The rest is for lives after a crash. */

/* Has this life written what has this full transaction id? 0, visible to all, is of before. The first call must come
 * before this life writes any sheet. */
extern bool server_life_has_written(uint64 fxid);
/* Sheets of this database. One may put another out, which is not remembered then. */
extern void server_life_remember(int64 sheet_id);
extern bool server_life_remembers(int64 sheet_id);

#endif
