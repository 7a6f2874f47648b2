/*
 * follow.h - hears of commits and changes elsewhere; see follow.c.
 */
#ifndef FOLLOW_H
#define FOLLOW_H

/* gateway.follow must be open. */
extern void follow_start(void);

#endif
