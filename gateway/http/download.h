/* download.h - GET /getchunk: a file out of the database, part by part; see download.c. */
#ifndef DOWNLOAD_H
#define DOWNLOAD_H

#include "buf.h"

#include <stdbool.h>

struct Request;
typedef struct Download Download;

/* The route. */
extern void route_get_file(struct Request *request);
/* Appends the next piece to what is sent, or fetches it, and wakes the connection when it is there. True: the last one.
 */
extern bool download_fill(struct Request *request, Buf *to);
extern void download_free(Download *download);

#endif
