/* download.h - GET /getchunk: a file out of the database, part by part; see download.c. */
#ifndef DOWNLOAD_H
#define DOWNLOAD_H

#include <stdbool.h>

struct Request;
typedef struct Download Download;

/* The route. */
extern void route_get_file(struct Request *request);
/* Is there something to write? Otherwise the next part is fetched, and the request woken when it is there. */
extern bool download_fill(struct Request *request);
extern int download_write(struct Request *request);
extern void download_free(Download *download);

#endif
