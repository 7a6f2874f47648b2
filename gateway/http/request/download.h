/* download.h - GET /getchunk: a file out of the database, part by part; see download.c. */
#ifndef DOWNLOAD_H
#define DOWNLOAD_H

struct Request;
typedef struct Download Download;

/* The route. */
extern void route_get_file(struct Request *request);
extern void download_free(Download *download);

#endif
