/* sendbuffer.h - room for answers to the client; see sendbuffer.c. */
#ifndef SENDBUFFER_H
#define SENDBUFFER_H

#include "postgres.h"

/* A row with a value of so many bytes is about to be sent: most often it goes with one system call then, together with
 * the messages around it. */
extern void sendbuffer_expect(Size bytes);

#endif
