/* lease.h - how long a session keeps its locks with names when its client is silent or gone; see lease.c. */
#ifndef LEASE_H
#define LEASE_H

#include <stdbool.h>

/*
 * From now on the session ends when its client is silent or gone for so long; the shortest lease counts. If the
 * transaction is rolled back, release() is called for each name that it took and did not give back.
 */
extern void lease_begin(int ms, void (*release)(const char *name));
extern void lease_took(const char *name);
extern void lease_gave_back(const char *name);
/* The settings of the session are again as they were before the first lease. */
extern void lease_end(void);
extern bool lease_is_on(void);

#endif
