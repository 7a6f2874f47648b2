/* am_verify.h - verifies every page and record of a table; see am_verify.c. */
#ifndef AM_VERIFY_H
#define AM_VERIFY_H

#include "postgres.h"
#include "storage/block.h"
#include "storage/off.h"
#include "utils/rel.h"

/* offset: InvalidOffsetNumber when it is about the page. */
typedef void (*AmReportFn)(void *arg, BlockNumber block, OffsetNumber offset, const char *what);

/* Reports each damage that is found. The relation is locked by the caller. */
extern void am_verify(Relation rel, AmReportFn report, void *arg);

#endif
