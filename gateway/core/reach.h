/* reach.h - which of the other gateways accept no connections; see reach.c. */
#ifndef REACH_H
#define REACH_H

#include <stdbool.h>

/* Follows the members of the ring, and connects to those that are not connected. Called once a second. */
extern void reach_tick(void);
/* Whether the member accepts no connections now. No system call. */
extern bool reach_is_refusing(const char *member);
extern void reach_close(void);

#endif
