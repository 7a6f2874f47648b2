/* segment.h - the row that opens a log; see segment.c. */
#ifndef SEGMENT_H
#define SEGMENT_H

#include "postgres.h"

/* at: microseconds since the Unix epoch */
extern void segment_write(int64 sheet_id, int64 segment_id, int64 first_seq, int64 at);
extern void segment_delete(int64 sheet_id, int64 segment_id);

#endif
