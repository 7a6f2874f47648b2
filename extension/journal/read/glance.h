/* glance.h - what a list shows of a sheet, at a cost that does not depend on its history; see glance.c. */
#ifndef GLANCE_H
#define GLANCE_H

#include "postgres.h"
#include "datatype/timestamp.h"
#include "utils/snapshot.h"

/* Its last edit, or its newest version when all edits have been trimmed; false when it has neither. */
extern bool glance_edited_at(int64 sheet_id, Snapshot snapshot, TimestampTz *at);
/* The number of its newest version (0: none), and its columns: those that the cache knows, else those of the version,
 * else `cols`. */
extern int64 glance_version(int64 sheet_id, Snapshot snapshot, uint32 *cols);

#endif
