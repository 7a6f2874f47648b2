/* upload.h - POST /uploadchunk: a file of any size into the database, in parts; see upload.c. */
#ifndef UPLOAD_H
#define UPLOAD_H

#include <stdbool.h>
#include <stddef.h>

struct Request;
typedef struct Upload Upload;

/* Begins with the request's headers; answers and returns false when they are no form. */
extern bool upload_begin(struct Request *request);
/* A piece of the body. */
extern void upload_body(struct Request *request, const char *data, size_t len);
extern void upload_body_end(struct Request *request);
extern void upload_free(Upload *upload);
/* The form's token; NULL when there is none. */
extern const char *upload_token(const Upload *upload);

#endif
