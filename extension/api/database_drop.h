/* database_drop.h - the end of what is known of a database; see database_drop.c. */
#ifndef DATABASE_DROP_H
#define DATABASE_DROP_H

/* From _PG_init. */
extern void database_drop_init(void);

#endif
