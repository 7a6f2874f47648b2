/* tab_name.h - how names are compared; see tab_name.c. */
#ifndef SUPPORT_TAB_NAME_H
#define SUPPORT_TAB_NAME_H

#include "postgres.h"

/* The name in Unicode's normal form C. May return the argument. */
extern char *tab_name_normal(char *name);
/* The same for names that differ only in the case of their letters, or in the form of composed characters. Palloced.
 * Never stored: it may change with ICU. */
extern char *tab_name_key(char *name);

/* A name that many others are compared with. */
typedef struct TabName
{
	char *name, *key;
	bool ascii;
	MemoryContext scratch; /* of a comparison */
} TabName;

/* In the current memory context. */
extern void tab_name_init(TabName *tab, char *name);
/* Whether a name, which is not terminated, has the same key. Raises an error only without memory. */
extern bool tab_name_is(const TabName *tab, const char *name, Size len);

#endif
