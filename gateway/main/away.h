/* away.h - the sheets of a gateway whom the database does not answer; see away.c. */
#ifndef AWAY_H
#define AWAY_H

/* Called once a second. */
extern void away_tick(void);

#endif
