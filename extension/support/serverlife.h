/* serverlife.h - how the server's previous life ended, and which sheets were opened in this one; see serverlife.c. */
#ifndef SERVERLIFE_H
#define SERVERLIFE_H

#include "postgres.h"

extern Size server_life_shmem_size(void);
extern void server_life_shmem_startup(void); /* under AddinShmemInitLock */

/* Returns whether the previous life, of a primary or a standby, ended without a shutdown; false without shared memory.
 */
extern bool server_life_is_after_crash(void);

/* ---- in a life after a crash ---- */

/* Returns whether this life has assigned the full transaction id (0, visible to all, is of an earlier life). Must be
 * called before this life writes any sheet. */
extern bool server_life_has_written(uint64 fxid);
/* Remembers an opened sheet of this database. Another sheet may take its place. */
extern void server_life_remember(int64 sheet_id);
extern bool server_life_remembers(int64 sheet_id);

#endif
