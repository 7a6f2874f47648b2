/* databases.h - what shared memory knows of a database goes with it; see databases.c. */
#ifndef DATABASES_H
#define DATABASES_H

extern void databases_init(void);

#endif
