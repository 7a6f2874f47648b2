/* follow.h - hears of edits that others commit; see follow.c. */
#ifndef FOLLOW_H
#define FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

extern void follow_start(void); /* gateway.follow must be open */
/* How often it was heard that accounts, or who may do what, have changed: a clock for follow_has_changed(). */
extern uint64_t follow_changes(void);
/* Has the sheet's row, or its members, or the account -sheet_id changed since follow_changes() was `asked`? Now and
 * then true without: the answer is a hash's. */
extern bool follow_has_changed(int64_t sheet_id, uint64_t asked);
/* The row of a sheet or its members have changed, or the account -sheet_id: what is remembered of it is forgotten. For
 * changes of our own, before they are acknowledged; those of others are heard. */
extern void follow_changed(int64_t sheet_id);
/* All that was committed up to two seconds ago has been heard. */
extern bool follow_is_current(void);

#endif
