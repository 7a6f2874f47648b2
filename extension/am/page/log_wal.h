/*
 * log_wal.h - generic WAL records that are made by hand: who knows what is new on a page need not have it copied and
 * compared byte by byte, which GenericXLogFinish() does. Redo is the same.
 */
#ifndef LOG_WAL_H
#define LOG_WAL_H

#include "postgres.h"
#include "access/xloginsert.h"
#include "storage/bufpage.h"

/* A part of a page in a record: offset, length, bytes (see access/transam/generic_xlog.c). */
typedef struct LogFragment
{
	OffsetNumber head[2];
} LogFragment;

/* Of the page that is registered as the record's first one; the fragment lives until the record is inserted. */
static inline void
log_register_fragment(LogFragment *fragment, Page page, uint16 offset, uint16 length)
{
	fragment->head[0] = offset;
	fragment->head[1] = length;
	XLogRegisterBufData(0, (char *) fragment->head, sizeof(fragment->head));
	XLogRegisterBufData(0, (char *) page + offset, length);
}

#endif
