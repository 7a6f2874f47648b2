/*
 * log_extend.h - a file that grows by many pages at once.
 */
#ifndef LOG_EXTEND_H
#define LOG_EXTEND_H

#include "postgres.h"
#include "utils/rel.h"

/*
 * Makes the relation `wanted` blocks long, or finds that it is. New pages are zeros, have their place on the disk, and
 * are not in a buffer yet. Errors: what extending a file gives (ENOSPC: ERRCODE_DISK_FULL); then it may have grown by a
 * part.
 */
extern void log_extend(Relation rel, BlockNumber wanted);

#endif
