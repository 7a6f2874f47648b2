/* follow.h - hears of edits that others commit; see follow.c. */
#ifndef FOLLOW_H
#define FOLLOW_H

extern void follow_start(void); /* gateway.follow must be open */

#endif
