/*
 * side.h - the two logs that are compared: a heap table with a primary key, and pg_sheet's.
 *
 * Both are written through one prepared statement with binary parameters for a batch; a Feed is one sheet on one side.
 */
#ifndef SIDE_H
#define SIDE_H

#include "report.h"
#include "session.h"
#include "workload.h"

#define SIDE_MAX_EDITS 1000

typedef struct Feed
{
	SideName side;
	int64_t sheet_id;
	int64_t next_seq; /* 2 at first: a sheet is born with one edit, which gives its size */
	WorkloadSheet *sheet;
} Feed;

extern void feed_init(Feed *feed, SideName side, int64_t sheet_id, uint64_t seed);
/* Edits that the feed has appended. */
extern int64_t feed_edits(const Feed *feed);

/* Makes the heap table. */
extern void side_create(Session *session);
extern void side_prepare(Session *session);
/* Appends the feed's next edits, in a transaction of their own; one edit on the heap is a plain INSERT. */
extern void side_append(Session *session, Feed *feed, int count);

#endif
