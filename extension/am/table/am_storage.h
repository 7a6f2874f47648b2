/* am_storage.h - files of a table: new, truncated, copied, rewritten; its size; see am_storage.c. */
#ifndef AM_STORAGE_H
#define AM_STORAGE_H

#include "postgres.h"
#include "access/tableam.h"
#include "compat.h"

extern void am_storage_new(Relation rel, const CompatFileLocator *file, char persistence, TransactionId *freeze_xid,
						   MultiXactId *minmulti);
extern void am_storage_truncate(Relation rel);
extern void am_storage_copy(Relation rel, const CompatFileLocator *file);
extern void am_storage_rewrite(Relation from, Relation to, Relation index, bool use_sort, TransactionId oldest_xmin,
							   TransactionId *xid_cutoff, MultiXactId *multi_cutoff, double *live, double *removed,
							   double *recently_dead);
extern void am_storage_estimate(Relation rel, int32 *attr_widths, BlockNumber *pages, double *tuples,
								double *allvisfrac);

/* VACUUM; see am_vacuum.c. */
struct VacuumParams;
extern void am_vacuum(Relation rel, struct VacuumParams *params, BufferAccessStrategy strategy);

#endif
