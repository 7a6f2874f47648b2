/* follow.h - hears of edits that others commit; see follow.c. */
#ifndef FOLLOW_H
#define FOLLOW_H

#include <stdint.h>

extern void follow_start(void); /* gateway.follow must be open */
/* How often it was heard that accounts, or who may do what, have changed. */
extern uint64_t follow_changes(void);

#endif
