/* calendars.h - commits of edits of calendars are noted for the timer's worker; see calendars.c. */
#ifndef CALENDARS_H
#define CALENDARS_H

/* Called by _PG_init. */
extern void calendars_init(void);

#endif
