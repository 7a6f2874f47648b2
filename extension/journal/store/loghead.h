/* loghead.h - the row that opens a log; see loghead.c. */
#ifndef LOGHEAD_H
#define LOGHEAD_H

#include "postgres.h"

/* at: microseconds since the Unix epoch */
extern void loghead_write(int64 sheet_id, int64 lid, int64 first_seq, int64 at);
extern void loghead_delete(int64 sheet_id, int64 lid);

#endif
