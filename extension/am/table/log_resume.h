/*
 * log_resume.h - where appending to a page goes on, in shared memory.
 *
 * Who appends to a page must know how many rows it has, and the run that it ends with. Finding that out is a walk over
 * its records, under the page's lock, and would be a fifth of a transaction with a single edit. So whoever has appended
 * leaves it here, with the LSN of the page. A page of that LSN is as it was left, whoever asks.
 */
#ifndef LOG_RESUME_H
#define LOG_RESUME_H

#include "postgres.h"
#include "am/page/log_page.h"
#include "utils/rel.h"

extern Size log_resume_shmem_size(void);
extern void log_resume_shmem_startup(void); /* under AddinShmemInitLock */

/* The state of a page of the relation, which is locked exclusively; false when the page is damaged. */
extern bool log_resume(Relation rel, Page page, LogAppend *append);

/* Rows have been added, and the page has the LSN of the record that says so. It is still locked. */
extern void log_resume_note(Relation rel, const LogAppend *append);

#endif
