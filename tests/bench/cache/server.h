/* server.h - the server under the benchmark: other settings, and what its machine can do. */
#ifndef SERVER_H
#define SERVER_H

#include "bench.h"

#include <stdbool.h>

#define SERVER_AMPLE (-1) /* the cache of bench.conf */

extern Session *server_connect(void);
/* With a cache of this size; nothing of before is in shared memory. drop_caches: nor in the system's page cache.
 * Sessions other than the monitor must have been closed. */
extern void server_restart(Bench *bench, int64_t cache_kb, bool drop_caches);
/* Bytes that the session's backend has read from disks; -1: not known. */
extern int64_t server_bytes_read(Session *session);
/* Bytes a second that memcpy() moves in this process, in blocks that no cache of the processor holds. */
extern double server_memory_speed(void);

#endif
