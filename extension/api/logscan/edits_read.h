/*
 * edits_read.h - edits of the log, as rows: which ones, in which order; see edits_read.c.
 */
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
	EDITS_LID,
	EDITS_AT,
	EDITS_UID,
	EDITS_USERNAME, /* has no range: it is looked for as a uid */
	EDITS_ORIGIN,
	EDITS_KIND, /* in ranges: the number of the kind */
	EDITS_ROW,
	EDITS_COL,
	EDITS_RANGES, /* the columns before this one can be looked for by range */
	EDITS_A1 = EDITS_RANGES,
	EDITS_OLD,
	EDITS_NEW,
	EDITS_STYLE,
	EDITS_COLUMNS = EDITS_STYLE
} EditsColumn;

/* What is wanted of each edit, besides its sheet, log, origin, seq and time, which the batch tells. */
typedef enum EditsNeed
{
	EDITS_NEED_BATCH, /* nothing */
	EDITS_NEED_KIND,
	EDITS_NEED_CONTENTS
} EditsNeed;

typedef struct EditsQuery
{
	bool listed;	/* of all sheets in sheet.list, whose ids are in the range; else of one, which must be permitted */
	int64 sheet_id; /* that one */
	CallRange range[EDITS_RANGES]; /* indexed by column */
	EditsNeed need;				   /* of what is returned; that of the ranges comes to it by itself */
	bool backward;				   /* from the last edit of the last sheet to the first of the first */
	Snapshot snapshot;
} EditsQuery;

/* What a scan has cost, over all its queries. */
typedef struct EditsCounters
{
	int64 batches_read;	   /* whose edits were returned or looked at */
	int64 batches_skipped; /* of which only seq, log, time and origin were looked at */
	int64 edits_skipped;   /* in batches that were read */
} EditsCounters;

typedef struct EditsReader EditsReader;

extern EditsNeed edits_need_of(EditsColumn column);
extern void edits_query_init(EditsQuery *query);

/* Checks that the caller may read the sheet, or finds out which are listed. Lives in the current memory context. */
extern EditsReader *edits_begin(const EditsQuery *query, EditsCounters *counters);
extern bool edits_next(EditsReader *reader);
/* In place of edits_next(): how many there are. */
extern int64 edits_count(EditsReader *reader);
/* The columns of the current edit, each at most once; they are valid until the next edits_begin_row(). */
extern void edits_begin_row(EditsReader *reader);
extern Datum edits_value(EditsReader *reader, EditsColumn column, bool *isnull);
extern void edits_end(EditsReader *reader);

extern const char *edits_kind_name(EditKind kind);
/* The content after the edit. */
extern EditText edits_new(const Edit *edit);
/* The place of an edit as people see it: -1 where it has none. */
extern int32 edits_row(const Edit *edit);
extern int32 edits_col(const Edit *edit);
/* The number of a kind's name, 0 when it is none. */
extern int64 edits_kind_number(const char *name, size_t len);

#endif
