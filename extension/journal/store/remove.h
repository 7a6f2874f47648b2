/* remove.h - deleting rows of the journal's relations: purge, trim, repair; see remove.c. */
#ifndef REMOVE_H
#define REMOVE_H

#include "postgres.h"
#include "journal/store/storage.h"

/* Is the scan's current row to be deleted? */
typedef bool (*RemoveFilter)(StorageScan *scan, const void *arg);

/* Deletes a sheet's rows that the filter (NULL: none) lets pass; returns their number. The caller holds the sheet lock.
 */
extern int64 remove_rows(StorageTable table, int64 sheet_id, RemoveFilter filter, const void *arg);
/* The same for rows within the keys' bounds, in their order. Looks at *most rows, and takes their number off *most. */
extern int64 remove_some_rows(StorageTable table, const StorageKey *keys, int nkeys, RemoveFilter filter,
							  const void *arg, int *most);

#endif
