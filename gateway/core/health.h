/*
 * health.h - does the database answer? Asked once a second, so that those who ask us need not wait for it.
 */
#ifndef HEALTH_H
#define HEALTH_H

#include "support/buf.h"

#include <stdbool.h>

/* Once a second. */
extern void health_tick(void);
/* The last answer is not older than 3 s. */
extern bool health_database_answers(void);
/* May new editors be sent here? reasons, if not NULL, gets the texts of why not, as members of a JSON list. */
extern bool health_is_ready(Buf *reasons);

#endif
