/* skeleton.h - by what names that look alike are found; see skeleton.c. */
#ifndef SKELETON_H
#define SKELETON_H

#include "postgres.h"

/* In the current memory context. */
extern char *skeleton_of(const char *name);

#endif
