/* log_check.h - verifies every page and record of a table; see log_check.c. */
#ifndef LOG_CHECK_H
#define LOG_CHECK_H

#include "postgres.h"
#include "storage/block.h"
#include "storage/off.h"
#include "utils/rel.h"

/* offset: InvalidOffsetNumber when it is about the page. */
typedef void (*LogReportFn)(void *arg, BlockNumber block, OffsetNumber offset, const char *what);

/* Reports each damage that is found. The relation is locked by the caller. */
extern void log_verify(Relation rel, LogReportFn report, void *arg);

#endif
