/*
 * log_resume.c - see log_resume.h. A table in shared memory with one place for each hash of a relation's file: the last
 * page that is told of has it. Without shared_preload_libraries pages are walked.
 *
 * Every change of a page whose relation is WAL-logged gives it an LSN that no page of this file had before. Pages of
 * other relations, and of one whose file is new in this transaction (wal_level = minimal), keep the LSN that they have:
 * of them nothing is noted, and nothing is asked. A file that gets the number of another finds what was noted of that
 * one, with LSNs that its own pages never have.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "compat.h"
#include "am/table/log_resume.h"
#include "miscadmin.h"
#include "storage/shmem.h"
#include "storage/spin.h"

#define LOG_RESUMES 256

typedef struct LogResume
{
	slock_t lock;
	Oid database;
	Oid relfilenode;
	XLogRecPtr lsn; /* of the page; 0: the place is free */
	OffsetNumber rows;
	TransactionId run_xid;
	CommandId run_cid;
} LogResume;

static LogResume *log_resumes = NULL;

Size
log_resume_shmem_size(void)
{
	return MAXALIGN(mul_size(sizeof(LogResume), LOG_RESUMES));
}

void
log_resume_shmem_startup(void)
{
	bool found;

	log_resumes = ShmemInitStruct("pg_sheet resumes", log_resume_shmem_size(), &found);
	if (found)
		return;
	memset(log_resumes, 0, log_resume_shmem_size());
	for (int i = 0; i < LOG_RESUMES; i++)
		SpinLockInit(&log_resumes[i].lock);
}

/* The relation's place; NULL when nothing is remembered of it. */
static LogResume *
log_resume_lock(Relation rel)
{
	LogResume *place;

	if (log_resumes == NULL || !RelationNeedsWAL(rel))
		return NULL;
	place = &log_resumes[murmurhash32(compat_relfilenode(rel)) % LOG_RESUMES];
	SpinLockAcquire(&place->lock);
	return place;
}

bool
log_resume(Relation rel, Page page, LogAppend *append)
{
	LogResume *place = log_resume_lock(rel);
	LogResume found = {0};

	if (place != NULL)
	{
		found = *place;
		SpinLockRelease(&place->lock);
	}
	if (found.lsn == 0 || found.lsn != PageGetLSN(page) || found.relfilenode != compat_relfilenode(rel) ||
		found.database != MyDatabaseId)
		return log_append_begin(append, page);
	return log_append_resume(append, page, found.rows, found.run_xid, found.run_cid);
}

void
log_resume_note(Relation rel, const LogAppend *append)
{
	LogResume *place = log_resume_lock(rel);

	if (place == NULL)
		return;
	place->database = MyDatabaseId;
	place->relfilenode = compat_relfilenode(rel);
	place->lsn = PageGetLSN(append->page);
	place->rows = append->rows;
	place->run_xid = append->run_xid;
	place->run_cid = append->run_cid;
	SpinLockRelease(&place->lock);
}
