/*
 * log_extend.c - see log_extend.h.
 *
 * PostgreSQL 15 extends a file by writing a page of zeros for each new one, which costs a batch of edits more than the
 * pages that it writes afterwards. Here the file system is asked for the place of all of them (posix_fallocate, as
 * PostgreSQL does from 16 on), so that a full disk shows now and not when a checkpoint writes the pages. The last page
 * is then extended PostgreSQL's way, which sees to the file's next fsync and to the sizes that are remembered.
 */
#include "am/page/log_extend.h"

#include <fcntl.h>
#include <unistd.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"
#include "utils/wait_event.h"

/* The name of the file that has the block; the first one of a relation has no number. */
static char *
extend_file(SMgrRelation smgr, BlockNumber block)
{
	char *path = relpath(smgr->smgr_rnode, MAIN_FORKNUM);

	return block < RELSEG_SIZE ? path : psprintf("%s.%u", path, block / RELSEG_SIZE);
}

/* Gives blocks of one file, from `begin` to before `end`, their place; false when the file system cannot. */
static bool
extend_allocate(SMgrRelation smgr, BlockNumber begin, BlockNumber end)
{
	char *path = extend_file(smgr, begin);
	int fd = OpenTransientFile(path, O_RDWR | PG_BINARY);
	int code;

	if (fd < 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not open file \"%s\": %m", path)));
	pgstat_report_wait_start(WAIT_EVENT_DATA_FILE_EXTEND);
	do
		code = posix_fallocate(fd, (off_t) (begin % RELSEG_SIZE) * BLCKSZ, (off_t) (end - begin) * BLCKSZ);
	while (code == EINTR);
	pgstat_report_wait_end();
	CloseTransientFile(fd);
	/* Either of them, whatever the C library and the file system. */
	if (code == EINVAL || code == EOPNOTSUPP)
		return false;
	errno = code;
	if (code != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not extend file \"%s\": %m", path),
						errhint("Check free disk space.")));
	return true;
}

/*
 * Makes the file that has the block `begin` longer, up to `end` or its largest size, but by one page where no place can
 * be reserved. Returns where it ends.
 */
static BlockNumber
extend_segment(SMgrRelation smgr, BlockNumber begin, BlockNumber end)
{
	static const PGAlignedBlock zeros;
	BlockNumber last = Min(end, (begin / RELSEG_SIZE + 1) * RELSEG_SIZE) - 1;

	/* The first page of a file is what makes it. */
	if (begin % RELSEG_SIZE == 0 || begin == last || !extend_allocate(smgr, begin, last))
		last = begin;
	smgrextend(smgr, MAIN_FORKNUM, last, (char *) zeros.data, false);
	return last + 1;
}

void
log_extend(Relation rel, BlockNumber wanted)
{
	BlockNumber blocks;

	LockRelationForExtension(rel, ExclusiveLock);
	blocks = RelationGetNumberOfBlocks(rel);
	while (blocks < wanted)
		blocks = extend_segment(RelationGetSmgr(rel), blocks, wanted);
	UnlockRelationForExtension(rel, ExclusiveLock);
}
