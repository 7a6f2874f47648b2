/* databases.h - removes what shared memory has of a dropped database; see databases.c. */
#ifndef DATABASES_H
#define DATABASES_H

extern void databases_init(void);

#endif
