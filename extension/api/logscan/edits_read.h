/* edits_read.h - reads edits of the log as rows. */
#ifndef EDITS_READ_H
#define EDITS_READ_H

#include "postgres.h"
#include "api/scan/call.h"
#include "common/edit_codec.h"
#include "journal/replay/batches.h"
#include "permission/usernames.h"
#include "utils/snapshot.h"

/* The columns of sheet.log_edits, in their order. */
typedef enum EditsColumn
{
	EDITS_SHEET_ID = 1,
	EDITS_SEQ,
	EDITS_SEGMENT_ID,
	EDITS_AT,
	EDITS_UID,
	EDITS_USERNAME, /* its range is unused: a condition limits the uid */
	EDITS_ORIGIN,
	EDITS_KIND, /* its range is of EditKind */
	EDITS_ROW,
	EDITS_COL,
	EDITS_RANGES, /* the columns before this one have ranges */
	EDITS_A1 = EDITS_RANGES,
	EDITS_OLD,
	EDITS_NEW,
	EDITS_STYLE,
	EDITS_TARGET,
	EDITS_KEY,
	EDITS_COLUMNS = EDITS_KEY
} EditsColumn;

/* How much of a batch has to be unpacked. Sheet, segment, origin, seqs and times are known without. */
typedef enum EditsNeed
{
	EDITS_NEED_BATCH,
	EDITS_NEED_KIND,
	EDITS_NEED_CONTENTS
} EditsNeed;

typedef struct EditsQuery
{
	bool listed;				   /* reads all sheets of sheet.list whose ids are in range, else the one sheet_id */
	int64 sheet_id;				   /* edits_begin() fails without permission to read it */
	CallRange range[EDITS_RANGES]; /* indexed by column */
	EditsNeed need;				   /* of the columns that are returned; edits_begin() adds that of the ranges */
	bool backward;				   /* from the last edit of the last sheet to the first edit of the first */
	Snapshot snapshot;
} EditsQuery;

/* For EXPLAIN ANALYZE, over all executions of a scan. */
typedef struct EditsCounters
{
	int64 batches_read;
	int64 batches_skipped; /* by seq, segment, time or origin */
	int64 edits_skipped;   /* of batches that were read */
} EditsCounters;

typedef struct EditsReader EditsReader;

extern EditsNeed edits_need_of(EditsColumn column);

/* Checks permission as of the current role. The reader is allocated in the current memory context. */
extern EditsReader *edits_begin(const EditsQuery *query, EditsCounters *counters);
/* Goes to the next edit. Returns false if there is none. */
extern bool edits_next(EditsReader *reader);
/* The number of edits. Called instead of edits_next(). */
extern int64 edits_count(EditsReader *reader);
/* A column of the current edit, asked for at most once. Valid until the next edit, or as long as the current memory
 * context. */
extern Datum edits_value(EditsReader *reader, EditsColumn column, bool *isnull);
extern void edits_end(EditsReader *reader);

/* The kind of this name, 0 if there is none. */
extern int64 edits_kind_number(const char *name, size_t len);

/* edits_scan.c. Called by _PG_init. */
extern void edits_scan_init(void);

#endif
