/* pastes.h - the routes of pastes; see pastes.c. */
#ifndef PASTES_H
#define PASTES_H

#include "http/request/request.h"

#define PASTE_MIN_BYTES 20
#define PASTE_MAX_BYTES 32768
/* Of a request that makes one: a byte of the content has at most six bytes in JSON, and three in a form. */
#define PASTE_BODY_BYTES (PASTE_MAX_BYTES * 6 + 8192)

extern void route_paste(Request *request);		/* POST /paste */
extern void route_new_record(Request *request); /* POST /record */
extern void route_record(Request *request);		/* GET /record/ID */
extern void route_paste_text(Request *request); /* GET /p/ID */

#endif
