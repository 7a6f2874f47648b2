/* role_link.h - the end of a role's link to its account; see role_link.c. */
#ifndef ROLE_LINK_H
#define ROLE_LINK_H

/* From _PG_init. */
extern void role_link_init(void);

#endif
