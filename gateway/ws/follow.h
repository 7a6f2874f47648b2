/* follow.h - hears of edits that others commit; see follow.c. */
#ifndef FOLLOW_H
#define FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

extern void follow_start(void); /* gateway.follow must be open */
/* How often it was heard that accounts, or who may do what, have changed. */
extern uint64_t follow_changes(void);
/* The row of a sheet or its members have changed, or the account -sheet_id: what is remembered of it is forgotten. For
 * changes of our own, before they are acknowledged; those of others are heard. */
extern void follow_changed(int64_t sheet_id);
/* All that was committed up to two seconds ago has been heard. */
extern bool follow_is_current(void);

#endif
