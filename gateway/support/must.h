/*
 * must.h - allocations without which the process cannot go on; see must.c.
 */
#ifndef MUST_H
#define MUST_H

/* Returns memory. When that is NULL it says so in the log and ends the process. */
extern void *must_have(void *memory);

#endif
