/*
 * property_store.h - the stored properties of a sheet, at present and of versions; see property_store.c.
 */
#ifndef PROPERTY_STORE_H
#define PROPERTY_STORE_H

#include "postgres.h"
#include "common/properties.h"
#include "utils/snapshot.h"

/* An empty set in the current memory context, which raises an error if it has no memory. */
extern void property_store_init(Properties *set);
/* The sheet's properties that the snapshot sees, as stored; NULL if there are none. In the current memory context. */
extern bytea *property_store_read(int64 sheet_id, Snapshot snapshot);
/* Those of a version; NULL also if the version does not exist. */
extern bytea *property_store_read_version(int64 sheet_id, int64 version_id, Snapshot snapshot);
/* Replaces the sheet's properties. Caller must hold the sheet lock, and make the change visible (CCI). */
extern void property_store_write(int64 sheet_id, const Properties *set);

/* As stored; NULL for an empty set. */
extern bytea *property_store_encode(const Properties *set);
/* Adds stored properties (NULL: none) to an empty set. Returns false if they are damaged. */
extern bool property_store_try_decode(const bytea *bytes, Properties *set);
/* The same; raises ERRCODE_DATA_CORRUPTED. */
extern void property_store_decode(int64 sheet_id, const bytea *bytes, Properties *set);
/* Their part in the digest of a version; 0 for NULL. */
extern uint64 property_store_digest(const bytea *bytes);
extern bool property_store_equal(const bytea *a, const bytea *b);

#endif
