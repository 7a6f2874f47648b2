/* read.h - what the files of this folder share; the functions for others are in journal.h. */
#ifndef READ_H
#define READ_H

#include "postgres.h"
#include "utils/snapshot.h"

/* The snapshot of a read. fresh: a new one if the isolation level allows it. */
extern Snapshot read_snapshot(bool fresh);

#endif
